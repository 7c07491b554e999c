"""A transaction that the ledger shares with a tool's function: begin, the function's writes and the settle as one.

Owns the one place where a transaction of the ledger stays open while a tool runs, and what is asked after one that did
not end well. Two rules make it safe (protocol F11): a settle that is declined rolls everything back, and after a COMMIT
whose reply was lost the question is a write on the same key, which waits for the transaction that is still under way;
a plain SELECT would prove nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
import tenacity
from sqlalchemy.dialects import postgresql

from counterfoil.changes import Answer, Applied, Begin, Change, Declined, SettleClosed, SettleLost, SettleReturned
from counterfoil.effect import Row, Verdict
from counterfoil.errors import LedgerUnavailable, UsageError
from counterfoil.ledger.connect import BUSY_TIMEOUT_S
from counterfoil.ledger.rows import all_columns
from counterfoil.ledger.schema import effects
from counterfoil.ledger.transaction import PATIENCE_S, Transactions, Transient, passing

Changing: TypeAlias = Callable[[sa.Connection, Change], Answer]

LEAST_WAIT_S: Final = 0.001  # zero means without end to one database, not at all to the other
PROBE_S: Final = 0.5
_SAVEPOINT: Final = "counterfoil_effect"
_LOCK_NOT_AVAILABLE: Final = "55P03"
_ENDS: Final = re.compile(
    r"\s*(COMMIT|END|ABORT|BEGIN|START\s+TRANSACTION|PREPARE\s+TRANSACTION"
    r"|ROLLBACK(?!\s+(WORK\s+|TRANSACTION\s+)?TO\b))\b",
    re.IGNORECASE,
)
_MISUSE: Final = (
    "effect.connection is the ledger's own transaction: the tool's function must not commit, roll back or close it. "
    "Return to commit, raise to roll back; with effect.connection.begin_nested() a part can be undone"
)


class Busy(Exception):
    """Another transaction holds the effect (on SQLite: the ledger) for longer than was waited. Nothing was begun."""


@dataclass(frozen=True, slots=True)
class Undone:
    """A joint transaction that did not commit; `in_doubt`: its COMMIT was sent and nothing was heard."""

    reason: str
    retryable: bool = False
    in_doubt: bool = False


class Joint:
    """One open transaction in which an effect was begun, if `answer` says so. Close it whatever happens.

    `connection` is what the tool's function writes with, between `lend` and `withdraw`; `misused` holds its attempt to
    end the transaction by itself.
    """

    def __init__(
        self, connection: sa.Connection, transaction: sa.RootTransaction, change: Changing, answer: Answer
    ) -> None:
        self.connection = connection
        self.answer = answer
        self.misused: UsageError | None = None
        self._transaction = transaction
        self._change = change
        self._lent = False
        self._open = ExitStack()

    @classmethod
    def opened(
        cls,
        engine: sa.Engine,
        transactions: Transactions,
        change: Changing,
        begin: Begin,
        *,
        wait_s: float,
        timeout_s: float,
    ) -> Joint:
        """Open a transaction and begin in it. Raises as `Ledger.joint`."""
        trying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Transient),
            wait=tenacity.wait_random_exponential(multiplier=0.01, max=0.5),
            stop=tenacity.stop_after_delay(min(wait_s, PATIENCE_S)) | tenacity.stop_after_attempt(200),
            reraise=True,
        )
        try:
            return trying(cls._opened, engine, transactions, change, begin, max(wait_s, LEAST_WAIT_S), timeout_s)
        except Transient:
            raise LedgerUnavailable("the ledger's database cannot be written to", certain=True) from None

    @classmethod
    def _opened(
        cls,
        engine: sa.Engine,
        transactions: Transactions,
        change: Changing,
        begin: Begin,
        wait_s: float,
        timeout_s: float,
    ) -> Joint:
        with ExitStack() as stack:
            if not transactions.take_turn(wait_s):
                raise Busy
            stack.callback(transactions.give_turn)
            try:
                connection = stack.enter_context(engine.connect())
                transaction = _begun(connection, wait_s)
                answer = change(connection, begin)
                if isinstance(answer, Applied):
                    _bounded(connection, timeout_s)
                    connection.exec_driver_sql(f"SAVEPOINT {_SAVEPOINT}")
            except sa.exc.SQLAlchemyError as problem:
                if _is_held(problem):
                    raise Busy from None
                raise passing(problem) from None
            joint = cls(connection, transaction, change, answer)
            joint._open = stack.pop_all()
        for event in ("commit", "rollback", "before_cursor_execute"):
            sa.event.listen(connection, event, joint._refuse_statement if "cursor" in event else joint._refuse_end)
        return joint

    def lend(self) -> None:
        """From here the connection is in the hands of the tool's function."""
        self._lent = True

    def withdraw(self) -> None:
        """The function has ended."""
        self._lent = False

    def commit(self, settle: SettleReturned, permitted: Callable[[], bool]) -> Row | Undone:
        """Settle and commit: the row as it is committed. `permitted` is asked as the last thing before COMMIT."""
        try:
            # The savepoint is gone if the function has ended the transaction behind our back.
            self.connection.exec_driver_sql(f"RELEASE SAVEPOINT {_SAVEPOINT}")
            answer = self._change(self.connection, settle)
        except (sa.exc.SQLAlchemyError, Transient):
            return Undone("the transaction was broken off", retryable=True)
        if isinstance(answer, Declined):
            return Undone("its record was changed meanwhile")
        if not permitted():
            return Undone("the deadline passed before COMMIT")
        try:
            self._transaction.commit()
        except sa.exc.SQLAlchemyError:
            return Undone("COMMIT came to nothing", retryable=True, in_doubt=True)
        return answer.row

    def close(self) -> None:
        """Roll back what is not committed, and give the connection back. Never raises for the database."""
        self.withdraw()
        if self.misused is not None:  # then nobody knows in which state the function left it
            with suppress(sa.exc.SQLAlchemyError):
                self.connection.invalidate()
        with suppress(sa.exc.SQLAlchemyError):
            self._open.close()

    def _refuse_end(self, _: sa.Connection) -> None:
        if self._lent:
            self.misused = UsageError(_MISUSE)
            raise self.misused

    def _refuse_statement(self, _: Any, __: Any, statement: str, *___: Any) -> None:
        if self._lent and _ENDS.match(statement):
            self.misused = UsageError(_MISUSE)
            raise self.misused


def undone(connection: sa.Connection, change: Changing, begin: Begin, closing: SettleClosed) -> Answer:
    """What became of the transaction that `begin` was in, written down: begun and closed, if it came to nothing.

    The begin is asked again under a claim of its own, which waits for a transaction that is still under way. If it is
    permitted, the other never committed and never will. If it is declined, the row says whose claim it holds.
    """
    _wait_at_most(connection, PATIENCE_S)
    again = change(connection, replace(begin, claim_id=f"{begin.claim_id[:-1]}-"))
    if isinstance(again, Applied):
        return change(connection, replace(closing, attempt=again.row.attempts))
    row = again.row
    if row is not None and row.claim_id == begin.claim_id and row.verdict is Verdict.EFFECT_UNKNOWN:
        # The function has committed by itself, so a part of it stands: nothing is proven.
        reason = "the function ended the transaction by itself"
        return change(connection, SettleLost(key=row.key, attempt=row.attempts, actor=closing.actor, reason=reason))
    return again


def is_under_way(engine: sa.Engine, effect_id: str) -> bool:
    """Whether a transaction that is not committed yet has begun an effect of this id (on SQLite: writes anything).

    No reading can see that; an insert of the same id has to wait for it. It is never committed.

    Raises:
        LedgerUnavailable: the database does not answer.
    """
    blank = b"\0" * 32
    probe = Row(
        key=os.urandom(32), id=effect_id, tenant="", tool="", task="", fingerprint=blank, canonical_version=0,
        arguments="", echo="", verdict=Verdict.NO_EFFECT,
    )  # fmt: skip
    try:
        with engine.connect() as connection:
            _begun(connection, PROBE_S)
            if engine.dialect.name != "sqlite":
                connection.execute(postgresql.insert(effects).values(all_columns(probe)).on_conflict_do_nothing())
            connection.rollback()
    except sa.exc.SQLAlchemyError as problem:
        if _is_held(problem):
            return True
        raise LedgerUnavailable("the ledger's database does not answer", certain=True) from None
    return False


# ---------------------------------------------------------------- how long is waited


def _begun(connection: sa.Connection, wait_s: float) -> sa.RootTransaction:
    """Begin the transaction; another writer is waited for no longer than `wait_s`."""
    if connection.dialect.name != "sqlite":
        transaction = connection.begin()
        _wait_at_most(connection, wait_s)
        return transaction
    raw: Any = connection.connection.driver_connection
    raw.execute(f"PRAGMA busy_timeout={round(wait_s * 1000)}")
    try:
        return connection.begin()
    finally:
        raw.execute(f"PRAGMA busy_timeout={round(BUSY_TIMEOUT_S * 1000)}")


def _wait_at_most(connection: sa.Connection, wait_s: float) -> None:
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(1, round(wait_s * 1000))}")


def _bounded(connection: sa.Connection, timeout_s: float) -> None:
    """A server ends by itself what its client has forgotten, so that nobody waits for ever for the key."""
    if connection.dialect.name != "sqlite":
        most_ms = max(1, round(timeout_s * 1000))
        connection.exec_driver_sql("SET LOCAL lock_timeout TO DEFAULT")
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {most_ms}")
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = {most_ms}")


def _is_held(problem: sa.exc.SQLAlchemyError) -> bool:
    original = getattr(problem, "orig", None)
    name = str(getattr(original, "sqlite_errorname", ""))
    return getattr(original, "sqlstate", None) == _LOCK_NOT_AVAILABLE or name.startswith("SQLITE_BUSY")
