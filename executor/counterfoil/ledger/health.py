"""Is this ledger fit to be relied on? Its version, its tables, and how durably its database keeps what it acknowledged.

Only reads. Says what it sees as plain data; who asks decides what to make of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import sqlalchemy as sa

from counterfoil.ledger import schema
from counterfoil.ledger.connect import READS

_SYNCHRONOUS: Final = ("off", "normal", "full", "extra")
_PROBLEMS_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What was seen. `settings` are the database's own, as the ledger's connections have them.

    `problems` make the ledger unfit; `remarks` are worth knowing.
    """

    database: str
    schema_version: str | None
    settings: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.problems


def examine(engine: sa.Engine) -> Health:
    """Examine a ledger that `open_engine` has opened. On SQLite this reads the whole file.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: the database does not answer.
    """
    reading = engine.execution_options(isolation_level="AUTOCOMMIT", **{READS: True})
    with reading.connect() as connection:
        version = schema.revision(connection)
        missing = _missing(connection)
        seen = _sqlite(connection) if engine.dialect.name == "sqlite" else _postgresql(connection)
    problems = (*missing, *seen.problems)
    return Health(
        database=seen.database,
        schema_version=version,
        settings=seen.settings,
        problems=problems,
        remarks=seen.remarks,
    )


def _missing(connection: sa.Connection) -> tuple[str, ...]:
    asked = sa.inspect(connection)
    there = set(asked.get_table_names())
    problems = []
    for table in schema.metadata.sorted_tables:
        if table.name not in there:
            problems.append(f"the table {table.name} is missing")
            continue
        columns = {column["name"] for column in asked.get_columns(table.name)}
        lost = [column.name for column in table.columns if column.name not in columns]
        if lost:
            problems.append(f"the table {table.name} has no column {', '.join(lost)}")
    return tuple(problems)


def _sqlite(connection: sa.Connection) -> Health:
    journal = str(connection.exec_driver_sql("PRAGMA journal_mode").scalar()).lower()
    synchronous = _SYNCHRONOUS[int(connection.exec_driver_sql("PRAGMA synchronous").scalar() or 0)]
    try:
        lines = [str(line) for line in connection.exec_driver_sql("PRAGMA integrity_check").scalars()]
    except sa.exc.DatabaseError:
        lines = ["the file cannot be read to its end"]
    damaged = lines != ["ok"]
    problems = (f"the file is damaged: restore it from a backup, then reconcile ({len(lines)} found)",)
    remarks = ("not in write-ahead mode yet: the next executor that opens it changes that",)
    return Health(
        database="sqlite",
        schema_version=None,
        settings={
            "journal_mode": journal,
            "synchronous": synchronous,
            "integrity": "; ".join(lines[:_PROBLEMS_SHOWN]),
        },
        problems=problems if damaged else (),
        remarks=() if journal == "wal" else remarks,
    )


def _postgresql(connection: sa.Connection) -> Health:
    names = ("fsync", "full_page_writes", "synchronous_commit", "synchronous_standby_names", "server_version")
    settings = {name: str(connection.exec_driver_sql(f"SHOW {name}").scalar()) for name in names}
    configured = connection.exec_driver_sql(
        "SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'"
    ).scalar()
    settings["synchronous_commit_configured"] = str(configured)
    if settings["synchronous_commit"] in ("off", "local"):
        settings["synchronous_commit"] = "on"  # each transaction of the ledger raises it: see `transaction`
    problems = []
    if settings["fsync"] != "on":
        problems.append("fsync is off: the server may forget an acknowledged begin")
    remarks = []
    if configured in ("off", "local"):
        remarks.append(
            f"the server or role sets synchronous_commit to {configured}; the ledger's transactions undo that"
        )
    if settings["full_page_writes"] != "on":
        remarks.append("full_page_writes is off: safe only on a file system that never tears a page")
    return Health(
        database="postgresql",
        schema_version=None,
        settings=settings,
        problems=tuple(problems),
        remarks=tuple(remarks),
    )
