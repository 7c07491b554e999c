"""What the ledger writes that changes no effect: incidents, sightings, the order of looks, notes on tools.

Each method is one transaction, and raises as `Ledger.apply` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import sqlalchemy as sa

from counterfoil.effect import Incident, Row
from counterfoil.ledger import due, notices, pins, proofs
from counterfoil.ledger.schema import sightings

T = TypeVar("T")


class Chores:
    """A part of the `Ledger`."""

    def write(self, work: Callable[[sa.Connection], T], *, patience_s: float | None = None) -> T:
        """Run `work` in one transaction of the ledger's own."""
        raise NotImplementedError

    def _asked(self, question: Callable[[sa.Connection], T]) -> T:
        raise NotImplementedError

    def _time(self, connection: sa.Connection) -> int:
        raise NotImplementedError

    def raise_incident(self, row: Row, kind: str, detail: dict[str, Any]) -> bool:
        """Raise an incident about an effect, unless one of this kind is open; True when it was raised."""
        return self.write(lambda connection: notices.enter_once(connection, row, kind, detail))

    def see(self, seen: Sequence[dict[str, Any]]) -> None:
        """Write down calls that were answered from the ledger: a list of columns of `sightings`."""
        if seen:
            rows = list(seen)
            self.write(lambda connection: connection.execute(sa.insert(sightings), rows).rowcount)

    def take_due(self, names: Sequence[str], tenant: str | None, *, limit: int, claim_us: int) -> list[Row]:
        """Effects whose look is due, pushed forward by `claim_us` so that other hosts leave them alone for a while.

        A courtesy, not a lock: two hosts that look at one effect at once do no harm.
        """

        return self.write(
            lambda connection: due.take(connection, names, tenant, self._time(connection), limit, claim_us)
        )

    def give_back(self, taken: Sequence[Row]) -> None:
        """Let others look at once at what was taken and not looked at. What has changed since stays as it is."""
        if taken:
            self.write(lambda connection: due.give_back(connection, taken, self._time(connection)))

    def review(self, tenant: str, *, limit: int = 100) -> int:
        """Raise the incident `doubt_left` for doubts that are older than their review time and have none; how many."""
        return self.write(lambda connection: notices.review(connection, tenant, self._time(connection), limit))

    def close_incident(self, number: int, tenant: str | None, *, by: str, why: str) -> Incident | None:
        """Close an incident with a person's name and reason; None when there is none of this number.

        One that is closed stays as it was closed. `tenant` None: whosever it is. Raises as `apply` does.
        """
        return self.write(
            lambda connection: notices.close(connection, number, tenant, by=by, why=why, at=self._time(connection))
        )

    def secrets(self, *, first: str | None = None) -> tuple[str, ...]:
        """The ids of the secrets that name effects, the writing one first. `first` becomes it where there is none."""
        known = self._asked(pins.secrets)
        if known or first is None:
            return known
        return self.write(lambda connection: pins.first_secret(connection, first, self._time(connection)))

    def switch_secret(self, secret_id: str) -> None:
        """Let this secret name new effects from now on."""
        self.write(lambda connection: pins.switch_secret(connection, secret_id, self._time(connection)))

    def retire_secret(self, secret_id: str) -> None:
        """Forget an earlier secret. Raises `UsageError` too: it is no earlier one."""
        self.write(lambda connection: pins.retire_secret(connection, secret_id, self._time(connection)))

    def needs_tenant(self, *, mark: bool = False) -> bool:
        """Whether every host must name a tenant. `mark`: say so, if this is the first that was said about it."""
        if mark and self._asked(pins.is_first_tenant):
            self.require_tenant(True)
        return self._asked(pins.needs_tenant)

    def require_tenant(self, required: bool) -> None:
        """Say that every host must name a tenant, or that it need not."""
        self.write(lambda connection: pins.require_tenant(connection, required, self._time(connection)))

    def trust_keys(self, tool: str, tenant: str) -> None:
        """Believe again that a tool uses its provider key, after its code was mended."""
        self.write(lambda connection: proofs.trust_keys(connection, tool, tenant))
