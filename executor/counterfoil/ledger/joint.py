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
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from counterfoil.changes import Answer, Applied, Begin, Change, Declined, SettleClosed, SettleLost, SettleReturned
from counterfoil.effect import Incident, Row, Verdict
from counterfoil.errors import UsageError
from counterfoil.ledger import notices
from counterfoil.ledger.rows import all_columns
from counterfoil.ledger.schema import effects
from counterfoil.ledger.transaction import Busy, Opened, Transactions, Transient

Changing: TypeAlias = Callable[[sa.Connection, Change], Answer]
Telling: TypeAlias = Callable[[Incident], None]

PROBE_S: Final = 0.5
_SAVEPOINT: Final = "counterfoil_effect"
_ENDS: Final = re.compile(
    r"\s*(COMMIT|END|ABORT|BEGIN|START\s+TRANSACTION|PREPARE\s+TRANSACTION"
    r"|ROLLBACK(?!\s+(WORK\s+|TRANSACTION\s+)?TO\b))\b",
    re.IGNORECASE,
)
_MISUSE: Final = (
    "effect.connection is the ledger's own transaction: the tool's function must not commit, roll back or close it. "
    "Return to commit, raise to roll back; with effect.connection.begin_nested() a part can be undone"
)


@dataclass(frozen=True, slots=True)
class Undone:
    """A joint transaction that did not commit; `in_doubt`: its COMMIT was sent and nothing was heard."""

    reason: str
    retryable: bool = False
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class _Begun:
    """What was done when the transaction was opened, and the incidents that it raises, until it ends."""

    answer: Answer
    raised: list[Incident]


class Joint:
    """One open transaction in which an effect was begun, if `answer` says so. Close it whatever happens.

    `connection` is what the tool's function writes with, between `lend` and `withdraw`; `misused` holds its attempt to
    end the transaction by itself. `tell` hears of each incident, once it is committed.
    """

    def __init__(
        self, transactions: Transactions, opened: Opened[_Begun], change: Changing, tell: Telling | None
    ) -> None:
        self.connection = opened.connection
        self.answer = opened.result.answer
        self.misused: UsageError | None = None
        self._transactions = transactions
        self._opened = opened
        self._change = change
        self._tell = tell
        self._committed = False
        self._lent = False
        for event in ("commit", "rollback", "before_cursor_execute"):
            refuse = self._refuse_statement if "cursor" in event else self._refuse_end
            sa.event.listen(self.connection, event, refuse)

    @classmethod
    def begun(
        cls,
        transactions: Transactions,
        change: Changing,
        begin: Begin,
        *,
        wait_s: float,
        timeout_s: float,
        tell: Telling | None = None,
    ) -> Joint:
        """Open a transaction and begin in it. Raises as `Ledger.joint`."""

        def work(connection: sa.Connection) -> _Begun:
            raised = notices.fresh(connection)
            answer = change(connection, begin)
            if isinstance(answer, Applied):
                _bounded(connection, timeout_s)
                connection.exec_driver_sql(f"SAVEPOINT {_SAVEPOINT}")
            return _Begun(answer, raised)

        return cls(transactions, transactions.open(work, wait_s), change, tell)

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
        except sa.exc.SQLAlchemyError as problem:
            self._transactions.passing(problem)  # what it says of the database is kept for what comes next
            return Undone("the transaction was broken off", retryable=True)
        except Transient:
            return Undone("the transaction was broken off", retryable=True)
        if isinstance(answer, Declined):
            return Undone("its record was changed meanwhile")
        if not permitted():
            return Undone("the deadline passed before COMMIT")
        try:
            self._opened.transaction.commit()
        except sa.exc.SQLAlchemyError:
            return Undone("COMMIT came to nothing", retryable=True, in_doubt=True)
        self._committed = True
        return answer.row

    def close(self) -> None:
        """Roll back what is not committed, and give the connection back. Never raises for the database."""
        self.withdraw()
        if self.misused is not None:  # then nobody knows in which state the function left it
            with suppress(sa.exc.SQLAlchemyError):
                self.connection.invalidate()
        self._opened.close()
        if self._committed and self._tell is not None:  # not before: who is told may write to the ledger
            for incident in self._opened.result.raised:
                self._tell(incident)

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
    # Not before the guards: they let it through once, and what it had reserved is rolled back with it.
    again = change(connection, replace(begin, claim_id=f"{begin.claim_id[:-1]}-", asks=None))
    if isinstance(again, Applied):
        return change(connection, replace(closing, attempt=again.row.attempts))
    row = again.row
    if row is not None and row.claim_id == begin.claim_id and row.verdict is Verdict.EFFECT_UNKNOWN:
        # The function has committed by itself, so a part of it stands: nothing is proven.
        reason = "the function ended the transaction by itself"
        return change(connection, SettleLost(key=row.key, attempt=row.attempts, actor=closing.actor, reason=reason))
    return again


def is_under_way(transactions: Transactions, effect_id: str) -> bool:
    """Whether a transaction that is not committed yet has begun an effect of this id (on SQLite: writes anything).

    No reading can see that; an insert of the same id has to wait for it. It is never committed.

    Raises:
        LedgerUnavailable: the database does not answer.
    """
    blank = b"\0" * 32
    probe = Row(
        key=os.urandom(32), id=effect_id, tenant="", tool="", task="", fingerprint=blank, canonical_version=0,
        arguments="", echo="", verdict=Verdict.NO_EFFECT, data_key="none",
    )  # fmt: skip

    def work(connection: sa.Connection) -> None:
        if connection.dialect.name != "sqlite":
            connection.execute(postgresql.insert(effects).values(all_columns(probe)).on_conflict_do_nothing())

    try:
        transactions.open(work, PROBE_S).close()
    except Busy:
        return True
    return False


def _bounded(connection: sa.Connection, timeout_s: float) -> None:
    """A server ends by itself what its client has forgotten, so that nobody waits for ever for the key."""
    if connection.dialect.name != "sqlite":
        most_ms = max(1, round(timeout_s * 1000))
        connection.exec_driver_sql("SET LOCAL lock_timeout TO DEFAULT")
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {most_ms}")
        connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = {most_ms}")
