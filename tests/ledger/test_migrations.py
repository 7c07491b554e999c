"""The migrations make what the schema declares, once, however many run them, and other versions are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from changing import One

from counterfoil import AsyncExecutor, Executor
from counterfoil.clock import ManualClock
from counterfoil.effect import Verdict
from counterfoil.errors import LedgerError
from counterfoil.ledger import schema
from counterfoil.ledger.connect import bare_engine, open_engine
from counterfoil.ledger.health import examine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.upgrade import SCRIPTS, Upgraded, downgrade, upgrade

CATALOGUES = {
    "sqlite": ("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2",),
    "postgresql": (
        """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
           WHERE connamespace = 'public'::regnamespace ORDER BY 1, 2""",
        """SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index
           JOIN pg_class ON pg_class.oid = indrelid WHERE relnamespace = 'public'::regnamespace ORDER BY 1""",
        """SELECT table_name, column_name, data_type, character_maximum_length, is_nullable, column_default, is_identity
           FROM information_schema.columns WHERE table_schema = 'public' ORDER BY 1, ordinal_position""",
        "SELECT sequencename, data_type::text, start_value, increment_by FROM pg_sequences ORDER BY 1",
        "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
        "SELECT proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1",
    ),
}


@pytest.fixture
def engine(empty_url: str) -> Iterator[sa.Engine]:
    """An engine without any check, on a database that is empty; the SQLite file is made."""
    if empty_url.startswith("sqlite"):
        Path(sa.make_url(empty_url).database or "").touch()
    engine = bare_engine(empty_url)
    yield engine
    engine.dispose()


def structure(engine: sa.Engine) -> dict[str, Any]:
    """All that a database says about its tables: for SQLite their text, for PostgreSQL its catalogue."""
    asked = sa.inspect(engine)
    seen: dict[str, Any] = {
        table: {
            "columns": [{**column, "type": repr(column["type"])} for column in asked.get_columns(table)],
            "primary": asked.get_pk_constraint(table),
            "unique": sorted(asked.get_unique_constraints(table), key=str),
            "checks": sorted(asked.get_check_constraints(table), key=str),
            "indexes": sorted(repr(index | _conditions(index)) for index in asked.get_indexes(table)),
            "foreign": asked.get_foreign_keys(table),
            "comment": engine.dialect.name == "postgresql" and asked.get_table_comment(table),
        }
        for table in sorted(asked.get_table_names())
    }
    with engine.connect() as connection:
        for number, question in enumerate(CATALOGUES[engine.dialect.name]):
            seen[f"catalogue {number}"] = [tuple(row) for row in connection.exec_driver_sql(question)]
    return seen


def _conditions(index: Any) -> dict[str, str]:
    return {"dialect_options": str({name: str(said) for name, said in index.get("dialect_options", {}).items()})}


def versions(engine: sa.Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.execute(sa.select(schema.version_table.c.version_num)).scalars())


def pretend(url: str, version: str) -> None:
    """Let the ledger say that it has another schema version."""
    engine = bare_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.update(schema.version_table).values(version_num=version))
    engine.dispose()


# ---------------------------------------------------------------- migrated equals declared


def test_alembic_sees_no_difference_between_migrated_and_declared(empty_url: str) -> None:
    """After the migrations, Alembic's own comparison with the declared tables finds nothing to change."""
    upgrade(empty_url)
    engine = open_engine(empty_url)
    with engine.connect() as connection:
        options = {"version_table": schema.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, schema.metadata) == []
    engine.dispose()


def test_a_created_ledger_equals_a_migrated_one(engine: sa.Engine, empty_url: str) -> None:
    """`create` and the migrations leave the same columns, keys, checks, indexes, names and version."""
    upgrade(empty_url)
    migrated, version = structure(engine), versions(engine)
    downgrade(empty_url, "base")
    with engine.begin() as connection:
        schema.version_table.drop(connection)
    assert sa.inspect(engine).get_table_names() == []
    schema.create(engine)
    assert structure(engine) == migrated
    assert versions(engine) == version == [schema.REVISION]
    assert set(migrated) >= set(schema.metadata.tables) | {schema.VERSION_TABLE}


def test_the_newest_migration_is_the_version_that_the_code_needs() -> None:
    """There is one line of migrations, and it ends at the version that executors ask for."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    assert ScriptDirectory.from_config(config).get_heads() == [schema.REVISION]


def test_a_downgrade_takes_back_all_that_an_upgrade_made(engine: sa.Engine, empty_url: str) -> None:
    """Down to the base nothing is left but the empty note of the version; up again, the ledger is as it was."""
    upgrade(empty_url)
    before = structure(engine)
    downgrade(empty_url, "base")
    assert sa.inspect(engine).get_table_names() == [schema.VERSION_TABLE]
    assert versions(engine) == []
    with pytest.raises(LedgerError, match="holds no ledger"):
        open_engine(empty_url)
    assert upgrade(empty_url) == Upgraded(None, schema.REVISION)
    assert structure(engine) == before


def test_upgrading_again_changes_nothing(ledger_url: str) -> None:
    """An upgrade of a ledger that is of this version says so, and every row stays."""
    engine = open_engine(ledger_url)
    one = One(Ledger(engine, clock=ManualClock()))
    row = one.begun()
    assert upgrade(ledger_url) == Upgraded(schema.REVISION, schema.REVISION)
    assert one.row == row
    engine.dispose()


def test_the_checks_of_a_migrated_ledger_hold(empty_url: str) -> None:
    """A migrated ledger refuses a verdict that does not exist, and a doubt without an open attempt."""
    upgrade(empty_url)
    engine = open_engine(empty_url)
    one = One(Ledger(engine, clock=ManualClock()))
    one.begun()
    for wrong in ({"verdict": "maybe"}, {"open_attempts": 0}, {"verdict": str(Verdict.EFFECT_APPLIED)}):
        with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
            connection.execute(sa.update(schema.effects).values(wrong))
    engine.dispose()


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("version", "told"), [("0000", "run `counterfoil db upgrade`"), ("9999", "upgrade the package")]
)
@pytest.mark.parametrize("executor", [Executor, AsyncExecutor])
def test_an_executor_refuses_another_schema_version(
    ledger_url: str, version: str, told: str, executor: type[Executor] | type[AsyncExecutor]
) -> None:
    """An older and a newer ledger are refused before any tool could run, with what to do."""
    pretend(ledger_url, version)
    with pytest.raises(LedgerError, match=rf"schema {version}.*{told}"):
        executor(ledger_url)


def test_an_upgrade_leaves_a_newer_ledger_alone(ledger_url: str) -> None:
    """A ledger that a newer Counterfoil made is refused, and stays as it is."""
    pretend(ledger_url, "9999")
    with pytest.raises(LedgerError, match="newer"):
        upgrade(ledger_url)
    engine = bare_engine(ledger_url)
    assert versions(engine) == ["9999"]
    engine.dispose()


def test_an_upgrade_refuses_a_version_that_no_migration_knows(ledger_url: str) -> None:
    """A version from nowhere is said to be unknown; it is not taken for an empty database."""
    pretend(ledger_url, "0000")
    with pytest.raises(LedgerError, match="do not know this schema version"):
        upgrade(ledger_url)


def test_an_upgrade_keeps_off_the_tables_of_another_program(engine: sa.Engine, empty_url: str) -> None:
    """A database in which another program has a table of the same name is refused, and nothing is made in it."""
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE tools (name VARCHAR(10))")
    with pytest.raises(LedgerError, match="tables named tools"):
        upgrade(empty_url)
    assert sa.inspect(engine).get_table_names() == ["tools"]


def test_an_upgrade_says_what_is_in_the_way_and_no_path(tmp_path: Path) -> None:
    """A file in a folder that is not there: one clear line, without the path."""
    with pytest.raises(LedgerError, match="its folder and its rights") as told:
        upgrade(f"sqlite:///{tmp_path / 'nowhere' / 'ledger.db'}")
    assert str(tmp_path) not in str(told.value)
    assert told.value.__cause__ is None


def test_a_new_file_is_for_its_owner_alone_and_durable(tmp_path: Path) -> None:
    """A ledger that `upgrade` made can be read by its owner only, and is in write-ahead mode."""
    file = tmp_path / "ledger.db"
    upgrade(f"sqlite:///{file}")
    assert file.stat().st_mode & 0o777 == 0o600
    engine = open_engine(f"sqlite:///{file}", create=False, read_only=True)
    settings = examine(engine).settings
    engine.dispose()
    assert (settings["journal_mode"], settings["synchronous"]) == ("wal", "full")


def test_an_upgrade_with_nothing_to_do_loads_no_migrations(ledger_url: str) -> None:
    """Migrations are loaded only where there is something to do, so an upgrade in a start script costs little."""
    code = (
        "import sys\nfrom counterfoil.ledger.upgrade import upgrade\nupgrade(sys.argv[1])\n"
        "print([name for name in sys.modules if name.startswith(('alembic', 'counterfoil_migrations'))])"
    )
    run = subprocess.run([sys.executable, "-c", code, ledger_url], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
