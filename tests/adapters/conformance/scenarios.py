"""The scenarios: what the world does, what the model says, and what must come of it. They know no framework.

`heard` is the exact text of each result, round by round, as it must reach the model; where the run is stopped the last
round is what stands in the conversation for whoever goes on. The effect's id and the seconds until the next look stand
in it as EFFECT and N. Results of one round are compared without their order. `effects` are counted at the provider once
nothing is under way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from adapters.conformance.house import House
from adapters.conformance.model import THE_EFFECT, Call, Turn
from provider import Provider

from counterfoil import Budget

Heard = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario. `sends` are the requests for an effect that arrive; `says` is its line in the table; `or_heard` is
    what may be heard instead, where calls of one round race.

    `real_time`: on a real clock, because sleeping moves the one that is set, past the end of what is waited for.
    """

    name: str
    says: str
    turns: tuple[Turn, ...]
    heard: Heard
    or_heard: Heard | None = None
    effects: int
    sends: int
    faults: Callable[[Provider], None] = lambda _: None
    stop: str | None = None
    interrupted: Literal["killed", "cancelled"] | None = None
    budget: Budget | None = None
    real_time: bool = False


def pays(order: str = "A-1", amount: Any = 10, **more: Any) -> Call:
    """A call of the payment tool."""
    return Call("create_payment", {"order": order, "amount": amount, **more})


def turn(*calls: Call, before: Callable[[House], None] | None = None) -> Turn:
    """One round of the model."""
    return Turn(calls, before)


CHECK: Final = Call("check_effect", {"effect_id": THE_EFFECT})

OK: Final = (
    "create_payment succeeded (code: ok).\n"
    "Reason: It is done.\n"
    'Result: {"payment": "ef_1"}\n'
    "Next action: Go on; do not call create_payment for this again."
)
VERIFIED: Final = (
    "create_payment succeeded (code: verified).\n"
    "Reason: The answer was lost, and looking showed that it had been carried out.\n"
    'Result: {"payment": "ef_1"}\n'
    "Next action: Go on; do not call create_payment for this again."
)
INTERRUPTED: Final = VERIFIED.replace(
    "The answer was lost, and", "An earlier call was interrupted, or its answer lost;"
)
REPLAYED: Final = (
    "create_payment succeeded (code: replayed).\n"
    "Reason: It had been done before; this is the stored result, nothing was sent again.\n"
    'Result: {"payment": "ef_1"}\n'
    "Next action: Go on. Only if another one is really wanted, ask for a further occurrence of it."
)
UNKNOWN: Final = (
    "create_payment may or may not have had its effect (code: effect_unknown).\n"
    "Reason: The answer was lost: it may have been carried out, or may still be.\n"
    "Next action: Do not call create_payment for this again, in any wording. "
    "Call check_effect with effect_id EFFECT in N s."
)
INVALID: Final = (
    "create_payment had no effect (code: invalid_arguments).\n"
    "Reason: amount must be an integer, not text.\n"
    'Rejected arguments: {"order":"A-1","amount":"ten"}\n'
    "Next action: Correct amount and call create_payment again."
)
DECLINED: Final = (
    "create_payment had no effect (code: card_declined).\n"
    "Reason: the card was declined.\n"
    'Rejected arguments: {"order":"A-1","amount":10}\n'
    "Next action: Ask the customer for another card."
)
CONFLICT: Final = (
    "create_payment had no effect (code: key_conflict).\n"
    "Reason: The same order was used before with other arguments; nothing was sent or changed. "
    "amount was 10, now 12.\n"
    'Rejected arguments: {"order":"A-1","amount":12}\n'
    "Next action: Use another order only if a separate one is really wanted."
)
BUDGET: Final = (
    "create_payment had no effect (code: budget_exhausted).\n"
    "Reason: The 1 calls of this task are used up; nothing was sent.\n"
    "Next action: Stop and report this to a person; do not call create_payment again."
)


def forbidden(order: str) -> str:
    """What is told of a payment that the provider forbids."""
    return (
        "create_payment had no effect (code: forbidden).\n"
        "Reason: the account may not pay.\n"
        f'Rejected arguments: {{"order":"{order}","amount":10}}\n'
        "Next action: Stop and report this to a person; do not call create_payment again."
    )


def _lost(provider: Provider) -> None:
    provider.arm("ack_lost")


def _late(provider: Provider) -> None:
    provider.arm("late")


def _acts_and_holds(provider: Provider) -> None:
    provider.arm("ack_lost", mode="hold")


def _landed(house: House) -> None:
    house.provider.release()
    house.provider.quiesce()


def _blind(provider: Provider) -> None:
    provider.arm("ack_lost")
    provider.arm("error", times=None, status=500)


def _settled(house: House) -> None:
    house.provider.disarm()
    house.reconcile()


SCENARIOS: Final = (
    Scenario(
        name="success",
        says="the call succeeds",
        turns=(turn(pays()),),
        heard=((OK,),),
        effects=1,
        sends=1,
    ),
    Scenario(
        name="validation-error",
        says="an argument is wrong, then right",
        turns=(turn(pays(amount="ten")), turn(pays())),
        heard=((INVALID,), (OK,)),
        effects=1,
        sends=1,
    ),
    Scenario(
        name="decline",
        says="the provider declines",
        turns=(turn(pays()),),
        heard=((DECLINED,),),
        effects=0,
        sends=1,
        faults=lambda provider: provider.arm("refuse", status=402),
    ),
    Scenario(
        name="forbidden-stops",
        says="the provider forbids it, and the model goes on",
        turns=(turn(pays()), turn(pays("A-2"))),
        heard=((forbidden("A-1"),),),
        effects=0,
        sends=1,
        stop="forbidden",
        faults=lambda provider: provider.arm("refuse", times=None, status=403),
    ),
    Scenario(
        name="one-of-two-forbidden",
        says="of two calls of one turn the provider forbids one",
        turns=(turn(pays(), pays("A-2")),),
        heard=((forbidden("A-1"), OK),),
        or_heard=((OK, forbidden("A-2")),),
        effects=1,
        sends=2,
        stop="forbidden",
        faults=lambda provider: provider.arm("refuse", status=403),
    ),
    Scenario(
        name="lost-answer",
        says="the answer is lost, and the model calls again",
        turns=(turn(pays()), turn(pays())),
        heard=((VERIFIED,), (REPLAYED,)),
        effects=1,
        sends=1,
        faults=_lost,
    ),
    Scenario(
        name="late-effect",
        says="the request lands late, and the model calls again before that",
        turns=(turn(pays()), turn(pays()), turn(CHECK, before=_landed)),
        heard=((UNKNOWN,), (UNKNOWN,), (VERIFIED,)),
        effects=1,
        sends=1,
        faults=_late,
    ),
    Scenario(
        name="killed-and-resumed",
        says="the process is killed while the provider works, and the framework goes on from the stored messages",
        turns=(turn(pays()),),
        heard=((INTERRUPTED,),),
        effects=1,
        sends=1,
        faults=_acts_and_holds,
        interrupted="killed",
    ),
    Scenario(
        name="cancelled",
        says="the run is cancelled while the provider works, and run again",
        turns=(turn(pays()),),
        heard=((INTERRUPTED,),),
        effects=1,
        sends=1,
        faults=_acts_and_holds,
        interrupted="cancelled",
    ),
    Scenario(
        name="repeated-and-reworded",
        says="the model calls again, then in other words",
        turns=(turn(pays(note="rent")), turn(pays(note="rent")), turn(pays(note="the rent for May"))),
        heard=((OK,), (REPLAYED,), (REPLAYED,)),
        effects=1,
        sends=1,
    ),
    Scenario(
        name="parallel-identical",
        says="three identical calls in one turn",
        turns=(turn(pays(), pays(), pays()),),
        heard=((OK, REPLAYED, REPLAYED),),
        effects=1,
        sends=1,
        faults=lambda provider: provider.arm("slow", seconds=0.05),
        real_time=True,
    ),
    Scenario(
        name="conflict",
        says="the same order again with another amount",
        turns=(turn(pays()), turn(pays(amount=12))),
        heard=((OK,), (CONFLICT,)),
        effects=1,
        sends=1,
    ),
    Scenario(
        name="budget-stop",
        says="the task has a budget of one call, and the model asks for two payments",
        turns=(turn(pays()), turn(pays("A-2"))),
        heard=((OK,), (BUDGET,)),
        effects=1,
        sends=1,
        stop="budget_exhausted",
        budget=Budget(calls_per_task=1),
    ),
    Scenario(
        name="unknown-then-settled",
        says="the answer is lost, looking fails, and it is settled later",
        turns=(turn(pays()), turn(pays(), before=_settled)),
        heard=((UNKNOWN,), (REPLAYED,)),
        effects=1,
        sends=1,
        faults=_blind,
    ),
)
