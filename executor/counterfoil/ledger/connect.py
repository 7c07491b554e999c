"""Opening a ledger: the engine, how its connections behave, and the check before use.

Owns URLs, pragmas and session settings. Never renders a driver's message: those carry hosts, parameters and rows.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url

from counterfoil.errors import LedgerError, LedgerUnavailable, UsageError
from counterfoil.ledger import file, schema

READS = "counterfoil_reads"
_BUSY_TIMEOUT_S = 5.0
_WAL_PAGES = 10_000
_POOL_SIZE = 16
_existing_only: ContextVar[bool] = ContextVar("counterfoil_existing_only", default=False)
_POOL_WAIT_S = 5.0
# A host that is gone answers nothing at all: without these, a caller would wait for it a quarter of an hour. In s, but
# for tcp_user_timeout (ms); the URL's query may say otherwise. A UNIX socket needs and knows none of them.
_SERVER_WAITS = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}
_CLOSING_S = 1.0
_describing: ContextVar[bool] = ContextVar("counterfoil_describing", default=False)


def open_engine(ledger: str | sa.Engine, *, create: bool = True, read_only: bool = False) -> sa.Engine:
    """An engine for the ledger at a URL, checked: reachable, of this schema version, durable.

    A new SQLite file is created (unless `create=False`); a server's database is made by `counterfoil db upgrade`.

    Raises:
        UsageError: not a URL of SQLite or of PostgreSQL with psycopg, or its driver is not installed.
        LedgerError: missing, unreachable, another schema version, not durable.
    """
    engine = ledger if isinstance(ledger, sa.Engine) else _engine(_url(ledger), read_only)
    if engine.dialect.name not in ("sqlite", "postgresql"):
        raise UsageError("a ledger lives in SQLite or PostgreSQL: give sqlite:///FILE or postgresql+psycopg://…")
    if isinstance(ledger, sa.Engine):
        _configure(engine)
        with engine.connect().execution_options(**{READS: True}) as connection:
            if engine.dialect.name != "sqlite" and connection.get_isolation_level() == "AUTOCOMMIT":
                raise UsageError("the engine is in AUTOCOMMIT: a change and its entry would not be one transaction")
    if _describing.get():
        return engine
    if engine.dialect.name == "sqlite":
        _prepare_file(engine, create and not read_only and not _existing_only.get())
    try:
        with engine.connect().execution_options(**{READS: True}) as connection:
            schema.check(connection)
    except sa.exc.SQLAlchemyError:
        engine.dispose()
        raise LedgerUnavailable("the ledger's database cannot be reached or read", certain=True) from None
    except LedgerError:
        engine.dispose()
        raise
    return engine


def close_engine(engine: sa.Engine) -> None:
    """Close an engine's connections; those that a thread is just writing with get a moment to be given back first."""
    until = time.monotonic() + _CLOSING_S
    while isinstance(engine.pool, sa.QueuePool) and engine.pool.checkedout() and time.monotonic() < until:
        time.sleep(_CLOSING_S / 100)
    engine.dispose()


@contextmanager
def describing() -> Iterator[None]:
    """Within the block, engines are made and not opened: for commands that only describe an application's tools."""
    token = _describing.set(True)
    try:
        yield
    finally:
        _describing.reset(token)


def is_describing() -> bool:
    """Whether engines are made and not opened now."""
    return _describing.get()


@contextmanager
def existing_only() -> Iterator[None]:
    """Within the block, a ledger that is not there is an error and is not made: for commands that work on one."""
    token = _existing_only.set(True)
    try:
        yield
    finally:
        _existing_only.reset(token)


def bare_engine(ledger: str) -> sa.Engine:
    """An engine without any check, for migrations."""
    return _engine(_url(ledger), read_only=False)


def _url(ledger: str) -> URL:
    try:
        url = make_url(ledger)
    except sa.exc.ArgumentError:
        raise UsageError("the ledger is not a URL: give sqlite:///FILE or postgresql+psycopg://…") from None
    if url.drivername in ("postgres", "postgresql"):
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise UsageError("a ledger lives in SQLite or PostgreSQL: give sqlite:///FILE or postgresql+psycopg://…")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise UsageError("a ledger in memory is lost with the process: give a file, sqlite:///FILE")
    return url


def _engine(url: URL, read_only: bool) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        path = Path(str(url.database))
        mode = "ro" if read_only else "rw"
        uri = f"file:{_quoted(path)}?mode={mode}"
        connect: dict[str, Any] = {"uri": True, "timeout": _BUSY_TIMEOUT_S, "check_same_thread": False}
        url = URL.create("sqlite+pysqlite", database=uri, query={"uri": "true"})
        engine = sa.create_engine(
            url, connect_args=connect, hide_parameters=True, pool_size=_POOL_SIZE, pool_timeout=_POOL_WAIT_S
        )
    else:
        try:
            engine = sa.create_engine(
                url,
                connect_args={name: most for name, most in _SERVER_WAITS.items() if name not in url.query},
                hide_parameters=True,
                pool_size=_POOL_SIZE,
                pool_timeout=_POOL_WAIT_S,
                pool_use_lifo=True,
            )
        except ImportError:
            raise UsageError("PostgreSQL needs psycopg 3: pip install 'counterfoil[postgres]'") from None
    _configure(engine)
    return engine


def _quoted(path: Path) -> str:
    return "".join(f"%{ord(letter):02x}" if letter in "?#%" else letter for letter in str(path))


def _configure(engine: sa.Engine) -> None:
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _sqlite_connection)
        sa.event.listen(engine, "begin", _sqlite_begin)
    else:
        sa.event.listen(engine, "connect", _postgresql_connection)


def _sqlite_connection(connection: Any, record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by _sqlite_begin alone
    cursor = connection.cursor()
    for pragma in (
        "PRAGMA synchronous=FULL",
        "PRAGMA foreign_keys=ON",
        f"PRAGMA busy_timeout={int(_BUSY_TIMEOUT_S * 1000)}",
        f"PRAGMA wal_autocheckpoint={_WAL_PAGES}",
    ):
        cursor.execute(pragma)
    cursor.close()
    file.remember(connection, record)


def _sqlite_begin(connection: sa.Connection) -> None:
    # A transaction that reads first and writes later is refused at once when another writer came in between, and the
    # busy timeout is not asked: writers take the lock at the start.
    if not connection.get_execution_options().get(READS, False):
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _postgresql_connection(connection: Any, _record: Any) -> None:
    # An acknowledged begin that is lost in a crash of the server is a second send (protocol F18). What a transaction
    # needs of synchronous_commit it says itself: see `transaction`.
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('fsync'), pg_backend_pid()")
        fsync, server_process = cursor.fetchone()
    connection.commit()
    if server_process != connection.info.backend_pid:
        # A pooler stands between: what is prepared in one session may be asked of another.
        connection.prepare_threshold = None
    if fsync != "on":
        connection.close()
        raise LedgerError(
            "the database runs with fsync=off: it may forget an acknowledged begin; a ledger refuses that"
        )


def _prepare_file(engine: sa.Engine, create: bool) -> None:
    path = database_file(engine)
    if path is None:
        return
    if not create:
        if not path.exists() or path.stat().st_size == 0:
            raise LedgerError("there is no ledger at this path (reading commands never create one)")
        return
    if not path.exists():
        _make_file(path)
    file.refuse_without_log(path)
    _refuse_foreign(engine)
    _enter_wal(engine)
    file.refuse_damage(engine.execution_options(**{READS: True}))


def database_file(engine: sa.Engine) -> Path | None:
    """The file of a SQLite engine; None for memory and for servers."""
    if engine.dialect.name != "sqlite":
        return None
    name = str(engine.url.database or "")
    if name.startswith("file:"):
        name = name.removeprefix("file:").split("?", 1)[0]
        name = name.replace("%3f", "?").replace("%23", "#").replace("%25", "%")
    return Path(name) if name and name != ":memory:" else None


def _make_file(path: Path) -> None:
    """Make a ledger's file with all its tables, and only then give it its name: nobody ever sees an empty one, and who
    copies this one file, without its log, has a ledger at least."""
    fresh = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.new")
    try:
        os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except OSError:
        raise LedgerError("the ledger's file cannot be created: its folder is missing or not writable") from None
    try:
        engine = _engine(URL.create("sqlite", database=str(fresh)), read_only=False)
        try:
            _enter_wal(engine)
            schema.create(engine)
        finally:
            engine.dispose()  # the last connection to close brings the log into the file
        with suppress(FileExistsError):  # another process was faster: its ledger is the one
            path.hardlink_to(fresh)
    except sa.exc.SQLAlchemyError as problem:
        raise _unusable(problem.orig if isinstance(problem, sa.exc.DBAPIError) else None) from None
    except OSError:
        raise LedgerError("the ledger's file cannot be created: its folder takes no hard links") from None
    finally:
        for left in ("", "-wal", "-shm"):
            fresh.with_name(fresh.name + left).unlink(missing_ok=True)


def _refuse_foreign(engine: sa.Engine) -> None:
    """A file that is there and holds no ledger is not made into one: it may be another program's, or a copy without
    its log, and an empty ledger would have forgotten everything."""
    try:
        with engine.connect().execution_options(**{READS: True}) as connection:
            if schema.revision(connection) is not None:
                return
    except sa.exc.SQLAlchemyError as problem:
        raise _unusable(problem.orig if isinstance(problem, sa.exc.DBAPIError) else None) from None
    raise LedgerError(
        "the file is there and holds no ledger: if it is a copy, copy its -wal file too; if it is another program's "
        "database and the ledger shall live in it, run `counterfoil db upgrade`"
    )


def _enter_wal(engine: sa.Engine) -> None:
    """Put the file in write-ahead mode and see that it took effect: on some shared mounts it does not."""
    try:
        raw = engine.raw_connection()
        try:
            mode = raw.driver_connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]  # type: ignore[union-attr]
        finally:
            raw.close()
    except sa.exc.SQLAlchemyError as problem:
        raise _unusable(problem.orig if isinstance(problem, sa.exc.DBAPIError) else None) from None
    except Exception as problem:
        if type(problem).__module__ != "sqlite3":
            raise
        raise _unusable(problem) from None
    if str(mode).lower() != "wal":
        raise LedgerError("the ledger's file does not take write-ahead mode here: put it on a local disk")


def _unusable(problem: BaseException | None) -> LedgerError:
    if file.is_damage(problem):
        return LedgerError(file.DAMAGED)
    return LedgerUnavailable("the ledger's file cannot be opened for writing", certain=True)
