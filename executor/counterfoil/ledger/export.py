"""Every entry with the effect that it belongs to, as plain data, for other programs. Only reads, in one picture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.errors import LedgerUnavailable
from counterfoil.ledger.audit import instant_text
from counterfoil.ledger.concealed import cipher_of, reveal_entry
from counterfoil.ledger.picture import picture, stream
from counterfoil.ledger.schema import effects, entries

COLUMNS: Final = (
    "effect_id", "tenant", "tool", "task", "seq", "at", "event", "attempt", "fence", "actor", "detail"
)  # fmt: skip


def rows(engine: sa.Engine, tenant: str | None = None) -> Iterator[dict[str, Any]]:
    """The entries by effect and number, each with the names of `COLUMNS`, in that order; instants as text in UTC.

    Raises:
        LedgerUnavailable: the database does not answer, or something cannot be decrypted.
    """
    of_effect = (effects.c.id.label("effect_id"), effects.c.tenant, effects.c.tool, effects.c.task)
    asked = sa.select(*of_effect, effects.c.data_key, *entries.c).join(effects, effects.c.key == entries.c.key)
    if tenant is not None:
        asked = asked.where(effects.c.tenant == tenant)
    try:
        with ExitStack() as stack:
            connection = stack.enter_context(picture(engine))
            keys = cipher_of(connection)
            found = stack.enter_context(closing(stream(connection, asked.order_by(entries.c.key, entries.c.seq))))
            for one in found:
                content = {name: one[name] for name in COLUMNS}
                detail = content["detail"]
                kept = json.loads(detail) if isinstance(detail, str) else detail
                content["detail"] = reveal_entry(keys, one["data_key"], bytes(one["key"]), one["seq"], kept)
                content["at"] = instant_text(content["at"])
                yield content
    except sa.exc.SQLAlchemyError:
        raise LedgerUnavailable("the ledger's database does not answer", certain=True) from None
