"""A change as one statement: the row, the entry that explains it and what the guards are asked, on PostgreSQL.

Owns the text of statements that write `effects` and `entries` together, and the running of them. What is not written,
for the row is there already or has moved on, has no entry either. It decides nothing; SQLite knows no such statement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from counterfoil.guard import Asks
from counterfoil.ledger.schema import effects, entries
from counterfoil.ledger.standing import OF_CALL, Standing, asked_of, standing_of, standings
from counterfoil.ledger.statements import UNTOUCHED

_ENTRY: Final = tuple(entries.columns)
_BORN: Final = "born"
# By the server's clock, from the statement's arrival to the row.
AT_ONCE_US: Final = 5_000
_WAITED_US: Final = sa.literal_column(
    "CAST(EXTRACT(EPOCH FROM clock_timestamp() - statement_timestamp()) * 1000000 AS BIGINT)", sa.BigInteger
)


def give_birth(
    connection: sa.Connection, columns: Mapping[str, Any], entry: Mapping[str, Any], asks: Asks
) -> Standing | None:
    """Insert an effect and its first entry; how its tool stood then, or None: the effect is there already.

    What the guards are asked is read when the statement begins. If the row was inserted later than at once, another's
    insert was in the way, and they are asked again: a tool may have been paused meanwhile.
    """
    statement = _birth(tuple(columns))
    found = connection.execute(statement, {**columns, **_renamed(entry), **asked_of(asks)}).all()
    born = [one for one in found if one.part == _BORN]
    if not born:
        return None
    waited_us: int = born[0].opened_at
    return standing_of(found, asks) if waited_us < AT_ONCE_US else standings(connection, [asks])[0]


def settle(
    connection: sa.Connection, columns: Mapping[str, Any], guards: Mapping[str, Any], entry: Mapping[str, Any]
) -> bool:
    """Write a row that was read in an earlier transaction, if it is the same in its `guards`, and its entry."""
    statement = _settling(tuple(columns))
    return connection.execute(statement, {**columns, **guards, **_renamed(entry)}).rowcount == 1


def _renamed(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {f"entry_{name}": value for name, value in entry.items()}


def _entry_after(written: sa.CTE) -> Any:
    """The INSERT of an entry for each row that was written."""
    values = [sa.cast(sa.bindparam(f"entry_{one.name}", type_=one.type), one.type) for one in _ENTRY]
    return sa.insert(entries).from_select([one.name for one in _ENTRY], sa.select(*values).select_from(written))


def _bound(names: Sequence[str]) -> dict[str, sa.BindParameter[Any]]:
    return {name: sa.bindparam(name, type_=effects.c[name].type) for name in names}


@lru_cache(maxsize=8)
def _birth(names: tuple[str, ...]) -> Any:
    inserted = postgresql.insert(effects).values(_bound(names)).on_conflict_do_nothing()
    born = inserted.returning(effects.c.key, _WAITED_US.label("waited_us")).cte(_BORN)
    told: dict[str, Any] = {
        "part": sa.literal_column(f"'{_BORN}'", sa.String),
        "tenant": sa.literal_column("''", sa.String),
        "opened_at": born.c.waited_us,
    }
    there = sa.select(*(told.get(one.name, sa.null()) for one in OF_CALL.selected_columns)).select_from(born)
    return sa.union_all(*OF_CALL.selects, there).add_cte(_entry_after(born).cte("explained"))


@lru_cache(maxsize=64)
def _settling(names: tuple[str, ...]) -> Any:
    updated = sa.update(effects).where(UNTOUCHED).values(_bound(names)).returning(effects.c.key)
    return _entry_after(updated.cte("written")).execution_options(preserve_rowcount=True)
