"""The rows that one call leaves in the ledger, as the product wrote them, to be written again under other names.

Owns their capture by a real call and the renaming. So the raw drivers write the same content, and a ledger can be
filled with a million effects in seconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from benchmarks.charge import HASTY, World, blocking
from benchmarks.side import arguments, order, receipt, task

from counterfoil import Executor
from counterfoil.identity import Identity, identify
from counterfoil.ledger.schema import effects, entries

_NUMBERS = (9_999_999_998, 9_999_999_999)


def named(number: int) -> Identity:
    """Who the effect of a number is."""
    return identify(tenant="", tool="charge", task=task(number), names=("order",), identity_arguments=arguments(number))


@dataclass(frozen=True)
class Written:
    """A row of `effects` and the rows of `entries` that explain it, for the effect of `number`."""

    number: int
    effect: dict[str, Any]
    entries: tuple[dict[str, Any], ...]

    def under(self, number: int) -> Written:
        """The same rows of another effect."""
        ours, theirs = named(self.number), named(number)
        texts = [(ours.id, theirs.id)]
        texts += [(name(self.number), name(number)) for name in (order, task, _payment)]
        blobs = {ours.key: theirs.key, ours.fingerprint: theirs.fingerprint}

        def other(value: Any) -> Any:
            if isinstance(value, bytes):
                return blobs.get(value, value)
            if isinstance(value, (str, list, dict)):
                text = value if isinstance(value, str) else json.dumps(value)
                for old, new in texts:
                    text = text.replace(old, new)
                return text if isinstance(value, str) else json.loads(text)
            return value

        def renamed(row: dict[str, Any]) -> dict[str, Any]:
            return {name: other(value) for name, value in row.items()}

        return Written(number, renamed(self.effect), tuple(renamed(entry) for entry in self.entries))


@dataclass(frozen=True)
class Shape:
    """How an effect stands after its begin, after its tool returned, and after an answer was lost."""

    begun: Written
    applied: Written
    doubt: Written


def captured(url: str) -> Shape:
    """Make two calls on the ledger at `url` and read what each left; they stay there, as two effects."""
    engine = sa.create_engine(url)
    begun: list[Written] = []
    whole, lost = _NUMBERS
    try:
        world = World(inside=lambda: begun.append(_read(engine, whole)))
        with Executor(url, [blocking(world)]) as executor:
            assert executor.call("charge", arguments(whole), task=task(whole)).code == "ok"
        with Executor(url, [blocking(World(loses=True, shows=False), HASTY)]) as executor:
            assert executor.call("charge", arguments(lost), task=task(lost)).code == "effect_unknown"
        return Shape(begun[0], _read(engine, whole), _read(engine, lost))
    finally:
        engine.dispose()


def fill(connection: sa.Connection, rows: Iterable[Written]) -> None:
    """Write such rows in the connection's transaction."""
    some = list(rows)
    connection.execute(sa.insert(effects), [one.effect for one in some])
    connection.execute(sa.insert(entries), [entry for one in some for entry in one.entries])


def _payment(number: int) -> str:
    return str(receipt(number)["payment"])


def _read(engine: sa.Engine, number: int) -> Written:
    key = named(number).key
    with engine.connect() as connection:
        effect = connection.execute(sa.select(effects).where(effects.c.key == key)).mappings().one()
        explained = connection.execute(sa.select(entries).where(entries.c.key == key).order_by(entries.c.seq))
        return Written(number, dict(effect), tuple(dict(entry) for entry in explained.mappings()))
