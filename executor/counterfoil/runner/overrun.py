"""Attempts whose function outlived its deadline.

Owns the one thread that pushes `sends_until` on while such a function lives: first AT the deadline, then every half
margin, until it has ended (protocol F2, N2). Without that, absence would be judged while the thread can still send.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from counterfoil.changes import Push
from counterfoil.clock import Clock
from counterfoil.effect import MICROSECONDS, Row
from counterfoil.errors import LedgerUnavailable
from counterfoil.ledger.ledger import Ledger
from counterfoil.runner.worker import Deadline, Running

_log = logging.getLogger("counterfoil")


class Overruns:
    """Attempts whose function outlived its deadline: while one lives, `sends_until` is pushed on (protocol F2, N2)."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        self._alive: dict[Running, tuple[Push, Deadline]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, running: Running, row: Row, actor: str, deadline: Deadline) -> None:
        """Push now when the deadline is over, and again until the function has ended."""
        push = Push(key=row.key, attempt=row.attempts, actor=actor, noted=False)
        if deadline.remaining_s() <= 0:
            push = self._pushed(push)
        with self._lock:
            self._alive[running] = (push, deadline)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="counterfoil-overruns", daemon=True)
                self._thread.start()
        self._wake.set()

    def _pushed(self, push: Push) -> Push:
        try:
            self._ledger.apply([push])
        except LedgerUnavailable:
            _log.warning("the overrun of an attempt could not be recorded; it is tried again")
            return push
        return replace(push, noted=True)

    def _work(self) -> None:
        pause = self._ledger.margin_us / MICROSECONDS / 2 or 0.5
        while True:
            self._wake.wait()
            self._clock.wait(threading.Event(), pause)
            with self._lock:
                self._alive = {one: kept for one, kept in self._alive.items() if not one.done.is_set()}
                over = [(one, push, until) for one, (push, until) in self._alive.items() if until.remaining_s() <= 0]
                if not self._alive:
                    self._wake.clear()
            for one, push, until in over:
                pushed = self._pushed(push)
                with self._lock:
                    if one in self._alive:
                        self._alive[one] = (pushed, until)
