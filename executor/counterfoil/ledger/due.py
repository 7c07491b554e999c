"""The effects whose look is due: how a host takes some of them, and gives back what it did not look at.

Owns the statements alone. Each runs inside a transaction of the ledger's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import sqlalchemy as sa

from counterfoil.effect import Row, Verdict
from counterfoil.ledger.concealed import cipher_of
from counterfoil.ledger.rows import COLUMNS, readable
from counterfoil.ledger.schema import effects


def take(
    connection: sa.Connection, names: Sequence[str], tenant: str | None, now: int, limit: int, claim_us: int
) -> list[Row]:
    """Push what is due at `now` forward by `claim_us`, the longest due first, and return it, the oldest begun first."""
    taking = _taking(tenant is not None, connection.dialect.name != "sqlite")
    asked = {"names": list(names), "of_tenant": tenant, "now": now, "most": limit, "until": now + claim_us}
    rows = connection.execute(taking, asked).mappings().all()
    return sorted(readable(rows, now, cipher_of(connection)), key=lambda row: row.begun_at)


@cache
def _taking(of_tenant: bool, locks: bool) -> sa.Executable:
    now: sa.BindParameter[int] = sa.bindparam("now", type_=sa.BigInteger)
    due = (effects.c.look_at <= now) & effects.c.tool.in_(sa.bindparam("names", expanding=True))
    due &= (effects.c.verdict != str(Verdict.EFFECT_UNKNOWN)) | (effects.c.lease_until < now)
    if of_tenant:
        due &= effects.c.tenant == sa.bindparam("of_tenant")
    chosen = sa.select(effects.c.key).where(due).order_by(effects.c.look_at).limit(sa.bindparam("most"))
    if locks:
        chosen = chosen.with_for_update(skip_locked=True)
    mine = effects.c.key.in_(sa.select(chosen.cte("chosen").c.key))
    return sa.update(effects).where(mine).values(look_at=sa.bindparam("until")).returning(*COLUMNS)


def give_back(connection: sa.Connection, taken: Sequence[Row], now: int) -> None:
    """Make due at once what was taken, unless it has changed since."""
    for row in sorted(taken, key=lambda row: row.key):
        unchanged = (effects.c.key == row.key) & (effects.c.look_at == row.look_at)
        connection.execute(sa.update(effects).where(unchanged).values(look_at=now))
