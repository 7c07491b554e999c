"""The changes of several effects in one transaction; a single change is a batch of one.

Owns the order in which a batch goes through the tables, the same in every process, so that two batches do not lock each
other out: what is born, what is written unread, what is read under a lock (each sorted by key), then what guards count,
then the rest. What becomes of a row is decided by `transition`; each UPDATE is guarded by the version that was decided
on, and the entry that explains it is written in the same transaction.

Among several, one that is refused is taken out again with all that it has written, and one that would hold up the
others, or needs rows besides its own, is left `APART`: it is to be carried out by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from counterfoil.changes import (
    Answer,
    Applied,
    Begin,
    Change,
    Declined,
    Reading,
    SettleClosed,
    SettleLook,
    SettleLost,
    SettleReturned,
)
from counterfoil.effect import Row
from counterfoil.errors import LedgerUnavailable, UsageError
from counterfoil.guard import Asks, Blocked
from counterfoil.ledger import accounts, concealed, notices, pins, proofs, undos, whole
from counterfoil.ledger.guarding import GuardRefuses, admit, weigh
from counterfoil.ledger.rows import birth_columns, to_row
from counterfoil.ledger.standing import Standing, standings
from counterfoil.ledger.statements import (
    BIRTH,
    BY_KEY,
    BY_KEY_LOCKED,
    BY_KEYS,
    BY_KEYS_LOCKED,
    UNBORN,
)
from counterfoil.ledger.times import Times
from counterfoil.ledger.transaction import Transient
from counterfoil.ledger.undos import OriginalRefuses
from counterfoil.ledger.writing import Writing, entry, explain, update, update_untouched, update_whole, write
from counterfoil.transition import Decision, Refusal, Repeated, begun_entry, decide, new_row


@dataclass(frozen=True, slots=True)
class Apart:
    """Nothing was done for the change: it is to be carried out by itself."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A guard is against a begin: nothing is left of it, and the refusal is still to be counted."""

    blocked: Blocked


APART: Final = Apart()
Carried: TypeAlias = Answer | Apart | Refused | LedgerUnavailable
_Ending: TypeAlias = SettleReturned | SettleClosed | SettleLost


class Mismatched(Exception):
    """One of several rows has changed since it was read in an earlier transaction: all must be read anew."""


class Batch:
    """One open transaction of the ledger's own, or one that it shares with a tool's function."""

    def __init__(self, connection: sa.Connection, times: Times) -> None:
        self._connection = connection
        self._times = times
        self._is_sqlite = connection.dialect.name == "sqlite"
        self._carried: dict[bytes, Carried] = {}
        self._writes: dict[bytes, Writing] = {}
        self._there: dict[bytes, Standing] = {}
        self._alone = False
        self._whole = False

    def one(self, change: Change, *, unread: bool = True) -> Answer:
        """Carry out a single change; `unread` as for `all`.

        Raises:
            GuardRefuses, OriginalRefuses, LedgerUnavailable: roll back all of it.
            Transient: roll back, and do it again.
        """
        self._alone = True
        carried = self.all([change], unread=unread)[0]
        if isinstance(carried, LedgerUnavailable):
            raise carried
        assert isinstance(carried, (Applied, Declined))
        return carried

    def all(self, changes: Sequence[Change], *, unread: bool = True) -> list[Carried]:
        """Carry out changes of different effects; what came of each, in the order given.

        `unread`: a settle that brings its row is written without reading the row again, if it is still that one.

        Raises:
            Transient: roll back, and do it again.
            Mismatched: roll back, and do it again without `unread`.
        """
        ordered = sorted(changes, key=attrgetter("key"))
        if len({change.key for change in changes}) != len(changes):
            raise ValueError("a batch holds one change per key")
        self._whole = len(changes) == 1 and not self._is_sqlite
        self._left_apart(ordered)
        self._give_birth([one for one in ordered if isinstance(one, Begin) and one.fresh and self._is_open(one)])
        if unread:
            self._write_unread([one for one in ordered if isinstance(one, _Ending) and self._is_open(one)])
        self._read([one for one in ordered if self._is_open(one)])
        for one in self._writes.values():
            if isinstance(one.change, Begin):
                self._undo(one.after, one.change)
        self._count()
        update(self._connection, [one for one in self._writes.values() if one.content])
        explain(self._connection, list(self._writes.values()))
        self._follow()
        return [self._carried[change.key] for change in changes]

    def _is_open(self, change: Change) -> bool:
        return change.key not in self._carried and change.key not in self._writes

    def _left_apart(self, changes: Iterable[Change]) -> None:
        """What is refused before anything is written, and what must be alone."""
        for change in changes:
            if not isinstance(change, Begin):
                continue
            if change.undoes is not None and not self._alone:
                self._carried[change.key] = APART
            elif change.fresh and change.named_by is not None:
                try:
                    pins.hold(self._connection, change.named_by)
                except LedgerUnavailable as refused:
                    self._carried[change.key] = refused

    # ------------------------------------------------------------ what is born

    def _give_birth(self, begins: Sequence[Begin]) -> None:
        """Insert effects as unknown; those that were there before are left to be read."""
        if not begins:
            return
        reading = self._times.reading(self._now())
        by = concealed.writing(self._connection, lock=True)
        rows = [self._new(begin, reading, by) for begin in begins]
        columns = [concealed.conceal(self._connection, row, birth_columns(row)) for row in rows]
        if self._whole and begins[0].asks is not None:
            self._give_birth_whole(begins[0], begins[0].asks, rows[0], columns[0])
            return
        statement = BIRTH["sqlite" if self._is_sqlite else "postgresql"]
        found = self._connection.execute(statement, columns if len(columns) > 1 else columns[0])
        made = {bytes(key) for key in found.scalars()}
        for begin, row in zip(begins, rows, strict=True):
            if row.key in made:
                self._writes[row.key] = Writing(begin, row, row, begun_entry(begin, row), born=True)

    def _give_birth_whole(self, begin: Begin, asks: Asks, row: Row, columns: dict[str, Any]) -> None:
        """The same for one, with its entry and what its guards are asked."""
        one = Writing(begin, row, row, begun_entry(begin, row), born=True, explained=True)
        there = whole.give_birth(self._connection, columns, entry(self._connection, row, one.decision), asks)
        if there is not None:
            self._writes[row.key], self._there[row.key] = one, there

    def _new(self, begin: Begin, reading: Reading, by: str | None) -> Row:
        row = new_row(begin, f"{begin.id}-k0", reading)
        wrapped = concealed.fresh_data_key(self._connection, row.key, by)
        return row if wrapped is None else row.changed({"data_key": wrapped})

    # ------------------------------------------------------------ what is written unread

    def _write_unread(self, changes: Sequence[_Ending]) -> None:
        ready: list[Writing] = []
        now = self._now() if changes else 0
        for change in changes:
            if change.row is None or change.row.undoes is not None:
                continue
            decided = self._decided(change.row.changed({"now": now}), change)
            if isinstance(decided, Writing) and decided.decision.event is not None:
                ready.append(decided)  # what is refused or was written before is judged by the row as it is now
        if self._whole and ready:
            written = update_whole(self._connection, ready[0])
        else:
            written = update_untouched(self._connection, ready)
        if written != len(ready) and not self._alone:
            raise Mismatched
        self._writes |= {one.before.key: one for one in ready[:written]}

    # ------------------------------------------------------------ what is read under a lock

    def _read(self, changes: Sequence[Change]) -> None:
        rows = self._locked([change.key for change in changes])
        for change in changes:
            row = rows.get(change.key)
            if row is None and not self._alone:
                self._carried[change.key] = APART  # not there, or held by another
            elif row is None and isinstance(change, Begin) and change.fresh:
                raise Transient  # another's insert was in the way, and is gone or not visible in this snapshot
            elif row is None:
                self._carried[change.key] = Declined(None, "no_row")
            elif row.undoes is not None and not self._alone:
                self._carried[change.key] = APART
            else:
                decided = self._decided(row, change)
                if isinstance(decided, Writing):
                    self._writes[change.key] = decided
                else:
                    self._carried[change.key] = decided

    def _locked(self, keys: Sequence[bytes]) -> dict[bytes, Row]:
        """The rows there are, held until COMMIT. Who is not alone waits for none that somebody else holds."""
        if self._alone or not keys:
            return {key: row for key in keys if (row := self._select(key)) is not None}
        asked = BY_KEYS if self._is_sqlite else BY_KEYS_LOCKED
        found = self._connection.execute(asked, {"wanted": list(keys)}).mappings().all()
        now = self._now() if self._times.host_time else None
        cipher = concealed.cipher_of(self._connection)
        rows = (to_row(one, int(one["now"]) if now is None else now, cipher) for one in found)
        return {row.key: row for row in rows}

    def _select(self, key: bytes) -> Row | None:
        """The row, held until COMMIT."""
        asked = BY_KEY if self._is_sqlite else BY_KEY_LOCKED
        found = self._connection.execute(asked, {"wanted": key}).mappings().first()
        if found is None:
            return None
        now = self._now() if self._times.host_time else int(found["now"])
        return to_row(found, now, concealed.cipher_of(self._connection))

    def _decided(self, row: Row, change: Change) -> Writing | Answer:
        shared: tuple[bytes, ...] = ()
        if isinstance(change, SettleLook) and change.found is not None:
            change = proofs.own_evidence(self._connection, row, change)
        if isinstance(change, SettleReturned) and change.reference is not None:
            shared = proofs.claim_references(self._connection, row, (change.reference,))
        trusted = not (isinstance(change, Begin) and row.keyed) or proofs.keys_trusted(self._connection, row)
        if isinstance(change, _Ending) and change.key_unused:
            self._distrust_keys(row, change.attempt)
        decision = decide(row, change, self._times.reading(row.now), keys_trusted=trusted)
        match decision:
            case Repeated():
                return Applied(row)
            case Refusal(guard):
                return Declined(row, guard)
            case Decision():
                return Writing.of(change, row, decision, shared)

    def _distrust_keys(self, row: Row, attempt: int) -> None:
        if proofs.distrust_keys(self._connection, row):
            detail = {"attempt": attempt, "provider_key": row.provider_key}
            notices.enter(self._connection, row, "provider_key_unused", detail, row.now)

    # ------------------------------------------------------------ what is counted

    def _count(self) -> None:
        """Ask the guards about what has begun here and book what was settled, in one order of tasks and tools."""
        asked = {key: asks for key, one in self._writes.items() if (asks := _asks(one)) is not None}
        unasked = [key for key in asked if key not in self._there]
        found = standings(self._connection, [asked[key] for key in unasked]) if unasked else []
        there = self._there | dict(zip(unasked, found, strict=True))
        for one in sorted(self._writes.values(), key=_place):
            if one.booking is not None:
                accounts.book(self._connection, one.after, one.booking)
            if one.after.key in asked:
                self._ask(one, asked[one.after.key], there[one.after.key])

    def _ask(self, one: Writing, asks: Asks, there: Standing) -> None:
        assert isinstance(one.change, Begin)
        row, refused = one.after, None
        try:
            one.admitted = admit(self._connection, asks, one.change.claim_id, row.now, begun=row, there=there)
            if asks.twin is not None and not one.born:  # its look-alikes in this batch must see that it has begun
                update(self._connection, [one])
        except (GuardRefuses, UsageError) as against:
            if self._alone:
                raise
            if one.explained:  # an entry is never taken out again: all of it is rolled back, and done by itself
                raise Transient from None
            accounts.unmake(self._connection, asks, row.now)
            refused = Refused(against.blocked) if isinstance(against, GuardRefuses) else None
        if one.admitted is None:
            if one.born:
                self._connection.execute(UNBORN, {"of_key": row.key})
            del self._writes[row.key]
            self._carried[row.key] = refused or APART

    # ------------------------------------------------------------ what follows

    def _follow(self) -> None:
        """Write all that goes with the changes besides their rows, entries and what is counted."""
        for one in self._writes.values():
            for kind, detail in one.decision.incidents:
                notices.enter(self._connection, one.after, kind, dict(detail), one.after.now)
            if not isinstance(one.change, Begin) and one.after.verdict is not one.before.verdict:
                self._undo(one.after, one.change)
            if one.shared:
                self._tell_owners(one)
        for one in sorted(self._writes.values(), key=_place):
            if isinstance(one.change, _Ending) and one.change.health is not None:
                claim = one.after.claim_id if one.change.attempt == one.after.attempts else None
                asks = Asks(tenant=one.after.tenant, tool=one.after.tool, task=one.after.task, actor=one.change.actor)
                weigh(self._connection, asks, one.change.health, claim, one.after.now)
        self._carried |= {key: Applied(one.after, one.admitted) for key, one in self._writes.items()}

    def _tell_owners(self, one: Writing) -> None:
        told = {"effects": len(one.shared) + 1}
        notices.enter(self._connection, one.after, "reference_shared", told, one.after.now)
        for owner in one.shared:
            other = self._select(owner)
            if other is not None:
                notices.enter(self._connection, other, "reference_shared", told, one.after.now)

    def _undo(self, row: Row, change: Change | None) -> None:
        """Carry what happens to an effect that takes another one back over to that one, in this transaction."""
        if row.undoes is None or change is None:
            return
        original = self._select(row.undoes)
        if original is None:
            raise OriginalRefuses("no_row")
        decision = decide(original, undos.following(row, change, original), self._times.reading(original.now))
        match decision:
            case Refusal(guard) if isinstance(change, Begin):
                raise OriginalRefuses(guard)
            case Decision():
                write(self._connection, original, decision)

    def _now(self) -> int:
        return self._times.begun(self._connection)


def _asks(one: Writing) -> Asks | None:
    return one.change.asks if isinstance(one.change, Begin) else None


def _place(one: Writing) -> tuple[str, str, str, bytes]:
    return one.after.tenant, one.after.task, one.after.tool, one.after.key
