"""As much of iCalendar (RFC 5545) as one booking needs: write an event, and read whose event a resource holds.

Owns escaping, folding and the UID. It knows no server and no tool.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

LINE_BYTES: Final = 75
_STAMP: Final = "%Y%m%dT%H%M%SZ"


def stamp(instant: datetime) -> str:
    """The instant in UTC, as iCalendar writes it.

    Example:
        >>> stamp(datetime(2026, 3, 4, 9, tzinfo=UTC))
        '20260304T090000Z'
    """
    return instant.astimezone(UTC).strftime(_STAMP)


def event(*, uid: str, start: datetime, minutes: int, summary: str, contact: str) -> bytes:
    """A calendar with one event, ready to be stored. The same arguments give the same bytes, so that a booking that is
    sent again is the same booking: therefore the event is stamped with its own start.

    Example:
        >>> at = datetime(2026, 3, 4, 9, tzinfo=UTC)
        >>> b"SUMMARY:tea\\\\, cake" in event(uid="u", start=at, minutes=30, summary="tea, cake", contact="a")
        True
    """
    lines = (
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Counterfoil//bookings//EN",
        "BEGIN:VEVENT",
        f"UID:{escape(uid)}",
        f"DTSTAMP:{stamp(start)}",
        f"DTSTART:{stamp(start)}",
        f"DTEND:{stamp(start + timedelta(minutes=minutes))}",
        f"SUMMARY:{escape(summary)}",
        f"CONTACT:{escape(contact)}",
        "END:VEVENT",
        "END:VCALENDAR",
    )
    return b"".join(_folded(line) + b"\r\n" for line in lines)


def uid(text: str) -> str | None:
    """The UID of the first event in a stored resource; None when there is none to read.

    Example:
        >>> uid("BEGIN:VCALENDAR\\r\\nBEGIN:VEVENT\\r\\nUID:cf-\\r\\n 1\\r\\nEND:VEVENT\\r\\nEND:VCALENDAR\\r\\n")
        'cf-1'
    """
    inside = False
    for line in _unfolded(text):
        name, _, content = line.partition(":")
        match name.split(";", 1)[0].upper():
            case "BEGIN" if content.strip().upper() == "VEVENT":
                inside = True
            case "UID" if inside:
                return unescape(content.strip())
            case _:
                pass
    return None


def escape(text: str) -> str:
    """Text as a property's value.

    Example:
        >>> print(escape("a;b\\nc"))
        a\\;b\\nc
    """
    for character in "\\;,":
        text = text.replace(character, "\\" + character)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\\n")
    return "".join(character for character in text if character == "\t" or character >= " ")


def unescape(value: str) -> str:
    """The text of a property's value.

    Example:
        >>> unescape(escape("a;b, c")) == "a;b, c"
        True
    """
    text, skip = [], False
    for character in value:
        if skip:
            text.append("\n" if character in "nN" else character)
            skip = False
        elif character == "\\":
            skip = True
        else:
            text.append(character)
    return "".join(text)


def _folded(line: str) -> bytes:
    """No line longer than 75 bytes, no character cut in two."""
    parts: list[bytes] = []
    part = b""
    for character in line:
        encoded = character.encode()
        if len(part) + len(encoded) > LINE_BYTES - (1 if parts else 0):
            parts.append(part)
            part = b""
        part += encoded
    parts.append(part)
    return b"\r\n ".join(parts)


def _unfolded(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        if line[:1] in (" ", "\t") and lines:
            lines[-1] += line[1:]
        else:
            lines.append(line)
    return lines
