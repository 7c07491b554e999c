"""A provider of payments in memory, on a clock that can be set, with seeded faults.

Owns what happens to each request and what a look shows. It counts the payments: nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from counterfoil import ManualClock

SECOND: Final = 1_000_000
CLIENT_TIMEOUT_S: Final = 3.0
# A request that is late lands at most so many seconds after it was sent, and shows at most so many seconds after that.
LATE_S: Final = 20.0
LAG_S: Final = 5.0
# How often a request meets each kind of fault, of all that meet one.
FATES: Final = {"answer lost": 4, "request lost": 3, "lands late": 3, "500 after acting": 2, "refused to connect": 2,
                "throttled": 2, "interrupted": 2}  # fmt: skip


class Refused(Exception):
    """The provider could not be reached: nothing was sent."""


class Throttled(Exception):
    """The provider answered that there were too many requests: nothing happened."""


class ServerError(Exception):
    """The provider answered with a 500: anything may have happened."""


@dataclass(slots=True)
class Market:
    """One episode's provider: `level` is the share of requests, and of looks, that meet a fault."""

    seed: int
    level: float
    clock: ManualClock = field(default_factory=ManualClock)
    requests: int = 0
    payments: list[tuple[str, int, int]] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    _random: Random = field(init=False)
    _patience: int = 8  # faults, then the world is well again, so that every goal can be reached

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311 - a schedule of faults, no secret

    def pay(self, name: str) -> str:
        """One request; `name` is what it plants. Returns the receipt, or raises as a client does."""
        self.requests += 1
        fate = self._fate()
        if fate == "refused to connect":
            raise Refused
        if fate == "throttled":
            raise Throttled
        if fate == "request lost" or (fate == "interrupted" and self._random.random() < 0.5):
            return self._silence(fate)
        late_s = self._random.uniform(0, LATE_S) if fate == "lands late" else 0.0
        landed = self.clock.wall_us() + round(late_s * SECOND)
        shown = landed + round(self._random.uniform(0, LAG_S) * SECOND) * (fate != "")
        self.payments.append((name, landed, shown))
        if fate == "500 after acting":
            raise ServerError
        return f"receipt-{len(self.payments)}" if not fate else self._silence(fate)

    def look(self, name: str) -> int:
        """How many payments of this name are shown now.

        Raises:
            ServerError: the look itself failed.
        """
        if self._random.random() < self.level / 2 and self._patience > 0:
            self._patience -= 1
            raise ServerError
        now = self.clock.wall_us()
        return sum(name == one and shown <= now for one, _, shown in self.payments)

    def settled(self) -> int:
        """The payments there are in the end, once all that is under way has landed."""
        return len(self.payments)

    def _fate(self) -> str:
        if self._patience <= 0 or self._random.random() >= self.level:
            return ""
        self._patience -= 1
        fate = self._random.choices(list(FATES), list(FATES.values()))[0]
        self.met.append(fate)
        return fate

    def _silence(self, fate: str) -> str:
        self.clock.advance(CLIENT_TIMEOUT_S)
        if fate == "interrupted":
            raise KeyboardInterrupt
        raise TimeoutError
