"""Where a transaction of the ledger has its time from: the host's clock, or the database server's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from counterfoil.changes import Reading
from counterfoil.clock import Clock
from counterfoil.ledger.statements import SERVER_NOW
from counterfoil.ledger.transaction import begun_at

_NOW: Final = sa.select(SERVER_NOW)


@dataclass(slots=True)
class Times:
    """Where a batch has its time from: the host's clock, or (`host_time` False) the database server's."""

    clock: Clock
    host_time: bool
    margin_us: int

    def now(self, connection: sa.Connection) -> int:
        """The ledger's time."""
        return self.clock.wall_us() if self.host_time else int(connection.execute(_NOW).scalar_one())

    def begun(self, connection: sa.Connection) -> int:
        """The ledger's time when this transaction began, without asking for it where it is known."""
        known = None if self.host_time else begun_at(connection)
        return self.now(connection) if known is None else known

    def reading(self, now: int) -> Reading:
        """The ledger's time with this host's boot clock, which judges the ledger's clock too: it may be set."""
        return Reading(now, self.margin_us, self.clock.boot_id, self.clock.boot_us())
