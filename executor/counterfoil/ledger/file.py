"""The file of a SQLite ledger: is it whole, and is it still the one that stands at its path?

Owns what is checked when a ledger is opened and before each transaction that writes. It never opens the file by itself:
a process that closes any handle of a SQLite file gives up all its locks on it. It repairs nothing.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.errors import LedgerError, LedgerUnavailable
from counterfoil.ledger import schema

DAMAGED: Final = (
    "the ledger's file is damaged: stop all that use it, restore it from a backup, then reconcile "
    "(`counterfoil db check` tells more)"
)
MOVED: Final = (
    "the ledger's file or its write-ahead log was removed or replaced while in use, and others may not see what is "
    "written here: stop all that use it, then run `counterfoil db check` and reconcile"
)
LOG_GONE: Final = (
    "the ledger's write-ahead log is missing while its index is there: somebody removed it, and with it what was "
    "written last. Stop all that use the ledger and restore it from a backup; or, if that loss is known, remove the "
    "-shm file too, then reconcile"
)
WHOLE_BYTES: Final = 16 * 2**20
_SAMPLE: Final = 200
_STAT: Final = "counterfoil_file"
_LOOKS: Final = 5
_BETWEEN_S: Final = 0.02


def is_damage(problem: object) -> bool:
    """True for a SQLite error that says that the file is not what it was."""
    name = getattr(problem, "sqlite_errorname", "") or ""
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))


def remember(connection: Any, record: Any) -> None:
    """Note which files a new connection has open: for the pool's event `connect`."""
    connection.execute("PRAGMA schema_version").fetchone()  # opens the log, if there is one
    row = connection.execute("PRAGMA database_list").fetchone()
    identity = _identity(row[2]) if row is not None and row[2] else None
    if identity is not None:
        record.info[_STAT] = (row[2], identity)


def changed(connection: sa.Connection) -> str | None:
    """What is wrong when the path no longer leads to the files that this connection writes to; else None.

    Asked within a transaction: then the log is open, and SQLite itself removes it only when nobody has it open.
    """
    kept = connection.info.get(_STAT)
    if kept is None:
        path = connection.exec_driver_sql("PRAGMA database_list").first()
        if path is None or not path[2]:
            return None
        kept = connection.info[_STAT] = (path[2], _identity(path[2]))
    path, identity = kept
    return None if identity is not None and _identity(path) == identity else MOVED


def _identity(path: str) -> tuple[int, ...] | None:
    try:
        main, log = Path(path).stat(), Path(path + "-wal").stat()
    except OSError:
        return None
    return (main.st_dev, main.st_ino, log.st_dev, log.st_ino)


def refuse_without_log(path: Path) -> None:
    """Refuse a ledger whose log was removed under another process, before a new one is made in its place.

    SQLite makes the log before its index and removes it after it: the index alone, for longer than a moment, is no
    state of its own making.

    Raises:
        LedgerError: the index is there and the log is not.
    """
    log, index = (Path(f"{path.resolve()}{end}") for end in ("-wal", "-shm"))
    for _ in range(_LOOKS):
        if log.exists() or not index.exists():
            return
        time.sleep(_BETWEEN_S)
    raise LedgerError(LOG_GONE)


def refuse_damage(engine: sa.Engine) -> None:
    """Refuse a file that is seen to be damaged. Bounded: a small file is read whole, of a large one each table's and
    each index's beginning and end; `counterfoil db check` reads all of it.

    Raises:
        LedgerError: it is damaged.
        LedgerUnavailable: it cannot be read.
    """
    with engine.connect() as connection:
        try:
            if not _seems_whole(connection):
                raise LedgerError(DAMAGED)
        except sa.exc.SQLAlchemyError as problem:
            if is_damage(getattr(problem, "orig", None)):
                raise LedgerError(DAMAGED) from None
            raise LedgerUnavailable("the ledger's file cannot be read", certain=True) from None


def _seems_whole(connection: sa.Connection) -> bool:
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar() or 0
    if pages * (connection.exec_driver_sql("PRAGMA page_size").scalar() or 0) <= WHOLE_BYTES:
        return list(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalars()) == ["ok"]
    there = set(sa.inspect(connection).get_table_names())
    for table in schema.metadata.sorted_tables:
        if table.name not in there:
            continue  # another schema version, which is refused elsewhere
        orders = [table.primary_key.columns.values(), *(list(index.columns) for index in table.indexes)]
        for columns in orders:
            for order in (columns, [column.desc() for column in columns]):
                connection.execute(sa.select(table).order_by(*order).limit(_SAMPLE)).all()
    return True
