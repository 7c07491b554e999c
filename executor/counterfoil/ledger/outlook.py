"""What lies ahead of a reconcile: how many doubts are left, and when the next look is due. It only reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from counterfoil.effect import Verdict
from counterfoil.errors import LedgerUnavailable
from counterfoil.ledger.connect import READS
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import effects


@dataclass(frozen=True, slots=True)
class Outlook:
    """`now` and `due_at` are the ledger's microseconds; `due_at` None: nothing will be due as far as is known now.

    `doubts` are the unknown effects that nobody works on, also those of tools that cannot be looked at.
    """

    now: int
    doubts: int
    due_at: int | None


def outlook(ledger: Ledger, names: Sequence[str], tenant: str) -> Outlook:
    """Count the doubts, and find when the next look of one of the tools `names` is due.

    Raises:
        LedgerUnavailable: the database does not answer.
    """
    now = ledger.now()
    unknown = effects.c.verdict == str(Verdict.EFFECT_UNKNOWN)
    left = unknown & (effects.c.lease_until < now)
    waits = sa.case((unknown & (effects.c.lease_until >= effects.c.look_at), effects.c.lease_until + 1))
    due = sa.case((effects.c.tool.in_(list(names)), sa.func.coalesce(waits, effects.c.look_at)))
    # What has a next look is all that is unknown and a little that is audited: the index of what is due holds no more.
    ahead = effects.c.look_at.is_not(None) & (effects.c.tenant == tenant)
    asked = sa.select(sa.func.count(sa.case((left, 1))), sa.func.min(due)).where(ahead)
    engine = ledger.engine.execution_options(isolation_level="AUTOCOMMIT", **{READS: True})
    try:
        with engine.connect() as connection:
            doubts, due_at = connection.execute(asked).one()
    except sa.exc.SQLAlchemyError:
        raise LedgerUnavailable("the ledger's database does not answer", certain=True) from None
    return Outlook(now, int(doubts), None if due_at is None else int(due_at))
