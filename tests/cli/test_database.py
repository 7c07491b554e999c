"""db upgrade makes the tables, db check says whether they can be relied on, and neither tells secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from counterfoil.ledger.connect import bare_engine
from counterfoil.ledger.schema import REVISION, incidents, version_table


def test_a_ledger_is_made_and_then_checked(run: Any, empty_url: str) -> None:
    """Upgrade makes the tables, again it finds them made, and the check calls the ledger fit."""
    assert run("db", "check", "--ledger", empty_url).code == 3
    assert run("db", "upgrade", "--json", "--ledger", empty_url).json == {"before": None, "after": REVISION}
    assert run("db", "upgrade", "--json", "--ledger", empty_url).json == {"before": REVISION, "after": REVISION}
    assert "already" in run("db", "upgrade", "--ledger", empty_url).out
    ran = run("db", "check", "--ledger", empty_url)
    assert (ran.code, ran.err) == (0, "")
    assert "the ledger is fit" in ran.out
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_the_check_tells_how_durable_the_ledger_is(run: Any, empty_url: str) -> None:
    """Version, and on SQLite integrity, journal and synchronous; on PostgreSQL fsync and synchronous_commit."""
    run("db", "upgrade", "--ledger", empty_url)
    seen = run("db", "check", "--json", "--ledger", empty_url).json
    assert (seen["ok"], seen["schema"], seen["schema_needed"]) == (True, REVISION, REVISION)
    assert seen["problems"] == []
    expected = {
        "sqlite": {"integrity": "ok", "journal_mode": "wal", "synchronous": "full"},
        "postgresql": {"fsync": "on", "synchronous_commit": "on", "synchronous_commit_configured": "on"},
    }[seen["database"]]
    assert expected.items() <= seen["settings"].items()


def test_the_check_says_that_a_server_would_forget(run: Any, ledger_url: str) -> None:
    """A database that sets synchronous_commit=off is remarked; the ledger's own connections have it on."""
    url = sa.make_url(ledger_url)
    engine = bare_engine(ledger_url)
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql(f'ALTER DATABASE "{url.database}" SET synchronous_commit = off')
    engine.dispose()
    seen = run("db", "check", "--json", "--ledger", ledger_url).json
    assert seen["ok"]
    (remark,) = seen["remarks"]
    if seen["database"] == "postgresql":
        assert seen["settings"]["synchronous_commit"] == "on"
        assert seen["settings"]["synchronous_commit_configured"] == "off"
        assert "off" in remark
    else:
        assert seen["settings"]["journal_mode"] == "delete"
        assert "write-ahead" in remark


def test_a_lost_table_and_a_lost_column_are_found(run: Any, ledger_url: str) -> None:
    """A ledger that was restored in part is not fit: exit code 3, in words and as JSON."""
    engine = bare_engine(ledger_url)
    with engine.begin() as connection:
        incidents.drop(connection)
        connection.exec_driver_sql("ALTER TABLE tools DROP COLUMN keys_distrusted_at")
    engine.dispose()
    ran = run("db", "check", "--json", "--ledger", ledger_url)
    assert (ran.code, ran.json["ok"]) == (3, False)
    assert set(ran.json["problems"]) == {
        "the table incidents is missing",
        "the table tools has no column keys_distrusted_at",
    }
    ran = run("db", "check", "--ledger", ledger_url)
    assert ran.code == 3
    assert "NOT fit" in ran.out
    assert run("incidents", "--ledger", ledger_url).code == 3


def test_a_damaged_file_is_found(run: Any, tmp_path: Path) -> None:
    """Bytes that a disk has lost are noticed: exit code 3."""
    file = tmp_path / "ledger.db"
    url = f"sqlite:///{file}"
    assert run("db", "upgrade", "--ledger", url).code == 0
    engine = bare_engine(url)
    with engine.connect() as connection:
        page = connection.exec_driver_sql("SELECT rootpage FROM sqlite_master WHERE name = 'effects'").scalar()
    engine.dispose()
    content = bytearray(file.read_bytes())
    start = (int(page or 0) - 1) * 4096
    content[start : start + 4096] = b"\xff" * 4096
    file.write_bytes(content)
    ran = run("db", "check", "--json", "--ledger", url)
    assert (ran.code, ran.json["ok"]) == (3, False)
    assert "damaged" in ran.json["problems"][0]


def test_a_file_that_is_no_database_is_refused(run: Any, tmp_path: Path) -> None:
    """Any other file: exit code 3 from each command, and the file is not touched."""
    file = tmp_path / "letter.txt"
    file.write_text("Dear Sir or Madam, " * 200)
    for command in (("db", "check"), ("effects",), ("db", "upgrade")):
        ran = run(*command, "--ledger", f"sqlite:///{file}")
        assert (ran.code, ran.out) == (3, "")
    assert file.read_text() == "Dear Sir or Madam, " * 200


@pytest.mark.parametrize("command", [("effects",), ("doubts",), ("db", "check"), ("db", "upgrade")], ids=" ".join)
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("postgresql+psycopg://someone:hunter2@127.0.0.1:1/books?connect_timeout=2", 3),
        ("postgresql+psycopg://someone:hunter2@localhost:1/books?sslmode=hunter2", 3),
        ("sqlite:////nowhere/hunter2/ledger.db", 3),
        ("sqlite://", 1),
        ("mysql://someone:hunter2@localhost/books", 1),
        ("hunter2", 1),
    ],
)
def test_no_secret_of_a_url_is_told(run: Any, command: tuple[str, ...], url: str, code: int) -> None:
    """A ledger that cannot be used is said in one line without password, user, host, path or driver's text."""
    ran = run(*command, "--ledger", url)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("counterfoil: ")
    assert ran.err.count("\n") == 1
    for secret in ("hunter2", "someone", "localhost", "127.0.0.1", "books", "nowhere", "psycopg.", "sqlite3"):
        assert secret not in ran.err


def test_an_upgrade_of_a_newer_ledger_is_refused(run: Any, ledger_url: str) -> None:
    """Exit code 3, and the ledger keeps its version."""
    engine = bare_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(version_table.update().values(version_num="9999"))
    ran = run("db", "upgrade", "--json", "--ledger", ledger_url)
    assert (ran.code, ran.out) == (3, "")
    assert "upgrade the package" in ran.err
    with engine.connect() as connection:
        assert connection.execute(sa.select(version_table.c.version_num)).scalars().all() == ["9999"]
    engine.dispose()
