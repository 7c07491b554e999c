"""One transaction of the ledger's own, tried again while the database is passingly in the way.

Before COMMIT nothing counts, so what fails there surely came to nothing. A COMMIT whose reply is lost may have counted:
the work is done again, and must recognise what it wrote. Every wait (for a turn, a lock, a connection) ends with the
patience. Driver messages are never rendered or chained: they carry hosts, parameters and rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
import tenacity

from counterfoil.errors import LedgerError, LedgerUnavailable
from counterfoil.host import Host, SystemHost
from counterfoil.ledger import file
from counterfoil.ledger.connect import READS
from counterfoil.ledger.statements import SERVER_NOW

T = TypeVar("T")

PATIENCE_S = 5.0
_LOCK_NOT_AVAILABLE = "55P03"
TRANSIENT_STATES = frozenset({"40001", "40P01", _LOCK_NOT_AVAILABLE})
_TRIES_MOST = 200
_PAUSE_FIRST_S, _PAUSE_MOST_S = 0.005, 0.5
READ_ONLY_STATE = "25006"
_NOT_WRITTEN = "the ledger's database cannot be written to"
# SQLite's own waiting gives up polling often after a moment, and starves beside a writer that hardly ever lets go.
_SQLITE_POLLS_S = (0.0005, 0.004)
# Of this transaction alone: a setting of the session is another client's, or nobody's, behind a pooler. An acknowledged
# begin that is lost in a crash of the server is a second send (protocol F18); a lock is not waited for without end, and
# not held without end by a client that stands still between two statements.
_SETTINGS = sa.text(
    "SELECT set_config('lock_timeout', :wait_ms, true), "
    "set_config('idle_in_transaction_session_timeout', :idle_ms, true), "
    "CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') "
    "THEN set_config('synchronous_commit', 'on', true) END, "
    f"{SERVER_NOW}, current_setting('transaction_isolation')"
)
_BEGUN_AT = "counterfoil_begun_at"
# Whatever the database's default is: who has waited for a lock must see what was committed meanwhile.
_COMMITTED = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"


class Transient(Exception):
    """The transaction surely came to nothing and may be tried again as it is."""


class Busy(Exception):
    """Another transaction holds what this one needs (on SQLite: the ledger) for longer than was waited."""


class CommitInDoubt(Exception):
    """The reply to COMMIT was lost: it may have counted."""


@dataclass(frozen=True, slots=True)
class Opened(Generic[T]):
    """A transaction that is left open, and what was done in it so far. Close it whatever happens."""

    connection: sa.Connection
    transaction: sa.RootTransaction
    result: T
    _open: ExitStack

    def close(self) -> None:
        """Roll back what is not committed, and give connection and turn back. Never raises for the database."""
        with suppress(sa.exc.SQLAlchemyError):
            self._open.close()


class Transactions:
    """Transactions of one engine. On SQLite writers take turns within the process, which is fairer than its lock."""

    def __init__(self, engine: sa.Engine, patience_s: float, host: Host | None = None) -> None:
        self._engine = engine
        self.host = host or SystemHost()
        self._readers = engine.execution_options(isolation_level="AUTOCOMMIT", **{READS: True})
        self._patience_s = patience_s
        self._is_sqlite = engine.dialect.name == "sqlite"
        # On SQLite a transaction is begun by `_take_lock`, not by the engine: it waits with this object's patience.
        self._writers = engine.execution_options(**{READS: True}) if self._is_sqlite else engine
        self._isolates = False
        self._turn = self.host.lock()
        self._unfit: str | None = None

    def read(self, question: Callable[[sa.Connection], T]) -> T:
        """Ask a question outside any transaction, again while the database is passingly away.

        Raises:
            LedgerUnavailable: it does not answer.
        """
        away = "the ledger's database does not answer"
        return self._patiently(lambda _: self._asked(question), away, self._patience_s)

    def write(
        self, work: Callable[[sa.Connection], T], *, patience_s: float | None = None, in_doubt: bool = False
    ) -> T:
        """Run `work` in one transaction of the ledger's own, again while the database is passingly in the way, for
        `patience_s` (the engine's, unless said). `in_doubt`: it may have counted before, and recognises that.

        Raises:
            LedgerUnavailable: nothing could be written (`certain=True`), or the reply to COMMIT was lost and could
                not be asked again (`certain=False`).
        """
        wait_s = self._patience_s if patience_s is None else patience_s
        return self._patiently(lambda until: self._transaction(work, until), _NOT_WRITTEN, wait_s, in_doubt)

    def write_once(self, work: Callable[[sa.Connection], T], wait_s: float) -> T:
        """Run `work` in one transaction, and not again; it waits for its turn and for locks for at most `wait_s`.

        Raises:
            Transient: it surely came to nothing, and what is in the way may pass.
            CommitInDoubt: the reply to COMMIT was lost.
            LedgerUnavailable: it surely came to nothing, and what is in the way will not pass by itself.
        """
        self._refuse_unfit()
        try:
            return self._transaction(work, self.host.monotonic() + wait_s)
        except LedgerUnavailable:
            raise
        except LedgerError as unfit:
            raise LedgerUnavailable(str(unfit), certain=True) from None

    def open(self, work: Callable[[sa.Connection], T], wait_s: float) -> Opened[T]:
        """Run `work` in a transaction that is left open: it is committed with `Opened.transaction`, or closed.

        It waits for others for at most `wait_s`, and is tried again while the database is passingly away, for no longer
        than any other.

        Raises:
            Busy: another transaction is in the way for longer; nothing was begun.
            LedgerUnavailable: the database does not answer; nothing was begun.
        """
        until = self.host.monotonic() + wait_s
        return self._patiently(lambda _: self._opened(work, until), _NOT_WRITTEN, min(wait_s, self._patience_s))

    def _patiently(self, trial: Callable[[float], T], away: str, patience_s: float, in_doubt: bool = False) -> T:
        until = self.host.monotonic() + patience_s
        trying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type((Transient, CommitInDoubt)),
            wait=lambda state: self.host.uniform(0, min(_PAUSE_FIRST_S * 2**state.attempt_number, _PAUSE_MOST_S)),
            sleep=self.host.sleep,
            stop=lambda state: self.host.monotonic() >= until or state.attempt_number >= _TRIES_MOST,
            reraise=True,
        )
        try:
            for attempt in trying:
                with attempt:
                    try:
                        self._refuse_unfit()
                        return trial(until)
                    except CommitInDoubt:
                        if not in_doubt:  # what may have counted is asked again with a patience of its own
                            until = self.host.monotonic() + self._patience_s
                        in_doubt = True
                        raise
        except (Transient, CommitInDoubt):
            pass
        except LedgerUnavailable as refused:
            raise LedgerUnavailable(str(refused), certain=refused.certain and not in_doubt) from None
        except LedgerError as unfit:  # a new connection saw a server that may forget what it acknowledged
            raise LedgerUnavailable(str(unfit), certain=not in_doubt) from None
        raise LedgerUnavailable(away, certain=not in_doubt) from None

    def _asked(self, question: Callable[[sa.Connection], T]) -> T:
        try:
            with self._readers.connect() as connection:
                return question(connection)
        except sa.exc.SQLAlchemyError as problem:
            raise self.passing(problem) from None

    def _transaction(self, work: Callable[[sa.Connection], T], until: float) -> T:
        if not self._is_sqlite:
            return self._in_turn(work, until)
        if not self._turn.acquire(timeout=max(0.0, until - self.host.monotonic())):
            raise Transient
        try:
            return self._in_turn(work, until)
        finally:
            self._turn.release()

    def _opened(self, work: Callable[[sa.Connection], T], until: float) -> Opened[T]:
        try:
            with ExitStack() as stack:
                if self._is_sqlite:
                    if not self._turn.acquire(timeout=max(0.0, until - self.host.monotonic())):
                        raise Busy
                    stack.callback(self._turn.release)
                connection = stack.enter_context(self._writers.connect())
                transaction = connection.begin()
                self._made_ready(connection, until, own=False)  # the tool's function chose its isolation
                result = work(connection)
                return Opened(connection, transaction, result, stack.pop_all())
        except sa.exc.SQLAlchemyError as problem:
            raise (Busy() if _is_held(problem) else self.passing(problem)) from None

    def _in_turn(self, work: Callable[[sa.Connection], T], until: float) -> T:
        committed: list[T] = []
        try:
            with self._writers.connect() as connection:
                transaction = connection.begin()
                self._made_ready(connection, until)
                result = work(connection)
                try:
                    transaction.commit()
                except sa.exc.SQLAlchemyError as problem:
                    refused = getattr(getattr(problem, "orig", None), "sqlstate", None) in TRANSIENT_STATES
                    raise (Transient if refused else CommitInDoubt) from None
                committed.append(result)
        except sa.exc.SQLAlchemyError as problem:
            if not committed:  # after COMMIT, a connection that breaks while it is given back changes nothing
                raise self.passing(problem) from None
        return committed[0]

    def _made_ready(self, connection: sa.Connection, until: float, *, own: bool = True) -> None:
        if self._is_sqlite:
            _take_lock(connection, until, self.host)
            self._unfit = self._unfit or file.changed(connection)
            self._refuse_unfit()
            return
        if own and self._isolates:
            connection.exec_driver_sql(_COMMITTED)
        wait_ms = max(1, round((until - self.host.monotonic()) * 1000))
        idle_ms = max(1, round(self._patience_s * 1000))
        made = connection.execute(_SETTINGS, {"wait_ms": str(wait_ms), "idle_ms": str(idle_ms)}).one()
        if own and made[4] != "read committed":
            self._isolates = True  # it can be said only as the first thing of a transaction: of the next one
            raise Transient
        connection.execution_options(**{_BEGUN_AT: int(made[3])})

    def _refuse_unfit(self) -> None:
        if self._unfit is not None:
            raise LedgerUnavailable(self._unfit, certain=True)

    def passing(self, problem: sa.exc.SQLAlchemyError) -> Exception:
        """Before COMMIT nothing counts: passing troubles are tried again, lasting ones are said at once."""
        original = getattr(problem, "orig", None)
        if isinstance(problem, sa.exc.TimeoutError) or getattr(problem, "connection_invalidated", False):
            return Transient()
        state = getattr(original, "sqlstate", None)
        if state == READ_ONLY_STATE:
            # After a change of primaries, connections to the old one go on: only new ones lead to the new one.
            self._engine.dispose()
        if state in TRANSIENT_STATES or state == READ_ONLY_STATE:
            return Transient()
        name = getattr(original, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return Transient()
        if file.is_damage(original):
            # What a damaged file does not show may be there: nothing is begun on it, and nothing is told from it.
            self._unfit = file.DAMAGED
            return LedgerUnavailable(file.DAMAGED, certain=True)
        if isinstance(problem, sa.exc.OperationalError) and not name:
            return Transient()
        return LedgerUnavailable("the ledger's database refuses to write", certain=True)


def _is_held(problem: sa.exc.SQLAlchemyError) -> bool:
    original = getattr(problem, "orig", None)
    name = getattr(original, "sqlite_errorname", "") or ""
    return getattr(original, "sqlstate", None) == _LOCK_NOT_AVAILABLE or name.startswith("SQLITE_BUSY")


def begun_at(connection: sa.Connection) -> int | None:
    """The server's time, in microseconds, when the present transaction was made ready; None where it is another's."""
    begun: int | None = connection.get_execution_options().get(_BEGUN_AT)
    return begun


def _take_lock(connection: sa.Connection, until: float, host: Host) -> None:
    """Begin as a writer. A transaction that reads first and writes later could be refused half-way."""
    raw: Any = connection.connection.driver_connection  # the engine's way to run a PRAGMA costs ten times as much
    (before_ms,) = raw.execute("PRAGMA busy_timeout").fetchone()
    raw.execute("PRAGMA busy_timeout=0").close()
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            except sa.exc.OperationalError as problem:
                name = getattr(problem.orig, "sqlite_errorname", "") or ""
                if not name.startswith("SQLITE_BUSY") or host.monotonic() >= until:
                    raise
            else:
                return
            host.sleep(host.uniform(*_SQLITE_POLLS_S))
    finally:
        raw.execute(f"PRAGMA busy_timeout={before_ms}").close()
