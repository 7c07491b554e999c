"""Bring a ledger's tables to this version, whatever version they are of, and however many try it at once.

Owns the transaction in which that happens and what is said when it cannot. The steps themselves are migrations in a
package of their own, which Alembic finds by name; both are loaded only when there is something to do.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import sqlalchemy as sa
import tenacity

from counterfoil.errors import LedgerError, LedgerUnavailable
from counterfoil.ledger import schema
from counterfoil.ledger.connect import READS, bare_engine, database_file, open_engine

if TYPE_CHECKING:
    from alembic.config import Config

Change: TypeAlias = Callable[[sa.Connection], str | None]

SCRIPTS: Final = "counterfoil_migrations:"
_log = logging.getLogger("counterfoil")
_WAITING: Final = "another process changes the ledger's tables: waiting for it"
_LOCK_WAIT_MS: Final = 60_000
_OPENING_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The schema version before (None: there was no ledger) and after."""

    before: str | None
    after: str


def upgrade(ledger: str) -> Upgraded:
    """Make or upgrade the tables of the ledger at a URL; a SQLite file that is missing is made too.

    Others may do the same at once: one of them changes the tables, the rest wait and find it done.

    Raises:
        UsageError: not a URL of SQLite or of PostgreSQL with psycopg.
        LedgerError: unreachable, not writable, of a newer version, or the database holds other tables of these names.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     url = f"sqlite:///{pathlib.Path(folder) / 'ledger.db'}"
        ...     upgrade(url), upgrade(url)
        (Upgraded(before=None, after='0001'), Upgraded(before='0001', after='0001'))
    """
    before = _changed(ledger, _upgrade)
    _open_as_executors_do(ledger)
    return Upgraded(before, schema.REVISION)


def downgrade(ledger: str, version: str) -> None:
    """Take the tables back to an earlier version; "base" removes them, and with them all that is on record.

    For development: no command calls it.

    Raises:
        LedgerError: as for `upgrade`, or there is no such version.
    """
    _changed(ledger, lambda connection: _downgrade(connection, version))


def _upgrade(connection: sa.Connection) -> str | None:
    there = schema.revision(connection)
    if there is None:
        _refuse_strangers(connection)
    elif there >= schema.REVISION:
        schema.check(connection)
        return there
    from alembic import command

    command.upgrade(_config(connection), "head")
    return there


def _downgrade(connection: sa.Connection, version: str) -> str | None:
    there = schema.revision(connection)
    from alembic import command

    command.downgrade(_config(connection), version)
    return there


def _config(connection: sa.Connection) -> Config:
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", SCRIPTS)
    return config


def _refuse_strangers(connection: sa.Connection) -> None:
    """A create that fails half-way down would say less."""
    strangers = sorted(set(schema.metadata.tables) & set(sa.inspect(connection).get_table_names()))
    if strangers:
        raise LedgerError(
            f"this database holds tables named {', '.join(strangers)} but no ledger's version: if they are another "
            "program's, give the ledger a database or a schema of its own; if it was copied, copy all of it"
        )


# ---------------------------------------------------------------- the transaction


def _changed(ledger: str, change: Change) -> str | None:
    """Run `change` in one transaction that excludes other changes; what it answers."""
    engine = bare_engine(ledger)
    try:
        if engine.dialect.name == "sqlite":
            _make_file(engine)
            _say_if_locked(engine)
            sa.event.listen(engine, "connect", _wait_longer)
        else:
            # What is read after waiting for the lock must be what its holder before has committed.
            engine = engine.execution_options(isolation_level="READ COMMITTED")
        with engine.begin() as connection:  # on SQLite this waits for the write lock
            if connection.dialect.name == "postgresql":
                _take_turn(connection)
            return change(connection)
    except sa.exc.SQLAlchemyError:
        raise LedgerUnavailable(
            "the ledger's tables cannot be changed: the database cannot be reached, is read-only, or refuses its user",
            certain=True,
        ) from None
    except Exception as problem:
        if type(problem).__module__.partition(".")[0] != "alembic":
            raise
        raise LedgerError(
            "the migrations do not know this schema version: install the Counterfoil that made it"
        ) from None
    finally:
        engine.dispose()


def _say_if_locked(engine: sa.Engine) -> None:
    with engine.connect().execution_options(**{READS: True}) as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=100")
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            connection.exec_driver_sql("ROLLBACK")
        except sa.exc.OperationalError:
            _log.warning(_WAITING)
    engine.dispose()


def _take_turn(connection: sa.Connection) -> None:
    """The lock ends with the transaction, so it is good behind a pooler that shares sessions, too."""
    if not connection.execute(sa.select(sa.func.pg_try_advisory_xact_lock(schema.UPGRADE_LOCK))).scalar():
        _log.warning(_WAITING)
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(schema.UPGRADE_LOCK)))


def _make_file(engine: sa.Engine) -> None:
    path = database_file(engine)
    assert path is not None
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError:
        raise LedgerError("the ledger's file cannot be made or written: see its folder and its rights") from None


def _wait_longer(connection: Any, _record: Any) -> None:
    connection.execute(f"PRAGMA busy_timeout={_LOCK_WAIT_MS}")


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(LedgerUnavailable),
    wait=tenacity.wait_random_exponential(multiplier=0.01, max=0.5),
    stop=tenacity.stop_after_delay(_OPENING_S),
    reraise=True,
)
def _open_as_executors_do(ledger: str) -> None:
    """Enter write-ahead mode and check. SQLite refuses the change of mode, without waiting, while anybody reads."""
    open_engine(ledger).dispose()
