"""The booking tool against a real CalDAV server: one slot, one booking, and whose it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from tools.world import Attempt, Scripted, attempt, events, look

from counterfoil import Tool
from counterfoil.effect import Absent, Found, Lost, NeverSent, Refused, Unclear
from counterfoil.errors import DeadlinePassed, UsageError
from counterfoil_tools import icalendar, servers
from counterfoil_tools.bookings import caldav_tools
from counterfoil_tools.faultproxy import Fault, FaultKind, FaultProxy
from counterfoil_tools.servers import Server

NINE = datetime(2026, 3, 4, 9, tzinfo=UTC)
HALF_HOUR = timedelta(minutes=30)
NAME = "20260304T090000Z.ics"
ADA: dict[str, Any] = {"slot": NINE, "guest": "Ada", "title": "tea, cake; and\nmore"}
BOB: dict[str, Any] = {"slot": NINE, "guest": "Bob", "title": "coffee"}
RACERS = 8


def tool_at(url: str, **options: Any) -> Tool[..., Any]:
    client = httpx.Client(trust_env=False)
    return caldav_tools(client, calendar_url=url + servers.CALENDAR_PATH, grace_s=1.0, **options)[0]


@pytest.fixture
def book(caldav_proxy: FaultProxy, calendar: httpx.Client) -> Tool[..., Any]:
    return tool_at(caldav_proxy.url)


def test_a_booking_is_an_event_that_carries_the_effect(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """The server holds one event under the slot's name with the effect's id as UID; the look finds it and its value."""
    done = attempt(book, "cf-1", **ADA)
    assert done.value == {"slot": "2026-03-04T09:00:00+00:00", "guest": "Ada", "resource": NAME}
    assert events(calendar) == [NAME]
    stored = calendar.get(NAME).text
    assert icalendar.uid(stored) == "cf-1"
    assert "SUMMARY:tea\\, cake\\; and\\nmore" in stored
    found = look(book, "cf-1", **ADA)
    assert isinstance(found, Found)
    assert (found.value, found.references, found.count) == (done.value, (NAME,), 1)


def test_the_look_takes_the_slot_as_the_ledger_keeps_it(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """An instant that comes back as text, in whatever offset, is the same slot."""
    attempt(book, "cf-1", **ADA)
    assert isinstance(look(book, "cf-1", **{**ADA, "slot": "2026-03-04T10:00:00+01:00"}), Found)


def test_one_instant_is_one_slot_in_every_offset(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """Nine o'clock UTC asked for from India is taken when nine o'clock UTC is."""
    attempt(book, "cf-1", **ADA)
    refusal = attempt(
        book, "cf-2", **{**BOB, "slot": NINE.astimezone(timezone(timedelta(hours=5, minutes=30)))}
    ).outcome
    assert isinstance(refusal, Refused)
    assert refusal.code == "slot_taken"


@pytest.mark.parametrize("kind", ["lose_answer", "reset_after"])
def test_a_lost_answer_is_lost_and_the_booking_is_found(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy, kind: FaultKind
) -> None:
    """The function proves nothing, the look finds the one booking, and booking it again is the same booking."""
    caldav_proxy.arm(Fault(kind, method="PUT"))
    assert isinstance(attempt(book, "cf-1", **ADA).outcome, Lost)
    assert caldav_proxy.counts().seen == {"PUT": 1}
    assert isinstance(look(book, "cf-1", **ADA), Found)
    assert attempt(book, "cf-1", **ADA).value["resource"] == NAME
    assert events(calendar) == [NAME]


@pytest.mark.parametrize("kind", ["swallow", "reset_before"])
def test_a_request_that_never_arrived_is_lost_and_absent(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy, kind: FaultKind
) -> None:
    """The same symptom without an event: the function proves nothing, and the look says absent."""
    caldav_proxy.arm(Fault(kind, method="PUT"))
    assert isinstance(attempt(book, "cf-1", **ADA).outcome, Lost)
    assert isinstance(look(book, "cf-1", **ADA), Absent)
    assert events(calendar) == []


def test_a_server_that_is_not_there_was_never_sent_to() -> None:
    """A refused connection proves that this attempt sent nothing."""
    assert isinstance(attempt(tool_at("http://127.0.0.1:1"), "cf-1", **ADA).outcome, NeverSent)


def test_a_taken_slot_is_refused_with_free_ones(book: Tool[..., Any], calendar: httpx.Client) -> None:
    """The candidates are the next slots that the server has free; the next call books one of them."""
    attempt(book, "cf-1", **ADA)
    attempt(book, "cf-2", **{**ADA, "slot": NINE + 2 * HALF_HOUR})
    refusal = attempt(book, "cf-3", **BOB).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.field, refusal.status) == ("slot_taken", "slot", 412)
    assert refusal.candidates == tuple((NINE + n * HALF_HOUR).isoformat() for n in (1, 3, 4))
    assert isinstance(look(book, "cf-3", **BOB), Absent)
    chosen = {**BOB, "slot": datetime.fromisoformat(refusal.candidates[0])}
    assert attempt(book, "cf-4", **chosen).value["guest"] == "Bob"
    assert len(events(calendar)) == 3


def test_eight_racers_on_one_slot_make_one_booking(
    book: Tool[..., Any], calendar: httpx.Client, caldav_server: Server
) -> None:
    """One wins, seven are refused with candidates, and each look tells its own guest the truth."""

    def race(number: int) -> Attempt:
        mine = {**ADA, "guest": f"guest {number}"}
        return attempt(tool_at(caldav_server.url), f"cf-{number}", seconds=20, **mine)

    with ThreadPoolExecutor(RACERS) as racers:
        results = list(racers.map(race, range(RACERS)))
    winners = [number for number, result in enumerate(results) if result.error is None]
    losers = [result.outcome for result in results if result.error is not None]
    assert len(winners) == 1
    assert [outcome.code for outcome in losers if isinstance(outcome, Refused)] == ["slot_taken"] * (RACERS - 1)
    assert events(calendar) == [NAME]
    for number in range(RACERS):
        evidence = look(book, f"cf-{number}", **{**ADA, "guest": f"guest {number}"})
        assert isinstance(evidence, Found if number in winners else Absent)


def test_a_taken_slot_that_cannot_be_read_is_in_doubt(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """A 412 alone is no refusal: it may be our own event, so without reading whose it is nothing is proven."""
    attempt(book, "cf-1", **ADA)
    caldav_proxy.arm(Fault("lose_answer", method="GET"))
    assert isinstance(attempt(book, "cf-1", **ADA).outcome, Lost)
    caldav_proxy.arm(Fault("reset_before", method="GET"))
    assert isinstance(attempt(book, "cf-2", **BOB).outcome, Lost)


def test_a_refusal_without_time_for_candidates_stays_one(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """When the search for free slots fails, the slot is still taken, and the hint says another thing to do."""
    attempt(book, "cf-1", **ADA)
    caldav_proxy.arm(Fault("reset_before", method="GET", path=servers.CALENDAR_PATH + "20260304T093000Z"))
    refusal = attempt(book, "cf-2", **BOB).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.candidates, refusal.hint) == ("slot_taken", (), "Ask the guest for another day.")


def test_a_time_between_two_slots_is_refused_unsent(
    book: Tool[..., Any], calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """A time off the grid is refused with the free slots around it, before anything is sent."""
    refusal = attempt(book, "cf-1", **{**ADA, "slot": NINE + timedelta(minutes=10)}).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.field) == ("no_such_slot", "slot")
    assert refusal.candidates[0] == NINE.isoformat()
    assert "PUT" not in caldav_proxy.counts().seen
    assert events(calendar) == []


def test_a_missing_calendar_is_no_absence(calendar: httpx.Client, caldav_server: Server) -> None:
    """Where the calendar itself is not there, a missing resource proves nothing, and storing proves no refusal."""
    client = httpx.Client(trust_env=False)
    lost = caldav_tools(client, calendar_url=f"{caldav_server.url}/desk/elsewhere", grace_s=1)[0]
    assert isinstance(look(lost, "cf-1", **ADA), Unclear)
    assert isinstance(attempt(lost, "cf-1", **ADA).outcome, Lost)


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503, 302])
def test_a_look_that_could_not_look_raises(scripted: Scripted, status: int) -> None:
    """Whatever is neither the event nor its absence is an error of the look, which the executor takes as unclear."""
    scripted.will_answer(status, Location="/elsewhere")
    with pytest.raises(Exception, match=str(status)):
        look(tool_at(scripted.url), "cf-1", **ADA)
    assert len(scripted.requests) == 1


def test_a_look_at_an_empty_answer_raises(scripted: Scripted) -> None:
    """An answer of 200 with nothing in it is no event and no absence."""
    scripted.will_answer(200, "")
    with pytest.raises(Exception, match="no event"):
        look(tool_at(scripted.url), "cf-1", **ADA)


@pytest.mark.parametrize(
    ("status", "code"),
    [(401, "forbidden"), (403, "forbidden"), (400, "invalid_booking"), (415, "invalid_booking"), (429, "rate_limited")],
)
def test_answers_that_prove_a_refusal(scripted: Scripted, status: int, code: str) -> None:
    """What surely stored nothing is a refusal with a stable code."""
    scripted.will_answer(status, "secret upstream text", Retry_After="7")
    refusal = attempt(tool_at(scripted.url), "cf-1", **ADA).outcome
    assert isinstance(refusal, Refused)
    assert refusal.code == code
    assert refusal.retry_after_s == (7.0 if status == 429 else None)


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, ""), (202, ""), (307, ""), (404, ""), (409, ""), (500, ""), (503, ""), (403, "<C:no-uid-conflict/>")],
)
def test_answers_that_prove_nothing(scripted: Scripted, status: int, body: str) -> None:
    """Anything unexpected, redirects and conflicts of UIDs leave the booking in doubt; one request went out."""
    scripted.will_answer(status, body, Location="/elsewhere")
    assert isinstance(attempt(tool_at(scripted.url), "cf-1", **ADA).outcome, Lost)
    assert len(scripted.requests) == 1


def test_what_goes_over_the_wire(scripted: Scripted) -> None:
    """The slot is the name, only a new resource is stored, and the provider key goes along."""
    scripted.will_answer(201)
    attempt(tool_at(scripted.url), "cf-1", **ADA)
    ((method, path, headers, _),) = scripted.requests
    assert (method, path) == ("PUT", servers.CALENDAR_PATH + NAME)
    assert (headers["if-none-match"], headers["idempotency-key"]) == ("*", "cf-1-k0")


def test_nothing_is_sent_after_the_deadline(scripted: Scripted) -> None:
    """An attempt whose time is over ends before the request."""
    done = attempt(tool_at(scripted.url), "cf-1", seconds=0, **ADA)
    assert isinstance(done.error, DeadlinePassed)
    assert scripted.requests == []


def test_a_client_that_follows_redirects_is_refused() -> None:
    """A client that could send a booking a second time, to another place, is refused at registration."""
    with pytest.raises(UsageError, match="follow_redirects=False"):
        caldav_tools(httpx.Client(follow_redirects=True), calendar_url="http://127.0.0.1/", grace_s=1)


@pytest.mark.parametrize("minutes", [0, 7, 2880])
def test_a_grid_that_does_not_fit_a_day_is_refused(minutes: int) -> None:
    """Slots that would begin at other times each day are refused at registration."""
    with pytest.raises(UsageError, match="divide a day"):
        caldav_tools(httpx.Client(), calendar_url="http://127.0.0.1/", grace_s=1, slot_minutes=minutes)
