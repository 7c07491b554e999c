"""Settle what is due: look, and write down what the look proves. It never sends (design §8, protocol F20).

Any number of hosts may do this at once: due effects are taken with a courtesy that expires by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from counterfoil.effect import MICROSECONDS, Row, Verdict
from counterfoil.ledger.ledger import Ledger

CLAIM_US = 60 * MICROSECONDS
BATCH = 20


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a reconcile did: effects looked at, how many of them ended as applied, as no effect, or stayed unknown,
    and how many incidents were raised for doubts that nobody has settled in time."""

    looked: int = 0
    applied: int = 0
    no_effect: int = 0
    unknown: int = 0
    incidents: int = 0

    def with_look(self, before: Row, after: Row | None) -> Reconciled:
        """Count one look: only a verdict that changed counts as an end."""
        verdict = before.verdict if after is None else after.verdict
        changed = verdict is not before.verdict
        return replace(
            self,
            looked=self.looked + 1,
            applied=self.applied + (changed and verdict is Verdict.EFFECT_APPLIED),
            no_effect=self.no_effect + (changed and verdict is Verdict.NO_EFFECT),
            unknown=self.unknown + (verdict is Verdict.EFFECT_UNKNOWN),
        )


def sweep(ledger: Ledger, names: Sequence[str], tenant: str, limit: int) -> Iterator[Row]:
    """The effects that are due, one after the other, each read anew just before it is looked at."""
    left = limit
    while left > 0:
        rows = ledger.take_due(names, tenant, limit=min(BATCH, left), claim_us=CLAIM_US)
        if not rows:
            return
        left -= len(rows)
        for row in rows:
            present = ledger.read(row.key)
            if present is not None and not present.live:
                yield present


def review(ledger: Ledger, tenant: str, done: Reconciled) -> Reconciled:
    """Raise the incident `doubt_left` for each doubt that is older than its review time and has none."""
    return replace(done, incidents=done.incidents + ledger.review(tenant))
