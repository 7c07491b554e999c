"""PostgreSQL is there and in the way: locks, deadlocks, serialization, no free connection, read-only, not durable."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from changing import One, permitted
from charging import GOOD, charging
from outside import World

from counterfoil import Executor, ManualClock, Verdict
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import effects

pytestmark = pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)


@pytest.fixture
def world() -> World:
    """The outside."""
    return World(ManualClock())


@pytest.fixture
def foreign(ledger_url: str) -> Iterator[sa.Engine]:
    """An engine of somebody else."""
    engine = sa.create_engine(ledger_url)
    yield engine
    engine.dispose()


def set_for_database(engine: sa.Engine, setting: str) -> None:
    """Have every new connection start with that setting."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql(f'ALTER DATABASE "{engine.url.database}" SET {setting}')


def await_true(asked: Callable[[], bool]) -> None:
    """Ask until it is so."""
    until = time.monotonic() + 20
    while not asked():
        assert time.monotonic() < until
        time.sleep(0.002)


@contextmanager
def locked(engine: sa.Engine, *keys: bytes) -> Iterator[sa.Connection]:
    """A transaction of somebody else that holds the rows of these keys."""
    with engine.connect() as connection:
        for key in keys:
            connection.execute(sa.select(effects.c.key).where(effects.c.key == key).with_for_update()).all()
        yield connection
        connection.rollback()


def test_a_row_locked_by_another(
    ledger_url: str, foreign: sa.Engine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that is not let go is not waited for without end: unknown, nothing is sent; later it goes through."""
    world.next = ["request_lost"]
    with Executor(ledger_url, tools=[charging(world, attempts_max=1)], clock=world.clock) as executor:
        executor.call("charge", GOOD)
        world.clock.advance(100)
        executor.reconcile()
        (row,) = executor.audit.effects()
        assert row.verdict is Verdict.NO_EFFECT
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)
    with Executor(ledger_url, tools=[charging(world)], clock=world.clock) as executor:
        with locked(foreign, row.key):
            began = time.monotonic()
            seen = executor.call("charge", GOOD)
            assert time.monotonic() - began < 0.3 + 5  # the machine may be busy; the lock is held for ever
        assert (seen.code, seen.verdict, len(world.requests)) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN, 1)
        assert executor.call("charge", GOOD).code == "ok"
    assert len(world.requests) == 2


def test_a_deadlock_is_tried_again(ledger_url: str, foreign: sa.Engine) -> None:
    """The database ends the ledger's transaction to solve a deadlock: it is done again, once."""
    set_for_database(foreign, "deadlock_timeout = '50ms'")
    engine = open_engine(ledger_url)
    ledger = Ledger(engine, clock=ManualClock())
    pair = sorted((One(ledger, "one"), One(ledger, "two")), key=lambda one: one.key)
    rows = [one.begun() for one in pair]
    threads: list[threading.Thread] = []
    with locked(foreign, pair[1].key) as connection:
        connection.exec_driver_sql("SET LOCAL deadlock_timeout = '30s'")  # so it is the ledger that notices
        # With their rows they are written unread, one after the other: each UPDATE waits for who holds its row.
        settles = [replace(one.returned(), row=row) for one, row in zip(pair, rows, strict=True)]
        answers: list[Any] = []
        threads.append(threading.Thread(target=lambda: answers.extend(ledger.apply(settles))))
        threads[0].start()
        with foreign.connect() as asking:
            waits = sa.text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                            "AND datname = current_database()")  # fmt: skip
            await_true(lambda: asking.scalar(waits) == 1)
        connection.execute(sa.select(effects.c.key).where(effects.c.key == pair[0].key).with_for_update()).all()
    threads[0].join()
    assert [permitted(answer).verdict for answer in answers] == [Verdict.EFFECT_APPLIED] * 2
    engine.dispose()  # what a session has counted is told at its end
    deadlocks = sa.text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    with foreign.connect().execution_options(isolation_level="AUTOCOMMIT") as asking:
        await_true(lambda: asking.scalar(deadlocks) == 1)


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_serialization_failure_is_tried_again(ledger_url: str, foreign: sa.Engine, level: Any, world: World) -> None:
    """Another has changed the row after the ledger's snapshot: the record is written again, the tool runs once."""
    engine = sa.create_engine(ledger_url, isolation_level=level)
    spoilt: list[str] = []

    def spoil(connection: sa.Connection, cursor: Any, statement: str, *_: Any) -> None:
        # The settle; its snapshot is taken already.
        if statement.startswith(("UPDATE effects", "WITH written")) and not spoilt:
            spoilt.append(statement)
            with foreign.begin() as other:
                other.execute(effects.update().values(look_at=effects.c.look_at + 1))

    sa.event.listen(engine, "before_cursor_execute", spoil)
    with Executor(engine, tools=[charging(world)], clock=world.clock) as executor:
        seen = executor.call("charge", GOOD)
        assert (seen.code, seen.attempts) == ("ok", 1)
    assert spoilt
    assert len(world.requests) == 1
    engine.dispose()


def test_no_connection_is_free(ledger_url: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pool is exhausted: told in bounded time, nothing is sent; with a free one the same call goes through."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)
    engine = sa.create_engine(ledger_url, pool_size=1, max_overflow=0, pool_timeout=0.2)
    with Executor(engine, tools=[charging(world)], clock=world.clock) as executor:
        with engine.connect():
            seen = executor.call("charge", GOOD)
        assert (seen.code, seen.verdict, world.requests) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN, [])
        assert executor.call("charge", GOOD).code == "ok"
    engine.dispose()


def test_the_server_takes_no_more_connections(
    ledger_url: str, foreign: sa.Engine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by the server itself, in the middle of a call: the effect is there, and its end is written later."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("after", "Attempt"):
            allow(foreign, False)
            executor._engine.dispose()

    with Executor(ledger_url, tools=[charging(world)], clock=world.clock, observer=watch) as executor:
        seen = executor.call("charge", GOOD)
        assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
        assert "its record is pending" in seen.text
        allow(foreign, True)
        assert executor._site.backlog.flush()
        assert executor.call("charge", GOOD).code == "replayed"
    assert len(world.requests) == 1


def allow(engine: sa.Engine, allowed: bool) -> None:
    """Whether that database takes new connections."""
    administrator = sa.create_engine(engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT")
    with administrator.connect() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE "{engine.url.database}" ALLOW_CONNECTIONS {allowed}')
    administrator.dispose()


def test_connections_to_a_server_that_became_read_only_are_left(
    ledger_url: str, foreign: sa.Engine, world: World
) -> None:
    """After a change of primaries the old connections can only read: the ledger comes back over new ones."""
    set_for_database(foreign, "default_transaction_read_only = on")
    with Executor(ledger_url, tools=[charging(world)], clock=world.clock) as executor:
        with foreign.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f'ALTER DATABASE "{foreign.url.database}" RESET default_transaction_read_only')
        assert executor.call("charge", GOOD).code == "ok"
    assert len(world.requests) == 1


def test_each_transaction_is_durable_by_its_own_word(ledger_url: str, foreign: sa.Engine) -> None:
    """A begin commits synchronously whatever database, role or session say, and leaves the session as it was (F18)."""
    set_for_database(foreign, "synchronous_commit = off")
    engine = open_engine(ledger_url)
    ledger = Ledger(engine)
    assert ledger.write(lambda connection: connection.scalar(sa.text("SHOW synchronous_commit"))) == "on"
    assert ledger._asked(lambda connection: connection.scalar(sa.text("SHOW synchronous_commit"))) == "off"
    set_for_database(foreign, "synchronous_commit = remote_apply")
    engine.dispose()
    assert ledger.write(lambda connection: connection.scalar(sa.text("SHOW synchronous_commit"))) == "remote_apply"
    engine.dispose()
