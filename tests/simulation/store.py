"""The ledger's database of many episodes: emptied for each, never made anew.

Owns engines (one for each machine that can be at work at once), the two places of a transaction at which the scheduler
may switch (before it has a connection, after it has given it back: never inside), the cutting of connections around
COMMIT, and the reading of raw tables by a connection of its own. It imports nothing of the library's ledger but what
opens an engine and the names of the tables.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import psycopg
import sqlalchemy as sa
from simulation.scheduler import Dead, Machine

from counterfoil.ledger import schema
from counterfoil.ledger.connect import open_engine

Fate: TypeAlias = Literal["counts", "lost before", "lost after", "refused"]
Cells: TypeAlias = dict[str, Any]
TABLES = ("effects", "entries", "references", "incidents", "tools", "sightings")
# What tools of the kind "same_transaction" write: their effect is a row of the ledger's own database.
ROWS = "CREATE TABLE simulated_rows (effect TEXT NOT NULL, attempt INTEGER NOT NULL, reference TEXT NOT NULL)"
_ORDERS = {"effects": "created_at, id", "entries": "key, seq", "incidents": "number", "sightings": "number"}


class Cut(Exception):
    """What a driver would raise."""


class Stage(Protocol):
    """The episode, as the database sees it."""

    def point(self, label: str) -> None: ...

    def fate(self, machine: Machine, moment: str) -> Fate: ...

    def committed(self, machine: Machine) -> None: ...


class MachinePool(sa.Pool):
    """Connections without a cap: taking one and giving it back are points of the schedule."""

    stage: Stage | None = None
    machine: Machine | None = None

    def __init__(self, creator: Any, **settings: Any) -> None:
        super().__init__(creator, **settings)
        self._free: list[Any] = []

    def _do_get(self) -> Any:
        stage, machine = self.stage, self.machine
        if stage is not None and machine is not None:
            if machine.dead:
                raise Dead
            stage.point("before")
            if stage.fate(machine, "connect") == "refused":
                raise sa.exc.OperationalError("connect", {}, Cut())
        return self._free.pop() if self._free else self._create_connection()

    def _do_return_conn(self, record: Any) -> None:
        if self.machine is not None and self.machine.dead:
            record.close()
            return
        self._free.append(record)
        if self.stage is not None:
            self.stage.point("after")

    def recreate(self) -> MachinePool:
        return MachinePool(self._creator)

    def dispose(self) -> None:
        while self._free:
            self._free.pop().close()

    def status(self) -> str:
        return f"{len(self._free)} free"


class Store:
    """A database with the ledger's tables, and `slots` ways to it."""

    def __init__(self, url: str, slots: int) -> None:
        self.url = sa.make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engines = [self._engine() for _ in range(slots)]
        self._open: dict[int, list[Any]] = {slot: [] for slot in range(slots)}
        self._raw = self._connection()
        self._run(ROWS)
        self._names: dict[str, list[str]] = {}

    def _engine(self) -> sa.Engine:
        engine = sa.create_engine(
            self.url if not self.is_sqlite else f"sqlite+pysqlite:///file:{self.url.database}?mode=rw&uri=true",
            connect_args={"check_same_thread": False} if self.is_sqlite else {},
            poolclass=MachinePool,
            hide_parameters=True,
        )
        engine = open_engine(engine)
        sa.event.listen(engine, "commit", self._on_commit)
        sa.event.listen(engine, "before_cursor_execute", self._on_execute)
        return engine

    def _connection(self) -> Any:
        if self.is_sqlite:
            return sqlite3.connect(str(self.url.database), isolation_level=None)
        return psycopg.connect(
            host=str(self.url.query["host"]), user="postgres", dbname=str(self.url.database), autocommit=True
        )

    def pool(self, slot: int) -> MachinePool:
        pool = self.engines[slot].pool
        assert isinstance(pool, MachinePool)
        return pool

    def take(self, slot: int, stage: Stage, machine: Machine) -> sa.Engine:
        """The engine of a slot for a machine that starts there."""
        pool = self.pool(slot)
        pool.stage, pool.machine = stage, machine
        return self.engines[slot]

    def broken_off(self, slot: int, machine: Machine) -> None:
        """A killed machine's transactions end, as the database ends those of a process that is gone."""
        for raw in self._open[slot]:
            raw.rollback()
        self._open[slot].clear()
        pool = self.engines[slot].pool
        fresh = MachinePool(pool._creator, dialect=self.engines[slot].dialect, _dispatch=pool.dispatch)
        assert isinstance(pool, MachinePool)
        fresh._free, pool._free = pool._free, []
        self.engines[slot].pool = fresh

    def clear(self) -> None:
        """Forget the episode."""
        for slot in self._open:
            pool = self.pool(slot)
            pool.stage = pool.machine = None
        for table in (*TABLES, "simulated_rows"):
            self._run(f'DELETE FROM "{table}"')  # noqa: S608 - names of our own tables
        if not self.is_sqlite:
            for table in ("incidents", "sightings"):
                self._run(f"ALTER SEQUENCE {table}_number_seq RESTART")

    def close(self) -> None:
        for engine in self.engines:
            engine.dispose()
        self._raw.close()

    # ------------------------------------------------------------ the joints of a transaction

    def _on_execute(self, connection: sa.Connection, *_: object) -> None:
        pool = connection.engine.pool
        if isinstance(pool, MachinePool) and pool.machine is not None and pool.machine.dead:
            raise Dead

    def _on_commit(self, connection: sa.Connection) -> None:
        pool = connection.engine.pool
        assert isinstance(pool, MachinePool)
        stage, machine = pool.stage, pool.machine
        if stage is None or machine is None:
            return
        if machine.dead:
            raise Dead
        raw: Any = connection.connection.driver_connection
        fate = stage.fate(machine, "commit")
        if fate == "lost before":
            raw.rollback()
            raise sa.exc.OperationalError("COMMIT", {}, Cut())
        raw.commit()
        stage.committed(machine)
        if fate == "lost after":
            raise sa.exc.OperationalError("COMMIT", {}, Cut())

    def opened(self, slot: int, connection: sa.Connection) -> Callable[[], None]:
        """Note a transaction in which a tool works; what ends the note."""
        raw: Any = connection.connection.driver_connection
        self._open[slot].append(raw)

        def ended() -> None:
            if raw in self._open[slot]:
                self._open[slot].remove(raw)

        return ended

    # ------------------------------------------------------------ raw tables

    def _run(self, statement: str) -> Any:
        return self._raw.execute(statement)

    def rows(self, table: str) -> list[Cells]:
        """Every row of a table as JSON data: bytes as hex, JSON as text, truths as 0 and 1."""
        order = (
            f" ORDER BY {_ORDERS[table]}" if table in _ORDERS else " ORDER BY 1, 2, 3" if table == "references" else ""
        )
        found = self._run(f'SELECT * FROM "{table}"{order}')  # noqa: S608 - names of our own tables
        names = self._names.get(table)
        if names is None:
            names = self._names[table] = [column[0] for column in found.description]
        return [dict(zip(names, map(_plain, cells), strict=True)) for cells in found.fetchall()]

    def entry_counts(self) -> dict[str, int]:
        found = self._run("SELECT key, count(*) FROM entries GROUP BY key")
        return {_plain(key): count for key, count in found.fetchall()}

    def simulated_rows(self) -> list[tuple[str, int, str]]:
        return list(
            self._run("SELECT effect, attempt, reference FROM simulated_rows ORDER BY effect, attempt").fetchall()
        )


def _plain(cell: Any) -> Any:
    match cell:
        case bool():
            return int(cell)
        case bytes() | memoryview():
            return bytes(cell).hex()
        case dict() | list():
            return json.dumps(cell)
        case _:
            return cell


def sqlite_store(folder: Path, slots: int) -> Store:
    """A store in a new file of `folder`, which should be in memory."""
    file = folder / "ledger.db"
    url = f"sqlite:///{file}"
    open_engine(url).dispose()
    return Store(url, slots)


def postgresql_store(url: str, slots: int) -> Store:
    """A store in an empty database."""
    engine = sa.create_engine(url)
    schema.create(engine)
    with engine.begin() as connection:  # each seed begins with empty tables, and entries refuse to be taken away
        connection.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER ALL")
    engine.dispose()
    return Store(url, slots)
