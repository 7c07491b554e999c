"""What a call costs: a first one makes two commits, a replay is one indexed read."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa

from counterfoil import Absent, AsyncExecutor, Effect, Executor, Found, Policy, Unclear, tool
from counterfoil.ledger.schema import effects, entries, metadata, repeats, sightings, tasks, tools

ORDER = {"order": "A-1"}
CROWD = 3000
BEHIND = "counterfoil-sightings"
# SQLite answers these out of the connection itself: they read no page and write none.
UNHEARD = ("BEGIN", "PRAGMA busy_timeout", "PRAGMA database_list")
# PostgreSQL is told once in each transaction how it must commit: behind a pooler a session's settings are nobody's.
SETTINGS = "SELECT set_config"
TABLE = re.compile(rf'(?:FROM|INTO|UPDATE) "?({"|".join(metadata.tables)})')
# What begin and settle say to the database, transaction by transaction.
READ = ["SELECT effects"]
# SQLite: the row, what the guards' three tables say (one reading), the entry. PostgreSQL: one statement for all of it.
BEGIN = {
    "sqlite": ["INSERT effects", "SELECT tasks", "INSERT entries", "COMMIT"],
    "postgresql": ["WITH effects", "COMMIT"],
}
SETTLE = {"sqlite": ["UPDATE effects", "INSERT entries", "COMMIT"], "postgresql": ["WITH effects", "COMMIT"]}
OWN = ["INSERT references", "SELECT references"]


@dataclass
class Traffic:
    """What was said to the database, in its order, and how a replay's read was said in full."""

    said: list[str] = field(default_factory=list)
    reads: list[tuple[str, Any]] = field(default_factory=list)
    checked_out: int = 0


@contextmanager
def listening() -> Iterator[Traffic]:
    """Hear every statement and every COMMIT of this process, but for what is written behind."""
    traffic = Traffic()

    def executed(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if threading.current_thread().name == BEHIND or statement.startswith(UNHEARD):
            return
        table = TABLE.search(statement)
        traffic.said.append(f"{statement.split()[0]} {table[1]}" if table else statement.partition("(")[0])
        if table is None:
            return
        traffic.reads.append((statement, parameters))

    def committed(_connection: Any) -> None:
        if threading.current_thread().name != BEHIND:
            traffic.said.append("COMMIT")

    def taken(*_: Any) -> None:
        traffic.checked_out += 1

    def given_back(*_: Any) -> None:
        traffic.checked_out -= 1

    hooks = (
        (sa.Engine, "after_cursor_execute", executed),
        (sa.Engine, "commit", committed),
        (sa.Pool, "checkout", taken),
        (sa.Pool, "checkin", given_back),
    )
    for target, name, hook in hooks:
        sa.event.listen(target, name, hook)
    try:
        yield traffic
    finally:
        for target, name, hook in hooks:
            sa.event.remove(target, name, hook)


@tool(key=("order",))
def pay(order: str) -> str:
    """Pay for one order. Use it when the customer has confirmed the total."""
    return order


def test_a_first_call_makes_two_commits(ledger_url: str) -> None:
    """Before the tool runs one transaction makes the begin durable, after it one writes the verdict; beside these two
    there is one read, and each transaction has only the statements that change the effect and explain it."""
    with Executor(ledger_url, [pay]) as executor, listening() as traffic:
        assert executor.call("pay", ORDER).code == "ok"
    assert traffic.said == _as_said(ledger_url)
    assert traffic.said.count("COMMIT") == 2


def test_a_reference_costs_no_commit(ledger_url: str) -> None:
    """A receipt's reference is claimed inside the settling transaction."""

    @tool(key=("order",), name="pay")
    def pay_with_receipt(effect: Effect, order: str) -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        effect.reference = f"receipt-{order}"
        return order

    with Executor(ledger_url, [pay_with_receipt]) as executor, listening() as traffic:
        assert executor.call("pay", ORDER).code == "ok"
    assert traffic.said == _as_said(ledger_url, OWN)


def test_an_asynchronous_call_costs_the_same(ledger_url: str) -> None:
    """AsyncExecutor says the same to the database: two commits for a first call, one read for a replay."""

    @tool(key=("order",), name="pay")
    async def pay_async(order: str) -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        return order

    async def twice() -> tuple[list[str], list[str]]:
        async with AsyncExecutor(ledger_url, [pay_async]) as executor:
            with listening() as first:
                assert (await executor.call("pay", ORDER)).code == "ok"
            with listening() as again:
                assert (await executor.call("pay", ORDER)).code == "replayed"
        return first.said, again.said

    assert asyncio.run(twice()) == (_as_said(ledger_url), READ)


def test_no_connection_is_held_while_the_world_is_called(ledger_url: str) -> None:
    """While a tool runs, and while a postcondition looks, the call holds no connection, so no transaction is open."""
    held: list[int] = []

    @tool(key=("order",), name="pay", policy=Policy(timeout_s=5, grace_s=1))
    def pay_nobody(order: str) -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        held.append(traffic.checked_out)
        raise RuntimeError("the answer is lost")

    @pay_nobody.postcondition
    def paid(effect: Effect) -> Found[str] | Absent | Unclear:
        held.append(traffic.checked_out)
        return Found("A-1", reference=None)

    with Executor(ledger_url, [pay_nobody]) as executor, listening() as traffic:
        assert executor.call("pay", ORDER).code == "verified"
    assert held == [0, 0]


def test_a_replay_is_one_read(ledger_url: str) -> None:
    """A call that is answered from the ledger says one SELECT and nothing else, whoever asks; who asked is written
    behind it."""
    with Executor(ledger_url, [pay]) as executor:
        executor.call("pay", ORDER)
    with Executor(ledger_url, [pay]) as executor:
        executor.call("pay", ORDER)  # the first call of an executor shows that the next ones need not learn anything
        with listening() as traffic:
            assert executor.call("pay", ORDER, call_id="again").code == "replayed"
    assert traffic.said == READ
    assert _all(ledger_url, sa.select(sightings.c.call_id).where(sightings.c.call_id == "again")) == [("again",)]


def test_the_read_of_a_replay_uses_the_primary_key(ledger_url: str) -> None:
    """Among thousands of effects the database finds the one by its primary key: it scans nothing."""
    with Executor(ledger_url, [pay]) as executor:
        executor.call("pay", ORDER)
        _crowd(ledger_url)
        with listening() as traffic:
            assert executor.call("pay", ORDER).code == "replayed"
    [(statement, parameters)] = traffic.reads
    plan = _plan(ledger_url, statement, parameters)
    if ledger_url.startswith("sqlite"):
        assert plan == ["SEARCH effects USING INDEX sqlite_autoindex_effects_1 (key=?)"]
    else:
        assert plan[0].startswith("Index Scan using pk_effects on effects")
        assert plan[1].strip().startswith("Index Cond: (key = ")
        assert len(plan) == 2


def test_every_change_finds_its_row_by_the_primary_key(ledger_url: str) -> None:
    """The statements of begin and settle, on rows of all tables, are searches by key: none scans."""
    with Executor(ledger_url, [pay]) as executor:
        executor.call("pay", ORDER)
        _crowd(ledger_url)
        with listening() as traffic:
            assert executor.call("pay", {"order": "B-2"}).code == "ok"
    plans = [_plan(ledger_url, *read) for read in traffic.reads if not read[0].startswith("INSERT")]
    assert len(plans) == 3
    scans = [line for plan in plans for line in plan if re.search(r"\bSCAN\b|Seq Scan", line)]
    assert scans == []


# ---------------------------------------------------------------- details


def _as_said(ledger_url: str, own: list[str] | None = None) -> list[str]:
    """A first call: a read, and two transactions; `own` is what the second says of a reference."""
    dialect = sa.make_url(ledger_url).get_backend_name()
    first = [] if dialect == "sqlite" else [SETTINGS]
    return READ + first + BEGIN[dialect] + first + (own or []) + SETTLE[dialect]


def _all(ledger_url: str, statement: Any) -> list[tuple[Any, ...]]:
    engine = sa.create_engine(ledger_url)
    try:
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(statement)]
    finally:
        engine.dispose()


def _crowd(ledger_url: str) -> None:
    """Thousands of other effects with their entries, and of what guards ask, so that an index is worth its while."""
    engine = sa.create_engine(ledger_url)
    with engine.begin() as connection:
        for table in (effects, entries):
            row = dict(connection.execute(sa.select(table)).mappings().first() or {})
            copies = [row | {"key": number.to_bytes(32, "big")} for number in range(CROWD)]
            if table is effects:
                copies = [copy | {"id": f"cf-{number}"} for number, copy in enumerate(copies)]
            connection.execute(sa.insert(table), copies)
        others = [{"tenant": "", "tool": f"tool-{number}", "failures": 0} for number in range(CROWD)]
        connection.execute(sa.insert(tools), others)
        counts = dict.fromkeys(("calls", "turn_calls", "seq", "created_at", "updated_at"), 0)
        empty: dict[str, Any] = {"tool_calls": {}, "reserved": {}, "spent": {}, "told": []}
        connection.execute(sa.insert(tasks), [{"tenant": "", "task": str(n), **counts, **empty} for n in range(CROWD)])
        place = {"tenant": "", "turn": 0, "tool": "pay", "similar": b""}
        counts = dict.fromkeys(("wrong", "passing", "same", "blocked", "at"), 0)
        connection.execute(sa.insert(repeats), [{**place, **counts, "task": str(n)} for n in range(CROWD)])
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    engine.dispose()


def _plan(ledger_url: str, statement: str, parameters: Any) -> list[str]:
    """How the database says that it finds the rows of a statement."""
    lite = ledger_url.startswith("sqlite")
    engine = sa.create_engine(ledger_url)
    try:
        with engine.connect() as connection:
            explained = f"EXPLAIN {'QUERY PLAN' if lite else '(COSTS OFF)'} {statement}"
            return [str(row[-1]) for row in connection.exec_driver_sql(explained, parameters)]
    finally:
        engine.dispose()


def test_the_ear_hears(ledger_url: str) -> None:
    """What listens here hears a statement and a commit that were not asked for: the tests above can fail."""
    engine = sa.create_engine(ledger_url)
    with listening() as traffic, engine.begin() as connection:
        connection.execute(sa.select(effects.c.key))
    engine.dispose()
    assert traffic.said == ["SELECT effects", "COMMIT"]
    with pytest.raises(AssertionError):
        assert traffic.said == READ
