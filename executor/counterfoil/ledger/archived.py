"""Reading the archive of a prune again: its lines as they were in the ledger, decrypted where they are encrypted.

Only reads, and needs no ledger. The key ids of what is archived stay those of its day: keep earlier cipher keys for as
long as you keep the archive.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterfoil.errors import UsageError
from counterfoil.ledger.archive import FORMAT
from counterfoil.ledger.cipher import CipherKeys, Unreadable
from counterfoil.ledger.concealed import reveal, reveal_entry, reveal_incident


def rows(path: Path, keys: CipherKeys | None) -> Iterator[dict[str, Any]]:
    """Each line of an archive, in its order. A last line that a crash left torn is left out.

    Raises:
        UsageError: the file cannot be read, or is no archive.
        Unreadable: a line is encrypted by a cipher key that was not given, or was changed; its effect is named.
    """
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return
                yield _revealed(_content(line), keys)
    except OSError:
        raise UsageError("the archive cannot be read") from None


def _content(line: bytes) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UsageError("this file is no archive of a prune")
    return content


def _revealed(content: dict[str, Any], keys: CipherKeys | None) -> dict[str, Any]:
    effect = content["effect"]
    key, wrapped = bytes.fromhex(effect["key"]), effect["data_key"]
    try:
        told = {**effect, **reveal({**effect, "key": key}, keys)}
        explained = [
            {**one, "detail": reveal_entry(keys, wrapped, key, one["seq"], one["detail"])} for one in content["entries"]
        ]
        raised = [{**one, "detail": reveal_incident({**one, "key": key}, keys)} for one in content["incidents"]]
    except Unreadable as problem:
        raise Unreadable(f"{content['id']}: {problem}") from None
    return {**content, "effect": told, "entries": explained, "incidents": raised}
