"""One transaction of the ledger's own, tried again while the database is passingly in the way.

Before COMMIT nothing counts, so what fails there surely came to nothing. A COMMIT whose reply is lost may have counted:
the work is done again, and must recognise what it wrote. Driver messages are never rendered or chained: they carry
hosts, parameters and rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
import tenacity

from counterfoil.errors import LedgerUnavailable

T = TypeVar("T")

PATIENCE_S = 5.0
TRANSIENT_STATES = frozenset({"40001", "40P01", "55P03"})


class Transient(Exception):
    """The transaction surely came to nothing and may be tried again as it is."""


class _CommitInDoubt(Exception):
    """The reply to COMMIT was lost: it may have counted."""


class Transactions:
    """Write transactions of one engine. On SQLite they take turns within the process, which is fairer than its lock."""

    def __init__(self, engine: sa.Engine, patience_s: float) -> None:
        self._engine = engine
        self._patience_s = patience_s
        self._turn = threading.Lock() if engine.dialect.name == "sqlite" else None

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run `work` in one transaction of the ledger's own, again while the database is passingly in the way.

        Raises:
            LedgerUnavailable: nothing could be written (`certain=True`), or the reply to COMMIT was lost and could
                not be asked again (`certain=False`).
        """
        in_doubt = False
        trying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type((Transient, _CommitInDoubt)),
            wait=tenacity.wait_random_exponential(multiplier=0.01, max=0.5),
            stop=tenacity.stop_after_delay(self._patience_s) | tenacity.stop_after_attempt(200),
            reraise=True,
        )
        try:
            for attempt in trying:
                with attempt:
                    try:
                        return self._transaction(work)
                    except _CommitInDoubt:
                        in_doubt = True
                        raise
        except (Transient, _CommitInDoubt):
            pass
        except LedgerUnavailable as refused:
            raise LedgerUnavailable(str(refused), certain=refused.certain and not in_doubt) from None
        raise LedgerUnavailable("the ledger's database cannot be written to", certain=not in_doubt) from None

    def take_turn(self, wait_s: float) -> bool:
        """Wait for this process's turn to write, for a transaction that is held open; give it back with `give_turn`."""
        return self._turn is None or self._turn.acquire(timeout=max(0.0, wait_s))

    def give_turn(self) -> None:
        """The end of a turn that was taken."""
        if self._turn is not None:
            self._turn.release()

    def _transaction(self, work: Callable[[sa.Connection], T]) -> T:
        if self._turn is not None and not self._turn.acquire(timeout=self._patience_s):
            raise Transient
        try:
            return self._in_turn(work)
        finally:
            if self._turn is not None:
                self._turn.release()

    def _in_turn(self, work: Callable[[sa.Connection], T]) -> T:
        committed: list[T] = []
        try:
            with self._engine.connect() as connection:
                transaction = connection.begin()
                result = work(connection)
                try:
                    transaction.commit()
                except sa.exc.SQLAlchemyError as problem:
                    refused = getattr(getattr(problem, "orig", None), "sqlstate", None) in TRANSIENT_STATES
                    raise (Transient if refused else _CommitInDoubt) from None
                committed.append(result)
        except sa.exc.SQLAlchemyError as problem:
            if not committed:  # after COMMIT, a connection that breaks while it is given back changes nothing
                raise passing(problem) from None
        return committed[0]


def passing(problem: sa.exc.SQLAlchemyError) -> Exception:
    """Before COMMIT nothing counts: passing troubles are tried again, lasting ones are said at once."""
    original = getattr(problem, "orig", None)
    if isinstance(problem, sa.exc.TimeoutError) or getattr(problem, "connection_invalidated", False):
        return Transient()
    if getattr(original, "sqlstate", None) in TRANSIENT_STATES:
        return Transient()
    name = getattr(original, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return Transient()
    if isinstance(problem, sa.exc.OperationalError) and not name:
        return Transient()
    return LedgerUnavailable("the ledger's database refuses to write", certain=True)
