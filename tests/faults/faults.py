"""The faults of the fault table: what goes wrong, where, and to which tiers it can happen.

Owns the list and no action: `life` and `cell` carry it out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import provider
from crash.life import Point
from faults.tiers import TIERS, Tier

from counterfoil.effect import Sends

# What the first process does to itself. refused: its first request meets a closed port. fails: it breaks off before the
# mark. begin lost, settle lost: the reply to that COMMIT is lost. away: the ledger is away for a while before settle.
Own: TypeAlias = Literal["refused", "fails", "begin lost", "settle lost", "away"]
AWAY_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One row of the table.

    `request` befalls the first request, `look` the looks of the first process (with `look_lasts`: all looks). `point`
    is where the first process is killed, or stopped until another one has called too (`stop`; the clock is then put
    past its lease; with `sends_last` its request leaves once its caller has been answered). `joint` is the point for a
    tool of one transaction. `at_once`: two processes call. `lands` is when a late request arrives: once the first call
    has been answered, or when all has been told.
    """

    name: str
    title: str
    sends: Sends = "marked"
    own: Own | None = None
    request: provider.Fault | None = None
    look: provider.Fault | None = None
    look_lasts: bool = False
    point: Point | None = None
    joint: Point | None = None
    stop: bool = False
    at_once: bool = False
    sends_last: bool = False
    lands: Literal["", "after the answer", "at last"] = ""
    breaks_word: bool = False
    never: dict[str, str] = field(default_factory=dict, hash=False)

    def missing(self, tier: Tier) -> str | None:
        """Why this cannot happen to that tier; None where it can."""
        if self.look is not None and not tier.looks:
            return "for want of a look"
        return self.never.get(tier.name)


_NO_REQUEST: Final = {"t5": "because no request leaves the database"}
_LATE: Final = provider.Fault("late")

FAULTS: Final = (
    Fault(name="none", title="nothing goes wrong"),
    Fault(
        name="declined",
        title="the provider declines the first request (`Rejected`)",
        request=provider.Fault("refuse"),
    ),
    *(
        Fault(
            name=f"refused-{sends}",
            title=f'the connection of the first request is refused; declared `sends="{sends}"`',
            sends=sends,
            own="refused",
            never=_NO_REQUEST,
        )
        for sends in ("anywhere", "once", "marked")
    ),
    Fault(name="before-mark", title="the function fails before it sends (`sends=\"marked\"`)", own="fails"),
    Fault(
        name="request-lost",
        title="the request is lost, and never lands",
        request=provider.Fault("request_lost"),
        never=_NO_REQUEST,
    ),
    Fault(
        name="answer-lost",
        title="it landed, and the answer is lost",
        request=provider.Fault("ack_lost"),
        never=_NO_REQUEST,
    ),
    Fault(
        name="late",
        title="it lands late: after the first call was answered, within the grace where there is one",
        request=_LATE,
        lands="after the answer",
        never=_NO_REQUEST,
    ),
    Fault(
        name="500-after-acting",
        title="it landed, and the answer is 500",
        request=provider.Fault("status", status=500, acts=True),
        never=_NO_REQUEST,
    ),
    Fault(
        name="429",
        title="the first answer is 429 (declared: `Throttled`), the next is fine",
        request=provider.Fault("status", status=429),
        never=_NO_REQUEST,
    ),
    Fault(
        name="killed-before-begin",
        title="the process is killed before begin is durable",
        point=Point("commit", "Start"),
        joint=Point("before", "Transact"),
    ),
    Fault(
        name="killed-before-sending",
        title="killed after begin, before it sends",
        point=Point("after", "Start"),
        joint=Point("before", "Request"),
    ),
    Fault(
        name="killed-after-landing",
        title="killed after it landed, before settle",
        point=Point("after", "Request"),
        joint=Point("after", "Request"),
    ),
    Fault(
        name="killed-after-settle",
        title="killed after settle, before the answer",
        point=Point("after", "Write:SettleReturned"),
        joint=Point("after", "Transact"),
    ),
    Fault(
        name="look-fails",
        title="it landed, the answer is lost, and the looks of the call fail (500)",
        request=provider.Fault("ack_lost"),
        look=provider.Fault("error"),
    ),
    Fault(
        name="look-lags",
        title="it landed, the answer is lost, and the looks of the call do not see it yet",
        request=provider.Fault("ack_lost"),
        look=provider.Fault("stale"),
    ),
    Fault(
        name="look-alike",
        title="the request is lost, and every look shows somebody else's payment of the same content",
        request=provider.Fault("request_lost"),
        look=provider.Fault("look_alike"),
        look_lasts=True,
    ),
    Fault(
        name="begin-reply-lost",
        title="the reply to the ledger's COMMIT is lost at begin",
        own="begin lost",
        never={"t5": "because begin and settle have one COMMIT"},
    ),
    Fault(name="settle-reply-lost", title="the reply to the ledger's COMMIT is lost at settle", own="settle lost"),
    Fault(name="away", title=f"the database is away for {AWAY_S:g} s at settle", own="away"),
    Fault(
        name="stopped-before-check",
        title="stopped (SIGSTOP) after begin until its lease is over; another process calls meanwhile; then it goes on",
        point=Point("after", "Start"),
        joint=Point("before", "Request"),
        stop=True,
    ),
    Fault(
        name="stopped-after-check",
        title="stopped between its last check and its first byte, past the lease; another process calls meanwhile; "
        "then it goes on, and its request leaves when its caller is gone, within the grace",
        point=Point("before", "Request"),
        stop=True,
        sends_last=True,
        never=_NO_REQUEST,
    ),
    Fault(name="at-once", title="two processes call at once", at_once=True, request=provider.Fault("slow")),
    Fault(
        name="late-after-grace",
        title="**the provider breaks its word:** it lands long after any grace, and after the second call",
        request=_LATE,
        lands="at last",
        breaks_word=True,
        never=_NO_REQUEST,
    ),
)  # fmt: skip
BY_NAME: Final = {one.name: one for one in FAULTS}


@dataclass(frozen=True, slots=True)
class Cell:
    """One tier under one fault."""

    tier: Tier
    fault: Fault

    @property
    def name(self) -> str:
        return f"{self.tier.name}/{self.fault.name}"


CELLS: Final = tuple(Cell(tier, fault) for tier in TIERS for fault in FAULTS if fault.missing(tier) is None)
