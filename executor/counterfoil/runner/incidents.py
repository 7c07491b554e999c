"""Incidents at the executor: whom they are told to, and how a person closes one."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import TypeAlias

from counterfoil.effect import Incident
from counterfoil.errors import UsageError
from counterfoil.failure import name_of
from counterfoil.ledger.ledger import Ledger

OnIncident: TypeAlias = Callable[[Incident], None]
NUMBER_MAX = 2**63 - 1
_log = logging.getLogger("counterfoil")


def listener(on_incident: OnIncident | None) -> OnIncident | None:
    """What the ledger tells: `on_incident`, with whatever it raises logged, so that no call breaks by it.

    Raises:
        UsageError: it is no plain function.
    """
    if on_incident is None:
        return None
    if inspect.iscoroutinefunction(on_incident):
        raise UsageError("on_incident= takes a plain function of one incident; let it put work for a loop into a queue")

    def tell(incident: Incident) -> None:
        try:
            on_incident(incident)
        except Exception as problem:  # noqa: BLE001 - a listener's own code runs here, and the incident is on record
            kind = name_of(type(problem))  # its text and its trace may hold what is not for a log
            _log.error("on_incident failed at incident %d (%s): %s", incident.number, incident.kind, kind)

    return tell


def close_incident(ledger: Ledger, tenant: str | None, number: int, *, by: str, why: str) -> Incident:
    """Close an incident in the ledger. Raises as `Executor.close_incident` does."""
    if not by.strip() or not why.strip():
        raise UsageError("an incident is closed by a named person with a reason: give by= and why=")
    known = 0 < number <= NUMBER_MAX
    closed = ledger.close_incident(number, tenant, by=by.strip(), why=why.strip()) if known else None
    if closed is None:
        raise UsageError(f"no incident has the number {number}")
    return closed
