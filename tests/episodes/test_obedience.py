"""An agent that reads only the next action of each message reaches its goal wherever that can be reached; one that does
not listen at all is stopped.

The scenarios are the recoverable ones of the demo and of the acceptance cases, each on both databases.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from calls.conftest import clock, executor_of, world
from guards.failing import Service, act_tool, read_tool
from outside import Make, World

from counterfoil import (
    Absent,
    Effect,
    ErrorSpec,
    Executor,
    Found,
    ManualClock,
    Observation,
    Policy,
    Rejected,
    Throttled,
    Tool,
    Unclear,
    tool,
)

__all__ = ["clock", "executor_of", "world"]
MOVES_MOST = 12
# What the agent knows of its task, field by field, in the order in which it would try it.
KNOWS: dict[str, list[Any]] = {
    "card": ["expired", "declined", "good"],
    "amount": ["12,50", 1250],
    "order": ["A-1"],
    "slot": ["taken", "free"],
    "day": ["2026-12-01T10:00:00", "2026-12-01T10:00:00+00:00"],
    "hotel": ["nowhere", "many", "one"],
}


class Obedient:
    """It makes one move for each message, by its next action alone."""

    def __init__(self, executor: Executor, clock: ManualClock, name: str, fields: list[str]) -> None:
        self._executor = executor
        self._clock = clock
        self._name = name
        self._tries = {field: iter(KNOWS[field]) for field in fields}
        self.arguments = {field: next(tries) for field, tries in self._tries.items()}
        self.seen: list[Observation] = []

    def run(self) -> Observation:
        """Go on until a message says that there is nothing more to do."""
        call: tuple[str, dict[str, Any]] | None = (self._name, self.arguments)
        while call is not None and len(self.seen) < MOVES_MOST:
            seen = self._executor.call(*call, task="trip-42", turn=len(self.seen) + 1)
            self.seen.append(seen)
            call = self._next(seen.next_action)
        return self.seen[-1]

    def _next(self, action: str) -> tuple[str, dict[str, Any]] | None:
        if found := re.search(r"in (\d+) s", action):
            self._clock.advance(int(found[1]))
            self._executor.reconcile()
        if found := re.search(r"[Cc]all check_effect with effect_id (\S+) in", action):
            return "check_effect", {"effect_id": found[1]}
        if found := re.match(r"Call one of the known tools: (\w+)", action):
            self._name = found[1]
            return self._name, self.arguments
        if found := re.search(r"(?:Correct|Change|Use another|Widen|candidates for) ([\w, ]+?)(?: and|\.|$)", action):
            changed = {field: next(self._tries[field]) for field in found[1].split(", ")}
            self.arguments = self.arguments | changed
            return self._name, self.arguments
        if re.search(rf"Call {self._name} again with the same", action):
            return self._name, self.arguments
        return None


@pytest.fixture
def book(world: World) -> Tool[..., Any]:
    """A tool whose provider has an opinion on everything."""

    @tool(
        key=("order",),
        sends="marked",
        policy=Policy(timeout_s=5, grace_s=2, patience_s=4, attempts_max=1),
        errors=(
            ErrorSpec("card_declined", "The card must be accepted by its bank.", field="card"),
            ErrorSpec("slot_taken", "A slot is booked once.", field="slot", follows="conflict"),
        ),
    )
    def book(effect: Effect, order: str, card: str = "good", amount: int = 1, slot: str = "free") -> dict[str, str]:
        """Book one slot and pay for it, in cents. Use it once the guest has agreed to the slot and the total."""
        if card == "expired":
            raise Rejected("card_declined", "the card has expired", field="card")
        if card == "declined":
            raise Rejected("card_declined", "the card was declined", field="card")
        if slot == "taken":
            raise Rejected("slot_taken", "the slot is taken", field="slot")
        if world.next[:1] == ["throttled"]:
            world.next.pop(0)
            raise Throttled(30)
        with effect.sending():
            world.act(effect)
        return {"booking": order}

    @book.postcondition
    def booked(effect: Effect) -> Found[dict[str, str]] | Absent | Unclear:
        if world.looks and world.looks.pop(0) == "raises":
            raise RuntimeError
        found = world.count(effect.id)
        return Found({"booking": "found"}, reference=None, count=found) if found else Absent()

    return book


SCENARIOS: dict[str, tuple[list[str], list[str], int]] = {
    # what it can vary, what happens to its requests, how many of its looks fail
    "nothing goes wrong": (["order"], [], 0),
    "the amount is written as a person writes it": (["order", "amount"], [], 0),
    "two cards are declined": (["order", "card"], [], 0),
    "the slot is taken": (["order", "slot"], [], 0),
    "card, slot and amount are all wrong": (["order", "card", "slot", "amount"], [], 0),
    "too many requests": (["order"], ["throttled"], 0),
    "the connection is refused twice": (["order"], ["refused", "refused"], 0),
    "the answer is lost": (["order"], ["ack_lost"], 0),
    "the answer is lost, and looking fails": (["order"], ["ack_lost"], 4),
    "the request is lost": (["order"], ["request_lost"], 0),
    "the request is lost, and looking fails": (["order"], ["request_lost"], 4),
    "the request is lost twice, then throttled": (["order"], ["request_lost", "throttled", "request_lost"], 1),
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_who_obeys_reaches_the_goal(
    scenario: str, executor_of: Make, book: Tool[..., Any], world: World, clock: ManualClock
) -> None:
    """Each recoverable scenario ends with one booking, of which the agent knows; nothing is done twice on the way."""
    fields, faults, failing = SCENARIOS[scenario]
    world.next = list(faults)
    world.looks = ["raises"] * failing
    agent = Obedient(executor_of(book), clock, "book", fields)
    seen = agent.run()
    assert (seen.ok, str(seen.verdict)) == (True, "effect_applied"), [one.text for one in agent.seen]
    assert len(world.effects) == 1


def test_a_wrong_name_is_put_right(executor_of: Make, book: Tool[..., Any], world: World, clock: ManualClock) -> None:
    """A tool that does not exist: the message names those that do, and the agent takes one."""
    assert Obedient(executor_of(book), clock, "bokk", ["order"]).run().ok
    assert len(world.effects) == 1


def test_a_search_is_narrowed_and_widened(executor_of: Make, clock: ManualClock) -> None:
    """Nothing found, then too much, then one: each message says which argument to change."""

    @tool(read_only=True)
    def find(hotel: str) -> str:
        """Find a hotel by its name. Use it before booking."""
        if hotel == "nowhere":
            raise Rejected("no_results", "no hotel has this name", field="hotel")
        if hotel == "many":
            raise Rejected("ambiguous", "two hotels have this name", field="hotel", candidates=("one", "other"))
        return "one"

    agent = Obedient(executor_of(find), clock, "find", ["hotel"])
    assert agent.run().value == "one"
    assert [one.code for one in agent.seen] == ["no_results", "ambiguous", "read"]


def test_an_instant_without_an_offset_is_put_right(executor_of: Make, clock: ManualClock) -> None:
    """A time that could be any of several instants is refused with an example, and written anew."""

    @tool(key=("day",))
    def remind(day: datetime.datetime) -> str:
        """Send a reminder at an instant. Use it when the guest asks for one."""
        return day.isoformat()

    agent = Obedient(executor_of(remind), clock, "remind", ["day"])
    assert agent.run().ok
    assert [one.code for one in agent.seen] == ["invalid_arguments", "ok"]


# ---------------------------------------------------------------- an agent that does not listen


def repeating() -> Iterator[tuple[str, dict[str, Any]]]:
    while True:
        yield "act", {"what": "pay the bill"}


def rewording() -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    while True:
        number += 1
        yield "act", {"what": "pay" + " " * (number % 5 + 1) + "the bill", "cents": 0}


def inventing() -> Iterator[tuple[str, dict[str, Any]]]:
    number = 0
    while True:
        number += 1
        yield "act", {"what": f"pay bill number {number}"}


def alternating() -> Iterator[tuple[str, dict[str, Any]]]:
    while True:
        yield "act", {"what": "pay the bill"}
        yield "other", {"what": "pay the bill"}
        yield "get_status", {"job": "7"}


def polling() -> Iterator[tuple[str, dict[str, Any]]]:
    while True:
        yield "get_status", {"job": "7"}


@pytest.mark.parametrize(
    ("deaf", "requests_most"),
    [(repeating, 2), (rewording, 2), (inventing, 10), (alternating, 2 + 2 + 6), (polling, 6)],
)
@pytest.mark.parametrize("fault", ["rejected", "down"])
def test_who_does_not_listen_is_stopped(
    fault: str, deaf: Callable[[], Iterator[tuple[str, dict[str, Any]]]], requests_most: int, executor_of: Make
) -> None:
    """One turn, two hundred calls that all fail alike: so many requests leave as the limits say (one more of what might
    pass by itself), then every answer is a stop that does not grow, and the run can be ended on any of them."""
    service, status = Service(), Service()
    service.always = fault
    executor = executor_of(act_tool(service), act_tool(service, name="other"), read_tool(status))
    calls = deaf()
    seen = [executor.call(*next(calls), task="trip-42", turn=1) for _ in range(200)]
    passing = 2 if fault == "down" and deaf is not inventing else 0
    assert 0 < len(service.asked) + len(status.asked) <= requests_most + passing
    late = seen[-30:]
    assert {one.stop for one in late} == {"repeated_call"}
    texts = [len(one.text) for one in seen[20:] if one.tool == "act"]
    assert not texts or max(texts) - min(texts) <= 4, "but for the spaces and digits of the arguments"
    assert all(len(one.text) <= 400 for one in late)


def test_who_polls_what_changes_is_never_stopped(executor_of: Make) -> None:
    """Two hundred questions with two hundred answers in one turn: all are asked."""
    service = Service()
    service.always = "changing"
    executor = executor_of(read_tool(service))
    seen = [executor.call("get_status", {"job": "7"}, task="trip-42", turn=1) for _ in range(200)]
    assert {one.code for one in seen} == {"read"}
    assert len(service.asked) == 200
