"""Between a database row and a `Row`: which columns there are, and how each value crosses."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import RowMapping

from counterfoil.effect import Proof, Row, Verdict
from counterfoil.ledger.cipher import CipherKeys, Unreadable
from counterfoil.ledger.concealed import reveal
from counterfoil.ledger.schema import effects
from counterfoil.text import storable

_log = logging.getLogger("counterfoil")
CODE_MAX = 64
_AS_THEY_ARE = frozenset({int, bool, bytes})
COLUMNS = tuple(column for column in effects.columns)
_NAMES = frozenset(column.name for column in COLUMNS)
_FIELDS = frozenset(item.name for item in fields(Row))
# What no effect has at its birth; leaving it out of the INSERT leaves it NULL.
_LATER = frozenset(
    {"proof", "reason", "settled_attempt", "conditional_at", "value", "value_size", "value_digest", "value_note",
     "revoke_by", "revoked_at", "undone_by", "pruned_at"}
)  # fmt: skip
_AT_BIRTH = _NAMES - _LATER
assert all(effects.c[name].nullable for name in _LATER)
assert _FIELDS - {"now"} == _NAMES, "Row and the effects table have the same columns"


def to_row(mapping: RowMapping | Mapping[str, Any], now: int, keys: CipherKeys | None) -> Row:
    """The `Row` of a database row (by column names) read at the ledger's time `now`, with the connection's cipher keys.

    Raises:
        Unreadable: it is encrypted, and cannot be decrypted with these.
    """
    content = {name: mapping[name] for name in _NAMES}
    try:
        content |= reveal(content, keys)
    except Unreadable as problem:
        raise Unreadable(f"{content['id']}: {problem}") from None
    content["key"] = bytes(content["key"])
    content["fingerprint"] = bytes(content["fingerprint"])
    content["verdict"] = Verdict(content["verdict"])
    content["proof"] = None if content["proof"] is None else Proof(content["proof"])
    content["undoes"] = None if content["undoes"] is None else bytes(content["undoes"])
    content["provider_keys"] = tuple(content["provider_keys"])
    content["references"] = tuple(content["references"])
    content["now"] = now
    return Row.whole(content)


def readable(rows: Iterable[RowMapping], now: int, keys: CipherKeys | None) -> list[Row]:
    """The rows that can be decrypted; what cannot is logged, keeps its verdict, and holds the others up in nothing."""
    made = []
    for one in rows:
        try:
            made.append(to_row(one, now, keys))
        except Unreadable as problem:
            _log.warning("left as it is: %s", problem)
    return made


def to_columns(content: Mapping[str, Any]) -> dict[str, Any]:
    """Column values of the database for changed fields of a `Row`."""
    columns = {name: _crossed(value) for name, value in content.items() if name in _NAMES}
    if columns.get("code") is not None:
        columns["code"] = columns["code"][:CODE_MAX]
    return columns


def _crossed(value: Any) -> Any:
    if value is None or type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, (Verdict, Proof)):
        return str(value)
    if isinstance(value, str):
        return storable(value)
    return [_crossed(one) for one in value] if isinstance(value, tuple) else value


def birth_columns(row: Row) -> dict[str, Any]:
    """The columns of a `Row` that was just born."""
    return to_columns({name: getattr(row, name) for name in _AT_BIRTH})


def all_columns(row: Row) -> dict[str, Any]:
    """Every column of a `Row`."""
    return to_columns({name: getattr(row, name) for name in _NAMES})
