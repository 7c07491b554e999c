"""What a seal is made from: the digests of entries and effects, and the root that chains them. Format 1.

Owns the canonical form and its version. A digest is a SHA-256, keyed (HMAC) where there is a secret: then nobody makes
one who can only write to the database. Columns are taken as the database holds them, JSON as its text, so that nothing
is read in a kinder way than it was written. Reads and writes nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.effect import Verdict
from counterfoil.ledger.schema import effects, entries

FORMAT: Final = 1
SIZE: Final = 32
START: Final = b"\0" * SIZE  # what the first seal is chained to
_NAME: Final = b"counterfoil seal 1 "

# The schedule of looks, and the instants that a running attempt pushes on, change without an entry. They are sealed
# where nothing moves them any more; before, only that the latter are not lower than they were.
_SCHEDULE: Final = ("look_at",)
_PUSHED: Final = ("sends_until", "earlier_sends_until", "absent_from")
_MOVING: Final = frozenset({*_SCHEDULE, *_PUSHED, "boot_id", "boot_low", "boot_high"})
_NOT_SEALED: Final = _MOVING | {"sealed_version", "data_key"}


def raw(table: sa.Table) -> tuple[sa.ColumnElement[Any], ...]:
    """The columns of a table as the database holds them."""
    return tuple(_raw(column).label(column.name) for column in table.columns)


def _raw(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    if isinstance(column.type, sa.JSON):
        return sa.cast(column, sa.Text)
    return sa.type_coerce(column, sa.types.NullType())


RAW_EFFECT: Final = raw(effects)
RAW_ENTRY: Final = raw(entries)


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a seal holds of one effect: see `schema.sealed`."""

    key: bytes
    first: int
    version: int
    state: bytes
    least: str
    entries: bytes

    def of(self, seq: int) -> bytes | None:
        """The digest of an entry; None for one that this leaf does not cover."""
        place = (seq - self.first) * SIZE
        return self.entries[place : place + SIZE] if 0 <= place < len(self.entries) else None


class Digests:
    """Digests of format 1, keyed where there is a secret.

    Example:
        >>> plain, keyed = Digests(None), Digests(b"0123456789abcdef")
        >>> plain.secret_id, len(keyed.secret_id), plain.entry({"seq": 1}) == keyed.entry({"seq": 1})
        (None, 16, False)
    """

    def __init__(self, secret: bytes | None) -> None:
        self._key = None if secret is None else hmac.digest(secret, _NAME + b"key", "sha256")
        self.secret_id = None if secret is None else hmac.digest(secret, _NAME + b"id", "sha256").hex()[:16]

    def entry(self, columns: Mapping[str, Any]) -> bytes:
        """Of an entry, all its columns."""
        return self._of("entry", columns)

    def state(self, columns: Mapping[str, Any]) -> bytes:
        """Of an effect as it is at its version."""
        settled = columns["verdict"] != str(Verdict.EFFECT_UNKNOWN)
        told = {name: content for name, content in columns.items() if name not in _NOT_SEALED}
        # What a data key is wrapped by changes when a cipher key is exchanged; that there is one does not.
        told |= {} if columns.get("data_key") is None else {"concealed": True}
        if settled:
            told |= {name: columns[name] for name in _MOVING.difference(_SCHEDULE)}
            if columns["look_at"] is None:
                told["look_at"] = None
        return self._of("effect", told)

    def leaf(self, leaf: Leaf) -> bytes:
        """Of a leaf."""
        return self._of("leaf", {name: getattr(leaf, name) for name in Leaf.__slots__})

    def root(self, head: Mapping[str, Any], leaves: Iterable[bytes]) -> bytes:
        """Of a seal: its own columns, the root of the one before it, and its leaves in the order of their keys."""
        body = hashlib.sha256()
        for one in leaves:
            body.update(one)
        return self._of("root", {**head, "leaves": body.digest()})

    def _of(self, kind: str, columns: Mapping[str, Any]) -> bytes:
        # SQLite keeps a truth as 0 or 1.
        told = {name: int(one) if isinstance(one, bool) else one for name, one in columns.items()}
        text = json.dumps([kind, told], sort_keys=True, separators=(",", ":"), default=_as_text)
        content = _NAME + text.encode()
        return hashlib.sha256(content).digest() if self._key is None else hmac.digest(self._key, content, "sha256")


def _as_text(value: object) -> Any:
    if isinstance(value, bytes | memoryview):
        return {"bytes": bytes(value).hex()}
    return {"other": repr(value)}


def least(columns: Mapping[str, Any]) -> str:
    """The instants of an effect that may only grow while its version stays, as the text that a leaf keeps."""
    return json.dumps([columns[name] for name in _PUSHED])


def fallen(columns: Mapping[str, Any], kept: str) -> bool:
    """Whether one of those instants is lower than it was, or is of another kind."""
    before: Sequence[Any] = json.loads(kept)
    for name, low in zip(_PUSHED, before, strict=True):
        now = columns[name]
        if (now is None) != (low is None) or (low is not None and not (isinstance(now, int) and now >= low)):
            return True
    return False
