"""The fixtures give what they promise: real databases, fresh for each test, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from postgres import PostgresServer, ended

ROOT = Path(__file__).parent.parent


def tables(url: str) -> set[str]:
    engine = sa.create_engine(url)
    try:
        return set(sa.inspect(engine).get_table_names())
    finally:
        engine.dispose()


@pytest.mark.parametrize("round_", [1, 2])
def test_each_test_has_a_ledger_of_its_own(ledger_url: str, round_: int) -> None:
    """The ledger's tables are there, and what the round before wrote is not."""
    assert {"effects", "entries"} <= tables(ledger_url)
    assert "mark" not in tables(ledger_url)
    engine = sa.create_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE mark (number INTEGER)"))
    engine.dispose()
    assert "mark" in tables(ledger_url)


def test_an_empty_database_is_empty(empty_url: str) -> None:
    """Nothing was created before the test."""
    if empty_url.startswith("sqlite"):
        assert not Path(sa.make_url(empty_url).database or "").exists()
    assert tables(empty_url) == set()


def test_the_server_is_a_durable_postgresql(postgres_server: PostgresServer) -> None:
    """The tests run against a server that keeps its promises: fsync and synchronous_commit are on."""
    engine = sa.create_engine(postgres_server.url())
    try:
        with engine.connect() as connection:
            settings = [connection.scalar(sa.text(f"SHOW {name}")) for name in ("fsync", "synchronous_commit")]
            version = connection.dialect.server_version_info
    finally:
        engine.dispose()
    assert settings == ["on", "on"]
    assert version is not None
    assert version >= (14,)


def test_a_database_goes_with_whoever_is_still_connected(postgres_server: PostgresServer) -> None:
    """A connection that a killed process left does not keep the database alive."""
    name = postgres_server.create()
    engine = sa.create_engine(postgres_server.url(name))
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT 1"))
        postgres_server.drop(name)
        with pytest.raises(sa.exc.OperationalError):
            connection.execute(sa.text("SELECT 1"))
    engine.dispose()


INNER = """
import os

def test_inner(postgres_server, ledger_url):
    pid = (postgres_server.socket.parent / "data" / "postmaster.pid").read_text().split()[0]
    with open(os.environ["NOTE"], "a") as note:
        note.write(f"{pid} {postgres_server.socket.parent}\\n")
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that the server's user can reach. `tmp_path` is not: each start of a pytest shuts its root again."""
    with tempfile.TemporaryDirectory(prefix="cf-") as name:
        yield Path(name)


def test_no_process_and_no_file_is_left(tmp_path: Path, open_folder: Path) -> None:
    """After a test run its PostgreSQL has ended and its folders are gone."""
    inner, note, temporary = tmp_path / "inner", tmp_path / "note", open_folder
    inner.mkdir()
    (inner / "test_inner.py").write_text(INNER)
    (inner / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    environment = os.environ | {"NOTE": str(note), "TMPDIR": str(temporary)}
    environment.pop("XDG_RUNTIME_DIR", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml"),
               "--rootdir", str(inner), f"--basetemp={tmp_path / 'b'}", str(inner)]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, cwd=inner, env=environment, check=False)
    assert run.returncode == 0, run.stdout
    seen = {tuple(line.split()) for line in note.read_text().splitlines()}
    assert len(seen) == 1
    ((pid, folder),) = seen
    assert ended(int(pid))
    assert not Path(folder).exists()
    assert list(temporary.iterdir()) == []
