"""A function that outlives its deadline: unknown at the deadline, and what it says later is kept."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from outside import Make, World

from counterfoil import Absent, Effect, Executor, Found, Policy, Rejected, Tool, Unclear, Verdict, tool

POLICY = Policy(timeout_s=5, grace_s=2, patience_s=1)


def overrunning(world: World, ends: str, ended: threading.Event, sends: Any = "anywhere") -> Tool[..., Any]:
    """A tool whose clock runs past its deadline; it ends when the world lets it go on."""

    @tool(key=("order",), sends=sends, policy=POLICY)
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        try:
            world.clock.advance(6)
            world.go_on.wait(20)
            if ends == "sends late":
                with effect.sending():
                    world.act(effect)
            if ends == "rejects":
                raise Rejected("card_declined", "the card was declined")
            world.act(effect)
            return "paid"
        finally:
            ended.set()

    @pay.postcondition
    def paid(effect: Effect) -> Found[str] | Absent | Unclear:
        return Found("paid", reference=None) if world.count(effect.id) else Absent()

    return pay


def settled(executor: Executor, world: World, effect_id: str | None, verdict: Verdict) -> None:
    """Wait until the late end of an attempt stands in the ledger."""
    for _ in range(1000):
        if executor.audit.effect(str(effect_id)).verdict is verdict:
            return
        threading.Event().wait(0.01)
    raise AssertionError(executor.audit.history(str(effect_id)))


def test_a_late_success_is_recorded(world: World, executor_of: Make) -> None:
    """The caller hears unknown at the deadline; the thread's success latches when it comes."""
    ended = threading.Event()
    executor = executor_of(overrunning(world, "returns", ended))
    seen = executor.call("pay", {"order": "A"})
    assert (seen.verdict, seen.code) == (Verdict.EFFECT_UNKNOWN, "effect_unknown")
    world.go_on.set()
    settled(executor, world, seen.effect_id, Verdict.EFFECT_APPLIED)
    assert executor.call("pay", {"order": "A"}).value == "paid"
    assert world.count(seen.effect_id) == 1


def test_a_late_refusal_is_a_proof(world: World, executor_of: Make) -> None:
    """A refusal that comes after the deadline still closes its attempt."""
    executor = executor_of(overrunning(world, "rejects", threading.Event()))
    seen = executor.call("pay", {"order": "A"})
    assert seen.verdict is Verdict.EFFECT_UNKNOWN
    world.go_on.set()
    settled(executor, world, seen.effect_id, Verdict.NO_EFFECT)


def test_absence_proves_nothing_while_the_thread_lives(world: World, executor_of: Make) -> None:
    """The last possible send is pushed on while the function runs, from the deadline on (F2)."""
    executor = executor_of(overrunning(world, "returns", threading.Event()))
    seen = executor.call("pay", {"order": "A"})
    for _ in range(20):
        world.clock.advance(1)
        before = executor.audit.effect(str(seen.effect_id)).sends_until
        for _ in range(1000):
            if executor.audit.effect(str(seen.effect_id)).sends_until > before:
                break
            threading.Event().wait(0.005)
        executor.reconcile()
        assert executor.audit.effect(str(seen.effect_id)).verdict is Verdict.EFFECT_UNKNOWN
    world.go_on.set()
    settled(executor, world, seen.effect_id, Verdict.EFFECT_APPLIED)
    assert "overrun" in [entry.event for entry in executor.audit.history(str(seen.effect_id))]


def test_a_marked_send_cannot_pass_after_the_deadline(world: World, executor_of: Make) -> None:
    """`sends="marked"`: nothing had passed at the deadline, so it is proven never sent, and the gate is shut (N3)."""
    ended = threading.Event()
    executor = executor_of(overrunning(world, "sends late", ended, "marked"))
    seen = executor.call("pay", {"order": "A"})
    assert (seen.verdict, seen.code) == (Verdict.NO_EFFECT, "unavailable")
    world.go_on.set()
    assert ended.wait(10)
    assert world.effects == []


@pytest.mark.parametrize("sends", ["anywhere", "once"])
def test_an_unmarked_function_may_send_at_any_time(world: World, executor_of: Make, sends: str) -> None:
    """Without marks nobody can tell at the deadline whether something left: unknown."""
    executor = executor_of(overrunning(world, "returns", threading.Event(), sends))
    seen = executor.call("pay", {"order": "A"})
    assert seen.verdict is Verdict.EFFECT_UNKNOWN
    world.go_on.set()
    settled(executor, world, seen.effect_id, Verdict.EFFECT_APPLIED)
