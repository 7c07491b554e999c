"""A model that goes on after it was refused: stopped by every guard, in words that do not grow. One that waits as long
as it was told goes on for as long as it likes."""

from __future__ import annotations

import asyncio
from math import ceil
from typing import Any

import pytest
from calls.conftest import charge
from cutting import away
from guards.failing import Service, act_tool, read_tool
from outside import Make, MakeAsync, World

from counterfoil import AsyncExecutor, Breaker, Budget, Executor, LoopGuard, ManualClock, Observation, Tool

__all__ = ["charge"]
ONE = Breaker(failures=1, open_s=60)
GOOD = {"order": "A", "amount": 5}


def insisting(executor: Executor, tool: str, arguments: dict[str, Any], times: int) -> list[Observation]:
    """The same call again and again, in one turn of one task."""
    return [executor.call(tool, arguments, task="t", turn=1) for _ in range(times)]


def assert_stopped_in_the_same_words(seen: list[Observation], code: str) -> None:
    """Refused without a stop first; from the second time on stopped, in one text that does not grow."""
    assert {one.code for one in seen} == {code}
    assert [one.stop for one in seen] == [None] + [code] * (len(seen) - 1)
    assert len({one.text for one in seen[1:]}) == 1
    assert seen[1].next_action == "Stop and report this to a person; do not call act again."
    assert (seen[1].retry, seen[1].retry_after_s) == ("never", None)


def test_after_a_pause(executor_of: Make) -> None:
    """A paused tool: the second call of the same kind in a turn stops the run, the first one of another kind does not;
    nothing is sent, and a person's own word is no incident."""
    service = Service()
    executor = executor_of(act_tool(service))
    executor.pause("act", by="Ada", why="a bad day")
    assert_stopped_in_the_same_words(insisting(executor, "act", {"what": "a"}, 8), "paused")
    assert executor.call("act", {"what": "b"}, task="t", turn=1).stop is None
    assert executor.call("act", {"what": "a"}, task="t", turn=2).stop is None
    assert (service.asked, executor.audit.incidents()) == ([], [])
    executor.resume("act")
    assert executor.call("act", {"what": "a"}, task="t", turn=2).code == "ok"


def test_after_a_pause_in_ever_new_words(executor_of: Make) -> None:
    """Other arguments at each call: the tool's own count stops them, at the loop guard's cap of one tool."""
    executor = executor_of(act_tool(Service()), loop_guard=LoopGuard(tool_failures=4))
    executor.pause("act", by="Ada", why="a bad day")
    stops = [executor.call("act", {"what": str(number)}, task="t", turn=1).stop for number in range(6)]
    assert stops == [None, None, None, "paused", "paused", "paused"]


def test_after_an_open_breaker(executor_of: Make) -> None:
    """Who calls again at once, and not when it was told to, is stopped; the service has its rest."""
    service = Service("down")
    executor = executor_of(act_tool(service, breaker=ONE))
    assert executor.call("act", {"what": "first"}, task="t", turn=1).code == "unavailable"
    assert_stopped_in_the_same_words(insisting(executor, "act", {"what": "a"}, 20), "breaker_open")
    assert len(service.asked) == 1


@pytest.mark.parametrize("seconds_early", [0.0, 0.5])
def test_who_waits_as_long_as_it_was_told_is_not_going_on(
    executor_of: Make, clock: ManualClock, seconds_early: float
) -> None:
    """The breaker opens anew and anew under another's calls; who comes when it was told to, by a clock that is half a
    second off, is refused each time and never stopped."""
    service = Service()
    service.always = "down"
    executor = executor_of(act_tool(service, breaker=ONE))
    executor.call("act", {"what": "first"}, task="other")
    for number in range(6):
        seen = executor.call("act", {"what": "a"}, task="t", turn=1)
        assert (seen.code, seen.stop) == ("breaker_open", None)
        assert seen.retry_after_s is not None
        assert f"in {ceil(seen.retry_after_s)} s" in seen.next_action
        clock.advance(seen.retry_after_s - seconds_early)
        clock.advance(seconds_early if number % 2 else 0.0)
        probe = executor.call("act", {"what": f"other {number}"}, task="other")
        assert probe.code in ("unavailable", "breaker_open")


def test_seconds_are_rounded_up(executor_of: Make, clock: ManualClock) -> None:
    """Who obeys "in N s" to the letter does not come before it is allowed."""
    service = Service("down")
    executor = executor_of(act_tool(service, breaker=ONE))
    executor.call("act", {"what": "first"}, task="t")
    clock.advance(18.8)
    seen = executor.call("act", {"what": "a"}, task="t")
    assert (seen.retry_after_s, "in 42 s" in seen.next_action) == (41.2, True)
    clock.advance(42)
    assert executor.call("act", {"what": "a"}, task="t").code == "ok"


def test_after_asking_about_a_doubt(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """check_effect in a tight loop: the provider is looked at six times in a turn and no more, the answer is never
    anything but what is known, the run is stopped, and a person sees which cap was hit, by whom, how often."""
    executor = executor_of(charge)
    world.next, world.looks = ["ack_lost"], ["raises"] * 1000
    unknown = executor.call("charge", GOOD, task="t", turn=1)
    before = len(world.looks)
    asked = {"effect_id": unknown.effect_id}
    seen = insisting(executor, "check_effect", asked, 50)
    assert before - len(world.looks) == 6
    assert {(one.code, str(one.verdict)) for one in seen} == {("effect_unknown", "effect_unknown")}
    assert [one.stop for one in seen] == [None] * 7 + ["repeated_call"] * 43
    assert len({one.text for one in seen[7:]}) == 1
    assert "check_effect" not in seen[6].next_action, "what was asked too often is no longer advised"
    assert "Do not call charge for this again, in any wording." in seen[7].next_action
    (incident,) = [one for one in executor.audit.incidents(task="t") if one.kind == "repeated_call"]
    wanted = {"task": "t", "turn": 1, "cap": "same_answers", "limit": 6, "used": 6, "refused": True}
    assert incident.tool == "check_effect"
    assert wanted.items() <= incident.detail.items()
    assert executor.call("check_effect", asked, task="t", turn=2).stop is None, "a new turn counts anew"
    world.looks = []
    assert executor.call("check_effect", asked, task="t", turn=2).code == "verified"
    assert executor.call("check_effect", asked, task="t", turn=1).code == "replayed", "what is known is told to anyone"


def test_where_guards_only_count_a_doubt_is_looked_at_each_time(
    charge: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """In the mode "observe" nothing is stopped; the cap is an incident."""
    executor = executor_of(charge, mode="observe")
    world.next, world.looks = ["ack_lost"], ["raises"] * 1000
    unknown = executor.call("charge", GOOD, task="t", turn=1)
    before = len(world.looks)
    seen = insisting(executor, "check_effect", {"effect_id": unknown.effect_id}, 9)
    assert {one.stop for one in seen} == {None}
    assert before - len(world.looks) == 9
    (incident,) = [one for one in executor.audit.incidents(task="t") if one.kind == "repeated_call"]
    assert incident.detail["refused"] is False


@pytest.mark.parametrize("wrong", [{"effect_id": "cf-nothing"}, {"effect_id": 7}, {}])
def test_after_asking_about_what_is_not_there(executor_of: Make, wrong: dict[str, Any]) -> None:
    """A wrong effect_id, or none, over and over: told twice what is wrong, then stopped."""
    seen = insisting(executor_of(act_tool(Service())), "check_effect", wrong, 6)
    assert {one.code for one in seen[:2]} <= {"not_found", "invalid_arguments"}
    assert [one.stop for one in seen] == [None] * 3 + ["repeated_call"] * 3


def test_a_stop_over_a_doubt_is_told_as_one(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """The call itself repeated over a doubt: from the stop on the next action is to report, and no longer to check."""
    executor = executor_of(charge)
    world.next, world.looks = ["ack_lost"], ["raises"] * 1000
    seen = insisting(executor, "charge", GOOD, 6)
    assert "Call check_effect" in seen[2].next_action
    assert {one.stop for one in seen[3:]} == {"repeated_call"}
    assert len({one.text for one in seen[3:]}) == 1
    assert seen[5].text.endswith(
        "\nNext action: Do not call charge for this again, in any wording. "
        "Stop and report this: a person has to check it."
    )


def test_without_the_ledger_a_budget_lets_nothing_be_read(executor_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read-only tool under a budget that cannot be counted now: told as such, with `no_effect`; without a budget it
    is read all the same."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.1)
    service = Service()
    free, counted = (executor_of(read_tool(service), **one) for one in ({}, {"budget": Budget(calls_per_task=5)}))
    with away(counted._engine), away(free._engine):
        seen = counted.call("get_status", {"job": "1"}, task="t")
        assert (seen.code, seen.verdict, seen.ok) == ("ledger_unavailable", "no_effect", False)
        assert "changes nothing" in seen.reason
        assert free.call("get_status", {"job": "1"}).code == "read"
    assert len(service.asked) == 1


def test_an_asynchronous_task_goes_on_after_its_latest_turn(executor_of: Make, async_executor_of: MakeAsync) -> None:
    """A task with five turns behind it is taken up, its next turn begun before its first call, and two calls made at
    once: both are in turn six, as they would be for the blocking executor."""
    budget = Budget(calls_per_turn=2, spend={"eur": 100})
    before = executor_of(act_tool(Service())).task("trip", budget=budget)
    while before.turn < 5:
        before.next_turn()
    assert before.call("act", {"what": "a", "cents": 1}).code == "ok"

    async def play() -> tuple[list[str], int]:
        executor: AsyncExecutor
        async with async_executor_of(act_tool(Service())) as executor:
            task = executor.task("trip", budget=budget)
            task.next_turn()
            calls = (task.call("act", {"what": what, "cents": 1}) for what in "bcd")
            return sorted([one.code for one in await asyncio.gather(*calls)]), task.turn

    assert asyncio.run(play()) == (["budget_exhausted", "ok", "ok"], 6)
