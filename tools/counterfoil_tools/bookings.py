"""Bookings of slots on a fixed grid, on any CalDAV server, over httpx.

Owns the tool, its revoke and its compensation. CalDAV refuses no second event in the same hour, but it refuses a second
resource of one name: `slots` says how that makes a slot bookable once, and the UID of a first booking is `effect.id`.
The calendar belongs to this tool: events under other names are not seen, and nobody else deletes what is under these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AwareDatetime, Field, TypeAdapter

from counterfoil import (
    Absent,
    Content,
    Effect,
    Found,
    KeyPolicy,
    Policy,
    Rejected,
    Revoked,
    Throttled,
    Tool,
    Unclear,
    tool,
)
from counterfoil_tools.icalendar import Entry
from counterfoil_tools.provider import Unproven
from counterfoil_tools.slots import CHANGES_MAX, STORED, TAKEN, Booking, Calendar, Held, refused

if TYPE_CHECKING:
    import httpx

Slot = Annotated[AwareDatetime, Field(description="when the slot begins, with its offset: 2026-03-04T09:00:00+00:00")]
Guest = Annotated[str, Field(min_length=1, max_length=200, description="who comes")]
Title = Annotated[str, Content, Field(min_length=1, max_length=200, description="what the slot is for")]

_INSTANT: Final = TypeAdapter(AwareDatetime)

__all__ = ["Booking", "caldav_tools"]


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
    """The tools of one calendar: `book_slot`, with its cancelling as revoke and as compensation.

    Args:
        client: with whatever the server needs for authentication; it must not follow redirects.
        calendar_url: the calendar collection, absolute or relative to the client's base_url.
        grace_s: seconds after the last possible send from which on a missing resource proves that there is no booking;
            None: absence never proves.
        key_policy: a promise that the calendar keeps what is booked for so long; then a lost booking may be sent again,
            because the resource's name refuses the second. Deleting or cancelling a booking by hand breaks the promise.
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
    calendar = Calendar(client, calendar_url, slot_minutes)
    policy = Policy(timeout_s=timeout_s, grace_s=grace_s, patience_s=patience_s, key_policy=key_policy)
    book_slot = _booking_tool(calendar, policy)
    # The promise of the key policy is about bookings; what cancels them is safe by the ETag it is bound to.
    _declare_revoke(book_slot, calendar, replace(policy, key_policy=None))
    _declare_compensation(book_slot, calendar, replace(policy, key_policy=None))
    return [book_slot]


def _booking_tool(calendar: Calendar, policy: Policy) -> Tool[..., Any]:
    @tool(key=("slot", "guest"), sends="marked", policy=policy)
    def book_slot(effect: Effect, slot: Slot, guest: Guest, title: Title) -> Booking:
        """Book one free slot in the calendar for one guest. A taken slot is refused with the next free ones."""
        calendar.check_grid(effect, slot)
        entry, over = Entry(owner=effect.id, summary=title, contact=guest), None
        for _ in range(CHANGES_MAX):
            answer = calendar.store(effect, slot, entry, over)
            if answer.status_code in STORED:
                return calendar.booking(slot, guest)
            if answer.status_code != TAKEN:
                refused(answer)
            # Nothing has been stored by this attempt so far: every answer said so.
            over = calendar.holder(effect, slot)
            if over.books(effect.id):
                return calendar.booking(slot, guest)
            if effect.provider_key in over.event.ended:
                raise Rejected("revoked", "This booking was taken back while it was under way", status=TAKEN)
            if not over.free:
                raise calendar.taken(effect, slot)
        raise Throttled(reason="the slot changes all the time")

    @book_slot.postcondition
    def booked(effect: Effect) -> Found[Booking] | Absent | Unclear:
        slot = _slot(effect.arguments)
        held = calendar.held(effect, slot)
        if held is not None and held.books(effect.id):
            booking = calendar.booking(slot, effect.arguments["guest"])
            return Found(booking, reference=calendar.reference(slot, held))
        # Another's event under this name, or a cancelled one, proves as much as none: one name holds one event.
        if held is not None or calendar.answers(effect):
            return Absent()
        return Unclear("the calendar itself could not be seen")

    return book_slot


def _declare_revoke(book_slot: Tool[..., Any], calendar: Calendar, policy: Policy) -> None:
    @book_slot.revoke(sends="marked", policy=policy)
    def cancel(effect: Effect) -> Revoked | Found[Booking]:
        """Cancel a booking of which it is not known whether it was made."""
        original = effect.original
        slot, keys = _slot(original.arguments), set(original.provider_keys)
        stone, over = _cancelled(original, ended=original.provider_keys), None
        for _ in range(CHANGES_MAX):
            answer = calendar.store(effect, slot, stone, over)
            if answer.status_code in STORED:
                return Revoked()
            if answer.status_code != TAKEN:
                refused(answer)
            over = calendar.holder(effect, slot)
            if keys and keys <= set(over.event.ended):
                return Revoked()  # a repeat: whoever has booked the slot since has kept the stone's words
            if over.books(original.id):
                booking = calendar.booking(slot, original.arguments["guest"])
                return Found(booking, reference=calendar.reference(slot, over))
            if not over.free:
                raise Unproven("the slot is another's, who knows nothing of this booking: that is no stone")
        raise Unproven("the slot changes all the time")


def _declare_compensation(book_slot: Tool[..., Any], calendar: Calendar, policy: Policy) -> None:
    @book_slot.compensation(sends="marked", policy=policy)
    def unbook(effect: Effect) -> Booking:
        """Cancel a booking that was made, so that the slot is free again."""
        original = effect.original
        slot = _slot(original.arguments)
        released = _cancelled(original, ended=(*original.provider_keys, effect.id))
        for _ in range(CHANGES_MAX):
            held = calendar.held(effect, slot)
            if _is_released(effect, held):
                return calendar.booking(slot, original.arguments["guest"])
            if held is None or not held.books(original.id):
                hint = "There is nothing to cancel; tell the user that the booking is gone."
                raise Rejected("booking_gone", "The booking is no longer in the calendar", hint=hint)
            if held.etag is None:
                raise Unproven("the calendar names no version of the booking that a change could be bound to")
            answer = calendar.store(effect, slot, released, held)
            if answer.status_code in STORED:
                return calendar.booking(slot, original.arguments["guest"])
            if answer.status_code != TAKEN:
                refused(answer)
        raise Throttled(reason="the slot changes all the time")

    @unbook.postcondition
    def unbooked(effect: Effect) -> Found[Booking] | Absent | Unclear:
        original = effect.original
        slot = _slot(original.arguments)
        held = calendar.held(effect, slot)
        if _is_released(effect, held):
            return Found(calendar.booking(slot, original.arguments["guest"]), reference=None)
        if held is not None or calendar.answers(effect):
            return Absent()
        return Unclear("the calendar itself could not be seen")


def _is_released(effect: Effect, held: Held | None) -> bool:
    """Whether the booking is cancelled: by this effect, whoever has booked the slot since, or by hand."""
    if held is None:
        return False
    return effect.id in held.event.ended or (held.event.owner == effect.original.id and held.event.cancelled)


def _cancelled(original: Effect, *, ended: tuple[str, ...]) -> Entry:
    """What is put in the place of a booking: its words, CANCELLED, and the names that may not book here any more."""
    told = original.arguments
    summary, contact = str(told.get("title", "")), str(told["guest"])
    return Entry(owner=original.id, summary=summary, contact=contact, cancelled=True, ended=ended)


def _slot(arguments: Mapping[str, Any]) -> datetime:
    return _INSTANT.validate_python(arguments["slot"])
