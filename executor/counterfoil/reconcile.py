"""Settle what is due: look, and write down what the look proves. It never sends (design §8, protocol F20).

Any number of hosts may do this at once: due effects are taken with a courtesy that expires by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

from counterfoil.effect import MICROSECONDS, Row, Verdict
from counterfoil.ledger.ledger import Ledger

CLAIM_S = 60.0
BATCH = 20
_log = logging.getLogger("counterfoil")


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

    def plus(self, more: Reconciled) -> Reconciled:
        """Both together.

        Example:
            >>> Reconciled(looked=2, applied=1).plus(Reconciled(looked=1)).looked
            3
        """
        names = [item.name for item in fields(self)]
        return Reconciled(**{name: getattr(self, name) + getattr(more, name) for name in names})


def never() -> bool:
    """Nobody asks it to stop."""
    return False


def sweep(
    ledger: Ledger,
    names: Sequence[str],
    tenant: str,
    limit: int,
    *,
    claim_s: float = CLAIM_S,
    stopped: Callable[[], bool] = never,
) -> Iterator[Row]:
    """The effects that are due, one after the other, each read anew just before it is looked at.

    What others have taken or looked at since is left out. Once `stopped` says so, the rest is given back and it ends.
    """
    left = limit
    while left > 0 and not stopped():
        rows = ledger.take_due(names, tenant, limit=min(BATCH, left), claim_us=round(claim_s * MICROSECONDS))
        if not rows:
            return
        left -= len(rows)
        for place, row in enumerate(rows):
            if stopped():
                ledger.give_back(rows[place:])
                return
            present = ledger.read(row.key)
            if present is not None and not present.live and present.look_at == row.look_at:
                yield present


def unwritten(ledger: Ledger, row: Row) -> None:
    """A look could not be written down. Where only this row is the matter, those behind it must not wait for it.

    Raises:
        LedgerUnavailable: the ledger itself is away.
    """
    ledger.read(row.key)
    _log.warning("a look at %s could not be written down; it is made again later", row.id)


def review(ledger: Ledger, tenant: str, done: Reconciled) -> Reconciled:
    """Raise the incident `doubt_left` for each doubt that is older than its review time and has none."""
    return replace(done, incidents=done.incidents + ledger.review(tenant))
