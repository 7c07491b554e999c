"""Bad input: a clear observation for the model or an error for the developer, nothing dispatched, nothing lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from outside import Make, World

from counterfoil import (
    Absent,
    Effect,
    Executor,
    Found,
    LedgerError,
    Policy,
    Rejected,
    Tool,
    Unclear,
    UsageError,
    Verdict,
    tool,
)

GOOD = {"order": "A", "amount": 5}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ('{"order": "A", ', "not valid JSON"),
        ('{"order": "A", "order": "B", "amount": 1}', "given twice"),
        ('["A", 5]', "must be a JSON object"),
        ({"order": "A"}, "amount is missing"),
        ({"order": "A", "amount": 5, "tip": 1}, "tip"),
        ({"order": "A", "amount": True}, "must be an integer, not true"),
        ({"order": "A", "amount": "5"}, "must be an integer"),
        ({"order": "A", "amount": 5.5}, "must be an integer"),
        ('{"order": "A", "amount": NaN}', "NaN"),
        ({"order": "A", "amount": float("nan")}, ""),
        ({"order": "", "amount": 5}, "order"),
        ({"order": None, "amount": 5}, "order"),
        ({"order": "A" * 1_000_000, "amount": 5}, "too large"),
        (json.dumps({"order": "A" * 1_000_000, "amount": 5}), "too large"),
        ("[" * 100_000, ""),
        (b"\xff\xfe", ""),
        (7, "must be a JSON object"),
    ],
)
def test_arguments_that_do_not_fit(
    charge: Tool[..., Any], world: World, executor_of: Make, arguments: Any, problem: str
) -> None:
    """Each is told in the operation's terms, with what was sent, and leaves no trace in the ledger."""
    executor = executor_of(charge)
    seen = executor.call("charge", arguments)
    assert (seen.code, seen.verdict, seen.retry) == ("invalid_arguments", Verdict.NO_EFFECT, "change_arguments")
    assert problem in seen.text
    assert len(seen.text) < 1000
    assert (world.requests, executor.audit.effects()) == ([], [])


def test_an_unknown_tool_names_the_known_ones(charge: Tool[..., Any], executor_of: Make) -> None:
    """The one next action is to call a tool that exists."""
    seen = executor_of(charge).call("chrage", GOOD)
    assert seen.code == "unknown_tool"
    assert "charge, check_effect" in seen.next_action


def returning(world: World, value: Any, **policy: Any) -> Tool[..., Any]:
    """A tool that acts and returns `value`."""

    @tool(key=("order",), policy=Policy(**policy))
    def export(effect: Effect, order: str) -> Any:
        """Send one export."""
        world.act(effect)
        return value

    return export


@pytest.mark.parametrize("value", [object(), float("nan"), {1: object()}, {"a": {"b": lambda: 1}}])
def test_a_value_that_cannot_be_stored_costs_no_verdict(world: World, executor_of: Make, value: Any) -> None:
    """Applied, told that the result was not kept, and not dispatched again because of it."""
    executor = executor_of(returning(world, value))
    for code in ("value_not_stored", "value_not_stored"):
        seen = executor.call("export", {"order": "A"})
        assert (seen.code, seen.verdict, seen.ok, seen.value) == (code, Verdict.EFFECT_APPLIED, True, None)
    assert len(world.requests) == 1


def test_a_value_above_the_limit_is_kept_as_size_and_digest(world: World, executor_of: Make) -> None:
    """The verdict is recorded; of the body, its size and digest."""
    executor = executor_of(returning(world, "x" * 5000, value_max_bytes=1000))
    seen = executor.call("export", {"order": "A"})
    assert (seen.code, seen.verdict) == ("value_not_stored", Verdict.EFFECT_APPLIED)
    assert "5002 bytes, more than the 1000 that are kept" in seen.text
    row = executor.audit.effect(str(seen.effect_id))
    assert (row.value, row.value_size, str(row.value_digest)[:7]) == (None, 5002, "sha256:")


def test_stored_arguments_that_no_longer_fit(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """A changed signature makes the look unclear: unknown, nothing is sent, and the reason stands in the history."""
    executor = executor_of(charge)
    world.next, world.looks = ["request_lost"], ["raises"] * 50
    effect_id = str(executor.call("charge", GOOD).effect_id)

    @tool(key=("order",), name="charge", policy=Policy(timeout_s=5, grace_s=2, patience_s=20))
    def changed(effect: Effect, order: str, currency: str) -> str:
        """Charge the customer's card once for one order."""
        world.act(effect)
        return currency

    @changed.postcondition
    def charged(effect: Effect) -> Found[str] | Absent | Unclear:
        return Absent()

    newer = executor_of(changed)
    world.clock.advance(1000)
    assert newer.reconcile().unknown == 1
    assert newer.audit.effect(effect_id).verdict is Verdict.EFFECT_UNKNOWN
    assert newer.audit.history(effect_id)[-1].detail["reason"] == "the stored arguments no longer fit the tool"
    assert len(world.requests) == 1


@pytest.mark.parametrize("word", ["ok", "effect_unknown", "replayed", "verified", "in_progress"])
def test_a_tools_own_word_cannot_claim_a_verdict(world: World, executor_of: Make, word: str) -> None:
    """A refusal stays a refusal, whatever word the tool chose for it."""

    @tool(key=("order",))
    def pay(order: str) -> str:
        """Pay one order."""
        raise Rejected(word, "no")

    seen = executor_of(pay).call("pay", {"order": "A"})
    assert (seen.ok, seen.verdict, seen.category) == (False, Verdict.NO_EFFECT, "recoverable")
    assert seen.code == "rejected"
    assert "had no effect" in seen.text


def test_developers_hear_usage_errors(charge: Tool[..., Any], executor_of: Make, ledger_url: str) -> None:
    """What only a developer can do wrong raises, and says how to mend it."""
    executor = executor_of(charge)
    with pytest.raises(UsageError, match="two tools are named"):
        Executor(ledger_url, tools=[charge, charge])
    with pytest.raises(UsageError, match="decorate the function"):
        Executor(ledger_url, tools=[len])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="key= is empty"):
        executor.call("charge", GOOD, key=" ")
    with pytest.raises(UsageError, match="by="):
        executor.resolve("cf-x", "no_effect", by="", why="", version=1)
    with pytest.raises(UsageError, match="effect_applied or to no_effect"):
        executor.resolve("cf-x", "effect_unknown", by="me", why="so", version=1)
    with pytest.raises(UsageError, match="no effect has this id"):
        executor.audit.effect("cf-x")

    @tool(key=("order",))
    def keyed(order: str, password: str) -> str:
        """Pay one order."""
        return order

    with pytest.raises(UsageError, match="takes a secret argument"):
        executor_of(keyed)


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://host/db", "sqlite://", "sqlite:///:memory:"])
def test_a_ledger_url_that_is_none(url: str) -> None:
    """The error says what a ledger's URL looks like."""
    with pytest.raises(UsageError, match="sqlite:///FILE"):
        Executor(url)


def test_a_missing_server_database_is_not_created(empty_url: str) -> None:
    """A server's ledger is made by `db upgrade`; a SQLite file on first use."""
    if empty_url.startswith("sqlite"):
        Executor(empty_url).close()
        assert Path(empty_url.removeprefix("sqlite:///")).exists()
    else:
        with pytest.raises(LedgerError, match="counterfoil db upgrade"):
            Executor(empty_url)


def test_an_unreachable_server_shows_no_host() -> None:
    """The error carries neither host nor user nor password."""
    url = "postgresql+psycopg://somebody:hunter2@127.0.0.1:9/ledger"
    with pytest.raises(LedgerError) as caught:
        Executor(url)
    told = str(caught.value) + repr(caught.value.__cause__)
    assert not any(word in told for word in ("127.0.0.1", "somebody", "hunter2"))


def test_a_ledger_that_became_read_only_refuses_before_dispatch(
    charge: Tool[..., Any], world: World, executor_of: Make, ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is dispatched without a durable begin; what was applied is still replayed."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)
    executor = executor_of(charge)
    assert executor.call("charge", GOOD).code == "ok"
    engine = sa.create_engine(ledger_url)
    with engine.begin() as connection:
        if ledger_url.startswith("sqlite"):
            for when in ("INSERT", "UPDATE"):
                connection.exec_driver_sql(
                    f"CREATE TRIGGER no_{when} BEFORE {when} ON effects BEGIN SELECT RAISE(ABORT, 'read-only'); END"
                )
        else:
            name = connection.exec_driver_sql("SELECT current_database()").scalar()
            connection.exec_driver_sql(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    engine.dispose()
    executor._engine.dispose()
    seen = executor.call("charge", {"order": "B", "amount": 5})
    assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
    assert "this call sent nothing" in seen.text
    assert executor.call("charge", GOOD).code == "replayed"
    assert len(world.requests) == 1


def test_a_vanished_sqlite_file_is_not_replaced_by_an_empty_one(
    charge: Tool[..., Any], world: World, tmp_path: Path
) -> None:
    """Another file under the name would have forgotten everything: calls are refused, no file is made."""
    file = tmp_path / "ledger.db"
    with Executor(f"sqlite:///{file}", tools=[charge], clock=world.clock) as executor:
        executor.call("charge", GOOD)
        executor._engine.dispose()
        for name in os.listdir(tmp_path):  # noqa: PTH208
            (tmp_path / name).unlink()
        seen = executor.call("charge", GOOD)
        assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
        assert not file.exists()
    assert len(world.requests) == 1
