"""The flow that takes an effect back: an effect of its own, linked to the one that it undoes (P3, compensation)."""

from __future__ import annotations

from counterfoil.effect import Row
from counterfoil.flow import call
from counterfoil.looking import checked
from counterfoil.observe import Observation
from counterfoil.steps import Flow, Read, Request, do
from counterfoil.telling import still_there


def compensated(request: Request) -> Flow[Observation]:
    """Compensate: what is told is about the compensation itself."""
    return (yield from call(request))


def revoked(request: Request, original: Row) -> Flow[Observation]:
    """Revoke, then tell what is known of the original: no effect, applied, or still unknown."""
    seen = yield from call(request)
    if seen.code in ("conflict", "ledger_unavailable"):
        return seen
    row = still_there((yield from do(Read(original.key))))
    return (yield from checked(row, original.tool, looks=False))
