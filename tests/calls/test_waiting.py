"""Two calls of one effect at once: one sends, the other waits, on both databases."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from outside import Make, World

from counterfoil import Effect, Policy, Rejected, Tool, Verdict, tool


def slow_tool(world: World, ends: str = "returns") -> tuple[Tool[..., Any], threading.Event]:
    """A tool that stands in its function until the world lets it go on, and the event that it stands there."""
    inside = threading.Event()

    @tool(key=("order",), policy=Policy(timeout_s=30, patience_s=5))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order."""
        inside.set()
        world.go_on.wait(20)
        if ends == "declines":
            raise Rejected("card_declined", "the card was declined")
        world.act(effect)
        return "paid"

    return pay, inside


def test_a_second_call_hears_in_progress(world: World, executor_of: Make) -> None:
    """After its patience the waiter is told that it is under way, not that it failed, and nothing is sent."""
    pay, inside = slow_tool(world)
    executor = executor_of(pay)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(executor.call, "pay", {"order": "A"})
        assert inside.wait(10)
        second = executor.call("pay", {"order": "A"})
        assert (second.verdict, second.code) == (Verdict.EFFECT_UNKNOWN, "in_progress")
        assert second.retry_after_s is not None
        world.go_on.set()
        assert first.result().code == "ok"
    assert executor.call("pay", {"order": "A"}).code == "replayed"
    assert len(world.requests) == 1


def test_a_waiter_hears_the_success_it_waited_for(world: World, executor_of: Make) -> None:
    """A waiter that is patient enough gets the stored result."""
    pay, inside = slow_tool(world)
    ended = threading.Event()

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("before", "Sleep"):
            world.go_on.set()
            assert ended.wait(10)

    executor = executor_of(pay, observer=watch)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(executor.call, "pay", {"order": "A"})
        first.add_done_callback(lambda _: ended.set())
        assert inside.wait(10)
        seen = [threads.submit(executor.call, "pay", {"order": "A"}) for _ in range(4)]
        codes = {one.result().code for one in seen}
        assert first.result().code == "ok"
    assert codes == {"replayed"}
    assert len(world.requests) == 1


def test_a_waiter_answers_with_a_refusal_and_does_not_begin(world: World, executor_of: Make) -> None:
    """Five callers of a declined card make one request for it, not five (F25)."""
    pay, inside = slow_tool(world, "declines")
    runs: list[str] = []
    ended = threading.Event()

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if moment == "before" and step == "Attempt":
            runs.append(effect_id)
        if (moment, step) == ("before", "Sleep"):
            world.go_on.set()
            assert ended.wait(10)

    executor = executor_of(pay, observer=watch)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(executor.call, "pay", {"order": "A"})
        first.add_done_callback(lambda _: ended.set())
        assert inside.wait(10)
        other = threads.submit(executor.call, "pay", {"order": "A"})
        assert first.result().code == "card_declined"
        seen = other.result()
    assert (seen.code, seen.verdict) == ("card_declined", Verdict.NO_EFFECT)
    assert len(runs) == 1


def test_a_full_house_refuses_before_it_begins(world: World, executor_of: Make) -> None:
    """With no free thread nothing is begun: no effect, and the key is not occupied."""
    pay, inside = slow_tool(world)
    executor = executor_of(pay, attempts_max=1)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(executor.call, "pay", {"order": "A"})
        assert inside.wait(10)
        refused = executor.call("pay", {"order": "B"})
        assert (refused.code, refused.verdict, refused.effect_id) == ("unavailable", Verdict.NO_EFFECT, None)
        world.go_on.set()
        first.result()
    assert executor.call("pay", {"order": "B"}).code == "ok"
