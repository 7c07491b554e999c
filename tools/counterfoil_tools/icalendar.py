"""As much of iCalendar (RFC 5545) as one booking needs: write an event, and read whose event a resource holds.

Owns escaping, folding, the UID, and two properties of its own: whose the event is where its UID is another's, and the
names that are over. A CalDAV server keeps such properties (RFC 4791, 5.3.3). It knows no server and no tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

LINE_BYTES: Final = 75
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_OWNER: Final = "X-COUNTERFOIL-EFFECT"
_ENDED: Final = "X-COUNTERFOIL-ENDED"


def stamp(instant: datetime) -> str:
    """The instant in UTC, as iCalendar writes it.

    Example:
        >>> stamp(datetime(2026, 3, 4, 9, tzinfo=UTC))
        '20260304T090000Z'
    """
    return instant.astimezone(UTC).strftime(_STAMP)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a stored resource says of its event: `owner` is the effect whose it is, `ended` are names that are over."""

    uid: str
    owner: str
    cancelled: bool = False
    sequence: int = 0
    ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An event to be stored: a booking of `owner`, or in its place a cancelled one.

    Args:
        owner: the effect whose it is.
        summary: what it is for.
        contact: who comes.
        uid: the event's UID; the owner when left out.
        sequence: how often the resource was changed before.
        cancelled: it books nothing.
        ended: names that are over: provider keys that may not book here any more, effects that have released the slot.

    Example:
        >>> at = datetime(2026, 3, 4, 9, tzinfo=UTC)
        >>> written = Entry(owner="cf-1", summary="tea", contact="a", cancelled=True).written(start=at, minutes=30)
        >>> stored(written.decode())
        Stored(uid='cf-1', owner='cf-1', cancelled=True, sequence=0, ended=())
    """

    owner: str
    summary: str
    contact: str
    uid: str = ""
    sequence: int = 0
    cancelled: bool = False
    ended: tuple[str, ...] = ()

    def after(self, there: Stored) -> Entry:
        """This entry in the place of the one that is there: its UID stays, one change more, nothing that is over is
        forgotten."""
        ended = tuple(dict.fromkeys((*there.ended, *self.ended)))
        return replace(self, uid=there.uid, sequence=there.sequence + 1, ended=ended)

    def written(self, *, start: datetime, minutes: int) -> bytes:
        """The calendar with this one event, ready to be stored. The same entry gives the same bytes, so that a booking
        that is sent again is the same booking: therefore the event is stamped with its own start."""
        uid = self.uid or self.owner
        lines = (
            "BEGIN:VCALENDAR",
            "VERSION:2.0",
            "PRODID:-//Counterfoil//bookings//EN",
            "BEGIN:VEVENT",
            f"UID:{escape(uid)}",
            f"DTSTAMP:{stamp(start)}",
            f"DTSTART:{stamp(start)}",
            f"DTEND:{stamp(start + timedelta(minutes=minutes))}",
            f"SUMMARY:{escape(self.summary)}",
            f"CONTACT:{escape(self.contact)}",
            *([f"SEQUENCE:{self.sequence}"] if self.sequence else []),
            *(["STATUS:CANCELLED"] if self.cancelled else []),
            *([f"{_OWNER}:{escape(self.owner)}"] if self.owner != uid else []),
            *(f"{_ENDED}:{escape(name)}" for name in self.ended),
            "END:VEVENT",
            "END:VCALENDAR",
        )
        return b"".join(_folded(line) + b"\r\n" for line in lines)


def event(*, uid: str, start: datetime, minutes: int, summary: str, contact: str) -> bytes:
    """A calendar with one event, ready to be stored.

    Example:
        >>> at = datetime(2026, 3, 4, 9, tzinfo=UTC)
        >>> b"SUMMARY:tea\\\\, cake" in event(uid="u", start=at, minutes=30, summary="tea, cake", contact="a")
        True
    """
    return Entry(owner=uid, summary=summary, contact=contact).written(start=start, minutes=minutes)


def uid(text: str) -> str | None:
    """The UID of the first event in a stored resource; None when there is none to read.

    Example:
        >>> uid("BEGIN:VCALENDAR\\r\\nBEGIN:VEVENT\\r\\nUID:cf-\\r\\n 1\\r\\nEND:VEVENT\\r\\nEND:VCALENDAR\\r\\n")
        'cf-1'
    """
    found = stored(text)
    return found.uid if found is not None else None


def stored(text: str) -> Stored | None:
    """What a stored resource says; None when it holds no event with a UID. Cancelled only when all its events are."""
    properties = list(_of_events(text))
    first = {name: value for number, name, value in reversed(properties) if number == 1}
    if "UID" not in first:
        return None
    cancelled = {number for number, name, value in properties if name == "STATUS" and value.upper() == "CANCELLED"}
    sequence = first.get("SEQUENCE", "")
    return Stored(
        uid=unescape(first["UID"]),
        owner=unescape(first.get(_OWNER, first["UID"])),
        cancelled=cancelled == {number for number, _, _ in properties},
        sequence=int(sequence) if sequence.isascii() and sequence.isdigit() else 0,
        ended=tuple(unescape(value) for number, name, value in properties if number == 1 and name == _ENDED),
    )


def _of_events(text: str) -> Iterator[tuple[int, str, str]]:
    """The properties of the events, each with its event's number from 1, but none of what the events contain."""
    within: list[str] = []
    number = 0
    for line in _unfolded(text):
        name, _, content = line.partition(":")
        name, value = name.split(";", 1)[0].upper(), content.strip()
        if name == "BEGIN":
            within.append(value.upper())
            number += within[-1] == "VEVENT"
        elif name == "END":
            del within[-1:]
        elif within[-1:] == ["VEVENT"]:
            yield number, name, value


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
