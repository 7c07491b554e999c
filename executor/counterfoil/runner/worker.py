"""Daemon threads for tools and looks, and one attempt as it runs in one of them.

Owns the threads, their cap, and the moment at which a caller stops waiting for an attempt. A blocking function that
overruns cannot be stopped: its thread goes on, keeps its place, and what it says later is handed to `late`.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from counterfoil.attempt import Gate
from counterfoil.clock import Clock
from counterfoil.effect import MICROSECONDS
from counterfoil.host import Host
from counterfoil.steps import AttemptEnd


class Deadline:
    """A host's own deadline. It runs from the moment the begin was queued, on the clock that counts sleep, and the
    wall clock is checked beside it: whichever is nearer counts (protocol F10)."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._boot_until = clock.boot_us() + round(seconds * MICROSECONDS)
        self._wall_until = clock.wall_us() + round(seconds * MICROSECONDS)

    def remaining_s(self) -> float:
        """Seconds left; zero or less when it is over."""
        left = min(self._boot_until - self._clock.boot_us(), self._wall_until - self._clock.wall_us())
        return left / MICROSECONDS


class Workers:
    """Reused daemon threads. `reserve` takes one of `most` places, `run` uses it, its end frees it."""

    def __init__(self, name: str, most: int, host: Host) -> None:
        self._name = name
        self._host = host
        self._places = threading.BoundedSemaphore(most)
        self._tasks: deque[Callable[[], None]] = deque()
        self._waiting = host.semaphore()
        self._idle = threading.Semaphore(0)

    def reserve(self) -> bool:
        """Take a place; False when all are taken."""
        return self._places.acquire(blocking=False)

    def release(self) -> None:
        """Give back a place that was not used."""
        self._places.release()

    def run(self, task: Callable[[], None]) -> None:
        """Run `task` in a thread, in a place that was reserved. `task` must not raise.

        Raises:
            RuntimeError: no thread could be started; the task will not run and the place is free again.
        """
        if not self._idle.acquire(blocking=False):
            try:
                self._host.start(self._work, self._name)
            except RuntimeError:  # the system gives no thread: the task must not be run later by another one
                self._places.release()
                raise
        self._tasks.append(task)
        self._waiting.release()

    def _work(self) -> None:
        while True:
            self._waiting.acquire()
            task = self._tasks.popleft()
            try:
                task()
            finally:
                self._places.release()
            self._idle.release()


class Running:
    """An attempt while it runs: either its caller takes the end, or, once abandoned, `late` does. Never both."""

    def __init__(self, gate: Gate, late: Callable[[AttemptEnd], None], done: threading.Event) -> None:
        self.gate = gate
        self.done = done
        self.entered = False
        self.told_never_sent = False
        self.gone: Callable[[], bool] = lambda: False
        self._late = late
        self._lock = threading.Lock()
        self._started = False
        self._abandoned = False
        self._end: AttemptEnd | None = None
        self._listener: Callable[[], None] | None = None

    def start(self) -> bool:
        """The function is about to be called; False when the caller has given up before that."""
        with self._lock:
            self._started = not self._abandoned
            return self._started

    def finish_if_awaited(self, end: AttemptEnd) -> bool:
        """End the attempt if its caller still waits; False, and nothing done, when it has given up."""
        with self._lock:
            if self._abandoned:
                return False
            self._end = end
            listener = self._listener
        self.done.set()
        if listener is not None:
            listener()
        return True

    def finish(self, end: AttemptEnd) -> None:
        """The function has ended."""
        if self.finish_if_awaited(end):
            return
        with self._lock:
            self._end = end
        self.done.set()
        self._late(end)

    def listen(self, listener: Callable[[], None]) -> None:
        """Have `listener` called at the end (at once when it has ended)."""
        with self._lock:
            self._listener = listener
            ended = self._end is not None
        if ended:
            listener()

    def abandon(self) -> AttemptEnd | bool:
        """Stop waiting: the end if there is one, else whether the function had been started."""
        with self._lock:
            if self._end is not None:
                return self._end
            self._abandoned = True
            return self._started


def completed(result: Any) -> Any:
    """The result of a function; a coroutine is run to its end in a loop of its own."""
    if isinstance(result, Coroutine):
        return asyncio.run(result)
    return result
