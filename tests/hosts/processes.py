"""A real process of a host, as a test talks to it: a caller of effects, or `reconcile --watch`."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PATIENCE_S = 60.0


@dataclass
class Host:
    """A process that writes one JSON object a line."""

    process: subprocess.Popen[str]
    told: list[dict[str, Any]] = field(default_factory=list)
    _news: queue.SimpleQueue[dict[str, Any] | None] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._news.put(json.loads(line))
        self._news.put(None)

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for an object like that, among those that nobody has waited for yet."""
        end = time.monotonic() + PATIENCE_S
        while True:
            seen = self._news.get(timeout=max(0.1, end - time.monotonic()))
            assert seen is not None, f"it ended with {self.process.wait(PATIENCE_S)}"
            self.told.append(seen)
            if wanted(seen):
                return seen

    def ended(self, number: int | None = None) -> int:
        """Send a signal (None: end its input), and wait; the exit code. `told` has all it ever said."""
        if number is not None:
            self.process.send_signal(number)
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(PATIENCE_S)
        while (seen := self._news.get(timeout=PATIENCE_S)) is not None:
            self.told.append(seen)
        return code


Start = Callable[..., Host]


def caller(start: Start) -> Host:
    """A process that calls effects."""
    return start("-m", "hosts.caller")


def watcher(start: Start, *, app: str = "executor", claim: float = 60, interval: float = 0.5) -> Host:
    """A process that settles what is due."""
    times = ("--interval", str(interval), "--claim", str(claim))
    return start("-m", "counterfoil.cli", "reconcile", "--watch", "--json", "--app", f"hosts.shop:{app}", *times)
