"""C41: two sessions claim one key while the first has not committed yet, or never will."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from charging import charging
from outside import World

from counterfoil import Executor, ManualClock, Tool
from counterfoil.ledger.schema import effects

ROUNDS = 100  # at each of the two levels
FATES = ("commits late", "rolls back", "is killed")
CODES = {"ok", "in_progress", "replayed"}


class Held:
    """The first COMMIT of an engine, held back until a test says how it ends."""

    def __init__(self, engine: sa.Engine) -> None:
        self.arrived = threading.Event()
        self.go = threading.Event()
        self.pid = 0
        self.fate = ""
        self._armed = False
        sa.event.listen(engine, "commit", self._on_commit)

    def arm(self, fate: str) -> None:
        self.fate, self._armed = fate, True
        self.arrived.clear()
        self.go.clear()

    def _on_commit(self, connection: sa.Connection) -> None:
        if not self._armed or threading.current_thread().name.startswith("counterfoil"):
            return  # a sighting, written behind
        self._armed = False
        raw: Any = connection.connection.driver_connection
        self.pid = raw.info.backend_pid
        self.arrived.set()
        assert self.go.wait(20)
        if self.fate == "rolls back":
            raw.rollback()
            raise sa.exc.OperationalError("COMMIT", {}, Exception())


@contextmanager
def on(url: str, level: Any, tool: Tool[..., Any]) -> Iterator[Executor]:
    """An executor on an engine of its own with that isolation level."""
    engine = sa.create_engine(url, isolation_level=level)
    try:
        with Executor(engine, tools=[tool]) as executor:
            yield executor
    finally:
        engine.dispose()


def await_true(asked: Callable[[], bool]) -> None:
    """Ask until it is so."""
    until = time.monotonic() + 20
    while not asked():
        assert time.monotonic() < until
        time.sleep(0.001)


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ"])
@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_c41_two_sessions_claim_one_key(ledger_url: str, level: str) -> None:
    """The second waits for the first's transaction, then hears of it or has the claim: one request, never an error."""
    world = World(ManualClock())
    tool = charging(world, patience_s=0.01)
    administrator = sa.create_engine(ledger_url, isolation_level="AUTOCOMMIT")
    with (
        on(ledger_url, level, tool) as first,
        on(ledger_url, level, tool) as second,
        ThreadPoolExecutor(2) as threads,
        administrator.connect() as asking,
    ):
        held = Held(first._engine)
        waits = sa.text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        for number in range(ROUNDS):
            good = {"order": str(number), "amount": 5}
            held.arm(FATES[number % len(FATES)])
            one = threads.submit(first.call, "charge", good)
            assert held.arrived.wait(20)
            two = threads.submit(second.call, "charge", good)
            await_true(lambda: asking.scalar(waits) == 1)
            if held.fate == "is killed":
                asking.execute(sa.select(sa.func.pg_terminate_backend(held.pid)))
            held.go.set()
            told = {one.result(20).code, two.result(20).code}
            assert "ok" in told <= CODES, (held.fate, told)
            assert len(world.requests) == number + 1, held.fate
        assert asking.scalar(sa.select(sa.func.count()).select_from(effects)) == ROUNDS
    administrator.dispose()
