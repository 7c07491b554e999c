"""Many processes upgrade a ledger in the same moment: one history is left, and nobody fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from postgres import PostgresServer
from psycopg import sql

from counterfoil.ledger import schema
from counterfoil.ledger.connect import bare_engine, open_engine
from counterfoil.ledger.health import examine
from counterfoil.ledger.schema import UPGRADE_LOCK as LOCK
from counterfoil.ledger.upgrade import Upgraded, upgrade

PROCESSES = 6
WAITS = "another process changes the ledger's tables: waiting for it\n"
NO_LEDGER = {"this database holds no ledger: run `counterfoil db upgrade` with its URL",
             "there is no ledger at this path (reading commands never create one)"}  # fmt: skip


def versions(engine: sa.Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.execute(sa.select(schema.version_table.c.version_num)).scalars())


UPGRADER = """
import sys
import alembic.command
from counterfoil.ledger.upgrade import upgrade
print("ready", flush=True)
sys.stdin.readline()
print(upgrade(sys.argv[1]).before)
"""

READER = """
import json, sys
from counterfoil.errors import LedgerError
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.health import examine
told = set()
while True:
    try:
        engine = open_engine(sys.argv[1], create=False, read_only=True)
        seen = examine(engine)
        engine.dispose()
        break
    except LedgerError as problem:
        if not told:
            print("ready", flush=True)
        told.add(str(problem))
print(json.dumps([seen.problems, sorted(told)]))
"""


def started(script: str, url: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def ended(process: subprocess.Popen[str]) -> str:
    said, wrong = process.communicate(timeout=120)
    assert (process.returncode, wrong.removeprefix(WAITS)) == (0, "")
    return said.strip()


def together(url: str, *, readers: int = 2) -> tuple[list[str], list[Any]]:
    """Six processes upgrade in the same moment while some read without pause; what each of them says."""
    reading = [started(READER, url) for _ in range(readers)]
    upgraders = [started(UPGRADER, url) for _ in range(PROCESSES)]
    for process in reading + upgraders:
        ready(process)
    for process in upgraders:
        go(process)
    return [ended(process) for process in upgraders], [json.loads(ended(process)) for process in reading]


def test_c43_six_processes_that_upgrade_at_once_leave_one_history(empty_url: str) -> None:
    """One of six makes the ledger, five find it made, none fails; who reads meanwhile sees no ledger or a whole one."""
    before, read = together(empty_url)
    assert sorted(before) == sorted(["None"] + [schema.REVISION] * (PROCESSES - 1))
    for problems, told in read:
        assert problems == []
        assert set(told) <= NO_LEDGER
    engine = open_engine(empty_url)
    assert versions(engine) == [schema.REVISION]
    assert examine(engine).problems == ()
    engine.dispose()


def test_c43_many_upgrade_where_transactions_see_one_snapshot(postgres_server: PostgresServer) -> None:
    """A server whose transactions are serializable by default does not let a waiting upgrade see the time before."""
    name = postgres_server.create()
    setting = sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = serializable")
    postgres_server.administer(setting.format(sql.Identifier(name)))
    before, _ = together(postgres_server.url(name), readers=0)
    assert sorted(before) == sorted(["None"] + [schema.REVISION] * (PROCESSES - 1))
    postgres_server.drop(name)


def test_alembics_own_command_keeps_the_same_history(empty_url: str) -> None:
    """`alembic upgrade head`, with the URL from the environment, waits for the same lock; `alembic check` agrees."""
    environment = os.environ | {"COUNTERFOIL_LEDGER": empty_url}
    alembic = [sys.executable, "-m", "alembic", "-c", str(Path(__file__).parents[2] / "pyproject.toml")]
    ours = [started(UPGRADER, empty_url) for _ in range(2)]
    for process in ours:
        ready(process)
    theirs = [
        subprocess.Popen([*alembic, "upgrade", "head"], env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in ours:
        go(process)
    for process in theirs:
        assert (process.communicate(timeout=120)[1], process.returncode) == ("", 0)
    for process in ours:
        assert ended(process) in ("None", schema.REVISION)
    checked = subprocess.run([*alembic, "check"], capture_output=True, text=True, env=environment, check=False)
    assert (checked.returncode, checked.stdout.strip()) == (0, "No new upgrade operations detected.")
    assert upgrade(empty_url) == Upgraded(schema.REVISION, schema.REVISION)


def test_an_upgrade_waits_for_who_holds_the_lock(postgres_server: PostgresServer) -> None:
    """On PostgreSQL the lock is one of this database, held by a transaction and not by a session."""
    name = postgres_server.create()
    url = postgres_server.url(name)
    process = started(UPGRADER, url)
    engine = bare_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        ready(process)
        go(process)
        waiting = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        while connection.execute(waiting).scalar() == 0:
            assert process.poll() is None
        assert sa.inspect(connection).get_table_names() == []
    assert ended(process) == "None"
    assert versions(engine) == [schema.REVISION]
    engine.dispose()
    postgres_server.drop(name)
