"""The script of the demo: what the agent calls, what goes wrong meanwhile, and what must be true afterwards.

Owns the scenes as data, in the order in which they are played. It starts nothing and judges nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from counterfoil_tools.faultproxy import Fault

CHARGE: Final = "charge"
BOOK: Final = "book_slot"
# Stands for the first candidate that the call before was offered.
OFFERED: Final = "(the first candidate)"

_CARD: Final = {"currency": "eur", "payment_method": "pm_card_visa"}
_FIRST: Final = {"order": "order-1001", "amount_minor": 1250, **_CARD}
_NINE: Final = "2026-03-04T09:00:00+00:00"


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be true after a call: what is known, why, after how many attempts, and the provider's own count."""

    verdict: str
    proof: str | None
    code: str
    attempts: int
    at_provider: int


@dataclass(frozen=True, slots=True)
class Scene:
    """One call of the agent. `fault` hits its request; with `kill` the agent's process is killed in that moment, and a
    new process makes the same call."""

    label: str
    name: str
    title: str
    tool: str
    arguments: Mapping[str, Any]
    expected: Expected
    fault: Fault | None = None
    kill: bool = False

    @property
    def takes_offer(self) -> bool:
        """True when it can only be played if the call before was offered something."""
        return OFFERED in self.arguments.values()

    @property
    def subject(self) -> str:
        """The order or the guest: what the provider's things are counted by."""
        return str(self.arguments["order" if self.tool == CHARGE else "guest"])


SCENES: Final = (
    Scene(
        "1",
        "lost_answer",
        "The charge is made, its answer is lost",
        CHARGE,
        _FIRST,
        Expected("effect_applied", "found", "verified", 1, 1),
        Fault("lose_answer", "POST"),
    ),
    Scene(
        "2",
        "reset_after_acting",
        "The booking is made, then the connection is reset",
        BOOK,
        {"slot": _NINE, "guest": "Ada", "title": "first visit"},
        Expected("effect_applied", "found", "verified", 1, 1),
        Fault("reset_after", "PUT"),
    ),
    Scene(
        "3",
        "never_arrived",
        "The request for a charge never arrives",
        CHARGE,
        {"order": "order-1002", "amount_minor": 990, **_CARD},
        Expected("effect_applied", "returned", "ok", 2, 1),
        Fault("swallow", "POST"),
    ),
    Scene(
        "4",
        "killed_process",
        "The charge is made, and the agent's process is killed before it can note it; a new process calls again",
        CHARGE,
        {"order": "order-1003", "amount_minor": 4200, **_CARD},
        Expected("effect_applied", "found", "verified", 1, 1),
        Fault("lose_answer", "POST"),
        kill=True,
    ),
    Scene(
        "5a",
        "declined_card",
        "The card is declined",
        CHARGE,
        {"order": "order-1004", "amount_minor": 700, "currency": "eur", "payment_method": "pm_card_chargeCustomerFail"},
        Expected("no_effect", "rejected", "card_declined", 1, 0),
    ),
    Scene(
        "5b",
        "taken_slot",
        "The slot belongs to another guest",
        BOOK,
        {"slot": _NINE, "guest": "Bob", "title": "first visit"},
        Expected("no_effect", "rejected", "slot_taken", 1, 0),
    ),
    Scene(
        "5c",
        "offered_slot",
        "The agent books the first slot that was offered",
        BOOK,
        {"slot": OFFERED, "guest": "Bob", "title": "first visit"},
        Expected("effect_applied", "returned", "ok", 1, 1),
    ),
    Scene(
        "6a",
        "called_again",
        "The agent makes its first call once more",
        CHARGE,
        _FIRST,
        Expected("effect_applied", "found", "replayed", 1, 1),
    ),
    Scene(
        "6b",
        "other_amount",
        "The agent asks for another amount under the same order",
        CHARGE,
        {**_FIRST, "amount_minor": 9900},
        Expected("no_effect", None, "key_conflict", 1, 1),
    ),
)

EXPECTED_PAYMENTS: Final = 3
EXPECTED_BOOKINGS: Final = 2
