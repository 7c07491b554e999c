"""Taking old, settled effects out of the ledger, batch by batch, and leaving a tombstone for each.

Owns the statements of a prune. Whether a row may go is decided in `transition.keeping`, on the row as it is under its
lock. Each batch is one transaction: its lines are on disk before it commits, so a crash loses nothing; what is pruned
already is not seen again, so the same prune may simply be run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import RowMapping

from counterfoil.changes import Reading
from counterfoil.effect import Row, Verdict
from counterfoil.ledger import twins
from counterfoil.ledger.archive import Archive, digest, line
from counterfoil.ledger.cipher import Unreadable
from counterfoil.ledger.concealed import cipher_of
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.rows import COLUMNS, to_row
from counterfoil.ledger.schema import effects, entries, incidents, sightings
from counterfoil.ledger.writing import write
from counterfoil.transition.keeping import kept_because, tombstone

BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune did: how many effects it took out, and how many that are old enough it left, by the reason."""

    pruned: int = 0
    kept: Mapping[str, int] = field(default_factory=dict)

    def plus(self, more: Pruned) -> Pruned:
        """Both together."""
        return Pruned(self.pruned + more.pruned, dict(Counter(self.kept) + Counter(more.kept)))


def prune(
    ledger: Ledger,
    older_than_us: int,
    archive: Archive | None,
    *,
    by: str,
    tenant: str | None = None,
    batch: int = BATCH,
    told: Callable[[Pruned], object] = lambda _: None,
) -> Pruned:
    """Prune what has not changed for `older_than_us` microseconds; `told` hears the sums after each batch.

    Args:
        ledger: of which database.
        older_than_us: microseconds since the last change of an effect.
        archive: where what is taken out goes; None: nowhere, it is lost.
        by: who prunes; it stands in the entry that is left.
        tenant: whose effects; None: everybody's.
        batch: effects in one transaction; not above what the archive remembers.
        told: called after each batch.

    Raises:
        LedgerUnavailable: the database does not answer; what the batches before have done stays.
        UsageError: the archive cannot be written.
    """
    this = _Prune(ledger, older_than_us, archive, by, tenant, batch)
    done, after = Pruned(), b""
    while True:
        more, last = ledger.write(partial(this.batch, after=after))
        done = done.plus(more)
        told(done)
        if last is None:
            return done
        after = last


@dataclass(frozen=True, slots=True)
class _Prune:
    ledger: Ledger
    older_than_us: int
    archive: Archive | None
    by: str
    tenant: str | None
    size: int

    def batch(self, connection: sa.Connection, after: bytes) -> tuple[Pruned, bytes | None]:
        """One batch of effects after a key; the last key of it, or None where there are no more."""
        now = self.ledger._time(connection)
        found = _old(connection, after, now - self.older_than_us, self.tenant, self.size)
        keys = [bytes(one["key"]) for one in found]
        undone, watched = _with_open_undo(connection), _with_open_incident(connection, keys)
        reading = self.ledger.times.reading(now)
        kept: Counter[str] = Counter()
        going: list[tuple[Row, RowMapping]] = []
        for one in found:
            try:
                row = to_row(one, now, cipher_of(connection))
            except Unreadable:
                kept["unreadable"] += 1
                continue
            why = kept_because(row, reading, undo_open=row.key in undone, incident_open=row.key in watched)
            if why is None:
                going.append((row, one))
            else:
                kept[why] += 1
        if going:
            self._take_out(connection, going, reading)
        more = len(found) == self.size
        if not more:
            twins.forget(connection, now, self.tenant)
        return Pruned(len(going), dict(kept)), keys[-1] if more else None

    def _take_out(self, connection: sa.Connection, going: Sequence[tuple[Row, RowMapping]], reading: Reading) -> None:
        lines = _lines(connection, [kept for _, kept in going])
        if self.archive is not None:
            self.archive.write(lines.values())
        _empty(connection, list(lines))
        for row, _ in going:
            left = tombstone(
                row, reading, digest=digest(lines[row.key]), exported=self.archive is not None, actor=self.by
            )
            write(connection, row, left)


def _old(connection: sa.Connection, after: bytes, before: int, tenant: str | None, size: int) -> Sequence[RowMapping]:
    """Effects that have not changed since `before`, by key, locked. Who is at work on one is left to it."""
    old = (effects.c.key > after) & (effects.c.updated_at < before) & effects.c.pruned_at.is_(None)
    if tenant is not None:
        old &= effects.c.tenant == tenant
    asked = sa.select(*COLUMNS).where(old).order_by(effects.c.key).limit(size)
    if connection.dialect.name != "sqlite":
        asked = asked.with_for_update(skip_locked=True)
    return connection.execute(asked).mappings().all()


def _with_open_undo(connection: sa.Connection) -> set[bytes]:
    """The effects that another one is about to take back. Asked after the lock is held: who comes later waits for it,
    and then finds a tombstone."""
    # Every unknown effect has a next look: saying so lets the index of what is due serve here.
    open_undo = (effects.c.verdict == str(Verdict.EFFECT_UNKNOWN)) & effects.c.look_at.is_not(None)
    asked = sa.select(effects.c.undoes).where(open_undo & effects.c.undoes.is_not(None))
    return {bytes(key) for key in connection.execute(asked).scalars()}


def _with_open_incident(connection: sa.Connection, keys: Sequence[bytes]) -> set[bytes]:
    asked = sa.select(incidents.c.key).where(incidents.c.key.in_(keys) & incidents.c.closed_at.is_(None))
    return {bytes(key) for key in connection.execute(asked).scalars()}


def _lines(connection: sa.Connection, rows: Sequence[RowMapping]) -> dict[bytes, bytes]:
    """The archive's line of each row, by key. What is ciphertext in the ledger is ciphertext here, and the same row
    makes the same line when it is asked again."""
    keys = [bytes(row["key"]) for row in rows]
    beside = {
        "entries": _by_key(connection, entries, keys, entries.c.seq),
        "sightings": _by_key(connection, sightings, keys, sightings.c.number),
        "incidents": _by_key(connection, incidents, keys, incidents.c.number),
    }
    names = [column.name for column in COLUMNS if column.name != "sealed_version"]
    made = {}
    for key, row in zip(keys, rows, strict=True):
        content = {name: row[name] for name in names}
        made[key] = line(content, {name: found.get(key, []) for name, found in beside.items()})
    return made


def _by_key(
    connection: sa.Connection, table: sa.Table, keys: Sequence[bytes], order: sa.Column[Any]
) -> dict[bytes, list[dict[str, Any]]]:
    asked = sa.select(table).where(table.c.key.in_(keys)).order_by(table.c.key, order)
    found: dict[bytes, list[dict[str, Any]]] = {}
    for one in connection.execute(asked).mappings():
        content = dict(one)
        found.setdefault(bytes(content.pop("key")), []).append(content)
    return found


def _empty(connection: sa.Connection, keys: Sequence[bytes]) -> None:
    """Take out what explained these effects. A server takes entries only from a prune, which says so here."""
    if connection.dialect.name != "sqlite":
        connection.execute(sa.text("SELECT set_config('counterfoil.pruning', 'on', true)"))
    connection.execute(sa.delete(entries).where(entries.c.key.in_(keys)))
    connection.execute(sa.delete(sightings).where(sightings.c.key.in_(keys)))
    if connection.dialect.name != "sqlite":
        connection.execute(sa.text("SELECT set_config('counterfoil.pruning', 'off', true)"))
