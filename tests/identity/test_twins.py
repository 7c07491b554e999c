"""Look-alikes: the same identity arguments under another key, a short while ago, are held and the user is asked."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import sqlalchemy as sa
from outside import Make, World

from counterfoil import ALL_ARGUMENTS, Effect, Policy, Rejected, Tool, UsageError, Verdict, tool
from counterfoil.ledger.keeping import prune
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import twins

WINDOW_S = 600.0
SAME = {"payee": "club", "cents": 1250}


def pay_tool(world: World, **declared: Any) -> Tool[..., Any]:
    """Keyed within the task, so that another task gives another key."""
    window_s = declared.pop("twin_window_s", WINDOW_S)

    @tool(key=ALL_ARGUMENTS, policy=Policy(timeout_s=5, patience_s=0.1, twin_window_s=window_s), **declared)
    def pay(effect: Effect, payee: str, cents: int) -> str:
        """Pay somebody once. Use it when the user has confirmed the amount."""
        if payee == "nobody":
            raise Rejected("no_account", "there is no such account")
        world.act(effect)
        return "paid"

    return pay


def test_a_look_alike_is_held_and_the_model_asks(world: World, executor_of: Make) -> None:
    """Nothing is sent for the second, the answer names the first, and a new occurrence confirms that it is wanted."""
    executor = executor_of(pay_tool(world, repeatable=True))
    first = executor.call("pay", SAME, task="t1")
    world.clock.advance(180)
    seen = executor.call("pay", SAME, task="t2")
    assert (seen.code, seen.verdict, seen.ok) == ("possible_duplicate", Verdict.NO_EFFECT, False)
    assert f"was carried out 3 minutes ago ({first.effect_id}); nothing was sent" in seen.text
    assert "Ask the user" in seen.next_action
    assert "a new occurrence" in seen.next_action
    assert len(world.requests) == len(executor.audit.effects()) == 1, "a refusal occupies no key"
    confirmed = executor.call("pay", SAME | {"occurrence": "2"}, task="t2")
    assert confirmed.code == "ok"
    assert executor.call("pay", SAME | {"occurrence": "2"}, task="t2").code == "replayed"
    assert len(world.requests) == 2


def test_a_tool_that_no_model_repeats_is_confirmed_by_the_application(world: World, executor_of: Make) -> None:
    """The model is told to stop; the application confirms with `occurrence`."""
    executor = executor_of(pay_tool(world))
    executor.call("pay", SAME, key="one")
    seen = executor.call("pay", SAME, key="two")
    assert seen.code == "possible_duplicate"
    assert "occurrence" not in seen.next_action
    assert "a person confirms" in seen.next_action
    assert executor.call("pay", SAME, key="two", occurrence=1).code == "ok"


def test_a_doubt_is_a_look_alike_too(world: World, executor_of: Make) -> None:
    """What may have been carried out is said to be that; what surely had no effect holds nobody up."""
    executor = executor_of(pay_tool(world))
    world.next = ["ack_lost"]
    assert executor.call("pay", SAME, task="t1").verdict is Verdict.EFFECT_UNKNOWN
    seen = executor.call("pay", SAME, task="t2")
    assert seen.code == "possible_duplicate"
    assert "may have been carried out just now" in seen.text
    nobody = {"payee": "nobody", "cents": 5}
    assert [executor.call("pay", nobody, task=task).code for task in ("t1", "t2")] == ["no_account", "no_account"]


def test_what_is_known_is_told_as_ever(world: World, executor_of: Make) -> None:
    """The row is read first: the same key is replayed or its doubt told, whatever else looks like it."""
    executor = executor_of(pay_tool(world))
    executor.call("pay", SAME, task="t1")
    world.next = ["ack_lost"]
    executor.call("pay", SAME, task="t2", occurrence="x")
    assert executor.call("pay", SAME, task="t1").code == "replayed"
    assert executor.call("pay", SAME, task="t2", occurrence="x").code == "effect_unknown"


@pytest.mark.parametrize("other", ["later", "another amount", "another tenant", "off"])
def test_what_is_no_look_alike_goes_through(world: World, executor_of: Make, other: str) -> None:
    """After the window, with another argument, for another tenant, or where the tool does not ask for it."""
    window_s = None if other == "off" else WINDOW_S
    executor = executor_of(pay_tool(world, twin_window_s=window_s), tenant="north")
    executor.call("pay", SAME, task="t1")
    if other == "later":
        world.clock.advance(WINDOW_S + 1)
    if other == "another tenant":
        executor = executor_of(pay_tool(world), tenant="south")
    asked = SAME | ({"cents": 1251} if other == "another amount" else {})
    assert executor.call("pay", asked, task="t2").code == "ok"
    assert len(world.requests) == 2


def test_only_what_was_begun_last_is_forgotten_by_time(world: World, executor_of: Make) -> None:
    """A newer look-alike that failed does not hide an older one that was carried out."""
    executor = executor_of(pay_tool(world))
    executor.call("pay", SAME, task="t1")
    world.clock.advance(60)
    world.next = ["refused"]
    executor.call("pay", SAME, task="t2", occurrence="x")
    assert executor.call("pay", SAME, task="t3").code == "possible_duplicate"


def test_two_that_come_at_once_are_one(world: World, executor_of: Make) -> None:
    """Of look-alikes begun at the same moment one is carried out; the others are held."""
    executor = executor_of(pay_tool(world))
    start = threading.Barrier(6)
    codes: list[str] = []

    def ask(task: str) -> None:
        start.wait()
        codes.append(executor.call("pay", SAME, task=task).code)

    threads = [threading.Thread(target=ask, args=(f"t{number}",)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(codes) == ["ok", *["possible_duplicate"] * 5]
    assert len(world.requests) == 1


def test_where_guards_only_count_it_is_an_incident(world: World, executor_of: Make) -> None:
    """In the mode "observe" the second goes through, and a person can see what would have been held."""
    executor = executor_of(pay_tool(world), mode="observe")
    first = executor.call("pay", SAME, task="t1")
    assert executor.call("pay", SAME, task="t2").code == "ok"
    (incident,) = executor.audit.incidents()
    assert (incident.kind, incident.detail["alike"]) == ("possible_duplicate", first.effect_id)
    assert incident.detail["refused"] is False


@pytest.mark.parametrize("window_s", [0, -1.0, float("nan"), float("inf"), "60", True])
def test_a_window_that_is_none_is_refused(window_s: Any) -> None:
    """Said to the developer."""
    with pytest.raises(UsageError, match="twin_window_s"):
        Policy(twin_window_s=window_s)


def test_what_is_pruned_is_forgotten_when_its_window_is_over(ledger_url: str, world: World, executor_of: Make) -> None:
    """A prune takes the note of a pruned effect away once nothing can look like it any more, of the tenants that it
    prunes; within the window the tombstone still holds a look-alike up."""
    tool_of = pay_tool(world)
    executors = {tenant: executor_of(tool_of, tenant=tenant) for tenant in ("north", "south")}
    for executor in executors.values():
        assert executor.call("pay", SAME, task="t1").code == "ok"
    ledger = executors["north"]._ledger
    world.clock.advance(300)
    assert prune(ledger, 0, None, by="N.").pruned == 2
    assert noted(ledger) == 2
    assert executors["north"].call("pay", SAME, task="t2").code == "possible_duplicate"
    world.clock.advance(WINDOW_S)
    assert prune(ledger, 0, None, by="N.", tenant="south").pruned == 0
    assert noted(ledger) == 1
    assert executors["north"].call("pay", {"payee": "club", "cents": 1}, task="t1").code == "ok"
    prune(ledger, 0, None, by="N.")
    assert noted(ledger) == 1, "what is not pruned is still noted"
    assert executors["north"].call("pay", SAME, task="t2").code == "ok"
    world.clock.advance(2 * WINDOW_S)
    assert prune(ledger, 10**15, None, by="N.").pruned == 0
    assert noted(ledger) == 2


def noted(ledger: Ledger) -> int:
    with ledger.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(twins)).scalar_one()
