"""How Alembic reaches the ledger.

`counterfoil.ledger.upgrade` hands in its connection, in a transaction that holds the lock. Alembic's own command
(`alembic check`, `alembic revision --autogenerate`) hands in nothing: then the URL is in COUNTERFOIL_LEDGER. It never
stands in a file.
"""

from __future__ import annotations

import os
from typing import Any

import sqlalchemy as sa
from alembic import context
from alembic.util import CommandError

from counterfoil.ledger import schema


def run() -> None:
    if context.is_offline_mode():
        raise CommandError("the migrations ask the database what it holds: run them against it, without --sql")
    given = context.config.attributes.get("connection")
    if given is not None:
        migrate(given)
        return
    engine = own_engine()
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(schema.UPGRADE_LOCK)))
            migrate(connection)
    finally:
        engine.dispose()


def migrate(connection: sa.Connection) -> None:
    """Run what is asked for, in the transaction that is open: all of it counts, or nothing."""
    # Alembic would make this table with another name for its primary key than a ledger that was made by create().
    schema.version_table.create(connection, checkfirst=True)
    context.configure(
        connection=connection,
        target_metadata=schema.metadata,
        version_table=schema.VERSION_TABLE,
        transactional_ddl=True,
        compare_type=True,
        compare_server_default=True,
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


def own_engine() -> sa.Engine:
    url = os.environ.get("COUNTERFOIL_LEDGER")
    if not url:
        raise CommandError("name the ledger in COUNTERFOIL_LEDGER: sqlite:///FILE or postgresql+psycopg://…")
    engine = sa.create_engine(url, hide_parameters=True, poolclass=sa.NullPool)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "connect", _leave_transactions_alone)
        sa.event.listen(engine, "begin", _begin_as_writer)
        return engine
    # Read committed: what is read after the lock must be what the holder before has committed.
    return engine.execution_options(isolation_level="READ COMMITTED")


def _leave_transactions_alone(connection: Any, _record: Any) -> None:
    connection.isolation_level = None


def _begin_as_writer(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


run()
