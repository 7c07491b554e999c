"""What the ledger must know beside the row before a proof counts: who owns a reference, and whether keys are used.

A reference proves one effect only (unique per tenant and tool), in a table of its own, so that a success always
latches: a reference that another effect owns is an incident, never a refused write (protocol F17).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from counterfoil.changes import SettleLook
from counterfoil.effect import Row
from counterfoil.ledger.dialect import inserting
from counterfoil.ledger.schema import references, tools
from counterfoil.text import storable


def claim_references(connection: sa.Connection, row: Row, names: Sequence[str]) -> tuple[bytes, ...]:
    """Enter the references as this effect's own; the keys of other effects that owned one before."""
    if not names:
        return ()
    insert = inserting(connection, references)
    wanted = sorted({storable(name) for name in names})
    rows = [{"tenant": row.tenant, "tool": row.tool, "reference": name, "key": row.key} for name in wanted]
    connection.execute(insert.values(rows).on_conflict_do_nothing())
    return tuple({owner for owner in _owners(connection, row, names).values() if owner != row.key})


def own_evidence(connection: sa.Connection, row: Row, look: SettleLook) -> SettleLook:
    """What a look says about THIS effect once the references that others own are taken away.

    A match by key whose reference belongs to another effect contradicts itself: unclear. A look-alike never proves:
    what is left is unclear, and nothing left of a complete listing counts as absent.
    """
    found = look.found
    assert found is not None
    owners = _owners(connection, row, found.references)
    others = {name for name, owner in owners.items() if owner != row.key}
    if found.matches == "look_alike":
        left = [name for name in found.references if name not in others]
        listed = found.complete and found.count == len(set(found.references))
        if left or not listed:
            return replace(
                look, found=None, value=None, unclear="a similar one exists and is no proof", cause="look_alike"
            )
        return replace(look, found=None, value=None)
    if others or claim_references(connection, row, found.references):
        return replace(
            look, found=None, value=None, unclear="what was found belongs to another effect", cause="look_alike"
        )
    return look


def _owners(connection: sa.Connection, row: Row, names: Sequence[str]) -> dict[str, bytes]:
    if not names:
        return {}
    mine = (references.c.tenant == row.tenant) & (references.c.tool == row.tool)
    asked = sa.select(references.c.reference, references.c.key).where(
        mine & references.c.reference.in_([storable(name) for name in names])
    )
    return {name: bytes(key) for name, key in connection.execute(asked)}


def keys_trusted(connection: sa.Connection, row: Row) -> bool:
    """False once an attempt of this tool was seen to end without having used its provider key (protocol F9)."""
    mine = (tools.c.tenant == row.tenant) & (tools.c.tool == row.tool)
    return connection.execute(sa.select(tools.c.keys_distrusted_at).where(mine)).scalar() is None


def trust_keys(connection: sa.Connection, tool: str, tenant: str) -> None:
    """Believe again that a tool uses its provider key."""
    mine = (tools.c.tenant == tenant) & (tools.c.tool == tool)
    connection.execute(sa.update(tools).where(mine).values(keys_distrusted_at=None))


def distrust_keys(connection: sa.Connection, row: Row) -> bool:
    """End resending under a key for this tool, durably; True when it was trusted until now."""
    insert = inserting(connection, tools)
    statement = insert.values(tenant=row.tenant, tool=row.tool, failures=0, keys_distrusted_at=row.now)
    done = connection.execute(
        statement.on_conflict_do_update(
            index_elements=["tenant", "tool"],
            set_={"keys_distrusted_at": statement.excluded.keys_distrusted_at},
            where=tools.c.keys_distrusted_at.is_(None),
        ).returning(tools.c.tool)
    )
    return done.first() is not None
