"""The host as one object that a test can replace: work in the background, how pieces of it wait for each other, chance.

Owns threads, their locks, and the waiting that is about work and not about effects (that is the clock's). A simulation
passes a host of its own, whose threads take turns as a seed says, so that one seed is one schedule.
"""

from __future__ import annotations

import atexit
import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Protocol


class Lock(Protocol):
    """A lock or a semaphore, as `threading` has them."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; False when it cannot be had in `timeout` seconds."""

    def release(self) -> None:
        """Give it back."""

    def __enter__(self) -> bool: ...

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None: ...


class Thread(Protocol):
    """A piece of work in the background."""

    def is_alive(self) -> bool:
        """Whether it has not ended."""


class Host(Protocol):
    """What the executor needs of the host that it runs on, time apart."""

    def start(self, work: Callable[[], None], name: str) -> Thread:
        """Run `work` in the background, in a thread that does not keep the process alive.

        Raises:
            RuntimeError: no thread could be started.
        """

    def at_exit(self, work: Callable[[], None]) -> None:
        """Have `work` done when this process ends by itself."""

    def event(self) -> threading.Event:
        """An event that work in the background can wait for."""

    def lock(self) -> Lock:
        """A lock that may be held while the ledger is asked."""

    def semaphore(self) -> Lock:
        """A semaphore that stands at 0."""

    def monotonic(self) -> float:
        """Seconds, for how long to be patient."""

    def sleep(self, seconds: float) -> None:
        """Stand still for so many seconds."""

    def uniform(self, low: float, high: float) -> float:
        """A random number, for jitter."""

    def name(self) -> str:
        """A new name for an executor of this process, for people to read in the ledger."""

    def fresh(self) -> str:
        """32 letters that nobody else has: the name of a claim."""


class SystemHost:
    """This process, with daemon threads.

    Example:
        >>> host = SystemHost()
        >>> len(host.fresh()), host.fresh() == host.fresh()
        (32, False)
    """

    def start(self, work: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        return thread

    def at_exit(self, work: Callable[[], None]) -> None:
        atexit.register(work)

    def event(self) -> threading.Event:
        return threading.Event()

    def lock(self) -> Lock:
        return threading.Lock()

    def semaphore(self) -> Lock:
        return threading.Semaphore(0)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def uniform(self, low: float, high: float) -> float:
        return random.uniform(low, high)  # noqa: S311 - jitter, no secret

    def name(self) -> str:
        return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"

    def fresh(self) -> str:
        return uuid.uuid4().hex
