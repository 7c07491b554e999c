"""What SQLite and PostgreSQL say alike and SQLAlchemy keeps apart: an INSERT that knows what to do about a row there.

Owns the choice between the two; no table, and no word about when a row is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite


def inserting(connection: sa.Connection, table: sa.Table) -> sqlite.Insert | postgresql.Insert:
    """An INSERT in the words of this database."""
    return sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)


def upsert(
    connection: sa.Connection, table: sa.Table, place: Mapping[str, Any], content: Mapping[str, Any], **new: Any
) -> None:
    """Write `content` in the row whose key is `place`, or make that row; then it has what is `new`, too."""
    made = inserting(connection, table).values({**place, **new, **content})
    connection.execute(made.on_conflict_do_update(index_elements=list(place), set_=dict(content)))
