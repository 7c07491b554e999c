"""Ends of attempts that could not be written down when they came: they are written when the ledger is back.

Only the record is repeated, never the tool. Each is idempotent, so one that had counted after all changes nothing. They
live in memory: a process that dies with them leaves an unknown effect, which a look settles.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import suppress

from counterfoil.changes import Change
from counterfoil.errors import LedgerUnavailable
from counterfoil.host import Thread
from counterfoil.ledger.ledger import Ledger

_log = logging.getLogger("counterfoil")
MOST_WAITING = 10_000
PAUSE_S = 1.0


class Backlog:
    """A queue of changes and the daemon thread that writes them as soon as it can."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: deque[Change] = deque(maxlen=MOST_WAITING)
        self._writing = ledger.host.lock()
        self._closed = ledger.host.event()
        self._thread: Thread | None = None

    def add(self, change: Change) -> None:
        """Keep a change until it is written."""
        _log.warning("the end of an attempt could not be recorded yet; it is tried again")
        with self._writing:
            self._waiting.append(change)
            if (self._thread is None or not self._thread.is_alive()) and not self._closed.is_set():
                with suppress(RuntimeError):  # then the next one tries again, and closing writes what it can
                    self._thread = self._ledger.host.start(self._work, "counterfoil-backlog")

    def flush(self) -> bool:
        """Write what waits; False when something is left. One that is refused does not hold up the others."""
        with self._writing:
            for _ in range(len(self._waiting)):
                change = self._waiting.popleft()
                try:
                    self._ledger.apply([change], patience_s=PAUSE_S)
                except LedgerUnavailable:
                    self._waiting.append(change)
            return not self._waiting

    def close(self) -> None:
        """Try once more, and stop."""
        self._closed.set()
        if not self.flush():
            _log.warning("%d ends of attempts stay unrecorded; looks will settle them", len(self._waiting))

    def _work(self) -> None:
        while not self._closed.wait(PAUSE_S):
            self.flush()
