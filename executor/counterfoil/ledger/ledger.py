"""Every statement that changes a row.

One entrance: `Ledger.apply(changes)`, a batch in one transaction, sorted by key, a key once per batch. Each row is read
under a lock, `transition.decide` says what happens to it, and the UPDATE is guarded by the row's version; the entry
that explains it is written in the same transaction. A guard that does not hold is an answer (`Declined`), no error.
Only record writes are ever repeated; a change that is asked again after a lost reply is recognised, not done twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, TypeVar

import sqlalchemy as sa

from counterfoil.changes import GUARDED, ORIGINAL, Answer, Applied, Begin, Change, Declined, SettleClosed
from counterfoil.clock import Clock, SystemClock
from counterfoil.effect import MICROSECONDS, Incident, Row
from counterfoil.errors import LedgerUnavailable
from counterfoil.guard import Blocked
from counterfoil.host import Host, SystemHost
from counterfoil.ledger import concealed, notices
from counterfoil.ledger.batch import Batch, Carried, Mismatched, Refused
from counterfoil.ledger.chores import Chores
from counterfoil.ledger.cipher import CipherKeys, Unreadable
from counterfoil.ledger.guarding import GuardRefuses, Guards
from counterfoil.ledger.joint import Joint, is_under_way, undone
from counterfoil.ledger.rows import to_row
from counterfoil.ledger.statements import BY_KEY, BY_KEY_NOW, BY_KEYS, BY_KEYS_NOW
from counterfoil.ledger.times import Times
from counterfoil.ledger.transaction import PATIENCE_S, CommitInDoubt, Transactions, Transient
from counterfoil.ledger.undos import OriginalRefuses
from counterfoil.ledger.writer import Fell, Writer, is_grouped

T = TypeVar("T")

# On a server a batch waits no longer for a lock, since all of it would wait.
LOCK_WAIT_S: Final = 0.25
# Who has waited in vain with others still gets this part of its patience for itself.
LEAST_LEFT: Final = 5
# How many callers are served in their own threads before others wait and go together: writers on SQLite take turns.
DIRECT: Final = {"sqlite": 1, "postgresql": 2}


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
        grouped: whether callers who ask at the same moment share a transaction; left out: as `writer` has it.
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
        grouped: bool | None = None,
        cipher_keys: CipherKeys | None = None,
    ) -> None:
        engine = concealed.with_cipher(engine, cipher_keys)
        self.engine = engine
        self.clock: Clock = clock or SystemClock()
        self.host: Host = host or SystemHost()
        self.margin_us = round(clock_margin_s * MICROSECONDS)
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._host_time = self._is_sqlite or self.clock.settable
        self._patience_s = PATIENCE_S if patience_s is None else patience_s
        self._transactions = Transactions(engine, self._patience_s, self.host)
        self._on_incident = on_incident
        self.times = Times(self.clock, self._host_time, self.margin_us)
        self.guards = Guards(self.write, self._asked, self._time)
        self.grouped = is_grouped() if grouped is None else grouped
        direct = DIRECT[engine.dialect.name] if self.grouped else 1_000_000
        self._writer: Writer[Change, Carried] = Writer(
            self.host, "counterfoil-writer", key=attrgetter("key"), direct=direct,
            alone=self._apply_alone, together=self._apply_waiting,
        )  # fmt: skip
        self._reader: Writer[bytes, Row | Unreadable | None] = Writer(
            self.host, "counterfoil-reader", key=None, direct=direct,
            alone=lambda key: self._read([key])[0], together=lambda waiting: self._read(waiting()),
        )  # fmt: skip

    def close(self) -> None:
        """End the threads that serve callers together; who asks later is served alone."""
        self._writer.close()
        self._reader.close()

    # ------------------------------------------------------------ reading

    def read(self, key: bytes) -> Row | None:
        """The effect of a key, or None: one indexed read.

        Raises:
            LedgerUnavailable: the database does not answer, or what it keeps cannot be decrypted.
        """
        return self.found(key, self._reader.ask(key))

    def read_soon(self, key: bytes, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Row | BaseException | None]:
        """`read` while the loop goes on. What comes of it is for `found`, which may take a while."""
        return self._reader.submit(key, loop)

    def found(self, key: bytes, answer: Row | BaseException | None) -> Row | None:
        """The row that was read among others, or is now by itself. Raises as `read`."""
        if isinstance(answer, Fell):
            answer = self._read([key])[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def now(self) -> int:
        """The ledger's time."""
        return self.clock.wall_us() if self._host_time else self._asked(self._time)

    def boot(self) -> tuple[str | None, int | None]:
        """Boot id and boot time of this host: they judge the ledger's clock too, which may be set."""
        return self.clock.boot_id, self.clock.boot_us()

    def _asked(self, question: Callable[[sa.Connection], T]) -> T:
        return self._transactions.read(question)

    def _read(self, keys: Sequence[bytes]) -> list[Row | Unreadable | None]:
        return self._asked(lambda connection: self._selected(connection, keys))

    def _selected(self, connection: sa.Connection, keys: Sequence[bytes]) -> list[Row | Unreadable | None]:
        now = self.clock.wall_us() if self._host_time else None
        if len(keys) == 1:
            asked = connection.execute(BY_KEY_NOW if now is None else BY_KEY, {"wanted": keys[0]})
        else:
            asked = connection.execute(BY_KEYS_NOW if now is None else BY_KEYS, {"wanted": sorted(set(keys))})
        found: dict[bytes, Row | Unreadable] = {}
        for one in asked.mappings():
            try:
                row = to_row(one, int(one["now"]) if now is None else now, concealed.cipher_of(connection))
            except Unreadable as problem:  # the answer of who asked for it, and of nobody else
                found[bytes(one["key"])] = problem
            else:
                found[row.key] = row
        return [found.get(key) for key in keys]

    # ------------------------------------------------------------ changing

    def change(self, change: Change) -> Answer:
        """Make one change, in one transaction with what others ask for at the same moment.

        Raises:
            LedgerUnavailable: nothing could be written (`certain=True`), or the reply to COMMIT was lost and could
                not be asked again (`certain=False`).
        """
        return self.concluded(change, self._writer.ask(change))

    def change_soon(self, change: Change, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Carried | BaseException]:
        """`change` while the loop goes on. What comes of it is for `concluded`, which may take a while.

        Raises:
            LedgerUnavailable: too many wait; nothing was written.
        """
        return self._writer.submit(change, loop)

    def concluded(self, change: Change, carried: Carried | BaseException) -> Answer:
        """The answer to a change that was carried out among others, or is now by itself. Raises as `change`."""
        match carried:
            case Applied() | Declined():
                return carried
            case Refused(blocked):
                return self.refused(change, blocked)
            case Fell():
                left_s = max(self._patience_s - carried.waited_s, self._patience_s / LEAST_LEFT)
                return self._apply_alone(change, left_s, in_doubt=carried.in_doubt)
            case BaseException():
                raise carried
            case _:
                return self._apply_alone(change)

    def apply(self, changes: Sequence[Change], *, patience_s: float | None = None) -> list[Answer]:
        """Make the changes in one transaction and answer each in the order given; `patience_s` as for the ledger.

        Raises:
            LedgerUnavailable: as for `change`.
            ValueError: two changes of one key.
        """
        if len(changes) == 1:
            return [self._apply_alone(changes[0], patience_s)]
        carried = self._apply_together(lambda: changes, self._patience_s if patience_s is None else patience_s)
        return [self.concluded(change, one) for change, one in zip(changes, carried, strict=True)]

    def _apply_waiting(self, waiting: Callable[[], Sequence[Change]]) -> Sequence[Carried | BaseException]:
        return self._apply_together(waiting, self._patience_s if self._is_sqlite else LOCK_WAIT_S)

    def _apply_together(
        self, waiting: Callable[[], Sequence[Change]], wait_s: float
    ) -> Sequence[Carried | BaseException]:
        """Try to make several changes in one transaction, once; what comes of each, for `concluded`."""
        fell = Fell(in_doubt=False)
        for unread in (True, False):
            try:
                work = partial(self._together, waiting=waiting, unread=unread)
                return self._told(self._transactions.write_once(_noticing(work), wait_s))
            except Mismatched:  # read anew, they are what they are
                continue
            except CommitInDoubt:
                fell = Fell(in_doubt=True)
            except (Transient, LedgerUnavailable):
                pass  # each finds out for itself, and with its own patience
            break
        return [fell] * len(waiting())

    def _together(
        self, connection: sa.Connection, waiting: Callable[[], Sequence[Change]], unread: bool
    ) -> list[Carried]:
        return Batch(connection, self.times).all(waiting(), unread=unread)

    def _apply_alone(self, change: Change, patience_s: float | None = None, *, in_doubt: bool = False) -> Answer:
        try:
            return self.write(
                lambda connection: Batch(connection, self.times).one(change), patience_s=patience_s, in_doubt=in_doubt
            )
        except OriginalRefuses as refused:
            return Declined(None, f"{ORIGINAL}{refused.guard}")
        except GuardRefuses as refused:
            return self.refused(change, refused.blocked)

    def refused(self, change: Change, blocked: Blocked) -> Answer:
        """A begin that a guard is against, once it is rolled back: the row as it is then. Raises as `change`."""
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

    def write(
        self, work: Callable[[sa.Connection], T], *, patience_s: float | None = None, in_doubt: bool = False
    ) -> T:
        """Run `work` in one transaction of the ledger's own. `in_doubt`: it may have counted. Raises as `apply`."""
        return self._told(self._transactions.write(_noticing(work), patience_s=patience_s, in_doubt=in_doubt))

    def _told(self, done: tuple[T, list[Incident]]) -> T:
        result, raised = done
        if self._on_incident is not None and raised:
            self._writer.stand_aside()
            for incident in raised:
                self._on_incident(incident)
        return result

    def _change(self, connection: sa.Connection, change: Change) -> Answer:
        """One change in a transaction that began a while ago: its row is read anew."""
        return Batch(connection, self.times).one(change, unread=False)

    def _time(self, connection: sa.Connection) -> int:
        return self.times.now(connection)


def _noticing(work: Callable[[sa.Connection], T]) -> Callable[[sa.Connection], tuple[T, list[Incident]]]:
    """The same work, and the incidents that it raises."""

    def noticed(connection: sa.Connection) -> tuple[T, list[Incident]]:
        raised = notices.fresh(connection)
        return work(connection), raised

    return noticed
