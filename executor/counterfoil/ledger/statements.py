"""The statements of every change of a row, built once: with all these columns, building one costs more than running it.

Owns their text alone; `ledger` says when each is run.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from counterfoil.ledger.rows import COLUMNS
from counterfoil.ledger.schema import effects, entries

SERVER_NOW = sa.literal_column("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)", sa.BigInteger)

BY_KEY = sa.select(*COLUMNS).where(effects.c.key == sa.bindparam("wanted"))
BY_KEY_NOW = BY_KEY.add_columns(SERVER_NOW.label("now"))
GUARDED_UPDATE = sa.update(effects).where(
    (effects.c.key == sa.bindparam("of_key")) & (effects.c.version == sa.bindparam("of_version"))
)
BIRTH = {
    name: dialect.insert(effects).on_conflict_do_nothing().returning(*COLUMNS)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
ENTRY = sa.insert(entries)
