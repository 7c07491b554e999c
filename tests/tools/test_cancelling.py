"""Cancelling bookings against a real CalDAV server: the stone of a revoke, the release of a booking, booking again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from tools.world import Attempt, Scripted, attempt, bookings, events, look, taken_back

from counterfoil import Revoked, Tool
from counterfoil.attempt import Effect
from counterfoil.effect import Absent, Found, Lost, NeverSent, Refused, Unclear
from counterfoil_tools import icalendar, servers
from counterfoil_tools.bookings import caldav_tools
from counterfoil_tools.faultproxy import Fault, FaultKind, FaultProxy
from counterfoil_tools.servers import Server

NINE = datetime(2026, 3, 4, 9, tzinfo=UTC)
NAME = "20260304T090000Z.ics"
ADA: dict[str, Any] = {"slot": NINE, "guest": "Ada", "title": "tea"}
BOB: dict[str, Any] = {"slot": NINE, "guest": "Bob", "title": "coffee"}
RACERS = 8


def tool_at(url: str) -> Tool[..., Any]:
    client = httpx.Client(trust_env=False)
    return caldav_tools(client, calendar_url=url + servers.CALENDAR_PATH, grace_s=1.0)[0]


@pytest.fixture
def book(caldav_proxy: FaultProxy, calendar: httpx.Client) -> Tool[..., Any]:
    return tool_at(caldav_proxy.url)


def revoke(book: Tool[..., Any], original: Effect, name: str = "cf-revoke", **more: Any) -> Attempt:
    assert book.revoke_tool is not None
    return attempt(book.revoke_tool, name, original=original, **more)


def unbook(book: Tool[..., Any], original: Effect, name: str = "cf-unbook", **more: Any) -> Attempt:
    assert book.compensation_tool is not None
    return attempt(book.compensation_tool, name, original=original, **more)


def look_unbooked(book: Tool[..., Any], original: Effect, name: str = "cf-unbook") -> Found[Any] | Absent | Unclear:
    assert book.compensation_tool is not None
    return look(book.compensation_tool, name, original=original)


def stored(calendar: httpx.Client) -> icalendar.Stored:
    event = icalendar.stored(calendar.get(NAME).text)
    assert event is not None
    return event


# ---------------------------------------------------------------- the revoke


def test_a_revoke_lays_a_stone_that_refuses_the_late_original(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """A cancelled event stands under the slot's name; the original that comes later is refused and books nothing."""
    assert revoke(book, taken_back("cf-1", **ADA)).value == Revoked()
    stone = stored(calendar)
    assert (stone.uid, stone.owner, stone.cancelled, stone.ended) == ("cf-1", "cf-1", True, ("cf-1-k0",))
    late = attempt(book, "cf-1", **ADA).outcome
    assert isinstance(late, Refused)
    assert (late.code, bookings(calendar)) == ("revoked", {})
    assert isinstance(look(book, "cf-1", **ADA), Absent)


def test_a_request_that_a_proxy_delays_finds_the_stone(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """The client has given up, the revoke is acknowledged, then the original arrives: the server refuses it."""
    caldav_proxy.arm(Fault("delay", method="PUT", seconds=1.5))
    assert isinstance(attempt(book, "cf-1", seconds=0.3, **ADA).outcome, Lost)
    assert revoke(book, taken_back("cf-1", **ADA)).value == Revoked()
    assert caldav_proxy.counts().acted["PUT"] == 1
    assert caldav_proxy.wait(lambda counts: counts.acted["PUT"] == 2, timeout_s=10)
    assert (events(calendar), bookings(calendar)) == ([NAME], {})


def test_a_late_request_onto_a_cancelled_slot_is_refused_too(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """It would replace another's cancelled event as that was; the stone has changed it."""
    revoke(book, taken_back("cf-0", **BOB))
    before = calendar.get(NAME).headers["ETag"]
    assert revoke(book, taken_back("cf-1", **ADA)).value == Revoked()
    content = icalendar.event(uid="cf-0", start=NINE, minutes=30, summary="tea", contact="Ada")
    assert calendar.put(NAME, content=content, headers={"If-Match": before}).status_code == 412
    assert stored(calendar).ended == ("cf-0-k0", "cf-1-k0")


def test_a_revoke_finds_the_booking(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """What has landed is told, with its value and its reference, and stays booked."""
    value = attempt(book, "cf-1", **ADA).value
    found = revoke(book, taken_back("cf-1", **ADA)).value
    assert isinstance(found, Found)
    assert (found.value, found.references) == (value, (NAME,))
    assert bookings(calendar) == {NAME: "cf-1"}


def test_a_slot_of_another_guest_is_no_stone(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """Another's booking refuses ours only as long as it stands: nothing is proven, and it is left as it is."""
    attempt(book, "cf-2", **BOB)
    assert isinstance(revoke(book, taken_back("cf-1", **ADA)).outcome, Lost)
    assert (bookings(calendar), stored(calendar).ended) == ({NAME: "cf-2"}, ())


@pytest.mark.parametrize("kind", ["lose_answer", "reset_after"])
def test_a_revoke_whose_answer_is_lost_is_repeated(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy, kind: FaultKind
) -> None:
    """The stone is recognised, also under the booking of a guest who came between."""
    caldav_proxy.arm(Fault(kind, method="PUT"))
    original = taken_back("cf-1", **ADA)
    assert isinstance(revoke(book, original).outcome, Lost)
    etag = calendar.get(NAME).headers["ETag"]
    assert revoke(book, original).value == Revoked()
    assert calendar.get(NAME).headers["ETag"] == etag
    assert attempt(book, "cf-2", **BOB).value["guest"] == "Bob"
    assert revoke(book, original).value == Revoked()
    assert bookings(calendar) == {NAME: "cf-2"}


def test_an_attempt_that_was_revoked_does_not_go_on(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """Its first storing is refused, and it sees a free slot: its key is over there, also after others used the slot."""
    revoke(book, taken_back("cf-1", **ADA))
    attempt(book, "cf-2", **BOB)
    unbook(book, taken_back("cf-2", **BOB))
    outcome = attempt(book, "cf-1", **ADA).outcome
    assert isinstance(outcome, Refused)
    assert (outcome.code, bookings(calendar)) == ("revoked", {})


def test_a_refused_revoke_is_a_refusal(scripted: Scripted) -> None:
    """A calendar that does not let the program write lays no stone and says so."""
    scripted.will_answer(403)
    outcome = revoke(tool_at(scripted.url), taken_back("cf-1", **ADA)).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == "forbidden"


@pytest.mark.parametrize("answers", [[500], [409], [404], [412, 404], [412, 500], [412, 200]])
def test_answers_to_a_revoke_that_prove_nothing(scripted: Scripted, answers: list[int]) -> None:
    """No stone is acknowledged where the server failed, or where what refused the stone cannot be read."""
    for status in answers:
        scripted.will_answer(status)
    assert isinstance(revoke(tool_at(scripted.url), taken_back("cf-1", **ADA)).outcome, Lost)


@pytest.mark.parametrize("etag", [{}, {"ETag": 'W/"1"'}])
def test_a_cancelled_event_without_a_strong_etag_is_not_replaced(scripted: Scripted, etag: dict[str, str]) -> None:
    """Where no change can be bound to what was read, another's cancelled event is no stone."""
    entry = icalendar.Entry(owner="cf-0", summary="", contact="", cancelled=True)
    scripted.will_answer(412)
    scripted.will_answer(200, entry.written(start=NINE, minutes=30).decode(), **etag)
    assert isinstance(revoke(tool_at(scripted.url), taken_back("cf-1", **ADA)).outcome, Lost)
    assert [method for method, *_ in scripted.requests] == ["PUT", "GET"]


# ---------------------------------------------------------------- booking again


def test_a_cancelled_slot_is_booked_by_another_guest(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """One event under the name, now the other's, found as such; the first guest's late request is still refused."""
    attempt(book, "cf-1", **ADA)
    unbook(book, taken_back("cf-1", **ADA))
    assert attempt(book, "cf-2", **BOB).value == {"slot": NINE.isoformat(), "guest": "Bob", "resource": NAME}
    assert (events(calendar), bookings(calendar)) == ([NAME], {NAME: "cf-2"})
    found = look(book, "cf-2", **BOB)
    assert isinstance(found, Found)
    assert found.references == (f"{NAME}#2",)
    assert isinstance(look(book, "cf-1", **ADA), Absent)
    late = icalendar.event(uid="cf-1", start=NINE, minutes=30, summary="tea", contact="Ada")
    assert calendar.put(NAME, content=late, headers={"If-None-Match": "*"}).status_code == 412


def test_a_cancelled_slot_is_offered(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """The free slots that a refusal names include the cancelled ones."""
    half_past = NINE + timedelta(minutes=30)
    attempt(book, "cf-1", **ADA)
    attempt(book, "cf-2", **{**BOB, "slot": half_past})
    unbook(book, taken_back("cf-2", **{**BOB, "slot": half_past}))
    refusal = attempt(book, "cf-3", **BOB).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.candidates[0]) == ("slot_taken", half_past.isoformat())


def test_an_event_that_a_person_cancelled_is_free(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """Cancelled by another program, without any word of ours: absent to the look, and bookable."""
    attempt(book, "cf-1", **ADA)
    text = calendar.get(NAME).text.replace("END:VEVENT", "STATUS:cancelled\r\nEND:VEVENT")
    assert calendar.put(NAME, content=text.encode(), headers={"Content-Type": "text/calendar"}).is_success
    assert isinstance(look(book, "cf-1", **ADA), Absent)
    attempt(book, "cf-2", **BOB)
    assert bookings(calendar) == {NAME: "cf-2"}


def test_eight_racers_on_a_cancelled_slot_make_one_booking(
    book: Tool[..., Any], calendar: httpx.Client, caldav_server: Server
) -> None:
    """One replaces the cancelled event, seven are refused, and each look tells its own guest the truth."""
    revoke(book, taken_back("cf-revoked", **ADA))

    def race(number: int) -> Attempt:
        return attempt(tool_at(caldav_server.url), f"cf-{number}", seconds=20, **{**ADA, "guest": f"guest {number}"})

    with ThreadPoolExecutor(RACERS) as racers:
        results = list(racers.map(race, range(RACERS)))
    (winner,) = [number for number, result in enumerate(results) if result.error is None]
    losers = [result.outcome for result in results if result.error is not None]
    assert [outcome.code for outcome in losers if isinstance(outcome, Refused)] == ["slot_taken"] * (RACERS - 1)
    assert bookings(calendar) == {NAME: f"cf-{winner}"}
    for number in range(RACERS):
        evidence = look(book, f"cf-{number}", **{**ADA, "guest": f"guest {number}"})
        assert isinstance(evidence, Found if number == winner else Absent)


@pytest.mark.parametrize("kind", ["lose_answer", "reset_after"])
def test_a_lost_answer_to_the_replacing_is_lost_and_found(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy, kind: FaultKind
) -> None:
    """The second storing of an attempt proves as little as the first when its answer is lost."""
    revoke(book, taken_back("cf-1", **ADA))
    caldav_proxy.arm(Fault("delay", method="PUT", seconds=0.01))  # the first, refused storing
    caldav_proxy.arm(Fault(kind, method="PUT"))
    assert isinstance(attempt(book, "cf-2", **BOB).outcome, Lost)
    assert isinstance(look(book, "cf-2", **BOB), Found)
    assert attempt(book, "cf-2", **BOB).value["guest"] == "Bob"
    assert bookings(calendar) == {NAME: "cf-2"}


# ---------------------------------------------------------------- the compensation


def test_a_booking_is_released(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """Our own event becomes a cancelled one, is never deleted, and the look finds that it was this effect's doing."""
    original = taken_back("cf-1", value=attempt(book, "cf-1", **ADA).value, **ADA)
    assert isinstance(look_unbooked(book, original), Absent)
    assert unbook(book, original).value == original.value
    assert (events(calendar), bookings(calendar)) == ([NAME], {})
    assert stored(calendar).ended == ("cf-1-k0", "cf-unbook")
    found = look_unbooked(book, original)
    assert isinstance(found, Found)
    assert (found.value, found.references) == (original.value, ())


def test_a_release_is_found_under_a_later_booking(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """Its answer was lost, and another guest has booked since: it is found; sent again it takes nothing from them."""
    attempt(book, "cf-1", **ADA)
    original = taken_back("cf-1", **ADA)
    caldav_proxy.arm(Fault("lose_answer", method="PUT"))
    assert isinstance(unbook(book, original).outcome, Lost)
    attempt(book, "cf-2", **BOB)
    assert isinstance(look_unbooked(book, original), Found)
    assert unbook(book, original).value["guest"] == "Ada"
    assert bookings(calendar) == {NAME: "cf-2"}


def test_a_booking_that_is_gone_is_not_released(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """Where nothing or another's booking stands, the release is refused in our words, and nothing is touched."""
    original = taken_back("cf-1", **ADA)
    refusal = unbook(book, original).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, events(calendar)) == ("booking_gone", [])
    attempt(book, "cf-2", **BOB)
    assert isinstance(unbook(book, original).outcome, Refused)
    assert isinstance(look_unbooked(book, original), Absent)
    assert bookings(calendar) == {NAME: "cf-2"}


def test_a_booking_that_a_person_changed_is_read_again(scripted: Scripted) -> None:
    """Refused because the event has changed: what stands there now is released, by the version that it has now."""
    mine = icalendar.event(uid="cf-1", start=NINE, minutes=30, summary="tea", contact="Ada").decode()
    scripted.will_answer(200, mine, ETag='"1"')
    scripted.will_answer(412)
    scripted.will_answer(200, mine, ETag='"2"')
    scripted.will_answer(204)
    assert unbook(tool_at(scripted.url), taken_back("cf-1", **ADA)).value["guest"] == "Ada"
    assert [headers.get("if-match") for _, _, headers, _ in scripted.requests] == [None, '"1"', None, '"2"']


def test_a_release_that_cannot_read_has_sent_nothing(book: Tool[..., Any], caldav_proxy: FaultProxy) -> None:
    """The reading before the one request fails: never sent."""
    caldav_proxy.arm(Fault("reset_before", method="GET"))
    assert isinstance(unbook(book, taken_back("cf-1", **ADA)).outcome, NeverSent)
    assert "PUT" not in caldav_proxy.counts().seen


def test_a_missing_calendar_is_no_absence_of_a_release(calendar: httpx.Client, caldav_server: Server) -> None:
    """Where the calendar itself is not there, nothing is said about the release."""
    client = httpx.Client(trust_env=False)
    lost = caldav_tools(client, calendar_url=f"{caldav_server.url}/desk/elsewhere", grace_s=1)[0]
    assert isinstance(look_unbooked(lost, taken_back("cf-1", **ADA)), Unclear)
