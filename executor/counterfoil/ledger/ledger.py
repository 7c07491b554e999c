"""Every statement that changes a row.

One entrance: `Ledger.apply(changes)`, a batch in one transaction, sorted by key, a key once per batch. Each row is read
under a lock, `transition.decide` says what happens to it, and the UPDATE is guarded by the row's version; the entry
that explains it is written in the same transaction. A guard that does not hold is an answer (`Declined`), no error.
Only record writes are ever repeated; a change that is asked again after a lost reply is recognised, not done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import sqlalchemy as sa

from counterfoil.changes import (
    GUARDED,
    ORIGINAL,
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
from counterfoil.clock import Clock, SystemClock
from counterfoil.effect import MICROSECONDS, Incident, Row
from counterfoil.errors import LedgerUnavailable
from counterfoil.guard import Admitted, Asks, Blocked, budget
from counterfoil.host import Host, SystemHost
from counterfoil.ledger import accounts, concealed, notices, pins, proofs, undos
from counterfoil.ledger.chores import Chores
from counterfoil.ledger.cipher import CipherKeys
from counterfoil.ledger.guarding import GuardRefuses, Guards, admit, weigh
from counterfoil.ledger.joint import Joint, is_under_way, undone
from counterfoil.ledger.rows import INSTANTS, all_columns, to_columns, to_row
from counterfoil.ledger.statements import BIRTH, BY_KEY, BY_KEY_NOW, ENTRY, GUARDED_UPDATE, SERVER_NOW
from counterfoil.ledger.transaction import PATIENCE_S, Transactions, Transient
from counterfoil.ledger.undos import OriginalRefuses
from counterfoil.text import storable
from counterfoil.transition import Decision, Refusal, Repeated, begun_entry, decide, new_row

T = TypeVar("T")


class Ledger(Chores):
    """The effects of one database.

    Args:
        engine: opened by `connect.open_engine`.
        clock: the host's clock; where it is settable, or the database is SQLite, the ledger's time comes from it.
        clock_margin_s: seconds by which the clocks of hosts and ledger may differ; added wherever absence or a
            retention is judged.
        patience_s: seconds for which a record write is repeated while the database is away.
        on_incident: told of each incident once it is written; it must not raise.
        host: how to wait while the database is in the way.
        cipher_keys: with which what is encrypted is read and written.
    """

    def __init__(
        self,
        engine: sa.Engine,
        *,
        clock: Clock | None = None,
        clock_margin_s: float = 2.0,
        patience_s: float | None = None,
        on_incident: Callable[[Incident], None] | None = None,
        host: Host | None = None,
        cipher_keys: CipherKeys | None = None,
    ) -> None:
        engine = concealed.with_cipher(engine, cipher_keys)
        self.engine = engine
        self.clock: Clock = clock or SystemClock()
        self.host: Host = host or SystemHost()
        self.margin_us = round(clock_margin_s * MICROSECONDS)
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._host_time = self._is_sqlite or self.clock.settable
        self._transactions = Transactions(engine, PATIENCE_S if patience_s is None else patience_s, self.host)
        self._on_incident = on_incident
        self.guards = Guards(self.write, self._asked, self._time)

    # ------------------------------------------------------------ reading

    def read(self, key: bytes) -> Row | None:
        """The effect of a key, or None: one indexed read.

        Raises:
            LedgerUnavailable: the database does not answer.
        """
        return self._asked(lambda connection: self._select(connection, key))

    def now(self) -> int:
        """The ledger's time."""
        return self.clock.wall_us() if self._host_time else self._asked(self._time)

    def boot(self) -> tuple[str | None, int | None]:
        """Boot id and boot time of this host: they judge the ledger's clock too, which may be set."""
        return self.clock.boot_id, self.clock.boot_us()

    def _asked(self, question: Callable[[sa.Connection], T]) -> T:
        return self._transactions.read(question)

    def _select(self, connection: sa.Connection, key: bytes, *, lock: bool = False) -> Row | None:
        now = self.clock.wall_us() if self._host_time else None
        statement = BY_KEY if now is not None else BY_KEY_NOW
        if lock and not self._is_sqlite:
            statement = statement.with_for_update()
        found = connection.execute(statement, {"wanted": key}).mappings().first()
        if found is None:
            return None
        return to_row(found, now if now is not None else int(found["now"]), concealed.cipher_of(connection))

    # ------------------------------------------------------------ changing

    def apply(self, changes: Sequence[Change], *, patience_s: float | None = None) -> list[Answer]:
        """Make the changes in one transaction and answer each in the order given; `patience_s` as for the ledger.

        Raises:
            LedgerUnavailable: nothing could be written (`certain=True`), or the reply to COMMIT was lost and could
                not be asked again (`certain=False`).
            ValueError: two changes of one key.
        """
        if len({change.key for change in changes}) != len(changes):
            raise ValueError("a batch holds one change per key")
        order = sorted(range(len(changes)), key=lambda index: changes[index].key)

        def work(connection: sa.Connection) -> list[Answer]:
            answers: dict[int, Answer] = {index: self._change(connection, changes[index]) for index in order}
            return [answers[index] for index in range(len(changes))]

        try:
            return self.write(work, patience_s=patience_s)
        except OriginalRefuses as refused:
            if len(changes) == 1:
                return [Declined(None, f"{ORIGINAL}{refused.guard}")]
        except GuardRefuses as refused:
            if len(changes) == 1:
                return [self.refused(changes[0], refused.blocked)]
        except LedgerUnavailable as refused:
            if len(changes) == 1 or not refused.certain:
                raise
        # Nothing was written: one change that the database refuses must not share its fate with the others.
        return [self.apply([change], patience_s=patience_s)[0] for change in changes]

    def refused(self, change: Change, blocked: Blocked) -> Answer:
        """A begin that a guard is against, once it is rolled back: the row as it is then. Raises as `apply`."""
        asks = change.asks if isinstance(change, Begin) else None
        blocked = blocked if asks is None else self.guards.told(asks, blocked)
        return Declined(self.read(change.key), GUARDED, blocked)

    def joint(self, begin: Begin, *, wait_s: float, timeout_s: float) -> Joint:
        """Begin in a transaction that is left open, for a tool's function to write in (see `joint`).

        Raises:
            Busy: another transaction holds the effect for longer than `wait_s`.
            LedgerUnavailable: the database does not answer; nothing was begun.
        """
        tell = self._on_incident
        return Joint.begun(self._transactions, self._change, begin, wait_s=wait_s, timeout_s=timeout_s, tell=tell)

    def undone(self, begin: Begin, closing: SettleClosed) -> Answer:
        """Write down that what `begin` began came to nothing, if it did (see `joint.undone`). Raises as `apply`."""
        return self.write(lambda connection: undone(connection, self._change, begin, closing))

    def is_under_way(self, effect_id: str) -> bool:
        """Whether an effect that no reading sees was begun in a transaction that is still open (see `joint`)."""
        return is_under_way(self._transactions, effect_id)

    def write(self, work: Callable[[sa.Connection], T], *, patience_s: float | None = None) -> T:
        """Run `work` in one transaction of the ledger's own. Raises as `apply` does."""

        def noticed(connection: sa.Connection) -> tuple[T, list[Incident]]:
            raised = notices.fresh(connection)
            return work(connection), raised

        result, raised = self._transactions.write(noticed, patience_s=patience_s)
        if self._on_incident is not None:
            for incident in raised:
                self._on_incident(incident)
        return result

    def _change(self, connection: sa.Connection, change: Change) -> Answer:
        if isinstance(change, Begin) and change.fresh:
            if change.named_by is not None:
                pins.hold(connection, change.named_by)
            born = self._insert(connection, change)
            if born is not None:
                self._undo(connection, born, change)
                return Applied(born, self._admitted(connection, born, change))
        row = self._select(connection, change.key, lock=True)
        if row is None:
            if isinstance(change, Begin) and change.fresh:
                raise Transient  # another's insert was in the way, and is gone or not visible in this snapshot
            return Declined(None, "no_row")
        return self._decided(connection, row, change)

    def _decided(self, connection: sa.Connection, row: Row, change: Change) -> Answer:
        shared: tuple[bytes, ...] = ()
        if isinstance(change, SettleLook) and change.found is not None:
            change = proofs.own_evidence(connection, row, change)
        if isinstance(change, SettleReturned) and change.reference is not None:
            shared = proofs.claim_references(connection, row, (change.reference,))
        reading = self._reading(row.now)
        trusted = not (isinstance(change, Begin) and row.keyed) or proofs.keys_trusted(connection, row)
        if isinstance(change, (SettleReturned, SettleClosed, SettleLost)) and change.key_unused:
            self._distrust_keys(connection, row, change.attempt)
        decision = decide(row, change, reading, keys_trusted=trusted)
        match decision:
            case Repeated():
                return Applied(row)
            case Refusal(guard):
                return Declined(row, guard)
        after = self._update(connection, row, decision)
        for kind, detail in decision.incidents:
            notices.enter(connection, after, kind, dict(detail), after.now)
        if after.undoes is not None and (isinstance(change, Begin) or after.verdict is not row.verdict):
            self._undo(connection, after, change)
        if shared:
            notices.enter(connection, after, "reference_shared", {"effects": len(shared) + 1}, after.now)
        for owner in shared:
            other = self._select(connection, owner)
            if other is not None:
                notices.enter(connection, other, "reference_shared", {"effects": len(shared) + 1}, after.now)
        return Applied(after, self._admitted(connection, after, change))

    def _admitted(self, connection: sa.Connection, row: Row, change: Change) -> Admitted | None:
        """Ask the guards about an attempt that has begun in this transaction; hear what one says that has ended."""
        if isinstance(change, Begin):
            return None if change.asks is None else admit(connection, change.asks, change.claim_id, row.now, begun=row)
        if isinstance(change, (SettleReturned, SettleClosed, SettleLost)) and change.health is not None:
            claim = row.claim_id if change.attempt == row.attempts else None
            asks = Asks(tenant=row.tenant, tool=row.tool, task=row.task, actor=change.actor)
            weigh(connection, asks, change.health, claim, row.now)
        return None

    def _undo(self, connection: sa.Connection, row: Row, change: Change) -> None:
        """Carry what happens to an effect that takes another one back over to that one, in this transaction."""
        if row.undoes is None:
            return
        original = self._select(connection, row.undoes, lock=True)
        if original is None:
            raise OriginalRefuses("no_row")
        decision = decide(original, undos.following(row, change, original), self._reading(original.now))
        match decision:
            case Refusal(guard) if isinstance(change, Begin):
                raise OriginalRefuses(guard)
            case Decision():
                after = self._update(connection, original, decision)
                for kind, detail in decision.incidents:
                    notices.enter(connection, after, kind, dict(detail), after.now)

    def _distrust_keys(self, connection: sa.Connection, row: Row, attempt: int) -> None:
        if proofs.distrust_keys(connection, row):
            notices.enter(
                connection, row, "provider_key_unused", {"attempt": attempt, "provider_key": row.provider_key}, row.now
            )

    def _insert(self, connection: sa.Connection, begin: Begin) -> Row | None:
        """Insert the effect as unknown; None when another was there before."""
        now = self.clock.wall_us() if self._host_time else 0
        row = new_row(begin, f"{begin.id}-k0", self._reading(now))
        row = replace(row, data_key=concealed.fresh_data_key(connection, row.key))
        columns = concealed.conceal(connection, row, all_columns(row))
        if not self._host_time:  # the row was made as distances from zero: the server adds its own time
            moved = INSTANTS | {"boot_low", "boot_high"}
            columns |= {name: SERVER_NOW + columns[name] for name in moved if columns[name] is not None}
        statement = BIRTH["sqlite" if self._is_sqlite else "postgresql"]
        statement = statement if self._host_time else statement.values(columns)
        made = connection.execute(statement, columns if self._host_time else None).mappings().first()
        if made is None:
            return None
        born = to_row(made, int(made["updated_at"]), concealed.cipher_of(connection))
        self._enter(connection, born, begun_entry(begin, born))
        return born

    def _update(self, connection: sa.Connection, row: Row, decision: Decision) -> Row:
        """Write what was decided, guarded by the version that it was decided on, with the entry that explains it."""
        content = dict(decision.columns)
        booking = budget.booking(row, content)
        content |= {} if booking is None else booking.columns(row)
        if decision.event is not None:
            content |= {"version": row.version + 1, "updated_at": row.now}
        columns = concealed.conceal(connection, row, to_columns(content))
        done = connection.execute(GUARDED_UPDATE, columns | {"of_key": row.key, "of_version": row.version})
        if done.rowcount != 1:
            raise Transient
        after = replace(row, **content)
        if booking is not None:
            accounts.book(connection, after, booking)
        if decision.event is not None:
            self._enter(connection, after, decision)
        return after

    def _enter(self, connection: sa.Connection, after: Row, decision: Decision) -> None:
        values = {
            "key": after.key,
            "seq": after.version,
            "attempt": decision.attempt,
            "event": decision.event,
            "actor": storable(decision.actor),
            "fence": after.attempts,
            "detail": concealed.conceal_entry(connection, after, {"verdict": str(after.verdict), **decision.detail}),
            "at": after.now,
        }
        connection.execute(ENTRY, values)

    def _reading(self, now: int) -> Reading:
        boot_id, boot_us = self.boot()
        return Reading(now, self.margin_us, boot_id, boot_us)

    def _time(self, connection: sa.Connection) -> int:
        if self._host_time:
            return self.clock.wall_us()
        return int(connection.execute(sa.select(SERVER_NOW)).scalar_one())
