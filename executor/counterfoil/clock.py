"""Time, as one object that a test can set.

Owns the reading of clocks and every way of waiting. `SystemClock` counts time during which the machine slept
(CLOCK_BOOTTIME) because a deadline that stands still while a laptop is closed is no deadline (protocol F10).
"""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path
from typing import Any, Protocol

from counterfoil.effect import MICROSECONDS

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """What the executor needs of time. Instants are microseconds; `wall_us` since 1970 UTC, `boot_us` since boot."""

    @property
    def settable(self) -> bool:
        """True when the ledger must take its time from here too, not from the database server."""

    @property
    def boot_id(self) -> str | None:
        """Names this boot of this host; None where the system does not tell."""

    def wall_us(self) -> int:
        """The wall clock."""

    def boot_us(self) -> int:
        """The time since boot, sleep of the machine included."""

    def sleep(self, seconds: float) -> None:
        """Stand still for so many seconds."""

    async def sleep_async(self, seconds: float) -> None:
        """Let others go on for so many seconds."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until the event is set or the seconds are over; True when it is set."""

    async def wait_async(self, future: asyncio.Future[Any], seconds: float) -> bool:
        """Wait until the future is done or the seconds are over; True when it is done. It is never cancelled."""


class SystemClock:
    """The clocks of this host."""

    settable = False

    def __init__(self) -> None:
        self.boot_id = _read_boot_id()

    def wall_us(self) -> int:
        return time.time_ns() // 1000

    def boot_us(self) -> int:
        if _BOOT_CLOCK is None:
            return time.monotonic_ns() // 1000
        return time.clock_gettime_ns(_BOOT_CLOCK) // 1000

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))

    async def sleep_async(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return event.wait(max(0.0, seconds))

    async def wait_async(self, future: asyncio.Future[Any], seconds: float) -> bool:
        await asyncio.wait({future}, timeout=max(0.0, seconds))
        return future.done()


class ManualClock:
    """A clock that stands still until it is told to move; sleeping moves it. For tests, on every database.

    Example:
        >>> clock = ManualClock(start_us=0)
        >>> clock.sleep(1.5)
        >>> clock.wall_us()
        1500000
    """

    settable = True
    boot_id: str | None = "manual-boot"
    _TICK_S = 0.002

    def __init__(self, start_us: int = 1_800_000_000 * MICROSECONDS) -> None:
        self._now_us = start_us
        self._lock = threading.Lock()

    def advance(self, seconds: float) -> None:
        """Move the clock on by `seconds`."""
        with self._lock:
            self._now_us += round(seconds * MICROSECONDS)

    def wall_us(self) -> int:
        return self._now_us

    def boot_us(self) -> int:
        return self._now_us

    def sleep(self, seconds: float) -> None:
        self.advance(max(0.0, seconds))

    async def sleep_async(self, seconds: float) -> None:
        self.advance(max(0.0, seconds))
        await asyncio.sleep(0)

    def wait(self, event: threading.Event, seconds: float) -> bool:
        until = self._now_us + round(max(0.0, seconds) * MICROSECONDS)
        while self._now_us < until:
            if event.wait(self._TICK_S):
                return True
        return event.is_set()

    async def wait_async(self, future: asyncio.Future[Any], seconds: float) -> bool:
        until = self._now_us + round(max(0.0, seconds) * MICROSECONDS)
        while self._now_us < until and not future.done():
            await asyncio.wait({future}, timeout=self._TICK_S)
        return future.done()


def _read_boot_id() -> str | None:
    try:
        return _BOOT_ID_FILE.read_text(encoding="ascii").strip() or None
    except OSError:
        return None
