"""Counterfoil's own costs, beside the rates: its Python apart from the driver, and its memory.

`OwnPython` gives the executor an engine whose connections count the time inside the driver: within `execute`, `commit`
and `rollback` of sqlite3 or psycopg, by the wall and by the thread's own processor time. What is left of a call is ours
and SQLAlchemy's. A second figure leaves out the whole ledger: the observer, a public hook, is told when a step of the
ledger begins and ends.
"""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import psycopg
import sqlalchemy as sa
from benchmarks import crowd
from benchmarks.charge import World, asynchronous, blocking
from benchmarks.side import Side, arguments, task

from counterfoil import AsyncExecutor, Effect, Executor, Policy, tool

BEHIND = "counterfoil-sightings"
# The steps of a first call that are the ledger's, as the observer hears them.
LEDGER_STEPS = ("Read", "Start", "Write")


class _Inside:
    """Time spent inside the driver by the threads that a call waits for."""

    def __init__(self) -> None:
        self.wall_ns = 0
        self.cpu_ns = 0
        self._here = threading.local()

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the block, once where blocks are nested."""
        if getattr(self._here, "inside", False) or threading.current_thread().name == BEHIND:
            yield
            return
        self._here.inside = True
        wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
        try:
            yield
        finally:
            self.cpu_ns += time.thread_time_ns() - cpu
            self.wall_ns += time.perf_counter_ns() - wall
            self._here.inside = False


INSIDE = _Inside()


# Used as a decorator, the block is the whole method.
_counted = INSIDE.counted()


class _LiteCursor(sqlite3.Cursor):
    execute = _counted(sqlite3.Cursor.execute)
    executemany = _counted(sqlite3.Cursor.executemany)


class _LiteConnection(sqlite3.Connection):
    def cursor(self, factory: Any = _LiteCursor) -> Any:
        return super().cursor(factory)

    execute = _counted(sqlite3.Connection.execute)
    commit = _counted(sqlite3.Connection.commit)
    rollback = _counted(sqlite3.Connection.rollback)


class _ServerCursor(psycopg.Cursor[Any]):
    execute = _counted(psycopg.Cursor.execute)
    executemany = _counted(psycopg.Cursor.executemany)


class _ServerConnection(psycopg.Connection[Any]):
    commit = _counted(psycopg.Connection.commit)
    rollback = _counted(psycopg.Connection.rollback)


def _counting_engine(place: str) -> sa.Engine:
    if place.startswith("sqlite"):
        return sa.create_engine(place, connect_args={"factory": _LiteConnection, "check_same_thread": False})
    engine = sa.create_engine(place)

    def connect(_dialect: Any, _record: Any, given: Any, more: Any) -> Any:
        return _ServerConnection.connect(*given, cursor_factory=_ServerCursor, **more)

    sa.event.listen(engine, "do_connect", connect)
    return engine


class OwnPython(Side):
    """One caller, and where the time of its first calls goes."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._ledger_ns = 0
        self._since = 0
        self.engine = _counting_engine(place)
        self.executor = Executor(self.engine, [blocking(World())], observer=self._observe)

    def _observe(self, moment: str, step: str, tool: str, effect_id: str) -> None:
        if not step.startswith(LEDGER_STEPS):
            return
        now = time.perf_counter_ns()
        if moment == "before":
            self._since = now
        else:
            self._ledger_ns += now - self._since

    def profile(self, calls: int) -> dict[str, float]:
        """Microseconds per first call, the medians over blocks of calls."""
        blocks = [self._block(calls // 10) for _ in range(11)][1:]
        return {name: round(statistics.median(block[name] for block in blocks), 1) for name in blocks[0]}

    def _block(self, calls: int) -> dict[str, float]:
        gc.collect()
        self._ledger_ns = INSIDE.wall_ns = INSIDE.cpu_ns = 0
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        for number in self.taken(calls):
            assert self.executor.call("charge", arguments(number), task=task(number)).ok
        wall, cpu = time.perf_counter_ns() - wall, time.process_time_ns() - cpu
        spent = {
            "wall_us": wall,
            "driver_us": INSIDE.wall_ns,
            "without_driver_us": wall - INSIDE.wall_ns,
            "without_driver_cpu_us": cpu - INSIDE.cpu_ns,
            "without_ledger_us": wall - self._ledger_ns,
        }
        return {name: ns / 1000 / calls for name, ns in spent.items()}

    def close(self) -> None:
        """See `Side`."""
        self.executor.close()
        self.engine.dispose()


class Memory(Side):
    """What concurrent calls hold, and what is left of calls that are over."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place

    def concurrent(self, calls: int) -> dict[str, float]:
        """MiB that so many calls hold while their tool runs, and what is left when they have ended."""
        return asyncio.run(self._concurrent(calls))

    async def _concurrent(self, calls: int) -> dict[str, float]:
        gate, inside = asyncio.Event(), 0
        gate.set()

        @tool(key=("order",), policy=Policy(timeout_s=300))
        async def charge(effect: Effect, order: str, amount_minor: int, currency: str, payment_method: str) -> str:
            """Charge the customer's card once for one order."""
            nonlocal inside
            inside += 1
            await gate.wait()
            return "done"

        async with AsyncExecutor(self.place, [charge], attempts_max=2 * calls) as executor:

            async def one(number: int) -> None:
                assert (await executor.call("charge", arguments(number), task=task(number))).ok

            await asyncio.gather(*(one(number) for number in self.taken(max(calls // 5, 5))))
            gate.clear()
            inside, before = 0, _held_mib()
            under_way = [asyncio.ensure_future(one(number)) for number in self.taken(calls)]
            while inside < calls:
                await asyncio.wait(under_way, timeout=0.05, return_when=asyncio.FIRST_EXCEPTION)
                assert not any(task.done() for task in under_way), "a call ended before its tool did"
            held = _held_mib() - before
            gate.set()
            await asyncio.gather(*under_way)
            del under_way
            return {"held_mib": round(held, 2), "left_mib": round(_held_mib() - before, 2)}

    def lasting(self, calls: int, callers: int, seconds: float) -> dict[str, Any]:
        """MiB held after each tenth of so many first calls, or of as many as fit in the time."""
        return asyncio.run(self._lasting(calls, callers, seconds))

    async def _lasting(self, calls: int, callers: int, seconds: float) -> dict[str, Any]:
        async with AsyncExecutor(self.place, [asynchronous(World())], attempts_max=2 * callers) as executor:

            async def one(index: int) -> str | None:
                number = self._next + index
                assert (await executor.call("charge", arguments(number), task=task(number))).ok
                return None

            series: list[tuple[int, float]] = []
            until, made = time.monotonic() + seconds, 0
            part = max(calls // 100, callers)
            while made < calls and time.monotonic() < until:
                made += int((await crowd.tasks(callers, part, one))["made"])
                self.taken(crowd.needed(callers, part))
                series.append((made, round(_held_mib(), 2)))
        return {"calls": made, "series": series}


def _held_mib() -> float:
    gc.collect()
    return float(psutil.Process().memory_full_info().uss) / 2**20
