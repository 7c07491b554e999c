"""Callers that all call at once, in threads or in tasks, and what a round of them measures.

Owns the clockwork of a round. Uses the standard library alone: it runs inside the environments of the peers too.

The rate is counted between two completions while every caller is busy: from the one that fills the crowd for the first
time to `calls` later. Neither the start of a round nor its end, where callers stand idle, is in it. A call that answers
with a text was refused: it is counted apart and its time is not in any figure.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["measured", "needed", "tasks", "threads"]


def needed(callers: int, calls: int) -> int:
    """How many calls a round may make at most: those that count, the first of each caller, and those under way."""
    return calls + 2 * callers


def threads(callers: int, calls: int, one: Callable[[int], str | None]) -> dict[str, Any]:
    """A round of `callers` threads: `one(number)` makes call `number`, each number once."""
    ends: list[tuple[int, int]] = []
    refused: list[str] = []
    numbers = itertools.count()
    most = callers + calls
    start = threading.Barrier(callers + 1)
    trouble: list[BaseException] = []

    def work() -> None:
        start.wait()
        try:
            while len(ends) + len(refused) < most and not trouble:
                begun = time.perf_counter_ns()
                said = one(next(numbers))
                ended = time.perf_counter_ns()
                if said is None:
                    ends.append((ended, ended - begun))
                else:
                    refused.append(said)
        except BaseException as problem:  # noqa: BLE001 - raised again below
            trouble.append(problem)

    crowd = [threading.Thread(target=work, daemon=True) for _ in range(callers)]
    for one_thread in crowd:
        one_thread.start()
    gc.collect()
    cpu = time.process_time_ns()
    start.wait()
    for one_thread in crowd:
        one_thread.join()
    if trouble:
        raise trouble[0]
    return measured(callers, calls, ends, refused, time.process_time_ns() - cpu)


async def tasks(callers: int, calls: int, one: Callable[[int], Awaitable[str | None]]) -> dict[str, Any]:
    """A round of `callers` tasks in the running event loop; see `threads`."""
    ends: list[tuple[int, int]] = []
    refused: list[str] = []
    numbers = itertools.count()
    most = callers + calls

    async def work() -> None:
        while len(ends) + len(refused) < most:
            begun = time.perf_counter_ns()
            said = await one(next(numbers))
            ended = time.perf_counter_ns()
            if said is None:
                ends.append((ended, ended - begun))
            else:
                refused.append(said)

    gc.collect()
    cpu = time.process_time_ns()
    await asyncio.gather(*(work() for _ in range(callers)))
    return measured(callers, calls, ends, refused, time.process_time_ns() - cpu)


def measured(callers: int, calls: int, ends: list[tuple[int, int]], refused: list[str], cpu_ns: int) -> dict[str, Any]:
    """What a round says: calls per second, the process's own time per call, and how long each call took, in µs."""
    ends.sort()
    first, last = callers - 1, min(callers + calls, len(ends)) - 1
    return {
        "made": len(ends),
        "refused": len(refused),
        "why": refused[0] if refused else None,
        "rate": (last - first) * 1e9 / (ends[last][0] - ends[first][0]) if first < last else 0.0,
        "cpu_us": round(cpu_ns / 1000 / max(len(ends), 1), 1),
        "us": [round(took / 1000, 1) for _, took in ends],
    }
