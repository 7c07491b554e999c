"""The asynchronous executor: the same flow, and cancellation that leaves the truth behind, on both databases."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from typing import Any

import pytest
from outside import MakeAsync, World

from counterfoil import Absent, DeadlinePassed, Effect, Found, Policy, Tool, Unclear, Verdict, tool


def async_tool(world: World, inside: asyncio.Event, go_on: asyncio.Event, sends: Any = "marked") -> Tool[..., Any]:
    """A coroutine that stands still before its send and after it."""

    @tool(key=("order",), sends=sends, policy=Policy(timeout_s=5, grace_s=2, patience_s=20))
    async def pay(effect: Effect, order: str, stop: str = "nowhere") -> str:
        """Pay one order."""
        if stop == "before":
            inside.set()
            await go_on.wait()
        with effect.sending():
            world.act(effect)
            if stop == "after":
                inside.set()
                await go_on.wait()
        return "paid"

    @pay.postcondition
    async def paid(effect: Effect) -> Found[str] | Absent | Unclear:
        return Found("paid", reference=None) if world.count(effect.id) else Absent()

    return pay


def test_the_same_verbs(world: World, async_executor_of: MakeAsync) -> None:
    """call, reconcile and resolve work in a loop as they do without one."""

    async def main() -> None:
        async with async_executor_of(async_tool(world, asyncio.Event(), asyncio.Event())) as executor:
            assert (await executor.call("pay", {"order": "A"})).code == "ok"
            assert (await executor.call("pay", {"order": "A"})).code == "replayed"
            world.next = ["ack_lost"]
            assert (await executor.call("pay", {"order": "B"})).code == "verified"
            world.next = ["request_lost"]
            assert (await executor.call("pay", {"order": "C"})).attempts == 2
            assert (await executor.reconcile()).unknown == 0

    asyncio.run(main())
    assert len(world.effects) == 3


def test_blocking_tools_run_in_threads(charge: Tool[..., Any], world: World, async_executor_of: MakeAsync) -> None:
    """A blocking tool and its blocking postcondition do not need a loop of their own."""

    async def main() -> None:
        async with async_executor_of(charge) as executor:
            world.next = ["ack_lost"]
            assert (await executor.call("charge", {"order": "A", "amount": 1})).code == "verified"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("stop", "verdict", "effects"),
    [("before", Verdict.NO_EFFECT, 0), ("after", Verdict.EFFECT_UNKNOWN, 1)],
)
def test_a_cancellation_is_recorded_and_reaches_the_caller(
    world: World, async_executor_of: MakeAsync, stop: str, verdict: Verdict, effects: int
) -> None:
    """Before the mark: never sent. After it: unknown until a look finds it. Nothing begins after it (C17)."""

    async def main() -> None:
        inside = asyncio.Event()
        async with async_executor_of(async_tool(world, inside, asyncio.Event())) as executor:
            call = asyncio.create_task(executor.call("pay", {"order": "A", "stop": stop}))
            await inside.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            (row,) = executor.audit.effects()
            assert (row.verdict, row.attempts, len(world.effects)) == (verdict, 1, effects)
            again = await executor.call("pay", {"order": "A", "stop": stop} if stop == "after" else {"order": "A"})
            if stop == "after":
                assert (again.code, len(world.effects)) == ("verified", 1)

    asyncio.run(main())


def test_a_second_cancellation_leaves_nothing_behind(
    world: World, async_executor_of: MakeAsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One falls into the attempt, another into the record of its end, as where a loop closes on a cancelled run: it is
    recorded, and nothing is raised where nobody can catch it."""
    complaints: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)

    async def main() -> None:
        inside = asyncio.Event()
        tasks: list[asyncio.Task[Any]] = []

        def watch(moment: str, at: str, tool: str, effect_id: str) -> None:
            if moment == "before" and at.startswith("Write:") and tasks:
                tasks.pop().cancel()

        async with async_executor_of(async_tool(world, inside, asyncio.Event()), observer=watch) as executor:
            call = asyncio.create_task(executor.call("pay", {"order": "A", "stop": "after"}))
            await inside.wait()
            tasks.append(call)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert tasks == []
            (row,) = executor.audit.effects()
            assert (row.verdict, row.live) == (Verdict.EFFECT_UNKNOWN, False)

    asyncio.run(main())
    gc.collect()
    assert complaints == []


def test_a_cancelled_blocking_tool_cannot_send_any_more(world: World, async_executor_of: MakeAsync) -> None:
    """Cancelled before its mark and before its deadline: never sent is recorded, and the thread finds the gate shut."""
    inside, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    heard: list[BaseException] = []

    @tool(key=("order",), sends="marked", policy=Policy(timeout_s=60))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        inside.set()
        try:
            assert go_on.wait(10)
            with effect.sending():
                world.act(effect)
        except DeadlinePassed as problem:
            heard.append(problem)
            raise
        finally:
            ended.set()
        return "paid"

    async def main() -> None:
        async with async_executor_of(pay) as executor:
            call = asyncio.create_task(executor.call("pay", {"order": "A"}))
            assert await asyncio.to_thread(inside.wait, 10)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            (row,) = executor.audit.effects()
            assert row.verdict is Verdict.NO_EFFECT
            go_on.set()
            assert await asyncio.to_thread(ended.wait, 10)

    asyncio.run(main())
    assert heard
    assert world.effects == []


@pytest.mark.parametrize("step", ["Read", "Start", "Attempt", "Write:SettleReturned", "Sight"])
def test_a_cancellation_at_each_step_leaves_a_true_row(world: World, async_executor_of: MakeAsync, step: str) -> None:
    """Whatever the cancellation falls into: the record is whole, and the next call ends with one effect."""

    async def main() -> None:
        tasks: list[asyncio.Task[Any]] = []

        def watch(moment: str, at: str, tool: str, effect_id: str) -> None:
            if (moment, at) == ("before", step) and tasks:
                tasks.pop().cancel()

        one = async_tool(world, asyncio.Event(), asyncio.Event())
        async with async_executor_of(one, observer=watch) as executor:
            if step == "Sight":
                await executor.call("pay", {"order": "A"})
            tasks.append(asyncio.create_task(executor.call("pay", {"order": "A"})))
            (task,) = tasks
            results = await asyncio.gather(task, return_exceptions=True)
            assert step == "Sight" or isinstance(results[0], asyncio.CancelledError)
            seen = await executor.call("pay", {"order": "A"})
            assert seen.verdict is Verdict.EFFECT_APPLIED
            events = [entry.event for entry in executor.audit.history(str(seen.effect_id))]
            assert world.count(seen.effect_id) == 1, events

    asyncio.run(main())


def test_a_coroutine_that_swallows_its_cancellation_overruns(world: World, async_executor_of: MakeAsync) -> None:
    """It goes on after the deadline: unknown then, and its late success is kept."""

    async def main() -> None:
        go_on = asyncio.Event()

        @tool(key=("order",), policy=Policy(timeout_s=5, grace_s=2, patience_s=1))
        async def pay(effect: Effect, order: str) -> str:
            """Pay one order."""
            world.clock.advance(6)
            while not go_on.is_set():
                try:
                    await go_on.wait()
                except asyncio.CancelledError:
                    continue
            world.act(effect)
            return "paid"

        async with async_executor_of(pay) as executor:
            seen = await executor.call("pay", {"order": "A"})
            assert seen.verdict is Verdict.EFFECT_UNKNOWN
            go_on.set()
            for _ in range(500):
                if executor.audit.effect(str(seen.effect_id)).verdict is Verdict.EFFECT_APPLIED:
                    break
                await asyncio.sleep(0.01)
            assert (await executor.call("pay", {"order": "A"})).value == "paid"

    asyncio.run(main())
