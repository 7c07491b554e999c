"""Sealing the ledger: what was written since the last seal is closed under a root that is chained to the one before.

Owns the statements that seal. What is not committed is sealed the next time, whatever its time says: a seal asks for
versions, not for instants. A row that another transaction holds is left for the next seal as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.effect import MICROSECONDS
from counterfoil.errors import LedgerError, UsageError
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import effects, entries, sealed, seals
from counterfoil.ledger.sealing import FORMAT, RAW_EFFECT, RAW_ENTRY, START, Digests, Leaf, least

BATCH: Final = 500
MINUTE_US: Final = 60 * MICROSECONDS
ROUND_MOST: Final = 20  # seals in one go, so that looks are not kept waiting
_LOCK: Final = 0x7365616C73  # the advisory lock of PostgreSQL that whoever seals holds


@dataclass(frozen=True, slots=True)
class Seal:
    """One seal. `at` is in microseconds; `secret_id` names the secret that keys it, None: it is not keyed."""

    number: int
    at: int
    effects: int
    entries: int
    secret_id: str | None
    root: bytes

    @property
    def text(self) -> str:
        """How a person keeps it: the number and the root.

        Example:
            >>> Seal(7, 0, 1, 2, None, b"12345678").text
            '7:3132333435363738'
        """
        return f"{self.number}:{self.root.hex()}"


def seal(
    ledger: Ledger,
    secret: bytes | None,
    *,
    batch: int = BATCH,
    most: int | None = None,
    told: Callable[[Seal], object] = lambda _: None,
) -> list[Seal]:
    """Close everything that is committed and not sealed yet; the seals that were made, none where all was sealed.

    Args:
        ledger: of which database.
        secret: keys the seals; None: anybody who can write to the database can make one.
        batch: effects in one seal, which is one short transaction.
        most: at most so many seals now; None: all that are needed.
        told: called after each.

    Raises:
        UsageError: the newest seal is keyed, and no secret is given: the chain would be weaker from here on.
        LedgerUnavailable: the database does not answer; the seals that were told are there.
    """
    digests = Digests(secret)
    made: list[Seal] = []
    while most is None or len(made) < most:
        one = ledger.write(partial(_one, ledger, digests=digests, size=batch))
        if one is None:
            break
        made.append(one)
        told(one)
    return made


class EveryMinute:
    """Seals what is new once a minute, together with other hosts that do the same. For a process that goes on.

    A host without the secret of the seals leaves sealing to those that have it.
    """

    def __init__(self, ledger: Ledger, secret: bytes | None) -> None:
        self._ledger = ledger
        self._secret = secret
        self._next_at = 0

    def after_round(self) -> Seal | None:
        """Seal if it is time to; the newest seal that was made now. A ledger that is away is sealed later."""
        try:
            now = self._ledger.now()
            if now < self._next_at:
                return None
            before = last_seal(self._ledger)
            if before is not None and before.at <= now < before.at + MINUTE_US:  # another host was faster
                self._next_at = before.at + MINUTE_US
                return None
            self._next_at = now + MINUTE_US
            made = seal(self._ledger, self._secret, most=ROUND_MOST)
        except (LedgerError, UsageError):
            return None
        return made[-1] if made else None


def last_seal(ledger: Ledger) -> Seal | None:
    """The newest seal, None before the first."""
    return ledger._asked(_last)


def _one(ledger: Ledger, connection: sa.Connection, *, digests: Digests, size: int) -> Seal | None:
    if connection.dialect.name != "sqlite":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
    asked = sa.select(*RAW_EFFECT).where(effects.c.sealed_version < effects.c.version)
    asked = asked.order_by(effects.c.key).limit(size)
    if connection.dialect.name != "sqlite":
        asked = asked.with_for_update(skip_locked=True)
    rows = connection.execute(asked).mappings().all()
    if not rows:
        return None
    before = _last(connection)
    if before is not None and before.secret_id is not None and digests.secret_id is None:
        raise UsageError(f"the seals are keyed, the newest by the secret with the id {before.secret_id}: give a secret")
    leaves = _leaves(connection, rows, digests)
    made: dict[str, Any] = {
        "number": 1 if before is None else before.number + 1,
        "format": FORMAT,
        "at": ledger._time(connection),
        "effects": len(leaves),
        "entries": sum(len(leaf.entries) for leaf in leaves) // len(START),
        "secret_id": digests.secret_id,
        "previous": START if before is None else before.root,
    }
    root = digests.root(made, (digests.leaf(leaf) for leaf in leaves))
    connection.execute(sa.insert(seals), made | {"root": root})
    columns = [{name: getattr(leaf, name) for name in Leaf.__slots__} | {"seal": made["number"]} for leaf in leaves]
    connection.execute(sa.insert(sealed), columns)
    marking = sa.update(effects).where(effects.c.key == sa.bindparam("this")).values(sealed_version=sa.bindparam("by"))
    connection.execute(marking, [{"this": leaf.key, "by": leaf.version} for leaf in leaves])
    return Seal(made["number"], made["at"], made["effects"], made["entries"], digests.secret_id, root)


def _leaves(connection: sa.Connection, rows: Any, digests: Digests) -> list[Leaf]:
    """What there is to seal of each row: its state, and its entries that no seal holds yet, in order."""
    keys = [bytes(row["key"]) for row in rows]
    asked = sa.select(*RAW_ENTRY).join(effects, effects.c.key == entries.c.key)
    asked = asked.where(entries.c.key.in_(keys) & (entries.c.seq > effects.c.sealed_version))
    fresh: dict[bytes, list[tuple[int, bytes]]] = {}
    for one in connection.execute(asked.order_by(entries.c.key, entries.c.seq)).mappings():
        fresh.setdefault(bytes(one["key"]), []).append((one["seq"], digests.entry(dict(one))))
    made = []
    for key, row in zip(keys, rows, strict=True):
        # What was taken out before it was ever sealed leaves no gap here: verifying counts, it does not trust.
        closed = fresh.get(key, [])
        first = closed[0][0] if closed else row["version"] + 1
        joined = b"".join(mark for _, mark in closed)
        made.append(Leaf(key, first, row["version"], digests.state(row), least(row), joined))
    return made


def _last(connection: sa.Connection) -> Seal | None:
    asked = sa.select(seals).order_by(seals.c.number.desc()).limit(1)
    found = connection.execute(asked).first()
    return None if found is None else to_seal(found)


def to_seal(found: Any) -> Seal:
    """The `Seal` of a database row."""
    return Seal(found.number, found.at, found.effects, found.entries, found.secret_id, bytes(found.root))
