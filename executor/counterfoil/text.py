"""Text that every database can keep."""

from __future__ import annotations

_NUL = "\x00"
_INSTEAD = "\N{REPLACEMENT CHARACTER}"


def storable(text: str, most: int | None = None) -> str:
    """`text` without NUL and lone surrogates, cut to `most` characters: PostgreSQL refuses the one, drivers the other.

    Example:
        >>> storable("a\\x00b", 2) == "a\\ufffd"
        True
    """
    if _NUL in text or not text.isprintable():
        text = text.encode("utf-8", "replace").decode("utf-8").replace(_NUL, _INSTEAD)
    return text if most is None else text[:most]
