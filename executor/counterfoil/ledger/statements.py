"""The statements of every change of a row, built once: with all these columns, building one costs more than running it.

Owns their text alone; `batch` and `ledger` say when each is run.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from counterfoil.ledger.rows import COLUMNS
from counterfoil.ledger.schema import effects, entries

SERVER_NOW: Final = sa.literal_column("CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)", sa.BigInteger)

BY_KEY: Final = sa.select(*COLUMNS).where(effects.c.key == sa.bindparam("wanted"))
BY_KEY_NOW: Final = BY_KEY.add_columns(SERVER_NOW.label("now"))
BY_KEY_LOCKED: Final = BY_KEY_NOW.with_for_update()
BY_KEYS: Final = (
    sa.select(*COLUMNS).where(effects.c.key.in_(sa.bindparam("wanted", expanding=True))).order_by(effects.c.key)
)
BY_KEYS_NOW: Final = BY_KEYS.add_columns(SERVER_NOW.label("now"))
# Of several rows those that nobody else holds: one that is held must not hold up the others.
BY_KEYS_LOCKED: Final = BY_KEYS_NOW.with_for_update(skip_locked=True)

_GUARDED: Final = (effects.c.key == sa.bindparam("of_key")) & (effects.c.version == sa.bindparam("of_version"))
GUARDED_UPDATE: Final = sa.update(effects).where(_GUARDED)
# What may move on in a row without a new version: by a push, a look that was taken or given back, a new cipher key.
MOVING: Final = (
    "sends_until", "earlier_sends_until", "absent_from", "boot_id", "boot_low", "boot_high", "look_at", "data_key",
)  # fmt: skip
# For a row that was read in an earlier transaction.
UNTOUCHED: Final = _GUARDED & sa.and_(
    *(effects.c[name].is_not_distinct_from(sa.bindparam(f"of_{name}")) for name in MOVING)
)
UNTOUCHED_UPDATE: Final = sa.update(effects).where(UNTOUCHED)
# So many rows are inserted by one statement: each number of rows is a statement of its own, which drivers keep.
_ROWS: Final = 32
BIRTH: Final = {
    name: dialect.insert(effects)
    .on_conflict_do_nothing()
    .returning(effects.c.key)
    .execution_options(insertmanyvalues_page_size=_ROWS)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
UNBORN: Final = sa.delete(effects).where(effects.c.key == sa.bindparam("of_key"))
ENTRY: Final = sa.insert(entries)
