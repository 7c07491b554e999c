"""What a model is told by the rows that a tool adds: on the call itself, and from the ledger afterwards."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases.messages import assert_well_formed

from counterfoil import (
    Effect,
    ErrorSpec,
    Executor,
    Messages,
    Observation,
    Policy,
    Rejected,
    Throttled,
    Tool,
    Unclear,
    UsageError,
    Verdict,
    tool,
)
from counterfoil.message import TOKENS_LEAST, tokens


class CardError(Exception):
    """The provider's refusal, with a text for nobody."""


EXAMPLE = {"order": "A-17", "amount_minor": 1250}
ERRORS = (
    ErrorSpec("card_declined", "The card was declined.", hint="Ask the user for another card."),
    ErrorSpec("too_small", "An amount is 50 cents or more.", hint="Name a larger amount.", example=EXAMPLE,
              field="amount_minor"),
    ErrorSpec("slot_taken", "The slot is taken.", candidates=("09:00", "10:00"), field="order", follows="conflict"),
    ErrorSpec("no_card", "The customer has no card.", alternative="send_invoice"),
    ErrorSpec("account_closed", "The account is closed.", follows="forbidden"),
    ErrorSpec("by_class", "The bank does not take this card.", hint="Ask for a card.", exceptions=(CardError,)),
)  # fmt: skip


def charge_tool(problem: Exception, *, same_transaction: bool = False) -> Tool[..., Any]:
    policy = Policy(patience_s=0.5)

    @tool(key=("order",), rejects=(CardError,), errors=ERRORS, policy=policy, same_transaction=same_transaction)
    def charge(effect: Effect, order: str, amount_minor: int) -> None:
        """Charge one order. Use it when the customer has confirmed the total."""
        raise problem

    return charge


@tool(key=("order",))
def send_invoice(order: str) -> str:
    """Send an invoice for one order. Use it when there is no card."""
    return order


def called(ledger_url: str, problem: Exception, **how: Any) -> tuple[Observation, dict[str, Any]]:
    """What is told, and the entry of the settling."""
    with Executor(ledger_url, [charge_tool(problem, **how), send_invoice]) as executor:
        seen = executor.call("charge", {"order": "A-1", "amount_minor": 7})
        (entry,) = [one for one in executor.audit.history(str(seen.effect_id)) if one.event == "closed"]
    assert_well_formed(seen)
    assert (seen.verdict, seen.ok) == (Verdict.NO_EFFECT, False)
    return seen, entry.detail


RAISED: dict[str, tuple[Exception, str, str, str]] = {
    "in the row's words": (
        Rejected("card_declined", ""), "card_declined", "The card was declined.", "Ask the user for another card."),
    "in the words of the moment": (
        Rejected("card_declined", "The card expired in May.", hint="Ask for a card that is valid."),
        "card_declined", "The card expired in May.", "Ask for a card that is valid."),
    "with an example": (
        Rejected("too_small", ""), "too_small", "An amount is 50 cents or more.",
        'Name a larger amount. For example: {"order": "A-17", "amount_minor": 1250}.'),
    "with the table's action": (
        Rejected("slot_taken", ""), "slot_taken", "The slot is taken.", "Use another order."),
    "with another tool": (
        Rejected("no_card", ""), "no_card", "The customer has no card.", "Call send_invoice instead."),
    "to the end of the run": (
        Rejected("account_closed", "", hint="Try again."), "account_closed", "The account is closed.",
        "Stop and report this to a person; do not call charge again."),
    "by its class": (
        CardError("https://api.internal key=SECRET"), "by_class", "The bank does not take this card.",
        "Ask for a card."),
    "a word without a row": (
        Rejected("odd_day", "It is an odd day."), "odd_day", "It is an odd day.",
        "Change the arguments and call charge again."),
    "a word that claims what is not": (
        Rejected("budget_exhausted", "No."), "rejected", "No.", "Change the arguments and call charge again."),
}  # fmt: skip


@pytest.mark.parametrize("name", RAISED)
def test_what_the_row_says_is_told(ledger_url: str, name: str) -> None:
    """Code, constraint and ONE next action come from what was raised, then from the tool's row, then from the table;
    the settle entry has the same code."""
    problem, code, reason, action = RAISED[name]
    seen, detail = called(ledger_url, problem)
    assert (seen.code, seen.reason, seen.next_action) == (code, reason, action)
    assert detail["code"] == seen.code
    assert seen.stop == ("account_closed" if code == "account_closed" else None)
    assert seen.candidates == (("09:00", "10:00") if code == "slot_taken" else ())
    assert json.loads(seen.message("json"))["next_action"] == action


@pytest.mark.parametrize("name", ["in the row's words", "by its class"])
def test_in_one_transaction_the_same_is_told(ledger_url: str, name: str) -> None:
    """A tool in the ledger's own transaction words its refusals by the same rows."""
    problem, code, reason, action = RAISED[name]
    seen, detail = called(ledger_url, problem, same_transaction=True)
    assert (seen.code, seen.reason, seen.next_action, detail["code"]) == (code, reason, action, code)


def test_the_ledger_tells_the_same_later(ledger_url: str) -> None:
    """Who asks afterwards with check_effect hears the row's words, not the table's."""
    with Executor(ledger_url, [charge_tool(Rejected("too_small", "")), send_invoice]) as executor:
        first = executor.call("charge", {"order": "A-1", "amount_minor": 7})
        later = executor.call("check_effect", {"effect_id": first.effect_id})
    assert (later.code, later.reason, later.next_action) == (first.code, first.reason, first.next_action)


def test_a_smaller_cap_holds_for_every_text(ledger_url: str) -> None:
    """`Messages(tokens=50)`: arguments are cut; code and next action are whole."""
    long = {"order": "A-1", "amount_minor": 7, "extra": "x" * 5_000}
    with Executor(
        ledger_url, [charge_tool(Rejected("odd", "No.")), send_invoice], messages=Messages(tokens=TOKENS_LEAST)
    ) as executor:
        for arguments in (long, {"order": "A" * 5_000, "amount_minor": 7}):
            seen = executor.call("charge", arguments)
            assert tokens(seen.text) <= TOKENS_LEAST
            assert seen.text.endswith(f"\nNext action: {seen.next_action}")
            assert len(seen.rejected_arguments or "") > 5_000, "the program still has them whole"


@pytest.mark.parametrize(
    "wrong", [{"tokens": 49}, {"tokens": True}, {"tokens": "100"}, {"hide": "abcdef"}, {"hide": ["abc"]}]
)
def test_settings_of_messages_that_cannot_be_right(wrong: dict[str, Any]) -> None:
    """Refused when they are made: a cap that cuts the action, a word that is everywhere."""
    with pytest.raises(UsageError, match="Messages"):
        Messages(**wrong)


def test_secrets_to_hide_are_not_shown() -> None:
    """Who prints the settings sees no secret."""
    assert "hunter2" not in repr(Messages(hide=["hunter2"]))


class OddSet(set[str]):
    """A session that cannot be read."""

    def __iter__(self) -> Any:
        raise RuntimeError


@pytest.mark.parametrize("problem", [Rejected("card_declined", "No."), Throttled(900.0, "Later."), TimeoutError()])
def test_an_odd_session_costs_words_and_no_outcome(ledger_url: str, problem: Exception) -> None:
    """Where the secrets of a session cannot be had, nothing of the exception is told or kept; the verdict stands."""

    def charged(_: Effect) -> Unclear:
        return Unclear("the list is away")

    made = charge_tool(problem)
    made.postcondition(charged)
    with Executor(ledger_url, [made, send_invoice]) as executor:
        seen = executor.call("charge", {"order": "A-1", "amount_minor": 7}, context={"session": OddSet("a")})
        history = executor.audit.history(str(seen.effect_id))
    unknown = isinstance(problem, TimeoutError)
    assert seen.verdict is (Verdict.EFFECT_UNKNOWN if unknown else Verdict.NO_EFFECT)
    assert seen.code == (
        "effect_unknown" if unknown else problem.code if isinstance(problem, Throttled) else "rejected"
    )
    assert_well_formed(seen)
    assert not any("error" in entry.detail or "the list is away" in str(entry.detail) for entry in history)
