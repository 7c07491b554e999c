"""Reconcile again and again: when to look next, what to tell after each round, how to wait while the ledger is away.

Owns the arithmetic of the rounds and no waiting: the executors look and sleep.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeAlias

from counterfoil.effect import MICROSECONDS
from counterfoil.errors import LedgerError, UsageError
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.outlook import outlook
from counterfoil.reconcile import Reconciled

INTERVAL_S = 10.0
# What is due and was not taken (another host holds it for a moment) must not make a loop that never pauses.
PAUSE_MIN_S = 0.1
AWAY_FIRST_S = 0.5
AWAY_MOST_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of a watch.

    Args:
        number: counts from 1.
        done: what this round did.
        doubts: unknown effects that nobody works on, left after it; None while the ledger is away.
        due_at: when the next look is due, in microseconds of the ledger's clock; None: nothing is due as far as known.
        pause_s: seconds until the next round.
        trouble: why the ledger could not be used, or None.
    """

    number: int
    done: Reconciled
    doubts: int | None
    due_at: int | None
    pause_s: float
    trouble: str | None = None


Told: TypeAlias = Callable[[Round], None]


class Watch:
    """The rounds of one watch."""

    def __init__(
        self, ledger: Ledger, names: Sequence[str], tenant: str, *, interval_s: float, claim_s: float, random: Random
    ) -> None:
        """`interval_s`: at most so long between two rounds.

        Raises:
            UsageError: a time that is no finite number of seconds above 0.
        """
        for name, value in (("interval_s", interval_s), ("claim_s", claim_s)):
            if not (math.isfinite(value) and value > 0):
                raise UsageError(f"watch({name}=...) is a finite number of seconds above 0")
        self._ledger = ledger
        self._names = names
        self._tenant = tenant
        self._interval_s = interval_s
        self._random = random
        self._number = 0
        self._away = 0
        self.total = Reconciled()

    def looked(self, done: Reconciled) -> Round:
        """A round that the ledger was there for.

        Raises:
            LedgerError: it is away now.
        """
        ahead = outlook(self._ledger, self._names, self._tenant)
        until_s = self._interval_s if ahead.due_at is None else (ahead.due_at - ahead.now) / MICROSECONDS
        self._number += 1
        self._away = 0
        self.total = self.total.plus(done)
        pause_s = min(self._interval_s, max(PAUSE_MIN_S, until_s))
        return Round(number=self._number, done=done, doubts=ahead.doubts, due_at=ahead.due_at, pause_s=pause_s)

    def away(self, problem: LedgerError) -> Round:
        """A round that the ledger was away for: each further one waits longer, with jitter, so that not all hosts come
        back at the same moment."""
        self._number += 1
        pause_s = min(AWAY_FIRST_S * 2 ** min(self._away, 10), AWAY_MOST_S) * self._random.uniform(0.5, 1.0)
        self._away += 1
        return Round(
            number=self._number, done=Reconciled(), doubts=None, due_at=None, pause_s=pause_s, trouble=str(problem)
        )
