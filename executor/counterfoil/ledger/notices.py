"""Incidents in the ledger: how they are entered, which doubts are due for one, and how a person closes one.

Owns the statements on `incidents`. Each runs inside a transaction of the ledger's own.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from counterfoil.effect import MICROSECONDS, Incident, Row, Verdict
from counterfoil.ledger.cipher import CipherKeys
from counterfoil.ledger.concealed import cipher_of, conceal_incident, reveal_entry, reveal_incident
from counterfoil.ledger.rows import COLUMNS, readable
from counterfoil.ledger.schema import effects, entries, incidents
from counterfoil.text import storable

DOUBT_LEFT = "doubt_left"
_RAISED = "counterfoil_raised"

_HAS_ONE = sa.exists().where(
    incidents.c.key == effects.c.key, incidents.c.kind == DOUBT_LEFT, incidents.c.at >= effects.c.review_at
)
# Every unknown effect has a next look: saying so lets the index of what is due serve here too.
_LEFT = (effects.c.verdict == str(Verdict.EFFECT_UNKNOWN)) & effects.c.look_at.is_not(None)
_LEFT &= (effects.c.tenant == sa.bindparam("of_tenant")) & (effects.c.review_at <= sa.bindparam("now"))
_UNREVIEWED = sa.select(*COLUMNS).where(_LEFT & ~_HAS_ONE).order_by(effects.c.look_at).limit(sa.bindparam("most"))


def fresh(connection: sa.Connection) -> list[Incident]:
    """An empty list for the incidents of the transaction that begins: they are told once it has counted."""
    raised: list[Incident] = []
    connection.info[_RAISED] = raised
    return raised


def enter(connection: sa.Connection, row: Row, kind: str, detail: dict[str, Any], at: int) -> None:
    """Enter an incident about an effect."""
    of = {"key": row.key, "effect_id": row.id, "tenant": row.tenant, "tool": row.tool, "task": storable(row.task)}
    _enter(connection, of, kind, detail, at)


def enter_about(
    connection: sa.Connection, tenant: str, tool: str, task: str, kind: str, detail: dict[str, Any], at: int
) -> None:
    """Enter an incident about a tool or a task, and no effect."""
    of = {"key": None, "effect_id": None, "tenant": tenant, "tool": tool, "task": storable(task)}
    _enter(connection, of, kind, detail, at)


def _enter(connection: sa.Connection, of: dict[str, Any], kind: str, detail: dict[str, Any], at: int) -> None:
    values = of | {"kind": kind, "detail": detail, "at": at}
    kept = values | {"detail": conceal_incident(connection, values)}
    made = connection.execute(sa.insert(incidents).values(kept).returning(incidents.c.number))
    incident = Incident(made.scalar_one(), of["effect_id"], of["tool"], kind, detail, at)
    connection.info.setdefault(_RAISED, []).append(incident)


def enter_once(connection: sa.Connection, row: Row, kind: str, detail: dict[str, Any]) -> bool:
    """Enter an incident about an effect, unless one of this kind is open; True when it was entered."""
    mine = (incidents.c.key == row.key) & (incidents.c.kind == kind) & incidents.c.closed_at.is_(None)
    if connection.execute(sa.select(incidents.c.number).where(mine)).first() is not None:
        return False
    enter(connection, row, kind, detail, row.now)
    return True


def review(connection: sa.Connection, tenant: str, now: int, limit: int) -> int:
    """Enter the incident `doubt_left` for doubts that are due for it; how many."""
    rows = unreviewed(connection, tenant, now, limit)
    for row in rows:
        enter(connection, row, DOUBT_LEFT, doubt(connection, row), now)
    return len(rows)


def unreviewed(connection: sa.Connection, tenant: str, now: int, limit: int) -> list[Row]:
    """Doubts that are older than their review time and have no incident for it yet, locked.

    Two hosts that review at once must not both raise one: rows that another has locked are left to it, and what it
    wrote before this one had the lock is seen by asking again.
    """
    asked = _UNREVIEWED
    if connection.dialect.name != "sqlite":
        asked = asked.with_for_update(of=effects, skip_locked=True)
    found = connection.execute(asked, {"of_tenant": tenant, "now": now, "most": limit})
    rows = readable(found.mappings().all(), now, cipher_of(connection))
    told = sa.select(effects.c.key).where(effects.c.key.in_([row.key for row in rows]) & _HAS_ONE)
    others = {bytes(key) for key in connection.execute(told).scalars()} if rows else set()
    return [row for row in rows if row.key not in others]


def doubt(connection: sa.Connection, row: Row) -> dict[str, Any]:
    """What a person is told of a doubt that nobody has settled: for how long, how often it was looked at, and why."""
    last = sa.select(entries.c.seq, entries.c.detail).where(entries.c.key == row.key).order_by(entries.c.seq.desc())
    found = connection.execute(last.limit(1)).first()
    told = found and reveal_entry(cipher_of(connection), row.data_key, row.key, found.seq, found.detail)
    detail = told or {}
    reason = detail.get("reason") or row.reason or ("no look settled it" if row.looks else "nobody has looked")
    seconds = (row.now - row.unknown_since) // MICROSECONDS
    return {"attempts": row.attempts, "looks": row.looks, "unknown_s": seconds, "reason": str(reason)}


def close(connection: sa.Connection, number: int, tenant: str | None, *, by: str, why: str, at: int) -> Incident | None:
    """Close an incident, unless it is closed already; as it stands then, or None when there is none."""
    this = incidents.c.number == number
    if tenant is not None:
        this &= incidents.c.tenant == tenant
    word = {"closed_at": at, "closed_by": storable(by), "closed_why": storable(why)}
    connection.execute(sa.update(incidents).where(this & incidents.c.closed_at.is_(None)).values(word))
    found = connection.execute(sa.select(incidents).where(this)).first()
    return None if found is None else to_incident(found, cipher_of(connection))


def to_incident(found: sa.Row[Any], keys: CipherKeys | None) -> Incident:
    """The `Incident` of a database row. Raises `Unreadable`."""
    one = dict(found._mapping)
    one["detail"] = reveal_incident(one, keys)
    names = ("number", "effect_id", "tool", "kind", "detail", "at", "closed_at", "closed_by", "closed_why")
    return Incident(**{name: one[name] for name in names})
