"""Which calls are the same to the loop guard: the similarity fingerprint, blind to what does not change an approach.

It serves the loop guard alone and names no effect: two payments may be similar and are still two.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from counterfoil.errors import UsageError

DIGITS: Final = 6
_SPACES: Final = re.compile(r"\s+")
_SLASHES: Final = re.compile(r"[/\\]+")
_NUMBER: Final = re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Alike:
    """Marks an argument whose spelling matters less than that of others: `Annotated[str, Alike(path=True)]`.

    Without it, texts are alike when they differ in their spaces or Unicode form only, and numbers when they agree in
    six digits. It changes nothing but what the loop guard takes for the same call.

    Args:
        ignore_case: capitals and small letters are alike.
        path: repeated and trailing slashes are alike.
        digits: so many significant digits of a number count, 1 to 15.

    Raises:
        UsageError: digits out of range.

    Example:
        >>> first = similarity("search", {"where": "/a/B/"}, {"where": Alike(path=True, ignore_case=True)})
        >>> first == similarity("search", {"where": " /a/b"}, {"where": Alike(path=True, ignore_case=True)})
        True
    """

    ignore_case: bool = False
    path: bool = False
    digits: int = DIGITS

    def __post_init__(self) -> None:
        if type(self.digits) is not int or not 1 <= self.digits <= 15:
            raise UsageError(f"Alike(digits={self.digits!r}): give a whole number from 1 to 15")


_PLAIN: Final = Alike()


def similarity(tool: str, arguments: Mapping[str, Any], alike: Mapping[str, Alike]) -> bytes:
    """The fingerprint (32 bytes) of a call, from its arguments as JSON data; `alike` by the argument's name.

    Example:
        >>> similarity("search", {"q": "two  words"}, {}) == similarity("search", {"q": " two words "}, {})
        True
    """
    plain = {_text(name, _PLAIN): _plain(value, alike.get(name, _PLAIN)) for name, value in arguments.items()}
    text = json.dumps([tool, plain], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"counterfoil-similarity\0" + text.encode("ascii")).digest()


def _plain(value: Any, how: Alike) -> Any:
    if isinstance(value, Mapping):
        return {_text(str(name), _PLAIN): _plain(one, how) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, how) for one in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return _number(value, how)
    text = _text(str(value), how)
    # Where arguments did not fit, a number may stand there as text.
    return _number(float(text), how) if _NUMBER.fullmatch(text) else text


def _number(value: int | float, how: Alike) -> list[str]:
    """Rounded to the digits that count; whole numbers, which may be ids, are told apart exactly."""
    if isinstance(value, int) or value.is_integer():
        return ["n", str(int(value))]
    return ["n", f"{value:.{how.digits}g}" if math.isfinite(value) else str(value)]


def _text(text: str, how: Alike) -> str:
    plain = _SPACES.sub(" ", unicodedata.normalize("NFKC", text)).strip()
    if how.path:
        plain = _SLASHES.sub("/", plain)
        plain = plain.rstrip("/") or plain[:1]
    return plain.casefold() if how.ignore_case else plain
