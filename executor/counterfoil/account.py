"""What an engineer may read in the ledger about an exception: its kinds, its texts and where it was raised.

Owns the account of an exception and of what it was raised from. It reads no response that is still on its way, shows no
local variable and no line of source, and masks secrets. No model reads any of it.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from counterfoil.cleaning import kept
from counterfoil.failure import explicit_chain, name_of, status_of

KINDS_MAX: Final = 20
FRAMES_MAX: Final = 3
_TEXT_MAX: Final = 4_000_000


def account_of(problem: BaseException, hidden: Iterable[str] = ()) -> dict[str, Any]:
    """The account, as `cleaning.kept` keeps it, with the HTTP status where there is one.

    Args:
        problem: what left the tool's function.
        hidden: secrets that are known, to be masked wherever they stand.

    Example:
        >>> account_of(ValueError("GET https://api.example/v1?key=SECRET-123"))
        {'text': 'ValueError: GET https://api.example/v1?key=***'}
    """
    lines = []
    chain = list(islice(explicit_chain(problem), 10_000))
    for number, node in enumerate(chain[:KINDS_MAX]):
        text = _text(node)
        lines.append(("from " if number else "") + name_of(type(node)) + (f": {text}" if text else ""))
        lines += [f"note: {note}" for note in _notes(node)]
    if len(chain) > KINDS_MAX:
        lines.append(f"and {len(chain) - KINDS_MAX} more below")
    lines += [f"raised in {place}" for place in _places(problem)]
    account = kept("\n".join(lines), hidden)
    status = status_of(problem)
    return account if status is None else account | {"status": status}


def _text(node: BaseException) -> str:
    try:
        return str(node)[:_TEXT_MAX]
    except Exception:  # noqa: BLE001 - another library's code: whatever it raises, there is no text then
        return ""


def _notes(node: BaseException) -> list[str]:
    notes = getattr(node, "__notes__", ())
    return [note for note in notes[:5] if isinstance(note, str)] if isinstance(notes, list) else []


def _places(problem: BaseException) -> list[str]:
    """The last frames, innermost first, by module and function: nothing of what stood in them."""
    last = deque(traceback.walk_tb(problem.__traceback__), maxlen=FRAMES_MAX)
    return [
        f"{frame.f_globals.get('__name__', '?')}.{frame.f_code.co_name}, line {line}" for frame, line in reversed(last)
    ]
