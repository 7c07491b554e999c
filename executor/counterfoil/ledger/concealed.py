"""Which columns of the ledger are kept as ciphertext where it is encrypted, and how each crosses.

Owns the way between a database row and what it says, for effects, entries and incidents. An effect with a data key is
concealed, one without it is plain. What the ledger itself must compare or count stays in clear: names, verdicts, codes,
references, instants and costs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.effect import Row
from counterfoil.ledger import pins
from counterfoil.ledger.cipher import MARK, CipherKeys, DataKey, Unreadable

COLUMNS: Final = ("occurrence", "arguments", "echo", "reason", "value")
CONCEALED: Final = "concealed"  # the member of a detail that holds what it says
_WRAPPED: Final = "data_key"
_IN_CLEAR: Final = ("verdict", "code")  # of an entry's detail: `stats` counts them
_OPTION: Final = "counterfoil_cipher"
_NOT_GIVEN: Final = "a record is encrypted, and no cipher key was given"


def with_cipher(engine: sa.Engine, keys: CipherKeys | None) -> sa.Engine:
    """The same engine, whose connections know these cipher keys."""
    return engine if keys is None else engine.execution_options(**{_OPTION: keys})


def cipher_of(connection: sa.Connection) -> CipherKeys | None:
    """The cipher keys that a connection knows."""
    found: CipherKeys | None = connection.get_execution_options().get(_OPTION)
    return found


def writing(connection: sa.Connection, *, lock: bool = False) -> str | None:
    """The id of the cipher key that encrypts what is new in this ledger; None where nothing is encrypted.

    With `lock` it goes on being the one until the transaction ends.
    """
    keys = cipher_of(connection)
    if keys is None:  # then the database itself refuses a plain effect where the ledger is encrypted
        return None
    known = pins.ciphers(connection, lock=lock)
    return known[0] if known else None


# ---------------------------------------------------------------- an effect


def fresh_data_key(connection: sa.Connection, key: bytes, by: str | None) -> str | None:
    """The data key of an effect that begins, wrapped by the cipher key that is `writing`, which this transaction holds;
    None where it is kept in plain.

    Raises:
        Unreadable: the ledger is encrypted by a cipher key that this host does not know: it may begin nothing.
    """
    keys = cipher_of(connection)
    return None if by is None or keys is None else keys.fresh(by, key).wrapped


def conceal(connection: sa.Connection, row: Row, columns: dict[str, Any]) -> dict[str, Any]:
    """Columns of an effect as the database keeps them: ciphertext, if it has a data key.

    Raises:
        Unreadable: the cipher key was not given.
    """
    if row.data_key is None or columns.keys().isdisjoint(COLUMNS):
        return columns
    return columns | concealed_columns(_opened(cipher_of(connection), row.data_key, row.key), columns)


def concealed_columns(data_key: DataKey, columns: Mapping[str, Any]) -> dict[str, str]:
    """Those of the columns that are kept as ciphertext."""
    told = {name: columns[name] for name in COLUMNS if columns.get(name) is not None}
    return {name: data_key.conceal(text, f"effects.{name}") for name, text in told.items()}


def reveal(columns: Mapping[str, Any], keys: CipherKeys | None) -> dict[str, str]:
    """What the concealed columns of an effect say; `columns` are all of it, as the database has them.

    Raises:
        Unreadable: the cipher key was not given, or something was changed.
    """
    wrapped = columns["data_key"]
    if wrapped is None:
        if str(columns["arguments"]).startswith(MARK):
            raise Unreadable("a record cannot be decrypted: its data key was taken away")
        return {}
    data_key = _opened(keys, wrapped, bytes(columns["key"]))
    told = {name: columns[name] for name in COLUMNS if columns[name] is not None}
    return {name: data_key.reveal(text, f"effects.{name}") for name, text in told.items()}


def _opened(keys: CipherKeys | None, wrapped: str, of: bytes) -> DataKey:
    if keys is None:
        raise Unreadable(_NOT_GIVEN)
    return keys.opened(wrapped, of)


# ---------------------------------------------------------------- an entry


def conceal_entry(connection: sa.Connection, row: Row, detail: dict[str, Any]) -> dict[str, Any]:
    """The detail of the entry that explains the present version of an effect, as it is kept. Raises as `conceal`."""
    if row.data_key is None:
        return detail
    return concealed_entry(_opened(cipher_of(connection), row.data_key, row.key), row.version, detail)


def concealed_entry(data_key: DataKey, seq: int, detail: Mapping[str, Any]) -> dict[str, Any]:
    """The detail of an entry as ciphertext, but for what `stats` counts."""
    clear = {name: detail[name] for name in _IN_CLEAR if name in detail}
    rest = {name: content for name, content in detail.items() if name not in clear}
    return clear | {CONCEALED: data_key.conceal(json.dumps(rest), _of_entry(seq, clear))}


def reveal_entry(
    keys: CipherKeys | None, wrapped: str | None, key: bytes, seq: int, kept: Mapping[str, Any]
) -> dict[str, Any]:
    """What the detail of an entry says; `wrapped` is the data key of its effect. One that was written before the ledger
    was encrypted is plain.

    Raises:
        Unreadable: the cipher key was not given, or something was changed.
    """
    if CONCEALED not in kept:
        return dict(kept)
    if wrapped is None:
        raise Unreadable("a record cannot be decrypted: its data key was taken away")
    clear = {name: kept[name] for name in _IN_CLEAR if name in kept}
    rest: dict[str, Any] = json.loads(_opened(keys, wrapped, key).reveal(str(kept[CONCEALED]), _of_entry(seq, clear)))
    return clear | rest


def _of_entry(seq: int, clear: Mapping[str, Any]) -> str:
    return f"entries.detail {seq} {json.dumps(clear, sort_keys=True)}"


# ---------------------------------------------------------------- an incident


def conceal_incident(connection: sa.Connection, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The detail of an incident as it is kept; `columns` are all the others, with the plain `detail`."""
    by, keys = writing(connection), cipher_of(connection)
    if by is None or keys is None:
        plain: dict[str, Any] = columns["detail"]
        return plain
    return concealed_incident(keys, by, columns)


def concealed_incident(keys: CipherKeys, by: str, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The detail of an incident under a data key of its own: an incident may be of no effect, and outlives a prune."""
    data_key = keys.fresh(by, of_incident(columns))
    return {CONCEALED: data_key.conceal(json.dumps(columns["detail"]), "incidents.detail"), _WRAPPED: data_key.wrapped}


def reveal_incident(columns: Mapping[str, Any], keys: CipherKeys | None) -> dict[str, Any]:
    """What the detail of an incident says.

    Raises:
        Unreadable: the cipher key was not given, or something was changed.
    """
    kept: dict[str, Any] = columns["detail"]
    if CONCEALED not in kept:
        return kept
    data_key = _opened(keys, str(kept.get(_WRAPPED)), of_incident(columns))
    told: dict[str, Any] = json.loads(data_key.reveal(str(kept[CONCEALED]), "incidents.detail"))
    return told


def incident_key(detail: Mapping[str, Any]) -> str | None:
    """The wrapped data key of an incident; None: it is plain."""
    return str(detail.get(_WRAPPED)) if CONCEALED in detail else None


def with_incident_key(detail: Mapping[str, Any], wrapped: str) -> dict[str, Any]:
    """The detail of an incident whose data key is wrapped anew."""
    return {**detail, _WRAPPED: wrapped}


def of_incident(columns: Mapping[str, Any]) -> bytes:
    """To what the data key of an incident belongs."""
    key = None if columns["key"] is None else bytes(columns["key"]).hex()
    names = [key, *(columns[name] for name in ("tenant", "tool", "task", "kind", "at"))]
    return hashlib.sha256(json.dumps(names).encode()).digest()
