"""The raw drivers, sqlite3 and psycopg 3: the floor that any ledger in Python stands on.

`SameRows` writes what a call of Counterfoil writes, effect and entry, in two transactions: the begin, and the end.
`Tiny` writes a row of three columns and updates it, each in autocommit. The parameters are made before the clock runs.
Callers of PostgreSQL have a connection each up to 32 and share 32 beyond; callers of SQLite share one behind a lock,
which is faster than many that wait for its file lock.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import LifoQueue
from typing import Any

import psycopg
import sqlalchemy as sa
from benchmarks.shape import Shape, Written, captured, fill, named
from benchmarks.side import Side, order

from counterfoil.ledger.schema import effects

CONNECTIONS = 32
WAL_PAGES = 10_000
Statement = tuple[str, Sequence[Any]]


class Driver:
    """Connections of one database, durable as a ledger's are, and how a few statements become one transaction."""

    def __init__(self, place: str) -> None:
        url = sa.make_url(place)
        self.lite = url.get_backend_name() == "sqlite"
        self.mark = "?" if self.lite else "%s"
        self._turn = threading.Lock()
        self._url = url
        self._pool: LifoQueue[Any] = LifoQueue()
        self._made = 0
        if self.lite:
            self.file = sqlite3.connect(str(url.database), isolation_level=None, check_same_thread=False)
            for pragma in ("journal_mode=WAL", "synchronous=FULL", f"wal_autocheckpoint={WAL_PAGES}"):
                self.file.execute(f"PRAGMA {pragma}")

    def connect(self, callers: int) -> None:
        """Have connections for so many callers."""
        while not self.lite and self._made < min(callers, CONNECTIONS):
            connection = psycopg.connect(
                host=str(self._url.query["host"]), user=self._url.username, dbname=self._url.database
            )
            connection.execute("SELECT 1")
            connection.commit()
            self._pool.put(connection)
            self._made += 1

    @contextmanager
    def server_connection(self) -> Iterator[Any]:
        """One of the pool's."""
        connection = self._pool.get()
        try:
            yield connection
        finally:
            self._pool.put(connection)

    def transact(self, *statements: Statement) -> None:
        """Run them in one transaction."""
        if self.lite:
            with self._turn:
                self.file.execute("BEGIN IMMEDIATE")
                for text, values in statements:
                    self.file.execute(text, values)
                self.file.execute("COMMIT")
            return
        with self.server_connection() as connection:
            for text, values in statements:
                connection.execute(text, values)
            connection.commit()

    def alone(self, text: str, values: Sequence[Any]) -> Any:
        """Run one statement in autocommit; the first row that it answers with, if it answers with any."""
        if self.lite:
            with self._turn:
                answer = self.file.execute(text, values)
                return answer.fetchone() if answer.description else None
        with self.server_connection() as connection:
            if not connection.autocommit:
                connection.autocommit = True
            answer = connection.execute(text, values)
            return answer.fetchone() if answer.description else None

    def manual(self) -> None:
        """Leave autocommit, which the kind of call before may have used."""
        for connection in list(self._pool.queue):
            connection.autocommit = False

    def close(self) -> None:
        """Close them all."""
        if self.lite:
            self.file.close()
        while not self._pool.empty():
            self._pool.get().close()


class _Raw(Side):
    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.driver = Driver(place)

    def calling(self, kind: str, numbers: range, callers: int, calls: int) -> dict[str, Any]:
        """See `Side`."""
        self.driver.connect(callers)
        self.driver.manual()
        return super().calling(kind, numbers, callers, calls)

    def close(self) -> None:
        """See `Side`."""
        self.driver.close()


class SameRows(_Raw):
    """The rows of a call, in two transactions."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.shape: Shape = captured(place)
        mark = self.driver.mark
        self.read = f"SELECT {', '.join(map(_quoted, effects.columns.keys()))} FROM effects WHERE key = {mark}"  # noqa: S608
        self.birth = _insert("effects", list(self.shape.begun.effect), mark)
        self.entry = _insert("entries", list(self.shape.begun.entries[0]), mark)
        self.settled = _changed(self.shape.begun, self.shape.applied)
        self.update = _update(self.settled, mark)
        self.seq = self.shape.doubt.entries[-1]["seq"] + 1

    def ready(self, kind: str, numbers: range) -> Callable[[int], None]:
        """See `Side`."""
        if kind == "replay":
            keys = {number: (named(number).key,) for number in numbers}

            def read(number: int) -> None:
                assert self.driver.alone(self.read, keys[number]) is not None

            return read
        if kind == "settle":
            after = {number: self._found(number) for number in numbers}
            return lambda number: self._settle(*after[number])
        rows = {number: self._rows(number) for number in numbers}

        def one(number: int) -> None:
            birth, begun, update, returned = rows[number]
            self.driver.transact((self.birth, birth), (self.entry, begun))
            self.driver.transact((self.update, update), (self.entry, returned))

        return one

    def _settle(self, key: bytes, update: Sequence[Any], entry: Sequence[Any]) -> None:
        self.driver.transact((self.read, (key,)), (self.update, update), (self.entry, entry))

    def _rows(self, number: int) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        begun, applied = self.shape.begun.under(number), self.shape.applied.under(number)
        update = [_driven(applied.effect[name]) for name in self.settled]
        return (
            _values(begun.effect),
            _values(begun.entries[0]),
            [*update, begun.effect["key"], begun.effect["version"]],
            _values(applied.entries[-1]),
        )

    def _found(self, number: int) -> tuple[bytes, list[Any], list[Any]]:
        applied = self.shape.applied.under(number)
        key, version = applied.effect["key"], self.shape.doubt.effect["version"]
        update = [_driven(version + 1 if name == "version" else applied.effect[name]) for name in self.settled]
        return key, [*update, key, version], _values(applied.entries[-1] | {"seq": self.seq})

    def leave_doubts(self, numbers: range) -> None:
        """See `Side`."""
        engine = sa.create_engine(self.place)
        with engine.begin() as connection:
            fill(connection, [self.shape.doubt.under(number) for number in numbers])
        engine.dispose()

    def count(self) -> dict[str, int]:
        """See `Side`. The two effects whose shape was captured are not counted."""
        there = {"effects": 2, "entries": 2 + len(self.shape.doubt.entries)}
        return {name: _counted(self.driver, name) - before for name, before in there.items()}


class Tiny(_Raw):
    """Two tiny statements in autocommit."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        blob = "BLOB" if self.driver.lite else "bytea"
        self.driver.connect(1)
        self.driver.alone(f"CREATE TABLE tiny (key {blob} PRIMARY KEY, state text NOT NULL, value text)", ())
        mark = self.driver.mark
        self.insert = f"INSERT INTO tiny (key, state) VALUES ({mark}, {mark})"  # noqa: S608
        self.update = f"UPDATE tiny SET state = {mark}, value = {mark} WHERE key = {mark}"  # noqa: S608

    def ready(self, kind: str, numbers: range) -> Callable[[int], None]:
        """See `Side`. It knows first calls only."""
        assert kind == "first", kind
        keys = {number: named(number).key for number in numbers}

        def one(number: int) -> None:
            self.driver.alone(self.insert, (keys[number], "begun"))
            self.driver.alone(self.update, ("done", order(number), keys[number]))

        return one

    def count(self) -> dict[str, int]:
        """See `Side`."""
        return {"tiny": _counted(self.driver, "tiny")}


def _counted(driver: Driver, table: str) -> int:
    driver.connect(1)
    return int(driver.alone(f"SELECT count(*) FROM {table}", ())[0])  # noqa: S608


def _quoted(name: str) -> str:
    return f'"{name}"'


def _insert(table: str, names: list[str], mark: str) -> str:
    return f"INSERT INTO {table} ({', '.join(map(_quoted, names))}) VALUES ({', '.join([mark] * len(names))})"  # noqa: S608


def _update(names: Sequence[str], mark: str) -> str:
    changed = ", ".join(f"{_quoted(name)} = {mark}" for name in names)
    return f"UPDATE effects SET {changed} WHERE key = {mark} AND version = {mark}"  # noqa: S608


def _changed(before: Written, after: Written) -> list[str]:
    """The columns that the end of a call changes."""
    return [name for name, value in after.effect.items() if before.effect[name] != value]


def _driven(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _values(row: dict[str, Any]) -> list[Any]:
    return [_driven(value) for value in row.values()]
