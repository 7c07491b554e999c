"""C38: many writers on one SQLite file, and one that does not let go."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from charging import charging
from ledger_client import client
from outside import World
from provider import Provider

from counterfoil import Executor, ManualClock, Verdict

SQLITE = pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
PROCESSES, CALLS, THREADS = 8, 50, 32


def file_of(url: str) -> Path:
    """The file of a SQLite ledger."""
    return Path(str(sa.make_url(url).database))


def writing(file: Path, over: threading.Event) -> None:
    """A ninth connection that writes in a loop, and hardly ever lets go."""
    with closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as connection:
        connection.execute("CREATE TABLE noise (number INTEGER)")
        while not over.is_set():
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO noise VALUES (1)")
            connection.execute("COMMIT")


@SQLITE
def test_c38_many_processes_and_a_writer_in_a_loop(ledger_url: str, provider: Provider) -> None:
    """8 processes with 50 calls each beside a ninth writer: all applied, 400 effects, nobody hears of a lock."""
    over = threading.Event()
    ninth = threading.Thread(target=writing, args=(file_of(ledger_url), over))
    told: Counter[str] = Counter()
    with ExitStack() as stack:
        clients = [
            stack.enter_context(
                client(url=ledger_url, provider=provider.url, orders=[f"{number}-{one}" for one in range(CALLS)])
            )
            for number in range(PROCESSES)
        ]
        ninth.start()
        try:
            for one in clients:
                one.go()
            for one in clients:
                told.update(one.heard()["code"] for _ in range(CALLS))
        finally:
            over.set()
            ninth.join()
    assert told == {"ok": PROCESSES * CALLS}
    assert len({effect["reference"] for effect in provider.effects()}) == provider.count() == PROCESSES * CALLS


@SQLITE
def test_c38_a_writer_that_holds_the_lock(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused, nothing is sent, and told within the patience, however many threads ask; later all go through."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.5)
    world = World(ManualClock())
    with (
        Executor(ledger_url, tools=[charging(world)], attempts_max=THREADS) as executor,
        closing(sqlite3.connect(file_of(ledger_url), isolation_level=None)) as holder,
        ThreadPoolExecutor(THREADS) as threads,
    ):

        def call(number: int) -> tuple[str, Verdict, float]:
            began = time.monotonic()
            seen = executor.call("charge", {"order": str(number), "amount": 5})
            return seen.code, seen.verdict, time.monotonic() - began

        holder.execute("BEGIN IMMEDIATE")
        refused = list(threads.map(call, range(THREADS)))
        holder.execute("ROLLBACK")
        assert {(code, verdict) for code, verdict, _ in refused} == {("ledger_unavailable", Verdict.EFFECT_UNKNOWN)}
        assert max(took_s for _, _, took_s in refused) < 0.5 + 2.5  # the machine may be busy; the lock is held for ever
        assert world.requests == []
        assert executor.audit.effects() == []
        assert {code for code, _, _ in threads.map(call, range(THREADS))} == {"ok"}
    assert len(world.requests) == THREADS
