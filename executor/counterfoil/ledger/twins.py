"""Look-alikes: another effect of the tool with the same identity arguments, begun a short while ago under another key.

Owns the table `twins`, which holds only effects of tools with a `twin_window_s`: no other begin pays for it. Asked in
the transaction of a begin, under a lock for these arguments, so that of two look-alikes that come at once the second
sees the first.
"""

from __future__ import annotations

import hashlib
from typing import Any

import sqlalchemy as sa

from counterfoil.effect import Row, Verdict
from counterfoil.guard import Blocked, Twin
from counterfoil.ledger.dialect import upsert
from counterfoil.ledger.schema import effects, twins


def held(connection: sa.Connection, begun: Row, asked: Twin, now: int) -> Blocked | None:
    """The refusal of what has begun, when there is a look-alike of it that may have been carried out."""
    _lock(connection, begun)
    alike = (twins.c.tenant == begun.tenant) & (twins.c.fingerprint == begun.fingerprint) & (twins.c.key != begun.key)
    recent = twins.c.at > now - asked.window_us
    there = (effects.c.verdict != str(Verdict.NO_EFFECT)) & effects.c.undone_by.is_(None)
    newest = (
        sa.select(effects.c.id, effects.c.verdict, twins.c.at)
        .join_from(twins, effects, effects.c.key == twins.c.key)
        .where(alike & recent & there)
        .order_by(twins.c.at.desc())
        .limit(1)
    )
    found = None if asked.confirmed else connection.execute(newest).first()
    if found is None:
        return None
    unknown = found.verdict == str(Verdict.EFFECT_UNKNOWN)
    return Blocked(
        "possible_duplicate", twin=found.id, unknown=unknown, age_us=max(0, now - found.at), asks_model=asked.asks_model
    )


def note(connection: sa.Connection, begun: Row, asked: Twin, now: int) -> None:
    """Note what has begun and was let through, for those that come after it."""
    mine: dict[str, Any] = {"tenant": begun.tenant, "fingerprint": begun.fingerprint, "key": begun.key}
    times = {"at": now, "until": now + asked.window_us}
    upsert(connection, twins, mine, times)


def forget(connection: sa.Connection, now: int, tenant: str | None) -> int:
    """Take out what was noted of effects that are pruned, once its window is over; how many. Before, it still holds a
    look-alike up: the tombstone says as well as the effect did that there was one."""
    gone = sa.select(effects.c.key).where(effects.c.pruned_at.is_not(None))
    over = (twins.c.until < now) & twins.c.key.in_(gone)
    if tenant is not None:
        over &= twins.c.tenant == tenant
    return connection.execute(sa.delete(twins).where(over)).rowcount


def _lock(connection: sa.Connection, begun: Row) -> None:
    if connection.dialect.name == "sqlite":  # there is one writer at a time
        return
    digest = hashlib.sha256(begun.tenant.encode() + b"\0" + begun.fingerprint).digest()
    number = int.from_bytes(digest[:8], "big", signed=True)
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))
