"""Bookings of slots on a fixed grid, on any CalDAV server, over httpx.

Owns the rule that makes a slot bookable once: CalDAV refuses no second event in the same hour, but it refuses a second
resource of one name. So the resource's name IS the slot, stored with `If-None-Match: *`, and its UID is `effect.id`.
The calendar belongs to this tool: events under other names are not seen.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

from pydantic import AwareDatetime, Field, TypeAdapter
from typing_extensions import TypedDict

from counterfoil import (
    Absent,
    Content,
    Effect,
    Forbidden,
    Found,
    KeyPolicy,
    Policy,
    Rejected,
    Throttled,
    Tool,
    Unclear,
    tool,
)
from counterfoil.errors import UsageError
from counterfoil_tools import icalendar
from counterfoil_tools.provider import Unproven, wait_s

if TYPE_CHECKING:
    import httpx

CANDIDATES_MAX: Final = 3
SLOTS_ASKED_MAX: Final = 24
HOUR_MINUTES: Final = 60
DAY_MINUTES: Final = 1440

Slot = Annotated[AwareDatetime, Field(description="when the slot begins, with its offset: 2026-03-04T09:00:00+00:00")]
Guest = Annotated[str, Field(min_length=1, max_length=200, description="who comes")]
Title = Annotated[str, Content, Field(min_length=1, max_length=200, description="what the slot is for")]

_INSTANT: Final = TypeAdapter(AwareDatetime)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR_QUESTION: Final = b'<propfind xmlns="DAV:"><prop><resourcetype/></prop></propfind>'


class Booking(TypedDict):
    """A slot that is booked. `slot` is in UTC."""

    slot: str
    guest: str
    resource: str


def caldav_tools(
    client: httpx.Client,
    *,
    calendar_url: str,
    grace_s: float | None,
    key_policy: KeyPolicy | None = None,
    timeout_s: float = 30.0,
    patience_s: float = 10.0,
    slot_minutes: int = 30,
) -> list[Tool[..., Any]]:
    """The tools of one calendar: `book_slot`.

    Args:
        client: with whatever the server needs for authentication; it must not follow redirects.
        calendar_url: the calendar collection, absolute or relative to the client's base_url.
        grace_s: seconds after the last possible send from which on a missing resource proves that there is no booking;
            None: absence never proves.
        key_policy: a promise that the calendar keeps what is booked for so long; then a lost booking may be sent again,
            because the resource's name refuses the second. Cancelling a booking by deleting it breaks the promise.
        timeout_s: seconds for one attempt.
        patience_s: seconds for which a call goes on looking after a lost answer.
        slot_minutes: the grid: slots begin at whole multiples of it, counted in UTC, and last as long.

    Raises:
        UsageError: the client follows redirects, or the grid does not divide a day.

    Example:
        >>> import httpx
        >>> found = caldav_tools(httpx.Client(), calendar_url="http://127.0.0.1:5232/desk/slots/", grace_s=60)
        >>> [each.name for each in found]
        ['book_slot']
    """
    calendar = _Calendar(client, calendar_url, slot_minutes)
    policy = Policy(timeout_s=timeout_s, grace_s=grace_s, patience_s=patience_s, key_policy=key_policy)
    return [_booking_tool(calendar, policy)]


def _booking_tool(calendar: _Calendar, policy: Policy) -> Tool[..., Any]:
    @tool(key=("slot", "guest"), sends="marked", policy=policy)
    def book_slot(effect: Effect, slot: Slot, guest: Guest, title: Title) -> Booking:
        """Book one free slot in the calendar for one guest. A taken slot is refused with the next free ones."""
        calendar.check_grid(effect, slot)
        answer = calendar.store(effect, slot, guest, title)
        if answer.status_code in (201, 204):
            return calendar.booking(slot, guest)
        if answer.status_code != 412:
            _refused(answer)
        if calendar.is_ours(effect, slot):
            return calendar.booking(slot, guest)
        raise calendar.taken(effect, slot)

    @book_slot.postcondition
    def booked(effect: Effect) -> Found[Booking] | Absent | Unclear:
        slot = _INSTANT.validate_python(effect.arguments["slot"])
        owner = calendar.owner(effect, slot)
        if owner == effect.id:
            return Found(calendar.booking(slot, effect.arguments["guest"]), reference=calendar.name(slot))
        # Another's event under this name proves as much as none: one name holds one event.
        if owner is not None or calendar.answers(effect):
            return Absent()
        return Unclear("the calendar itself could not be seen")

    return book_slot


class _Calendar:
    """One calendar collection: what is asked of it and what its answers mean."""

    def __init__(self, client: httpx.Client, url: str, slot_minutes: int) -> None:
        if client.follow_redirects:
            raise UsageError("a booking may be sent once per attempt: make the client with follow_redirects=False")
        if not 1 <= slot_minutes <= DAY_MINUTES or DAY_MINUTES % slot_minutes:
            raise UsageError("slot_minutes must divide a day: 15, 30, 60, ...")
        self._client = client
        self._url = url.rstrip("/") + "/"
        self._minutes = slot_minutes

    def name(self, slot: datetime) -> str:
        return icalendar.stamp(slot) + ".ics"

    def booking(self, slot: datetime, guest: str) -> Booking:
        return Booking(slot=_iso(slot), guest=guest, resource=self.name(slot))

    def check_grid(self, effect: Effect, slot: datetime) -> None:
        """Nothing has been sent yet, and nothing will be for this slot."""
        before = self._on_grid(slot)
        if before == slot:
            return
        hint = f"Choose a candidate: slots begin every {self._minutes} minutes and are as long."
        raise Rejected("no_such_slot", "No slot begins at this time", field="slot", hint=hint,
                       candidates=self._free(effect, before))  # fmt: skip

    def store(self, effect: Effect, slot: datetime, guest: str, title: str) -> httpx.Response:
        content = icalendar.event(
            uid=effect.id,
            start=slot,
            minutes=self._minutes,
            summary=title,
            contact=guest,
        )
        headers = {
            "If-None-Match": "*",
            "Content-Type": "text/calendar; charset=utf-8",
            "Idempotency-Key": effect.provider_key,
        }
        with effect.sending():
            return self._client.put(self._at(slot), content=content, headers=headers, timeout=wait_s(effect))

    def owner(self, effect: Effect, slot: datetime) -> str | None:
        """The UID that holds the slot, None when nothing is there.

        Raises:
            Unproven: the server answered something else, or something unreadable.
        """
        answer = self._client.get(self._at(slot), timeout=wait_s(effect))
        if answer.status_code in (404, 410):
            return None
        if answer.status_code != 200:
            raise Unproven(f"reading the slot was answered {answer.status_code}")
        uid = icalendar.uid(answer.text)
        if uid is None:
            raise Unproven("the slot holds something that is no event")
        return uid

    def is_ours(self, effect: Effect, slot: datetime) -> bool:
        """Whose the slot is that was refused as taken.

        Raises:
            Unproven: it cannot be read, whatever the reason: a failure of this reading is none of the booking.
        """
        try:
            owner = self.owner(effect, slot)
        except Exception as error:  # noqa: BLE001 - whatever it was, it proves nothing
            raise Unproven(f"a taken slot cannot be read: {type(error).__name__}") from None
        if owner is None:
            raise Unproven("the slot was taken when it was booked, and free when it was read")
        return owner == effect.id

    def answers(self, effect: Effect) -> bool:
        """Whether the collection is there: else a missing resource says nothing about the booking."""
        headers = {"Depth": "0", "Content-Type": "application/xml"}
        answer = self._client.request(
            "PROPFIND", self._url, content=_CALENDAR_QUESTION, headers=headers, timeout=wait_s(effect)
        )
        return answer.status_code == 207

    def taken(self, effect: Effect, slot: datetime) -> Rejected:
        free = self._free(effect, slot + timedelta(minutes=self._minutes))
        hint = "Offer the guest the candidates, then book the chosen one." if free else "Ask the guest for another day."
        return Rejected("slot_taken", "The slot belongs to another guest", field="slot", hint=hint, candidates=free,
                        status=412)  # fmt: skip

    def _free(self, effect: Effect, first: datetime) -> list[str]:
        """The next free slots from `first` on, as far as the server says so in the time that is left."""
        free: list[str] = []
        slot = first
        for _ in range(SLOTS_ASKED_MAX):
            if len(free) == CANDIDATES_MAX or effect.remaining_s <= 0:
                break
            try:
                if self.owner(effect, slot) is None:
                    free.append(_iso(slot))
            except Exception:  # noqa: BLE001 - a refusal stays one, with or without something to offer
                break
            slot += timedelta(minutes=self._minutes)
        return free

    def _on_grid(self, slot: datetime) -> datetime:
        step = timedelta(minutes=self._minutes)
        return _EPOCH + (slot - _EPOCH) // step * step

    def _at(self, slot: datetime) -> str:
        return self._url + self.name(slot)


def _refused(answer: httpx.Response) -> NoReturn:
    """Only what surely stored nothing is a refusal. A UID conflict may be our own event under another name."""
    match answer.status_code:
        case 401 | 403 if b"no-uid-conflict" not in answer.content:
            raise Forbidden("The calendar does not let this program book")
        case 400 | 413 | 415:
            raise Rejected("invalid_booking", "The calendar does not accept this booking", status=answer.status_code)
        case 429:
            wait = answer.headers.get("Retry-After", "")
            raise Throttled(float(wait) if wait.isdigit() else None)
        case status:
            raise Unproven(f"storing the booking was answered {status}")


def _iso(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat()
