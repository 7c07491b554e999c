"""A tool's return value, made ready for the ledger. A value that cannot be kept never costs the verdict (C33, C34)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from pydantic_core import to_jsonable_python

from counterfoil.changes import StoredValue
from counterfoil.cleaning import without
from counterfoil.policy import Policy
from counterfoil.private import only, without_private


def kept_value(value: Any, policy: Policy, hidden: Iterable[str] = ()) -> StoredValue:
    """A tool's value as its policy keeps it: the chosen fields, nothing under a private name, no word of `hidden`."""
    return stored(value, policy.value_max_bytes, policy.store_value, hidden)


def stored(
    value: Any, most_bytes: int, only_names: tuple[str, ...] | None = None, hidden: Iterable[str] = ()
) -> StoredValue:
    """JSON text of `value` in pure ASCII, or size, digest and a note where it is too large or no JSON.

    Example:
        >>> stored({"text": "a\\x00b"}, 100).text
        '{"text": "a\\\\u0000b"}'
        >>> stored("x" * 200, 100).note
        'its result has 202 bytes, more than the 100 that are kept'
    """
    try:
        data = without(without_private(_plain(value)), hidden)
        text = json.dumps(data if only_names is None else only(data, only_names), allow_nan=False)
    except Exception:  # noqa: BLE001 - a value's own code runs here: whatever it raises, the tool has returned and that counts
        return StoredValue(None, 0, None, "its result is not JSON data and was not kept")
    if len(text) > most_bytes:
        digest = "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()
        note = f"its result has {len(text)} bytes, more than the {most_bytes} that are kept"
        return StoredValue(None, len(text), digest, note)
    return StoredValue(text, len(text))


def _plain(value: Any) -> Any:
    try:
        return to_jsonable_python(value)
    except UnicodeEncodeError:  # a lone surrogate in a name: JSON can escape it
        return value
