"""One CalDAV calendar of slots on a fixed grid: what is asked of the server, and what its answers mean.

Owns the rule that makes a slot bookable once: the resource's name IS the slot. It is first stored with
`If-None-Match: *`, and changed only with `If-Match`; it is never deleted, so that a late first storing is refused for
ever. What is cancelled stays there as a CANCELLED event, and counts as free.
CalDAV lets nobody change the UID of a resource. So a slot that is booked again keeps the UID of its first event, and
whose it is now stands in a property of ours. `SEQUENCE` grows with each change: no content comes twice, so that no ETag
does, and a late change is refused as well. It must not know tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NoReturn

from typing_extensions import TypedDict

from counterfoil import Effect, Forbidden, Rejected, Throttled
from counterfoil.errors import UsageError
from counterfoil_tools import icalendar
from counterfoil_tools.provider import Unproven, wait_s

if TYPE_CHECKING:
    import httpx

CANDIDATES_MAX: Final = 3
SLOTS_ASKED_MAX: Final = 24
HOUR_MINUTES: Final = 60
DAY_MINUTES: Final = 1440
# How often a slot may change under one attempt before it gives up.
CHANGES_MAX: Final = 5
STORED: Final = (201, 204)
TAKEN: Final = 412

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR_QUESTION: Final = b'<propfind xmlns="DAV:"><prop><resourcetype/></prop></propfind>'


class Booking(TypedDict):
    """A slot that is booked. `slot` is in UTC."""

    slot: str
    guest: str
    resource: str


@dataclass(frozen=True, slots=True)
class Held:
    """What stands under a slot's name. `etag` is None where the server gives none that a change can be bound to."""

    event: icalendar.Stored
    etag: str | None

    @property
    def free(self) -> bool:
        """Whether the slot can be booked: what stands there is cancelled, whoever's it was, and can be replaced."""
        return self.event.cancelled and self.etag is not None

    def books(self, effect_id: str) -> bool:
        """Whether it is this effect's booking, and not cancelled."""
        return self.event.owner == effect_id and not self.event.cancelled


class Calendar:
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

    def reference(self, slot: datetime, held: Held) -> str:
        """The name of this booking alone: the resource's, and from the second booking on which change it was."""
        return f"{self.name(slot)}#{held.event.sequence}" if held.event.sequence else self.name(slot)

    def store(self, effect: Effect, slot: datetime, entry: icalendar.Entry, over: Held | None) -> httpx.Response:
        """Put `entry` under the slot's name: where there is nothing, or in the place of `over` and of nothing else."""
        if over is not None:
            entry = entry.after(over.event)
        headers = {
            **({"If-None-Match": "*"} if over is None else {"If-Match": over.etag or ""}),
            "Content-Type": "text/calendar; charset=utf-8",
            "Idempotency-Key": effect.provider_key,
        }
        content = entry.written(start=slot, minutes=self._minutes)
        with effect.sending():
            return self._client.put(self._at(slot), content=content, headers=headers, timeout=wait_s(effect))

    def held(self, effect: Effect, slot: datetime) -> Held | None:
        """What holds the slot, None when nothing is there.

        Raises:
            Unproven: the server answered something else, or something unreadable.
        """
        answer = self._client.get(self._at(slot), timeout=wait_s(effect))
        if answer.status_code in (404, 410):
            return None
        if answer.status_code != 200:
            raise Unproven(f"reading the slot was answered {answer.status_code}")
        event = icalendar.stored(answer.text)
        if event is None:
            raise Unproven("the slot holds something that is no event")
        etag = answer.headers.get("ETag", "")
        return Held(event, etag if etag.startswith('"') else None)  # a weak one never matches

    def holder(self, effect: Effect, slot: datetime) -> Held:
        """What holds the slot that was refused as taken.

        Raises:
            Unproven: it cannot be read, whatever the reason: a failure of this reading is none of the storing.
        """
        try:
            held = self.held(effect, slot)
        except Exception as error:  # noqa: BLE001 - whatever it was, it proves nothing
            raise Unproven(f"a taken slot cannot be read: {type(error).__name__}") from None
        if held is None:
            raise Unproven("the slot was taken when it was stored, and empty when it was read")
        return held

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
                held = self.held(effect, slot)
                if held is None or held.free:
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


def refused(answer: httpx.Response) -> NoReturn:
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
