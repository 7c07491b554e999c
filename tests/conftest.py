"""What every test may ask for: a fresh ledger on each database, and a real provider.

Each test gets a database (a SQLite file) of its own, a copy of one that has the ledger's tables, so that no test sees
another's rows or waits for another's locks.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from postgres import PostgresServer, running_postgres
from provider import Provider

DATABASES = ("sqlite", "postgresql")

# Whoever runs the tests in the background may have Ctrl-C ignored, and child processes would inherit that; some of them
# are interrupted by their tests.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def prepare_ledger(url: str) -> None:
    """Make the ledger's tables at `url`, as an operator would before the first use."""
    from counterfoil.ledger import schema

    engine = sa.create_engine(url)
    try:
        schema.create(engine)
    finally:
        engine.dispose()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL, started when the first test asks for it."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres_server: PostgresServer) -> str:
    """The name of a database that has the ledger's tables; to be copied, so nobody may stay connected to it."""
    name = postgres_server.create()
    prepare_ledger(postgres_server.url(name))
    return name


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that has the ledger's tables; to be copied, so all of it must be in this one file."""
    file = tmp_path_factory.mktemp("template") / "ledger.db"
    prepare_ledger(f"sqlite:///{file}")
    assert [other.name for other in file.parent.iterdir()] == ["ledger.db"]
    return file


@pytest.fixture(params=DATABASES)
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh ledger that has its tables and nothing in them; each test runs on each database."""
    if request.param == "sqlite":
        file = tmp_path / "ledger.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), file)
        yield f"sqlite:///{file}"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        name = server.create(template=request.getfixturevalue("postgres_template"))
        yield server.url(name)
        server.drop(name)


@pytest.fixture(params=DATABASES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database that has nothing in it yet (on SQLite: of a file that is not there yet)."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
    else:
        server: PostgresServer = request.getfixturevalue("postgres_server")
        name = server.create()
        yield server.url(name)
        server.drop(name)


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    """A provider of its own for this test, in another process."""
    with Provider.start(tmp_path / "provider.jsonl") as running:
        yield running
