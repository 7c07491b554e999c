"""What a replay leaves (call id, turn, code) is written behind: a call that only reads does not wait for a commit.

Losing some of it in a crash is allowed: it is a record of who asked, never of what happened.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import deque
from functools import partial
from typing import Any

from counterfoil.errors import LedgerUnavailable
from counterfoil.host import Thread
from counterfoil.ledger.ledger import Ledger

_log = logging.getLogger("counterfoil")
MOST_WAITING = 10_000
PAUSE_S = 0.2
MOST_SINGLE = 100


class Sightings:
    """A queue of sightings and the daemon thread that writes them in batches."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting: deque[dict[str, Any]] = deque(maxlen=MOST_WAITING)
        self._writing = ledger.host.lock()
        self._wake = ledger.host.event()
        self._closed = False
        self._thread: Thread | None = None
        self._start = threading.Lock()

    def add(self, sighting: dict[str, Any]) -> None:
        """Note one call that was answered from the ledger: the columns of `sightings`."""
        self._waiting.append(sighting)
        if not self._running():
            with self._start:
                if not self._closed and not self._running():
                    self._thread = self._ledger.host.start(self._work, "counterfoil-sightings")
                    self._ledger.host.at_exit(partial(_flush, weakref.ref(self)))
        self._wake.set()

    def _running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def flush(self) -> None:
        """Write what waits now."""
        with self._writing:
            batch: list[dict[str, Any]] = []
            while self._waiting:
                batch.append(self._waiting.popleft())
            if self._written(batch):
                return
            dropped = len(batch) - self._written_singly(batch[:MOST_SINGLE])
            if dropped:
                _log.warning("%d sightings could not be written and are dropped", dropped)

    def _written_singly(self, batch: list[dict[str, Any]]) -> int:
        """How many could be written one by one. One that takes long is a ledger that is away, not a bad sighting."""
        until = self._ledger.host.monotonic() + PAUSE_S
        written = 0
        for one in batch:
            written += self._written([one])
            if self._ledger.host.monotonic() > until:
                break
        return written

    def _written(self, batch: list[dict[str, Any]]) -> bool:
        try:
            self._ledger.see(batch)
        except LedgerUnavailable:
            return False
        return True

    def close(self) -> None:
        """Write what waits and stop the thread."""
        self._closed = True
        self._wake.set()
        self.flush()

    def _work(self) -> None:
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            self.flush()
            self._ledger.host.sleep(PAUSE_S)


def _flush(kept: weakref.ref[Sightings]) -> None:
    sightings = kept()
    if sightings is not None:
        sightings.close()
