"""Counterfoil: the blocking executor called by threads, and the asynchronous one called by tasks.

Everything goes through the public names. What is not there at first, doubts above all, is written beforehand in the
shape that the product gave it.
"""

from __future__ import annotations

import asyncio
import platform
import sqlite3
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import sqlalchemy as sa
from benchmarks import crowd
from benchmarks.charge import World, asynchronous, blocking
from benchmarks.shape import Shape, captured, fill
from benchmarks.side import Side, arguments, task

from counterfoil import AsyncExecutor, Executor, Observation
from counterfoil.ledger.schema import effects, entries

# How many tool functions may run at once: the default, 64, refuses what 256 callers would begin at the same moment.
ATTEMPTS_MAX = 1024
EXPECTED = {"first": (True, False), "replay": (True, True), "settle": (True, False)}


class _Ours(Side):
    """What both have in common."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.url = place
        self.engine = sa.create_engine(place)
        self.world = World()
        self._captured: Shape | None = None

    @property
    def shape(self) -> Shape:
        """How the product's rows look; made by two calls when it is asked for first."""
        if self._captured is None:
            self._captured = captured(self.url)
        return self._captured

    def leave_doubts(self, numbers: range) -> None:
        """See `Side`. They are due for a look at once."""
        doubt = self.shape.doubt
        doubt.effect["look_at"] = time.time_ns() // 1000
        with self.engine.begin() as connection:
            fill(connection, [doubt.under(number) for number in numbers])

    def count(self) -> dict[str, int]:
        """See `Side`."""
        with self.engine.connect() as connection:
            return {
                table.name: int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
                for table in (effects, entries)
            }

    def versions(self) -> dict[str, str]:
        """See `Side`."""
        return {
            "python": platform.python_version(),
            "counterfoil": version("counterfoil"),
            "sqlalchemy": version("sqlalchemy"),
            "psycopg": version("psycopg"),
            "pydantic": version("pydantic"),
            "sqlite": sqlite3.sqlite_version,
        }


def _refusal(kind: str, seen: Observation) -> str | None:
    return None if (seen.ok, seen.replayed) == EXPECTED[kind] else f"{seen.code}: {seen.reason}"


class Threads(_Ours):
    """`Executor`, called by threads."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.executor = Executor(place, [blocking(self.world)], attempts_max=ATTEMPTS_MAX)

    def ready(self, kind: str, numbers: range) -> Callable[[int], str | None]:
        """See `Side`."""

        def one(number: int) -> str | None:
            return _refusal(kind, self.executor.call("charge", arguments(number), task=task(number)))

        return one

    def reconcile(self, calls: int) -> dict[str, Any]:
        """Let one `reconcile` settle so many doubts; per second, and what it says that it did."""
        self.leave_doubts(self.taken(calls))
        begun = time.perf_counter()
        done = self.executor.reconcile(limit=calls)
        spent = time.perf_counter() - begun
        assert done.looked >= calls, done
        return {"rate": done.looked / spent}

    def close(self) -> None:
        """See `Side`."""
        self.executor.close()
        self.engine.dispose()


class Tasks(_Ours):
    """`AsyncExecutor`, called by tasks of one event loop. Its versions are those of `Threads`."""

    def versions(self) -> dict[str, str]:
        """See `Side`."""
        return {}

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.loop = asyncio.new_event_loop()
        self.executor = AsyncExecutor(place, [asynchronous(self.world)], attempts_max=ATTEMPTS_MAX)

    def calling(self, kind: str, numbers: range, callers: int, calls: int) -> dict[str, Any]:
        """See `Side`."""
        most = len(numbers)

        async def one(index: int) -> str | None:
            number = numbers[index % most]
            return _refusal(kind, await self.executor.call("charge", arguments(number), task=task(number)))

        return self.loop.run_until_complete(crowd.tasks(callers, calls, one))

    def close(self) -> None:
        """See `Side`."""
        self.loop.run_until_complete(self.executor.close())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        self.engine.dispose()
