"""The ledger fails under a call: nothing is dispatched without a durable begin, only records are written again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
import sqlalchemy as sa
from cutting import away, commits
from outside import Make, World

from counterfoil import Executor, Tool, Verdict
from counterfoil.ledger import schema

GOOD = {"order": "A", "amount": 5}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Record writes are repeated for a moment only: the database of these tests does not come back by itself."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)


@pytest.mark.parametrize("fate", ["lost before", "lost after"])
@pytest.mark.parametrize("place", ["begin", "settle"])
def test_the_reply_to_commit_is_lost(
    charge: Tool[..., Any], world: World, executor_of: Make, place: str, fate: str
) -> None:
    """Both ways, at begin and at settle: written again or recognised, one request, applied, one row (C39)."""
    executor = executor_of(charge)
    plan = [fate] if place == "begin" else ["counts", fate]
    with commits(executor._engine, plan) as happened:
        seen = executor.call("charge", GOOD)
    assert fate in happened
    assert (seen.code, seen.verdict, seen.attempts) == ("ok", Verdict.EFFECT_APPLIED, 1)
    assert len(world.requests) == 1
    history = executor.audit.history(str(seen.effect_id))
    assert [entry.event for entry in history] == ["begun", "returned"]


def test_a_commit_in_doubt_that_cannot_be_asked_again_is_never_no_effect(
    charge: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """The begin may have counted: unknown, nothing is sent, and the next call looks."""
    executor = executor_of(charge)
    with commits(executor._engine, ["gone"]):
        seen = executor.call("charge", GOOD)
    assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
    assert world.requests == []
    world.clock.advance(100)
    again = executor.call("charge", GOOD)
    assert (again.code, again.attempts, len(world.requests)) == ("ok", 2, 1)


def failing_after(executor: Executor, stack: ExitStack, step: str) -> Callable[..., None]:
    """An observer that takes the ledger away after a step."""

    def watch(moment: str, at: str, tool: str, effect_id: str) -> None:
        if (moment, at) == ("after", step):
            stack.enter_context(away(executor._engine))

    return watch


def test_the_end_of_an_attempt_is_written_when_the_ledger_is_back(
    charge: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """The effect is there and its record is not: told as pending, written later, never dispatched again (C42)."""
    taken: list[Callable[..., None]] = []
    executor = executor_of(charge, observer=lambda *step: taken[0](*step) if taken else None)
    with ExitStack() as stack:
        taken.append(failing_after(executor, stack, "Attempt"))
        seen = executor.call("charge", GOOD)
        taken.clear()
        assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
        assert "its record is pending" in seen.text
        assert executor.call("charge", GOOD).code == "ledger_unavailable"
    assert executor._site.backlog.flush()
    again = executor.call("charge", GOOD)
    assert (again.code, again.value, len(world.requests)) == ("replayed", {"amount": 5}, 1)


def test_without_the_ledger_nothing_is_sent(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """A call that cannot read or cannot begin sends nothing, and does not claim to know."""
    executor = executor_of(charge)
    with away(executor._engine):
        seen = executor.call("charge", GOOD)
    assert (seen.code, seen.verdict, seen.effect_id) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN, None)
    assert "this call sent nothing" in seen.text
    assert world.requests == []


def test_an_effect_that_vanished_is_not_begun_anew(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """A row that was there and is gone means a restored ledger: nothing is begun on that (F18)."""
    rows: list[str] = []

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("before", "Start") and rows:
            with executor._engine.begin() as connection:
                if connection.dialect.name == "postgresql":  # whoever restores a backup owns the table
                    connection.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER ALL")
                for table in (schema.effects, schema.entries, schema.incidents):
                    connection.execute(sa.delete(table))

    executor = executor_of(charge, observer=watch)
    world.next, world.looks = ["request_lost"], ["raises"] * 20
    rows.append(str(executor.call("charge", GOOD).effect_id))
    world.looks.clear()
    world.clock.advance(100)
    seen = executor.call("charge", GOOD)
    assert (seen.code, seen.verdict, len(world.requests)) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN, 1)
