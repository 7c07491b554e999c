"""Writing and reading the one event of a booking."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from counterfoil_tools import icalendar

AT = datetime(2026, 3, 4, 9, tzinfo=UTC)
PROSE = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=200)


def _event(uid: str = "cf-1", summary: str = "tea", contact: str = "Ada", start: datetime = AT) -> bytes:
    return icalendar.event(uid=uid, start=start, minutes=30, summary=summary, contact=contact)


@given(uid=PROSE.filter(lambda text: bool(text.strip()) and text == text.strip()), summary=PROSE)
def test_a_uid_is_read_back_whatever_it_holds(uid: str, summary: str) -> None:
    """Separators, backslashes and letters of any script survive writing, folding, reading."""
    assert icalendar.uid(_event(uid=uid, summary=summary).decode()) == uid


@given(PROSE)
def test_no_line_is_longer_than_75_bytes_and_no_character_is_cut(summary: str) -> None:
    """Every line of the file keeps the limit, and every line is whole text by itself."""
    for line in _event(summary=summary).split(b"\r\n"):
        assert len(line) <= icalendar.LINE_BYTES
        line.decode()


def test_text_cannot_add_properties() -> None:
    """Line breaks and control characters in a title stay inside the title."""
    written = _event(summary="tea\r\nUID:other\nDTSTART:19700101T000000Z\x00\x1b")
    assert written.count(b"\r\nUID:") == 1
    assert b"SUMMARY:tea\\nUID:other\\nDTSTART:19700101T000000Z\r\n" in written


def test_the_uid_of_the_event_is_read_and_no_other() -> None:
    """A UID outside the event, and one of an alarm after it, are not the event's; a parameter does not hide it."""
    lines = [
        "BEGIN:VCALENDAR",
        "UID:outer",
        "BEGIN:VEVENT",
        "uid;X-A=b:cf-1",
        "BEGIN:VALARM",
        "UID:alarm",
        "END:VALARM",
    ]
    assert icalendar.uid("\n".join(lines)) == "cf-1"
    assert icalendar.uid("BEGIN:VCALENDAR\nUID:outer\nEND:VCALENDAR") is None
    assert icalendar.uid("") is None


def test_one_instant_is_written_one_way() -> None:
    """The same instant from another offset gives the same bytes: a booking that is sent again is the same booking."""
    assert _event(start=AT.astimezone(timezone(timedelta(hours=5, minutes=30)))) == _event()
