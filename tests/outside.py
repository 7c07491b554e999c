"""The outside, as a list in memory with a settable clock: for tests of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

from counterfoil import AsyncExecutor, Effect, Executor, ManualClock

Make: TypeAlias = Callable[..., Executor]
MakeAsync: TypeAlias = Callable[..., AsyncExecutor]


class World:
    """What stands outside: a list of what happened, and what happens next at each request."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.effects: list[str] = []
        self.requests: list[tuple[str, str]] = []
        self.next: list[str] = []
        self.looks: list[str] = []
        self.go_on = threading.Event()

    def act(self, effect: Effect, *, keyed: bool = False) -> None:
        """One request that arrives, does what is next for it, and answers or not."""
        fault = self.next.pop(0) if self.next else "none"
        if fault == "refused":
            raise ConnectionRefusedError
        self.requests.append((effect.id, effect.provider_key))
        if fault == "request_lost":
            raise TimeoutError
        if not keyed or self.requests.count((effect.id, effect.provider_key)) == 1:
            self.effects.append(effect.id)
        if fault == "ack_lost":
            raise TimeoutError

    def count(self, effect_id: str | None) -> int:
        """How many effects of this id there are."""
        return self.effects.count(str(effect_id))
