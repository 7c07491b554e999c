"""Attempts whose function outlives its deadline.

Owns the one thread that watches every attempt and pushes `sends_until` on while an overdue function lives: first AT the
deadline, then every half margin, until it has ended (protocol F2, N2). Without that, absence would be judged while the
function can still send. It does not depend on the caller, who may be interrupted or whose event loop may stand still.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from counterfoil.changes import Push
from counterfoil.clock import Clock
from counterfoil.effect import MICROSECONDS, Lost, Row
from counterfoil.errors import LedgerUnavailable
from counterfoil.failure import name_of
from counterfoil.host import Thread
from counterfoil.ledger.ledger import Ledger
from counterfoil.runner.worker import Deadline, Running
from counterfoil.steps import AttemptEnd

_log = logging.getLogger("counterfoil")
FOR_EVER_S = 3600.0


@dataclass(slots=True)
class _Watched:
    row: Row
    actor: str
    deadline: Deadline
    pushes: int = 0


class Overruns:
    """All attempts of one executor that have a row, until their functions end."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock
        # Never waits longer while anything runs: a machine that slept, or a wake-up that was lost, costs no more.
        self._pause_s = ledger.margin_us / MICROSECONDS / 2
        self._alive: dict[Running, _Watched] = {}
        self._lock = threading.Lock()
        self._wake = ledger.host.event()
        self._thread: Thread | None = None
        self._closed = False

    def close(self) -> None:
        """Stop watching once nothing runs any more."""
        self._closed = True
        self._wake.set()

    def watch(self, running: Running, row: Row, actor: str, deadline: Deadline) -> None:
        """Watch an attempt from before its function is called.

        Raises:
            RuntimeError: no thread could be started; the function must not be called.
        """
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = self._ledger.host.start(self._work, "counterfoil-overruns")
            if not self._alive:
                self._wake.set()
            self._alive[running] = _Watched(row, actor, deadline)

    def wake(self) -> None:
        """Have the thread look now, for a caller that must not wait."""
        self._wake.set()

    def push(self, running: Running) -> None:
        """Push now, in the caller's thread, if the deadline is over and the function has not ended."""
        with self._lock:
            watched = self._alive.get(running)
        if watched is not None and not running.done.is_set() and watched.deadline.remaining_s() <= 0:
            self._push(watched)

    def _push(self, watched: _Watched) -> None:
        row = watched.row
        push = Push(key=row.key, attempt=row.attempts, actor=watched.actor, noted=watched.pushes > 0)
        try:
            # One row that somebody holds locked must not keep the others from being pushed in time.
            self._ledger.apply([push], patience_s=self._pause_s / 4)
        except LedgerUnavailable:
            _log.warning("the overrun of an attempt could not be recorded; it is tried again")
        except Exception as problem:  # noqa: BLE001 - a thread that died would push nobody any more
            kind = name_of(type(problem))
            _log.error("the overrun of an attempt could not be recorded (%s); it is tried again", kind)
        else:
            watched.pushes += 1

    def _work(self) -> None:
        while True:
            with self._lock:
                self._alive = {one: kept for one, kept in self._alive.items() if not one.done.is_set()}
                overdue = [(one, kept) for one, kept in self._alive.items() if kept.deadline.remaining_s() <= 0]
                ahead = [left for kept in self._alive.values() if (left := kept.deadline.remaining_s()) > 0]
                idle = not self._alive
                if self._closed and idle:
                    self._thread = None
                    return
                self._wake.clear()
            for one, watched in sorted(overdue, key=lambda each: each[1].pushes):
                if one.gone():
                    one.finish(AttemptEnd(Lost("the event loop of the attempt was closed")))
                if not one.done.is_set():
                    if watched.pushes:
                        one.abandon()  # its caller is gone, or stands still: what it says is recorded when it comes
                    self._push(watched)
            self._clock.wait(self._wake, FOR_EVER_S if idle else min([self._pause_s, *ahead]))
