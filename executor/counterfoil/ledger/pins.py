"""What holds for a whole ledger, whoever opens it: must every host name a tenant, which secret names effects, and which
cipher key encrypts them.

Owns the table `pins`. One secret writes at a time (protocol F24): two hosts that named one effect by two secrets would
send it twice. A begin that rests on a secret holds the pin until it is committed, so that a switch waits for it, and
whoever comes after the switch sees what was begun before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.changes import NamedBy
from counterfoil.errors import LedgerUnavailable, UsageError
from counterfoil.ledger.dialect import inserting, upsert
from counterfoil.ledger.schema import effects, pins

SECRETS: Final = "secrets"
TENANTS: Final = "tenants"
CIPHERS: Final = "ciphers"
_SEVERAL: Final = "several"


def secrets(connection: sa.Connection, *, lock: bool = False, change: bool = False) -> tuple[str, ...]:
    """The ids of the secrets that name effects here, the writing one first; () where none has been used."""
    return _ids(connection, SECRETS, lock, change)


def _ids(connection: sa.Connection, name: str, lock: bool, change: bool) -> tuple[str, ...]:
    asked = sa.select(pins.c.value).where(pins.c.name == name)
    if lock and connection.dialect.name != "sqlite":
        asked = asked.with_for_update(read=not change)
    found = connection.execute(asked).scalar()
    return () if found is None else tuple(json.loads(found))


def first_secret(connection: sa.Connection, secret_id: str, now: int) -> tuple[str, ...]:
    """Let a secret write where none has been used yet; the ids as they are then."""
    insert = inserting(connection, pins)
    values: dict[str, Any] = {"name": SECRETS, "value": json.dumps([secret_id]), "at": now}
    connection.execute(insert.values(values).on_conflict_do_nothing())
    return secrets(connection)


def switch_secret(connection: sa.Connection, secret_id: str, now: int) -> tuple[str, ...]:
    """Let this secret write from now on; those before it still name what was begun by them."""
    known = secrets(connection, lock=True, change=True)
    return _write(connection, (secret_id, *(one for one in known if one != secret_id)), now)


def retire_secret(connection: sa.Connection, secret_id: str, now: int) -> tuple[str, ...]:
    """Forget a secret: what was named by it is not found again.

    Raises:
        UsageError: it is the one that writes, or it is not known here.
    """
    known = secrets(connection, lock=True, change=True)
    if secret_id not in known[1:]:
        raise UsageError(
            "this secret is not an earlier one of the ledger: the one that writes is retired by switching to another"
        )
    return _write(connection, tuple(one for one in known if one != secret_id), now)


def _write(connection: sa.Connection, ids: tuple[str, ...], now: int) -> tuple[str, ...]:
    content = {"value": json.dumps(list(ids)), "at": now}
    connection.execute(sa.update(pins).where(pins.c.name == SECRETS).values(content))
    return ids


def hold(connection: sa.Connection, named: NamedBy) -> None:
    """Let nothing be begun anew by a name that another host would not find, until this transaction ends.

    Raises:
        LedgerUnavailable: another secret writes now, or the effect is there by the name that another secret gives it.
    """
    known = secrets(connection, lock=True)
    if known[:1] != (named.secret_id,):
        raise LedgerUnavailable("effects are named by another secret now", certain=True)
    if named.elsewhere:
        there = sa.select(effects.c.key).where(effects.c.key.in_(list(named.elsewhere))).limit(1)
        if connection.execute(there).first() is not None:
            raise LedgerUnavailable("the effect is there by another name", certain=True)


# ---------------------------------------------------------------- cipher keys


def ciphers(connection: sa.Connection, *, lock: bool = False, change: bool = False) -> tuple[str, ...]:
    """The ids of the cipher keys that are needed to read this ledger, the writing one first; (): it is plain."""
    return _ids(connection, CIPHERS, lock, change)


def name_ciphers(connection: sa.Connection, ids: Sequence[str], now: int) -> None:
    """Say which cipher keys are needed from now on, the writing one first."""
    upsert(connection, pins, {"name": CIPHERS}, {"value": json.dumps(list(ids)), "at": now})


def expect_ciphers(connection: sa.Connection, now: int) -> None:
    """Let there be something to hold for whoever begins, before anybody encrypts."""
    insert = inserting(connection, pins)
    nothing = insert.values({"name": CIPHERS, "value": "[]", "at": now})
    connection.execute(nothing.on_conflict_do_nothing())


# ---------------------------------------------------------------- tenants


def needs_tenant(connection: sa.Connection) -> bool:
    """Whether every host must name a tenant."""
    return connection.execute(sa.select(pins.c.value).where(pins.c.name == TENANTS)).scalar() == _SEVERAL


def require_tenant(connection: sa.Connection, required: bool, now: int) -> None:
    """Say that every host must name a tenant, or that it need not."""
    upsert(connection, pins, {"name": TENANTS}, {"value": _SEVERAL if required else "one", "at": now})


def is_first_tenant(connection: sa.Connection) -> bool:
    """Whether nothing was ever said about tenants here, and no effect without one was the first."""
    if connection.execute(sa.select(pins.c.value).where(pins.c.name == TENANTS)).scalar() is not None:
        return False
    oldest = sa.select(effects.c.tenant).order_by(effects.c.created_at).limit(1)
    return connection.execute(oldest).scalar() != ""
