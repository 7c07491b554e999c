"""Revoke and compensation: effects of their own that decide for another one, on both databases."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from outside import Make, MakeAsync, World

from counterfoil import (
    Absent,
    Effect,
    Executor,
    Found,
    Policy,
    Proof,
    Rejected,
    Revoked,
    Tool,
    Unclear,
    UsageError,
    Verdict,
    tool,
)
from counterfoil.changes import SettleLook, SettleReturned, StoredValue


class Till:
    """A provider that keeps a stone for what was revoked, and refuses it from then on."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.stones: list[str] = []
        self.refunds: list[str] = []
        self.fates: list[str] = []

    def pay(self, effect: Effect) -> None:
        if effect.id in self.stones and effect.provider_key.endswith("-k0"):
            raise Rejected("revoked", "it was revoked", status=410)
        self.world.act(effect)

    def withdraw(self, effect: Effect) -> Revoked | Found[str]:
        fate = self.fates.pop(0) if self.fates else "acknowledged"
        if fate == "refused":
            raise Rejected("too_late", "it is not revocable")
        if fate == "request lost":
            raise TimeoutError
        original = effect.original
        if fate.startswith("undone"):
            self.world.effects = [name for name in self.world.effects if name != original.id]
            self.stones.append(original.id)
            if fate == "undone, answer lost":
                raise TimeoutError
            return Revoked()
        if self.world.count(original.id):
            return Found("paid", reference=None)
        self.stones.append(original.id)
        if fate == "answer lost":
            raise TimeoutError
        return Revoked()

    def refund(self, effect: Effect) -> dict[str, Any]:
        fate = self.fates.pop(0) if self.fates else "done"
        if fate == "request lost":
            raise TimeoutError
        self.refunds.append(effect.original.id)
        if fate == "answer lost":
            raise TimeoutError
        return {"refunded": effect.original.value, "order": effect.original.arguments["order"]}


@pytest.fixture
def till(world: World) -> Till:
    """The provider of these tests."""
    return Till(world)


@pytest.fixture
def pay(till: Till) -> Tool[..., Any]:
    """A tool with a revoke and a compensation, and no postcondition of its own."""

    @tool(key=("order",), policy=Policy(timeout_s=5, patience_s=5))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        till.pay(effect)
        return "paid"

    @pay.revoke(policy=Policy(timeout_s=5, patience_s=5, attempts_max=1))
    def withdraw(effect: Effect) -> Revoked | Found[str]:
        """Withdraw the payment of one order."""
        return till.withdraw(effect)

    @pay.compensation(policy=Policy(timeout_s=5, grace_s=2, patience_s=20))
    def refund(effect: Effect) -> dict[str, Any]:
        """Refund the payment of one order."""
        return till.refund(effect)

    @refund.postcondition
    def refunded(effect: Effect) -> Found[dict[str, Any]] | Absent | Unclear:
        there = till.refunds.count(effect.original.id)
        return Found({"refunded": "seen"}, reference=None, count=there) if there else Absent()

    return pay


def unknown(executor: Any, world: World, fault: str, order: str = "A") -> str:
    """An effect of which nobody knows whether it is there."""
    world.next = [fault]
    seen = executor.call("pay", {"order": order})
    assert seen.verdict is Verdict.EFFECT_UNKNOWN
    world.clock.advance(60)
    return str(seen.effect_id)


def test_an_acknowledged_revoke_ends_a_doubt_as_no_effect(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make
) -> None:
    """The stone refuses the original from now on; a new call is a new request, under a new provider key."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "request_lost")
    seen = executor.revoke(effect_id)
    assert (seen.verdict, seen.proof, seen.code) == (Verdict.NO_EFFECT, Proof.REVOKED, "revoked")
    assert till.stones == [effect_id]
    again = executor.call("pay", {"order": "A"})
    assert (again.code, world.count(effect_id)) == ("ok", 1)
    assert [key[-3:] for _, key in world.requests] == ["-k0", "-k1"]


def test_a_revoke_that_finds_the_effect_ends_it_as_applied(
    pay: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """It had landed: applied, with what was found."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "ack_lost")
    seen = executor.revoke(effect_id)
    assert (seen.verdict, seen.proof, seen.value) == (Verdict.EFFECT_APPLIED, Proof.FOUND, "paid")
    assert executor.call("pay", {"order": "A"}).code == "replayed"


def test_nothing_begins_while_a_revoke_is_unknown(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make
) -> None:
    """Its own doubt is ended by sending it again: it is idempotent by declaration (F7 b, e)."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "request_lost")
    till.fates = ["answer lost"]
    assert executor.revoke(effect_id).verdict is Verdict.EFFECT_UNKNOWN
    requests = len(world.requests)
    world.clock.advance(1000)
    assert executor.call("pay", {"order": "A"}).verdict is Verdict.EFFECT_UNKNOWN
    assert len(world.requests) == requests
    assert executor.revoke(effect_id).proof is Proof.REVOKED
    assert executor.call("pay", {"order": "A"}).code == "ok"


def test_what_an_operator_closed_does_not_begin_while_a_revoke_is_unknown(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make
) -> None:
    """A person said no effect while a revoke is under way: acknowledged late, it must not speak of a newer attempt."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "request_lost")
    version = executor.audit.effect(effect_id).version
    executor.resolve(effect_id, "no_effect", by="an operator", why="looked by hand", version=version)
    till.fates = ["answer lost"]
    executor.revoke(effect_id)
    seen = executor.call("pay", {"order": "A"})
    assert (seen.code, len(world.requests)) == ("revoking", 1)
    assert executor.revoke(effect_id).proof is Proof.REVOKED
    assert executor.call("pay", {"order": "A"}).code == "ok"
    assert world.count(effect_id) == 1


def test_a_refused_revoke_leaves_the_doubt_as_it_was(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make
) -> None:
    """The provider laid no stone: still unknown, and another revoke may be tried."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "request_lost")
    till.fates = ["refused"]
    assert executor.revoke(effect_id).verdict is Verdict.EFFECT_UNKNOWN
    assert executor.audit.effect(effect_id).revoke_by is None
    assert executor.revoke(effect_id).proof is Proof.REVOKED


def test_a_success_of_a_revoked_attempt_is_an_entry_and_no_latch(
    pay: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """The acknowledgement decides for every attempt it named, whatever it says later (F7 d)."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "request_lost")
    executor.revoke(effect_id)
    row = executor.audit.effect(effect_id)
    late = SettleReturned(
        key=row.key, attempt=1, actor="host:1", provider_key=row.provider_key, value=StoredValue('"late"', 6)
    )
    executor._ledger.apply([late])
    assert executor.audit.effect(effect_id).verdict is Verdict.NO_EFFECT
    assert executor.audit.history(effect_id)[-1].event == "returned_after_revoke"


def found_before(executor: Executor, effect_id: str) -> SettleLook:
    """What a look asked now has found, to be written later."""
    row = executor.audit.effect(effect_id)
    seen: Found[None] = Found(None, reference=None)
    return SettleLook(key=row.key, actor="host:2", asked_at=row.now, found=seen, value=StoredValue('"paid"', 6))


def test_a_look_does_not_end_a_revoke_that_is_under_way(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make
) -> None:
    """What a look saw before the revoke landed latches, and the revoke can still be sent again and say that nothing
    stands: otherwise the row would say applied for ever, of an effect that was taken back."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "ack_lost")
    look = found_before(executor, effect_id)
    till.fates = ["undone, answer lost", "undone"]
    executor.revoke(effect_id)
    executor._ledger.apply([look])
    assert executor.audit.effect(effect_id).verdict is Verdict.EFFECT_APPLIED
    world.clock.advance(60)
    executor.revoke(effect_id)
    row = executor.audit.effect(effect_id)
    assert row.undone_by is not None
    assert row.revoke_by is None
    assert (executor.call("pay", {"order": "A"}).code, world.count(effect_id)) == ("ended", 0)


def test_what_was_seen_before_a_revoke_proves_nothing_of_a_later_attempt(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make
) -> None:
    """An acknowledged revoke has undone what an earlier look saw. Written after the next begin, that look would say
    applied of an attempt that may have done nothing."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "ack_lost")
    look = found_before(executor, effect_id)
    till.fates = ["undone"]
    assert executor.revoke(effect_id).proof is Proof.REVOKED
    unknown(executor, world, "request_lost")
    executor._ledger.apply([look])
    assert world.count(effect_id) == 0
    assert executor.audit.effect(effect_id).verdict is Verdict.EFFECT_UNKNOWN
    assert executor.audit.history(effect_id)[-1].event == "found_before_revoke"


def test_each_doubt_has_a_revoke_of_its_own(pay: Tool[..., Any], till: Till, world: World, executor_of: Make) -> None:
    """After another attempt the first revoke is not replayed: it had named earlier attempts only (F7 c)."""
    executor = executor_of(pay)
    effect_id = unknown(executor, world, "request_lost")
    executor.revoke(effect_id)
    unknown(executor, world, "ack_lost")
    seen = executor.revoke(effect_id)
    assert (seen.verdict, world.count(effect_id)) == (Verdict.EFFECT_APPLIED, 1)


def test_what_is_applied_is_compensated_once(pay: Tool[..., Any], till: Till, world: World, executor_of: Make) -> None:
    """A compensation is an effect of its own, linked both ways; the original is answered `ended`."""
    executor = executor_of(pay)
    paid = str(executor.call("pay", {"order": "A"}, task="trip").effect_id)
    seen = executor.compensate(paid)
    assert (seen.code, seen.value) == ("ok", {"refunded": "paid", "order": "A"})
    assert executor.compensate(paid).code == "replayed"
    assert till.refunds == [paid]
    ended = executor.call("pay", {"order": "A"})
    assert (ended.code, ended.verdict, ended.ok) == ("ended", Verdict.EFFECT_APPLIED, False)
    assert "was taken back" in ended.text
    original, refund = executor.audit.effect(paid), executor.audit.effect(str(seen.effect_id))
    assert (original.undone_by, refund.undoes, refund.task) == (refund.id, original.key, "trip")
    assert [entry.event for entry in executor.audit.history(paid)] == [
        "begun", "returned", "compensation_asked", "compensated"]  # fmt: skip


@pytest.mark.parametrize("fate", ["answer lost", "request lost"])
def test_a_compensation_in_doubt_is_settled_like_any_effect(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make, fate: str
) -> None:
    """Found, or absent and sent again: one refund either way."""
    executor = executor_of(pay)
    paid = str(executor.call("pay", {"order": "A"}).effect_id)
    till.fates = [fate]
    assert executor.compensate(paid).verdict is Verdict.EFFECT_APPLIED
    assert till.refunds == [paid]
    assert executor.call("pay", {"order": "A"}).code == "ended"


def test_a_compensation_waits_while_a_second_request_may_be_under_way(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make
) -> None:
    """More than one attempt was made: not before the last possible send and its grace are over (F22)."""
    executor = executor_of(pay)
    paid = unknown(executor, world, "request_lost")
    executor.revoke(paid)
    assert executor.call("pay", {"order": "A"}).attempts == 2
    assert executor.compensate(paid).code == "conflict"
    world.clock.advance(60)
    assert executor.compensate(paid).code == "ok"
    assert till.refunds == [paid]


def test_only_what_fits_is_taken_back(pay: Tool[..., Any], till: Till, world: World, executor_of: Make) -> None:
    """Compensate only from applied, revoke only a doubt; otherwise nothing is begun."""
    executor = executor_of(pay)
    doubt = unknown(executor, world, "request_lost")
    paid = str(executor.call("pay", {"order": "B"}).effect_id)
    assert executor.compensate(doubt).code == "conflict"
    assert executor.revoke(paid).code == "conflict"
    assert (till.refunds, till.stones) == ([], [])
    assert len(executor.audit.effects()) == 2
    with pytest.raises(UsageError, match="no effect has this id"):
        executor.revoke("cf-nothing")


def test_rollback_compensates_a_task_newest_first(
    pay: Tool[..., Any], till: Till, world: World, executor_of: Make
) -> None:
    """Each applied effect of the task, newest first, and a word about what cannot be compensated."""

    @tool(key=("order",))
    def announce(order: str) -> str:
        """Announce one order."""
        return "announced"

    executor = executor_of(pay, announce)
    ids = []
    for order in ("A", "B"):
        ids.append(str(executor.call("pay", {"order": order}, task="trip").effect_id))
        world.clock.advance(1)
    ids.append(str(executor.call("announce", {"order": "A"}, task="trip").effect_id))
    executor.call("pay", {"order": "C"}, task="another")
    done = executor.rollback("trip")
    assert [(effect_id, seen.code) for effect_id, seen in done.items()] == [
        (ids[2], "conflict"), (ids[1], "ok"), (ids[0], "ok")]  # fmt: skip
    assert till.refunds == [ids[1], ids[0]]
    assert list(executor.rollback("trip")) == [ids[2]]


def test_the_asynchronous_executor_does_the_same(
    pay: Tool[..., Any], till: Till, world: World, async_executor_of: MakeAsync
) -> None:
    """revoke, compensate and rollback in a loop."""

    async def main() -> None:
        async with async_executor_of(pay) as executor:
            world.next = ["request_lost"]
            doubt = str((await executor.call("pay", {"order": "A"}, task="trip")).effect_id)
            world.clock.advance(60)
            assert (await executor.revoke(doubt)).proof is Proof.REVOKED
            await executor.call("pay", {"order": "A"}, task="trip")
            world.clock.advance(60)
            assert [seen.code for seen in (await executor.rollback("trip")).values()] == ["ok"]

    asyncio.run(main())
    assert len(till.refunds) == 1


def test_wrong_declarations_are_refused() -> None:
    """Each says how to mend it."""

    @tool(read_only=True)
    def price(order: str) -> int:
        return len(order)

    @tool(key=("order",))
    def pay(order: str) -> str:
        """Pay one order."""
        return order

    def withdraw(effect: Effect) -> Revoked:
        """Withdraw it."""
        return Revoked()

    def no_effect() -> Revoked:
        """Withdraw it."""
        return Revoked()

    pay.revoke()(withdraw)
    with pytest.raises(UsageError, match="has a revoke already"):
        pay.revoke()(withdraw)
    with pytest.raises(UsageError, match="changes nothing"):
        price.revoke()(withdraw)
    with pytest.raises(UsageError, match="takes the effect alone"):
        pay.compensation()(no_effect)  # type: ignore[arg-type]
    assert (pay.tier, pay.revoke_tool is not None) == ("T4", True)
