"""Whoever asked to be told of incidents is told once each is on record, and a person closes them by name."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from outside import Make, MakeAsync, World

from counterfoil import Effect, Executor, Incident, KeyPolicy, Policy, Tool, UsageError, tool

GOOD = {"order": "A", "amount": 5}


def left_alone(executor: Executor, world: World) -> str:
    """A doubt that is older than its review time; its effect's id."""
    world.next, world.looks = ["ack_lost"], ["raises"] * 100
    seen = executor.call("charge", GOOD)
    assert seen.code == "effect_unknown"
    world.clock.advance(4000)
    return str(seen.effect_id)


def test_the_listener_is_told_after_the_record(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """It gets the incident with its number, and finds it in the ledger; a second reconcile tells nothing new."""
    told: list[tuple[Incident, list[Incident]]] = []
    executor: Executor = executor_of(charge, on_incident=lambda one: told.append((one, executor.audit.incidents())))
    effect_id = left_alone(executor, world)
    assert executor.reconcile().incidents == 1
    world.clock.advance(4000)
    executor.reconcile()
    ((incident, on_record),) = told
    assert on_record == [incident]
    assert (incident.kind, incident.effect_id, incident.tool) == ("doubt_left", effect_id, "charge")
    assert incident.detail["reason"] == "the postcondition raised RuntimeError"


def test_the_writes_of_a_call_tell_too(executor_of: Make) -> None:
    """A tool that is seen not to use its provider key raises an incident in the call itself, and once."""
    told: list[Incident] = []

    @tool(key=("order",), policy=Policy(timeout_s=5, grace_s=1, key_policy=KeyPolicy(retention_s=3600)))
    def book(effect: Effect, order: str) -> str:
        """Book one order."""
        return order

    executor = executor_of(book, on_incident=told.append)
    first = executor.call("book", {"order": "A"})
    executor.call("book", {"order": "B"})
    assert [(one.kind, one.effect_id) for one in told] == [("provider_key_unused", first.effect_id)]
    assert executor.audit.incidents() == told


def test_a_listener_that_fails_breaks_no_call(
    charge: Tool[..., Any], world: World, executor_of: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """What it raises is logged; the reconcile goes on and the incident is on record."""

    def fail(incident: Incident) -> None:
        raise RuntimeError("the pager is out")

    executor = executor_of(charge, on_incident=fail)
    left_alone(executor, world)
    with caplog.at_level(logging.ERROR, "counterfoil"):
        assert executor.reconcile().incidents == 1
    assert "on_incident failed at incident 1 (doubt_left)" in caplog.text
    assert len(executor.audit.incidents()) == 1


def test_a_coroutine_function_is_no_listener(executor_of: Make) -> None:
    """It would never be awaited: refused before the ledger is opened."""

    async def listen(incident: Incident) -> None:
        """Never awaited."""

    with pytest.raises(UsageError, match="plain function"):
        executor_of(on_incident=listen)


def test_an_incident_is_closed_by_name_and_stays_as_it_was_closed(
    charge: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """Name, reason and time are kept; the same word again, or another's, changes nothing, and it is not raised anew."""
    executor = executor_of(charge)
    effect_id = left_alone(executor, world)
    executor.reconcile()
    (incident,) = executor.audit.incidents()
    with pytest.raises(UsageError, match="named person"):
        executor.close_incident(incident.number, by="N. N.", why=" ")
    closed = executor.close_incident(incident.number, by=" N. N. ", why="called the bank")
    assert (closed.closed_by, closed.closed_why, closed.closed_at) == (
        "N. N.",
        "called the bank",
        world.clock.wall_us(),
    )
    world.clock.advance(4000)
    assert executor.close_incident(incident.number, by="M. M.", why="me too") == closed
    assert executor.audit.incidents() == []
    assert executor.audit.incidents(closed=True) == [closed]
    assert executor.reconcile().incidents == 0
    assert executor.audit.effect(effect_id).verdict == "effect_unknown"


@pytest.mark.parametrize("number", [2, 0, -1, 2**80])
def test_no_incident_of_another_tenant_or_of_no_number_is_closed(
    charge: Tool[..., Any], world: World, executor_of: Make, number: int
) -> None:
    """A number that is not there, and one that belongs to another tenant, are refused in the same words."""
    executor = executor_of(charge)
    left_alone(executor, world)
    executor.reconcile()
    for other, wanted in ((executor, number), (executor_of(charge, tenant="north"), 1)):
        with pytest.raises(UsageError, match=f"no incident has the number {wanted}"):
            other.close_incident(wanted, by="N. N.", why="seen")
    assert len(executor.audit.incidents()) == 1


def test_an_asynchronous_executor_tells_and_closes(
    charge: Tool[..., Any], world: World, executor_of: Make, async_executor_of: MakeAsync
) -> None:
    """The same for the asynchronous one; the listener runs outside the event loop's thread."""
    told: list[tuple[Incident, str]] = []
    left_alone(executor_of(charge), world)

    async def run() -> Incident:
        async with async_executor_of(
            charge, on_incident=lambda one: told.append((one, threading.current_thread().name))
        ) as executor:
            assert (await executor.reconcile()).incidents == 1
            return await executor.close_incident(1, by="N. N.", why="seen")

    closed = asyncio.run(run())
    ((incident, thread),) = told
    assert (incident.number, closed.closed_why) == (1, "seen")
    assert thread.startswith("counterfoil-ledger")
