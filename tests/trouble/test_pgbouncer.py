"""Behind pgbouncer in transaction mode: every transaction may meet another session of the server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from charging import charging
from outside import World
from postgres import PostgresServer

from counterfoil import Executor, ManualClock
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.upgrade import upgrade

pytestmark = [pytest.mark.needs_pgbouncer, pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)]
THREADS, CALLS = 16, 20


@contextmanager
def running_pgbouncer(server: PostgresServer) -> Iterator[int]:
    """A pgbouncer with three server sessions a database, on a free port; gone with the block."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="cf-bouncer-"))
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host={server.socket} user=postgres\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = transaction\ndefault_pool_size = 3\nmax_client_conn = 200\nlogfile = {folder / 'log'}\n"
    )
    command = [shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", str(settings)]
    if os.geteuid() == 0:  # it does not run as root; the owner of the server's socket may reach it
        owner = server.socket.stat().st_uid
        for one in (folder, settings):
            os.chown(one, owner, -1)
        process = subprocess.Popen(command, user=owner, stderr=subprocess.DEVNULL)
    else:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        await_port(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(20)
        shutil.rmtree(folder)


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 20
    while True:
        assert process.poll() is None, "pgbouncer did not start"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < until
            time.sleep(0.02)
        else:
            return


@pytest.fixture
def pooled_url(ledger_url: str, postgres_server: PostgresServer) -> Iterator[str]:
    """The way to this test's ledger through pgbouncer."""
    with running_pgbouncer(postgres_server) as port:
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/{sa.make_url(ledger_url).database}"


def test_many_calls_share_few_sessions(pooled_url: str) -> None:
    """Statements are not prepared in one session and asked of another: many calls from many threads, each applied."""
    world = World(ManualClock())
    with Executor(pooled_url, tools=[charging(world)]) as executor, ThreadPoolExecutor(THREADS) as threads:

        def call(number: int) -> str:
            return executor.call("charge", {"order": str(number), "amount": 5}).code

        assert set(threads.map(call, range(THREADS * CALLS))) == {"ok"}
        assert set(threads.map(call, range(THREADS * CALLS))) == {"replayed"}
    assert len(world.requests) == THREADS * CALLS


def test_a_begin_is_durable_and_no_session_keeps_our_settings(pooled_url: str, ledger_url: str) -> None:
    """synchronous_commit and lock_timeout are of the transaction: right in each, and no other client inherits them."""
    direct = sa.create_engine(ledger_url, isolation_level="AUTOCOMMIT")
    with direct.connect() as connection:
        connection.exec_driver_sql(f'ALTER DATABASE "{direct.url.database}" SET synchronous_commit = off')
    direct.dispose()
    engine = open_engine(pooled_url)
    ledger = Ledger(engine)

    def settings(connection: sa.Connection) -> tuple[str, str]:
        row = connection.execute(
            sa.text("SELECT current_setting('synchronous_commit'), current_setting('lock_timeout')")
        ).one()
        return row[0], row[1]

    for _ in range(10):
        commit, wait = ledger.write(settings)
        assert (commit, wait != "0") == ("on", True)
        assert ledger._asked(settings) == ("off", "0")
    engine.dispose()


def test_prepared_statements_are_off_by_itself(pooled_url: str, ledger_url: str) -> None:
    """The ledger sees that a pooler stands between and prepares nothing; without one it does."""
    for url, prepares in ((pooled_url, False), (ledger_url, True)):
        engine = open_engine(url)
        raw = engine.raw_connection()
        assert (getattr(raw.driver_connection, "prepare_threshold", None) is not None) is prepares
        raw.close()
        engine.dispose()


def test_the_schema_is_upgraded_through_it(pooled_url: str) -> None:
    """`db upgrade` holds its lock for one transaction only, so it may go the same way."""
    assert upgrade(pooled_url).after == upgrade(pooled_url).before
