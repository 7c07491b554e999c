"""`effect.sending()`: what passes the gate, and what a failure then proves; effects counted in the world."""

from __future__ import annotations

import threading

import pytest
from outside import Make, World

from counterfoil import DeadlinePassed, Effect, Policy, UsageError, Verdict, tool
from counterfoil.attempt import Gate, GateState
from counterfoil.effect import NeverSent
from counterfoil.runner.job import Job
from counterfoil.runner.shell import Shell

MARKED = Policy(timeout_s=5, patience_s=5)


def test_nothing_passes_after_the_deadline() -> None:
    """The deadline is asked at the gate itself, whoever waits or has given up."""
    gate = Gate(lambda: 0.0)
    with pytest.raises(DeadlinePassed):
        gate.enter()
    assert gate.state is GateState.UNTOUCHED


def test_nothing_passes_a_gate_that_was_shut() -> None:
    """What is recorded as never sent can never be sent."""
    gate = Gate(lambda: 60.0)
    assert gate.shut()
    with pytest.raises(DeadlinePassed):
        gate.enter()


def test_a_gate_that_was_passed_cannot_prove_anything_by_being_shut() -> None:
    """Shutting tells whether something had passed before."""
    gate = Gate(lambda: 60.0)
    gate.enter()
    assert not gate.shut()


@pytest.mark.parametrize("where", ["before", "inside", "after"])
def test_what_fails_where(world: World, executor_of: Make, where: str) -> None:
    """Before the block all is proven never sent; a refused connection inside it too; after it nothing is."""

    @tool(key=("order",), sends="marked", policy=MARKED)
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        if where == "before":
            raise ValueError
        with effect.sending():
            if where == "inside":
                raise ConnectionRefusedError
            world.act(effect)
        raise ConnectionRefusedError

    seen = executor_of(pay).call("pay", {"order": "A"})
    expected = Verdict.EFFECT_UNKNOWN if where == "after" else Verdict.NO_EFFECT
    assert (seen.verdict, len(world.effects)) == (expected, 1 if where == "after" else 0)


def test_a_later_failure_is_not_the_one_that_left_the_block(world: World, executor_of: Make) -> None:
    """The payment landed and its answer was lost; that a read then cannot connect proves nothing about the payment."""

    @tool(key=("order",), sends="marked", policy=MARKED)
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        try:
            with effect.sending():
                world.act(effect)
        except TimeoutError:
            pass
        raise ConnectionRefusedError("reading the receipt")

    world.next = ["ack_lost"] * 5
    seen = executor_of(pay).call("pay", {"order": "A"})
    assert (seen.verdict, len(world.effects)) == (Verdict.EFFECT_UNKNOWN, 1)


def test_a_second_block_is_a_second_request(world: World, executor_of: Make) -> None:
    """Two blocks are two requests: that the second cannot connect proves nothing about the first."""

    @tool(key=("order",), sends="marked", policy=MARKED)
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        with effect.sending():
            world.act(effect)
        with effect.sending():
            raise ConnectionRefusedError

    seen = executor_of(pay).call("pay", {"order": "A"})
    assert (seen.verdict, len(world.effects)) == (Verdict.EFFECT_UNKNOWN, 1)


def test_the_gate_is_shut_before_the_exception_is_judged(executor_of: Make) -> None:
    """Between the judgement and the record no thread of the function may pass either."""

    @tool(key=("order",), sends="marked", policy=MARKED)
    def pay(order: str) -> str:
        """Pay one order."""
        return order

    gate = Gate(lambda: 60.0)
    shell = Shell(executor_of(pay)._site, Job(tool=pay, effect_id="cf-a", actor="host:1"))
    assert isinstance(shell.raised(RuntimeError(), gate).outcome, NeverSent)
    with pytest.raises(DeadlinePassed):
        gate.enter()


def test_a_thread_of_the_function_cannot_send_after_the_judgement(world: World, executor_of: Make) -> None:
    """The function gave up before its helper thread came to the gate: never sent is said, and the gate is shut."""
    heard: list[BaseException] = []
    ended, judged = threading.Event(), threading.Event()

    @tool(key=("order",), sends="marked", policy=MARKED)
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""

        def late() -> None:
            try:
                assert judged.wait(10)
                with effect.sending():
                    world.act(effect)
            except DeadlinePassed as problem:
                heard.append(problem)
            ended.set()

        threading.Thread(target=late, daemon=True).start()
        raise RuntimeError("gave up on its own")

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("after", "Attempt"):
            judged.set()
            assert ended.wait(10)

    seen = executor_of(pay, observer=watch).call("pay", {"order": "A"})
    assert seen.verdict is Verdict.NO_EFFECT
    assert heard
    assert world.effects == []


def test_a_swallowed_deadline_is_no_success(world: World, executor_of: Make) -> None:
    """A broad except around the block makes no effect out of a send that the gate refused."""

    @tool(key=("order",), sends="marked", policy=MARKED)
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        world.clock.advance(6)
        try:
            with effect.sending():
                world.act(effect)
        except Exception:  # noqa: BLE001 - the mistake that this test is about
            return "error, please try again"
        return "paid"

    seen = executor_of(pay).call("pay", {"order": "A"})
    assert (seen.verdict, seen.value, world.effects) == (Verdict.NO_EFFECT, None, [])


def test_a_postcondition_cannot_send() -> None:
    """A look that sends is a developer's mistake."""
    looking = Effect(id="cf-a", gate=Gate(lambda: 60.0))
    with pytest.raises(UsageError, match="only looks"), looking.sending():
        pass
