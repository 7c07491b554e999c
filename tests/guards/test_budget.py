"""The budget of a task, through executors: what is refused, held, released and booked late."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from calls.conftest import charge
from guards.failing import Service, act_tool, read_tool
from outside import Make, MakeAsync, World

from counterfoil import Budget, Executor, Tool, UsageError, tool

__all__ = ["charge"]

TEN = Budget(spend={"eur": 1000})


def buy(executor: Executor, what: str, cents: int, **more: Any) -> str:
    """The code of one purchase."""
    return executor.call("act", {"what": what, "cents": cents}, task="t", **more).code


def sums(executor: Executor) -> list[tuple[str, int, int]]:
    """The book of the task: what happened, and what was reserved and spent then."""
    return [(one["event"], one["reserved"], one["spent"]) for one in executor.audit.spending("t")]


def test_what_exceeds_the_budget_is_refused_before_dispatch(executor_of: Make) -> None:
    """What is left is told, nothing is sent, no key is occupied; an incident says what, who and how much, once."""
    service = Service()
    executor = executor_of(act_tool(service), budget=TEN)
    assert buy(executor, "a", 700) == "ok"
    for _ in range(2):
        seen = executor.call("act", {"what": "b", "cents": 400}, task="t")
        assert (seen.code, seen.verdict, seen.stop) == ("budget_exhausted", "no_effect", "budget_exhausted")
        assert "300 are left" in seen.reason
        assert seen.effect_id is None
    assert len(service.asked) == 1
    assert len(executor.audit.effects()) == 1
    (incident,) = executor.audit.incidents(task="t")
    wanted = {"cap": "spend.eur", "limit": 1000, "used": 700, "wanted": 400, "task": "t", "refused": True}
    assert (incident.kind, incident.tool, incident.effect_id) == ("budget_exhausted", "act", None)
    assert wanted.items() <= incident.detail.items()
    assert executor.audit.incidents(task="other") == []
    assert buy(executor, "b", 300) == "ok", "what fits is let through"
    assert buy(executor, "a", 700) == "replayed", "what is applied is told, whatever the budget says"
    assert sums(executor) == [("reserved", 700, 0), ("spent", 0, 700), ("reserved", 300, 700), ("spent", 0, 1000)]


def test_no_effect_releases(executor_of: Make) -> None:
    """A purchase that was refused gives its money back, and a later one may use it."""
    executor = executor_of(act_tool(Service("rejected")), budget=TEN)
    assert buy(executor, "a", 1000) == "card_declined"
    assert buy(executor, "b", 1000) == "ok"
    assert sums(executor) == [("reserved", 1000, 0), ("released", 0, 0), ("reserved", 1000, 0), ("spent", 0, 1000)]


def test_unknown_keeps_its_reservation(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """While nothing is known the money is held, and the doubt is told as a doubt, however empty the budget is."""
    charge.cost = lambda a: ("eur", a["amount"])
    executor = executor_of(charge, budget=Budget(spend={"eur": 10}))
    world.next, world.looks = ["ack_lost"], ["raises"] * 100
    first = {"order": "A", "amount": 8}
    assert executor.call("charge", first, task="t").code == "effect_unknown"
    assert executor.call("charge", {"order": "B", "amount": 8}, task="t").code == "budget_exhausted"
    assert executor.call("charge", first, task="t").verdict == "effect_unknown"
    world.looks = []
    world.clock.advance(4000)
    executor.reconcile()
    assert executor.call("charge", first, task="t").verdict == "effect_applied"
    assert sums(executor) == [("reserved", 8, 0), ("spent", 0, 8)]


def test_late_truth_is_charged(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """An attempt that was closed by absence gave its money back; found after all, it is spent, over the cap if need be,
    and an incident says so."""
    charge.cost = lambda a: ("eur", a["amount"])
    executor = executor_of(charge, budget=Budget(spend={"eur": 10}))
    world.next = ["request_lost"] * 3
    gone = executor.call("charge", {"order": "A", "amount": 8}, task="t")
    world.clock.advance(100)
    executor.reconcile()
    assert executor.audit.effect(str(gone.effect_id)).proof == "absent_after_grace"
    assert sums(executor)[-1] == ("released", 0, 0)
    assert executor.call("charge", {"order": "B", "amount": 8}, task="t").code == "ok"
    world.effects.append(str(gone.effect_id))  # the first request lands at last
    world.clock.advance(4000)
    executor.reconcile()
    assert executor.audit.effect(str(gone.effect_id)).verdict == "effect_applied"
    assert executor.audit.spending("t")[-1] | {"at": 0, "key": b""} == {
        "tenant": "", "task": "t", "seq": executor.audit.spending("t")[-1]["seq"], "key": b"",
        "event": "spent", "unit": "eur", "amount": 8, "reserved": 0, "spent": 16, "at": 0,
    }  # fmt: skip
    (overrun,) = [one for one in executor.audit.incidents(task="t") if one.kind == "budget_overrun"]
    assert {"limit": 10, "used": 16, "wanted": 8}.items() <= overrun.detail.items()


def test_a_resend_reserves_nothing_anew(executor_of: Make) -> None:
    """Of an effect that is tried three times the money is held once, and each attempt counts as a call."""
    service = Service("down", "down")
    executor = executor_of(act_tool(service, attempts_max=3), budget=Budget(calls_per_task=3, spend={"eur": 1000}))
    assert buy(executor, "a", 1000) == "ok"
    assert len(service.asked) == 3
    assert max(reserved + spent for _, reserved, spent in sums(executor)) == 1000
    assert buy(executor, "b", 0) == "budget_exhausted", "three attempts are three calls"


def test_calls_are_counted_by_turn_tool_and_task(executor_of: Make) -> None:
    """Read-only calls count too; a new turn has its own number; a cap of one tool lets the others through."""
    reading, acting = Service(), Service()
    reading.always = "changing"
    caps = Budget(calls_per_turn=3, calls_per_tool={"act": 2})
    executor = executor_of(act_tool(acting), read_tool(reading), budget=caps)
    codes = [executor.call("get_status", {"job": "1"}, task="t", turn=1).code for _ in range(4)]
    assert codes == ["read"] * 3 + ["budget_exhausted"]
    assert [buy(executor, what, 1, turn=2) for what in "abc"] == ["ok", "ok", "budget_exhausted"]
    assert executor.call("get_status", {"job": "1"}, task="t", turn=2).code == "read"
    assert len(reading.asked) == 4
    assert executor.call("get_status", {"job": "1"}, task="other", turn=1).code == "read", "another task"


def test_a_task_has_turns_spending_and_incidents(executor_of: Make) -> None:
    """`executor.task` counts turns, tells what is spent and what a person should see, and goes on where it was."""
    executor = executor_of(act_tool(Service()))
    task = executor.task("trip", budget=Budget(calls_per_turn=1, spend={"eur": 100}))
    assert task.call("act", {"what": "a", "cents": 60}).code == "ok"
    assert task.call("act", {"what": "b", "cents": 1}).code == "budget_exhausted"
    assert task.next_turn() == 2
    assert task.call("act", {"what": "b", "cents": 1}).code == "ok"
    assert task.spent == {"eur": 61}
    assert [one.detail["cap"] for one in task.incidents] == ["calls_per_turn"]
    again = executor_of(act_tool(Service())).task("trip", budget=Budget(calls_per_turn=1, spend={"eur": 100}))
    assert again.turn == 2
    assert again.call("act", {"what": "c", "cents": 1}).code == "budget_exhausted"


def test_two_hosts_that_differ_are_told(executor_of: Make) -> None:
    """One task has one budget: another one from another host is the developer's mistake, whoever was first."""
    one, other = executor_of(act_tool(Service())), executor_of(act_tool(Service()))
    one.task("trip", budget=TEN)
    with pytest.raises(UsageError, match="the same budget on every host"):
        other.task("trip", budget=Budget(spend={"eur": 999}))
    other.task("trip", budget=TEN)
    assert other.task("trip").budget is None
    assert other.task("trip").call("act", {"what": "a", "cents": 1001}).code == "budget_exhausted"
    everywhere = [executor_of(act_tool(Service()), budget=Budget(calls_per_task=number)) for number in (1, 2)]
    assert buy(everywhere[0], "a", 1) == "ok"
    with pytest.raises(UsageError, match="the same budget on every host"):
        buy(everywhere[1], "b", 1)
    assert everywhere[1].task("trip").call("act", {"what": "a", "cents": 1}).code == "ok", "a task's own budget holds"


def test_the_asynchronous_task_is_the_same(async_executor_of: MakeAsync) -> None:
    """`await task.call(…)`, `await task.spent`, `await task.incidents`."""

    async def play() -> tuple[list[str], dict[str, int], int]:
        async with async_executor_of(act_tool(Service())) as executor:
            task = executor.task("trip", budget=TEN)
            codes = [(await task.call("act", {"what": what, "cents": 600})).code for what in "ab"]
            with pytest.raises(UsageError):
                await executor.task("trip", budget=Budget(spend={"eur": 1})).call("act", {"what": "c"})
            return codes, await task.spent, len(await task.incidents)

    assert asyncio.run(play()) == (["ok", "budget_exhausted"], {"eur": 600}, 1)


def test_mistakes_are_told(executor_of: Make) -> None:
    """A budget without a task, a cost that is none, a name that is empty: the developer hears how to mend it."""

    @tool(key=("what",), cost=lambda a: 5)  # type: ignore[arg-type, return-value]
    def odd(what: str) -> str:
        """Do one odd thing."""
        return what

    @tool(key=("what",), cost=lambda a: ("eur", a["nothing"]))
    def broken(what: str) -> str:
        """Do one broken thing."""
        return what

    executor = executor_of(odd, broken)
    for name in ("odd", "broken"):
        with pytest.raises(UsageError, match="cost="):
            executor.call(name, {"what": "x"}, task="t")
    with pytest.raises(UsageError, match="has a name"):
        executor.task("")
    with pytest.raises(UsageError, match="takes a Budget"):
        executor.task("t", budget=5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"give call\(..., task=...\)"):
        executor_of(odd, budget=TEN).call("odd", {"what": "x"})
    with pytest.raises(UsageError, match="mode="):
        executor_of(odd, mode="watch")
    with pytest.raises(UsageError, match="tenant="):
        executor_of(odd, tenant="*")
    with pytest.raises(UsageError, match="takes a LoopGuard"):
        executor_of(odd, loop_guard=3)
