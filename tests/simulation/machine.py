"""What the executor is given of a simulated machine: its clock, and its threads with what they wait for each other by.

Owns `SimulatedClock` (the library's `Clock`) and `SimulatedHost` (its `Host`) over one `Machine` of the scheduler.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

from simulation.scheduler import MICROSECONDS, Dead, Machine, Task

# A thread that asks to sleep for less may sleep so long: nobody polls a lock two thousand times a second.
NAP_S = 0.02


class SimulatedEvent(threading.Event):
    """An event that tasks of one machine wait for."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._set = False
        self._waiters: list[Task] = []

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        waiters, self._waiters = self._waiters, []
        if not self._machine.dead:
            for task in waiters:
                self._machine.scheduler.wake(task)

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        scheduler = self._machine.scheduler
        until = None if timeout is None else scheduler.now + max(0, round(timeout * MICROSECONDS))
        while not self._set and (until is None or scheduler.now < until):
            task = scheduler.mine()
            if task is not None:
                self._waiters.append(task)
            scheduler.wait(until)
        return self._set


class SimulatedLock:
    """A lock (`free` 1) or a semaphore."""

    def __init__(self, machine: Machine, free: int) -> None:
        self._machine = machine
        self._free = free
        self._waiters: deque[Task] = deque()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        scheduler = self._machine.scheduler
        until = None if timeout < 0 else scheduler.now + round(timeout * MICROSECONDS)
        while not self._free:
            if not blocking or (until is not None and scheduler.now >= until):
                return False
            task = scheduler.mine()
            if task is not None:
                self._waiters.append(task)
            scheduler.wait(until)
        self._free -= 1
        return True

    def release(self) -> None:
        self._free += 1
        waiters, self._waiters = self._waiters, deque()
        if not self._machine.dead:
            for task in waiters:
                self._machine.scheduler.wake(task)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.release()


class SimulatedHost:
    """The threads of one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._scheduler = machine.scheduler

    def start(self, work: Callable[[], None], name: str) -> Task:
        return self._scheduler.start(self._machine, work, name)

    def event(self) -> threading.Event:
        return SimulatedEvent(self._machine)

    def lock(self) -> SimulatedLock:
        return SimulatedLock(self._machine, 1)

    def semaphore(self) -> SimulatedLock:
        return SimulatedLock(self._machine, 0)

    def monotonic(self) -> float:
        if self._machine.dead:
            raise Dead
        return self._scheduler.now / MICROSECONDS

    def sleep(self, seconds: float) -> None:
        self._scheduler.sleep(max(seconds, NAP_S))

    def uniform(self, low: float, high: float) -> float:
        return self._scheduler.chance.between("jitter", low, high)

    def at_exit(self, work: Callable[[], None]) -> None:
        """A simulated process never ends well."""

    def name(self) -> str:
        return self._machine.name

    def fresh(self) -> str:
        self._machine.fresh += 1
        return f"{zlib.crc32(self._machine.name.encode()):08x}{self._machine.fresh:024x}"


class SimulatedClock:
    """The clocks of one machine, each with its own distance from the true time."""

    settable = True

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._scheduler = machine.scheduler
        self.boot_id: str | None = f"boot-of-{machine.name}"

    def wall_us(self) -> int:
        return self._scheduler.now + self._machine.skew_us

    def boot_us(self) -> int:
        return self._scheduler.now + self._machine.boot_distance_us

    def sleep(self, seconds: float) -> None:
        self._scheduler.sleep(seconds)

    async def sleep_async(self, seconds: float) -> None:
        raise NotImplementedError

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(max(0.0, seconds))

    async def wait_async(self, future: asyncio.Future[Any], seconds: float) -> bool:
        raise NotImplementedError
