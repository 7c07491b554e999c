"""What one call can conclude after a lost answer, tier by tier, on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from outside import Make, World

from counterfoil import Absent, Effect, Found, KeyPolicy, Policy, Proof, Tool, Unclear, Verdict, tool


def test_t0_stops_at_unknown(world: World, executor_of: Make) -> None:
    """Without a postcondition nothing can be proven: unknown, and no second request, however often it is called."""

    @tool(key=("order",))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        world.act(effect)
        return "paid"

    executor = executor_of(pay)
    world.next = ["ack_lost"]
    for _ in range(3):
        seen = executor.call("pay", {"order": "A"})
        assert (seen.verdict, seen.code, seen.attempts) == (Verdict.EFFECT_UNKNOWN, "effect_unknown", 1)
        world.clock.advance(10_000)
    assert len(world.requests) == 1


@pytest.mark.parametrize(("fault", "verdict"), [("ack_lost", "effect_applied"), ("request_lost", "effect_unknown")])
def test_t1_concludes_applied_never_no_effect(world: World, executor_of: Make, fault: str, verdict: str) -> None:
    """With a postcondition and no grace, looking may find it, and its absence proves nothing."""

    @tool(key=("order",))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        world.act(effect)
        return "paid"

    @pay.postcondition
    def paid(effect: Effect) -> Found[str] | Absent | Unclear:
        return Found("paid", reference=None) if world.count(effect.id) else Absent()

    executor = executor_of(pay)
    world.next = [fault]
    assert executor.call("pay", {"order": "A"}).verdict == verdict
    world.clock.advance(100_000)
    assert executor.call("pay", {"order": "A"}).verdict == verdict
    assert len(world.requests) == 1


def test_t2_finds_what_landed(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """The answer was lost, the effect is there: found by looking, one request."""
    executor = executor_of(charge)
    world.next = ["ack_lost"]
    seen = executor.call("charge", {"order": "A", "amount": 5})
    assert (seen.verdict, seen.proof, seen.code, seen.value) == (
        Verdict.EFFECT_APPLIED, Proof.FOUND, "verified", {"amount": 5})  # fmt: skip
    assert len(world.requests) == 1


def test_t2_sends_again_only_after_absence_is_proven(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """The request was lost: absent after deadline, grace and margin, then sent again within the same call."""
    executor = executor_of(charge)
    world.next = ["request_lost"]
    begun = world.clock.wall_us()
    seen = executor.call("charge", {"order": "A", "amount": 5})
    assert (seen.verdict, seen.attempts, world.count(seen.effect_id)) == (Verdict.EFFECT_APPLIED, 2, 1)
    second = [entry for entry in executor.audit.history(str(seen.effect_id)) if entry.event == "begun"][1]
    assert second.at - begun > 9_000_000, "timeout 5 + grace 2 + margin 2"
    assert second.detail["permission"] == "absent_after_grace"


def test_t2_stays_unknown_while_the_look_fails(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """A look that raises, hangs or returns nonsense is unclear: unknown, nothing is sent again."""
    executor = executor_of(charge)
    for number, fault in enumerate(("raises", "nonsense")):
        world.next, world.looks = ["request_lost"], [fault] * 50
        seen = executor.call("charge", {"order": f"A{number}", "amount": 5})
        assert (seen.verdict, seen.attempts) == (Verdict.EFFECT_UNKNOWN, 1)
        reasons = {entry.detail.get("reason") for entry in executor.audit.history(str(seen.effect_id))}
        assert not any("secret" in str(reason) for reason in reasons)
    assert len(world.requests) == 2


def test_t2_a_look_that_hangs_is_given_up(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """A hanging postcondition costs its time limit, never the truth."""
    executor = executor_of(charge)
    world.next, world.looks = ["ack_lost"], ["hangs"]
    seen = executor.call("charge", {"order": "A", "amount": 5})
    assert seen.verdict is Verdict.EFFECT_UNKNOWN
    world.go_on.set()
    assert executor.call("charge", {"order": "A", "amount": 5}).verdict is Verdict.EFFECT_APPLIED
    assert len(world.requests) == 1


def keyed_tool(world: World, policy: KeyPolicy) -> Tool[..., Any]:
    """A tool whose provider de-duplicates, without a postcondition."""

    @tool(key=("order",), policy=Policy(timeout_s=5, grace_s=2, patience_s=60, key_policy=policy))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        world.act(effect, keyed=True)
        return "paid"

    return pay


@pytest.mark.parametrize("concurrent", [True, False])
def test_t3_sends_the_same_again_under_its_key(world: World, executor_of: Make, concurrent: bool) -> None:
    """The provider de-duplicates: the same key goes out again, within the call, and there is one effect."""
    executor = executor_of(keyed_tool(world, KeyPolicy(retention_s=600, concurrent=concurrent)))
    world.next = ["ack_lost", "request_lost"]
    seen = executor.call("pay", {"order": "A"})
    assert (seen.verdict, seen.proof, seen.attempts) == (Verdict.EFFECT_APPLIED, Proof.RETURNED, 3)
    assert len(set(world.requests)) == 1
    assert world.count(seen.effect_id) == 1


def test_t3_stops_when_the_key_is_forgotten(world: World, executor_of: Make) -> None:
    """Outside the retention the key protects nothing: unknown, and nothing is sent."""
    executor = executor_of(keyed_tool(world, KeyPolicy(retention_s=20, concurrent=True)))
    world.next = ["ack_lost", "request_lost", "request_lost"]
    assert executor.call("pay", {"order": "A"}).verdict is Verdict.EFFECT_UNKNOWN
    world.clock.advance(20)
    assert executor.call("pay", {"order": "A"}).verdict is Verdict.EFFECT_UNKNOWN
    assert len(world.requests) == 3


def test_a_connect_failure_proves_nothing_unless_declared(world: World, executor_of: Make) -> None:
    """`sends="anywhere"`: the same exception ends a client that resent, so it is lost (F5)."""
    tried: list[Tool[..., Any]] = []
    for name, sends in (("anywhere", "anywhere"), ("once", "once")):

        @tool(key=("order",), name=name, sends=sends)  # type: ignore[arg-type]
        def pay(effect: Effect, order: str) -> str:
            """Pay one order."""
            world.act(effect)
            return "paid"

        tried.append(pay)
    executor = executor_of(*tried)
    world.next = ["refused"]
    assert executor.call("anywhere", {"order": "A"}).verdict is Verdict.EFFECT_UNKNOWN
    world.next = ["refused", "refused"]
    seen = executor.call("once", {"order": "A"})
    assert (seen.verdict, seen.attempts) == (Verdict.EFFECT_APPLIED, 3)


def test_read_only_tools_have_no_row(world: World, executor_of: Make) -> None:
    """Reading changes nothing: it is simply asked again, and leaves no effect."""
    answers: list[Any] = [TimeoutError(), ["a"]]

    @tool(read_only=True)
    def slots(day: str) -> list[str]:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return list(answer)

    executor = executor_of(slots)
    seen = executor.call("slots", {"day": "today"})
    assert (seen.ok, seen.verdict, seen.value, seen.effect_id) == (True, Verdict.NO_EFFECT, ["a"], None)
    assert executor.audit.effects() == []


def test_verify_always_looks_after_a_success(world: World, executor_of: Make) -> None:
    """A success that a look does not see stays applied and is marked; a later sight clears the mark."""
    visible: list[str] = []

    @tool(key=("order",), policy=Policy(verify="always"))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        world.act(effect)
        return "paid"

    @pay.postcondition
    def paid(effect: Effect) -> Found[str] | Absent | Unclear:
        return Found("paid", reference=None) if effect.id in visible else Absent()

    executor = executor_of(pay)
    seen = executor.call("pay", {"order": "A"})
    assert (seen.code, seen.ok, seen.verdict, seen.proof) == (
        "unverified", True, Verdict.EFFECT_APPLIED, Proof.RETURNED)  # fmt: skip
    visible.append(str(seen.effect_id))
    world.clock.advance(5)
    assert executor.reconcile().looked == 1
    assert executor.call("pay", {"order": "A"}).code == "replayed"
    world.clock.advance(100_000)
    assert executor.reconcile().looked == 0
    assert executor.call("pay", {"order": "B"}).code == "unverified"
    assert len(world.requests) == 2


def test_every_lost_answer_is_followed_by_a_look(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """Also the second one, after absence had been proven for the first: found at once, not left as a doubt."""
    executor = executor_of(charge)
    world.next = ["request_lost", "ack_lost"]
    seen = executor.call("charge", {"order": "A", "amount": 5})
    assert (seen.code, seen.attempts, world.count(seen.effect_id)) == ("verified", 2, 1)


def test_where_nothing_can_look_the_model_is_told_to_report(world: World, executor_of: Make) -> None:
    """T0: asking again would only send the model in circles."""

    @tool(key=("order",))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        world.act(effect)
        return "paid"

    executor = executor_of(pay)
    world.next = ["ack_lost"]
    seen = executor.call("pay", {"order": "A"})
    world.clock.advance(1000)
    for told in (seen, executor.call("check_effect", {"effect_id": seen.effect_id})):
        assert "a person has to check it" in told.next_action
        assert "check_effect" not in told.next_action
