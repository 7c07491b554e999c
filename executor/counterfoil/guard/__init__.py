"""The guards: what stops a call that keeps failing, spends too much, or goes on against a service that is down.

Owns the decisions and the shapes that go with them: pure functions of what the ledger has counted. No I/O, no clock, no
SQL; instants and durations come in as microseconds. The ledger asks them in the transaction of a begin.
They gate new attempts only: what is applied is replayed and what is unknown is said to be, whatever a guard thinks.
"""

from __future__ import annotations

from counterfoil.guard.asking import Admitted, Asks, Blocked, Twin
from counterfoil.guard.breaker import Breaker, Circuit, Health, Sign
from counterfoil.guard.budget import Account, Budget
from counterfoil.guard.loop import End, LoopGuard, Repeats
from counterfoil.guard.similar import Alike, similarity

__all__ = [
    "Account",
    "Admitted",
    "Alike",
    "Asks",
    "Blocked",
    "Breaker",
    "Budget",
    "Circuit",
    "End",
    "Health",
    "LoopGuard",
    "Repeats",
    "Sign",
    "Twin",
    "similarity",
]
