"""C40: the host's own transaction is run again as a whole, and rolled back for good at last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from charging import GOOD, charging
from outside import World

from counterfoil import Executor, ManualClock, UsageError, Verdict
from counterfoil.ledger.schema import effects

RUNS = 3
invoices = sa.Table(
    "invoices", sa.MetaData(), sa.Column("number", sa.Integer, primary_key=True), sa.Column("state", sa.Text)
)


@contextmanager
def host(ledger_url: str, tmp_path: Path) -> Iterator[tuple[sa.Engine, str | sa.Engine]]:
    """The host's engine, whose transactions conflict, and what it gives to the executor as its ledger.

    On PostgreSQL the ledger lives in the host's database and gets the host's own engine. On SQLite one file has one
    writer, so the ledger has a file of its own.
    """
    if ledger_url.startswith("sqlite"):
        engine = sa.create_engine(f"sqlite:///{tmp_path / 'host.db'}", connect_args={"timeout": 0})
        sa.event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA journal_mode=WAL"))
        ledger: str | sa.Engine = ledger_url
    else:
        engine = ledger = sa.create_engine(ledger_url, isolation_level="REPEATABLE READ")
    invoices.create(engine)
    with engine.begin() as connection:
        connection.execute(invoices.insert(), {"number": 1, "state": "open"})
    try:
        yield engine, ledger
    finally:
        engine.dispose()


def test_c40_the_host_runs_its_transaction_again(ledger_url: str, tmp_path: Path) -> None:
    """Another touches the invoice in each run, the host fails three times: the effect is one, and stays on record."""
    world = World(ManualClock())
    with (
        host(ledger_url, tmp_path) as (engine, ledger),
        Executor(ledger, tools=[charging(world)], clock=world.clock) as executor,
    ):
        codes = []
        for run in range(RUNS):
            with engine.connect() as own:
                if engine.dialect.name == "sqlite":
                    own.exec_driver_sql("BEGIN")
                own.execute(sa.select(invoices)).all()
                codes.append(executor.call("charge", GOOD).code)
                with engine.begin() as other:
                    other.execute(invoices.update().values(state=f"touched {run}"))
                with pytest.raises(sa.exc.OperationalError):
                    own.execute(invoices.update().values(state="sent"))
        assert codes == ["ok", "replayed", "replayed"]
        assert len(world.requests) == 1
        (row,) = executor.audit.effects()
        assert row.verdict is Verdict.EFFECT_APPLIED
        with engine.connect() as connection:
            assert connection.scalar(sa.select(invoices.c.state)) == f"touched {RUNS - 1}"


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_c40_a_host_that_writes_to_the_ledgers_file(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One SQLite file has one writer: within the host's transaction the call is refused, in bounded time, unsent."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)
    world = World(ManualClock())
    engine = sa.create_engine(ledger_url)
    with Executor(ledger_url, tools=[charging(world)], clock=world.clock) as executor:
        with engine.begin() as own:
            invoices.create(own)
            own.execute(invoices.insert(), {"number": 1, "state": "open"})
            refused = executor.call("charge", GOOD)
        assert (refused.code, refused.verdict, world.requests) == (
            "ledger_unavailable",
            Verdict.EFFECT_UNKNOWN,
            [],
        )
        assert executor.call("charge", GOOD).code == "ok"
    engine.dispose()
    assert len(world.requests) == 1


def test_c40_a_connection_is_no_ledger(ledger_url: str) -> None:
    """Neither a connection nor a session is taken: a begin never joins a caller's transaction."""
    engine = sa.create_engine(ledger_url)
    with engine.connect() as connection:
        given: Any = connection
        with pytest.raises(UsageError, match="not a URL"):
            Executor(given)
    engine.dispose()


def test_c40_begin_survives_the_hosts_rollback(ledger_url: str, tmp_path: Path) -> None:
    """While the host's transaction is open, another connection sees the begin: it was committed by itself."""
    world = World(ManualClock())
    seen: list[str] = []
    with host(ledger_url, tmp_path) as (engine, ledger):
        reader = sa.create_engine(ledger_url)

        def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
            if (moment, step) == ("before", "Attempt"):
                with reader.connect() as other:
                    seen.extend(other.scalars(sa.select(effects.c.verdict)))

        with (
            Executor(ledger, tools=[charging(world)], clock=world.clock, observer=watch) as executor,
            engine.connect() as own,
        ):
            own.execute(invoices.update().values(state="sent"))
            assert executor.call("charge", GOOD).code == "ok"
            own.rollback()
            assert executor.call("charge", GOOD).code == "replayed"
        reader.dispose()
    assert seen == ["effect_unknown"]
    assert len(world.requests) == 1
