"""The refund of a charge against a real Stripe server: what it gives back, what it proves, what it leaves open."""

from __future__ import annotations

import json
from typing import Any

import pytest
import stripe
from tools.world import Attempt, Scripted, attempt, look, taken_back

from counterfoil import Tool
from counterfoil.attempt import Effect
from counterfoil.effect import Absent, Found, Lost, NeverSent, Refused, Unclear
from counterfoil_tools.faultproxy import Fault, FaultKind, FaultProxy
from counterfoil_tools.payments import stripe_client, stripe_tools

PAID: dict[str, Any] = {"order": "order-1", "amount_minor": 1250, "currency": "eur", "payment_method": "pm_card_visa"}
REFUNDS = "/v1/refunds"
KNOWN: dict[str, Any] = {**PAID, "value": {"payment": "pi_1"}}


def tool_at(url: str, **options: Any) -> Tool[..., Any]:
    client = stripe_client("sk_test_agent", base_url=url, timeout_s=0.5, trust_env=False)
    return stripe_tools(client, grace_s=1.0, **options)[0]


@pytest.fixture
def charge(stripe_proxy: FaultProxy, payments: stripe.StripeClient) -> Tool[..., Any]:
    return tool_at(stripe_proxy.url)


def refund(charge: Tool[..., Any], original: Effect, name: str = "cf-refund", **more: Any) -> Attempt:
    assert charge.compensation_tool is not None
    return attempt(charge.compensation_tool, name, original=original, **more)


def look_refunded(
    charge: Tool[..., Any], original: Effect, name: str = "cf-refund", **more: Any
) -> Found[Any] | Absent | Unclear:
    assert charge.compensation_tool is not None
    return look(charge.compensation_tool, name, original=original, **more)


def charged(charge: Tool[..., Any], name: str = "cf-1") -> Effect:
    """An order that was paid, as its refund sees it."""
    return taken_back(name, value=attempt(charge, name, **PAID).value, **PAID)


def amounts(client: stripe.StripeClient) -> list[int]:
    return [made.amount for made in client.v1.refunds.list({"limit": 100}).data]


def refund_json(status: str = "succeeded", effect: str = "cf-refund") -> dict[str, Any]:
    made = {"id": "re_1", "object": "refund", "status": status, "amount": 1250, "currency": "eur"}
    return made | {"payment_intent": "pi_1", "metadata": {"effect": effect}}


def page(*made: dict[str, Any], has_more: bool = False) -> str:
    return json.dumps({"object": "list", "data": made, "has_more": has_more})


def error(kind: str, code: str = "") -> str:
    return json.dumps({"error": {"type": kind, "code": code, "message": "secret upstream text"}})


def test_a_payment_is_refunded_in_full_and_found_by_its_effect(
    charge: Tool[..., Any], payments: stripe.StripeClient
) -> None:
    """The provider gives back the whole amount once; the look finds it, tells the same value, and owns its id."""
    original = charged(charge)
    assert isinstance(look_refunded(charge, original), Absent)
    value = refund(charge, original).value
    assert value == {
        "refund": value["refund"],
        "payment": original.value["payment"],
        "order": "order-1",
        "amount_minor": 1250,
        "currency": "eur",
    }
    assert amounts(payments) == [1250]
    found = look_refunded(charge, original)
    assert isinstance(found, Found)
    assert (found.value, found.references, found.count) == (value, (value["refund"],), 1)
    assert isinstance(look_refunded(charge, original, "cf-other"), Absent)


@pytest.mark.parametrize(("kind", "there"), [("lose_answer", 1), ("reset_after", 1), ("swallow", 0)])
def test_a_lost_answer_is_lost_and_the_look_tells_which(
    charge: Tool[..., Any], payments: stripe.StripeClient, stripe_proxy: FaultProxy, kind: FaultKind, there: int
) -> None:
    """The function proves nothing and sends no second request; the look says found or absent, as it is."""
    original = charged(charge)
    stripe_proxy.arm(Fault(kind, method="POST", path=REFUNDS))
    assert isinstance(refund(charge, original).outcome, Lost)
    assert stripe_proxy.counts().seen["POST"] == 2
    assert len(amounts(payments)) == there
    assert isinstance(look_refunded(charge, original), Found if there else Absent)


def test_without_its_value_the_payment_is_found_by_its_reference_or_its_metadata(
    charge: Tool[..., Any], payments: stripe.StripeClient
) -> None:
    """A value that was not kept is no hindrance: the ledger's references name the payment, or the account is read."""
    payment = charged(charge).value["payment"]
    named = taken_back("cf-1", references=(payment,), **PAID)
    assert refund(charge, named).value["payment"] == payment
    attempt(charge, "cf-2", **PAID)
    searched = taken_back("cf-2", **PAID)
    other = refund(charge, searched, "cf-refund-2").value["payment"]
    assert other != payment
    found = look_refunded(charge, searched, "cf-refund-2")
    assert isinstance(found, Found)
    assert found.value["payment"] == other


def test_a_payment_that_is_not_there_is_refused_unsent(
    charge: Tool[..., Any], payments: stripe.StripeClient, stripe_proxy: FaultProxy
) -> None:
    """No payment of this effect in the whole account: nothing is sent, and a person is asked for."""
    outcome = refund(charge, taken_back("cf-1", **PAID)).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == "payment_not_found"
    assert "POST" not in stripe_proxy.counts().seen


def test_an_order_that_was_paid_twice_is_left_to_a_person(
    charge: Tool[..., Any], payments: stripe.StripeClient
) -> None:
    """One refund would be half of it: refused unsent, with what to do."""
    attempt(charge, "cf-1", **PAID)
    attempt(charge, "cf-1", **PAID)
    for original in (taken_back("cf-1", **PAID), taken_back("cf-1", references=("pi_1", "pi_2"), **PAID)):
        outcome = refund(charge, original).outcome
        assert isinstance(outcome, Refused)
        assert (outcome.code, amounts(payments)) == ("several_payments", [])
        assert "person" in str(outcome.hint)


def test_an_unfinished_search_for_the_payment_sends_nothing(
    payments: stripe.StripeClient, stripe_proxy: FaultProxy
) -> None:
    """The payment may be on a page that was not read: never sent, and no word that it is missing."""
    wanted: Any = {"amount": 1, "currency": "eur"}
    for _ in range(101):
        payments.v1.payment_intents.create(wanted)
    capped = tool_at(stripe_proxy.url, pages_max=1)
    assert isinstance(refund(capped, taken_back("cf-1", **PAID)).outcome, NeverSent)
    assert amounts(payments) == []


def test_an_unfinished_scan_of_refunds_never_says_absent(
    charge: Tool[..., Any], payments: stripe.StripeClient, stripe_proxy: FaultProxy
) -> None:
    """Newest first: ours is behind a hundred others. By the cap or the deadline unclear, read to the end found."""
    original = charged(charge)
    refund(charge, original)
    one: Any = {"payment_intent": original.value["payment"], "amount": 1}
    for _ in range(101):
        payments.v1.refunds.create(one)
    capped = tool_at(stripe_proxy.url, pages_max=1)
    assert isinstance(look_refunded(capped, original, "cf-other"), Unclear)
    assert isinstance(look_refunded(capped, original, "cf-other", seconds=0.1), Unclear)
    assert isinstance(look_refunded(charge, original, seconds=20), Found)
    assert isinstance(look_refunded(charge, original, "cf-other", seconds=20), Absent)


def test_a_payment_that_failed_is_refused_in_our_words(charge: Tool[..., Any], payments: stripe.StripeClient) -> None:
    """The provider's own refusal: a stable code, a hint, and none of its words."""
    failed: Any = {"amount": 1, "currency": "eur"}
    intent = payments.v1.payment_intents.create(failed)
    outcome = refund(charge, taken_back("cf-1", value={"payment": intent.id}, **PAID)).outcome
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.status) == ("refund_refused", 400)
    assert outcome.reason == "The payment provider does not refund this payment"
    assert outcome.hint is not None


def test_what_goes_over_the_wire(scripted: Scripted) -> None:
    """One request: the payment without an amount, the provider key, the effect's id and the order as metadata."""
    scripted.will_answer(200, json.dumps(refund_json()))
    assert refund(tool_at(scripted.url), taken_back("cf-1", **KNOWN)).value["refund"] == "re_1"
    ((method, path, headers, body),) = scripted.requests
    assert (method, path, headers["idempotency-key"]) == ("POST", REFUNDS, "cf-refund-k0")
    said = set(body.replace("%5B", "[").replace("%5D", "]").split("&"))
    assert said == {"payment_intent=pi_1", "metadata[effect]=cf-refund", "metadata[order]=order-1"}


def test_the_look_asks_for_the_refunds_of_the_payment(scripted: Scripted) -> None:
    """The server filters by the payment, and pages follow each other."""
    other = refund_json(effect="cf-other") | {"id": "re_0"}
    scripted.will_answer(200, page(other, has_more=True))
    scripted.will_answer(200, page(refund_json()))
    assert isinstance(look_refunded(tool_at(scripted.url), taken_back("cf-1", **KNOWN)), Found)
    first, second = (path for _, path, _, _ in scripted.requests)
    assert "payment_intent=pi_1" in first
    assert "payment_intent=pi_1" in second
    assert "starting_after=re_0" in second


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, error("invalid_request_error"), "refund_refused"),
        (404, error("invalid_request_error", "resource_missing"), "refund_refused"),
        (402, error("card_error"), "refund_refused"),
        (401, error("invalid_request_error"), "forbidden"),
        (403, error("invalid_request_error"), "forbidden"),
        (429, error("rate_limit_error"), "rate_limited"),
        (200, json.dumps(refund_json("failed")), "refund_refused"),
        (200, json.dumps(refund_json("canceled")), "refund_refused"),
    ],
)
def test_answers_that_prove_a_refusal(scripted: Scripted, status: int, body: str, code: str) -> None:
    """A stable code for each, and none of the provider's words."""
    scripted.will_answer(status, body)
    outcome = refund(tool_at(scripted.url), taken_back("cf-1", **KNOWN)).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == code
    assert "upstream" not in f"{outcome.reason} {outcome.hint}"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("idempotency_error")),
        (429, error("invalid_request_error", "lock_timeout")),
        (500, error("api_error")),
        (200, "not json"),
        (307, ""),
        (200, json.dumps(refund_json("pending"))),
        (200, json.dumps(refund_json("levitating"))),
    ],
)
def test_answers_that_prove_nothing(scripted: Scripted, status: int, body: str) -> None:
    """Conflicts, locks, server errors, nonsense and a refund under way leave it in doubt; one request went out."""
    scripted.will_answer(status, body, Location="/elsewhere")
    assert isinstance(refund(tool_at(scripted.url), taken_back("cf-1", **KNOWN)).outcome, Lost)
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(
    ("status", "evidence"),
    [("pending", Unclear), ("requires_action", Unclear), ("levitating", Unclear), ("failed", Absent),
     ("canceled", Absent), ("succeeded", Found)],
)  # fmt: skip
def test_only_a_refund_that_succeeded_is_found(scripted: Scripted, status: str, evidence: type) -> None:
    """On its way is unclear, failed is none."""
    scripted.will_answer(200, page(refund_json(status)))
    assert isinstance(look_refunded(tool_at(scripted.url), taken_back("cf-1", **KNOWN)), evidence)


def test_refunded_before_by_this_effect_is_this_refund(scripted: Scripted) -> None:
    """An earlier attempt has landed: what the provider refuses is told as the refund that it is."""
    scripted.will_answer(400, error("invalid_request_error", "charge_already_refunded"))
    scripted.will_answer(200, page(refund_json()))
    assert refund(tool_at(scripted.url), taken_back("cf-1", **KNOWN)).value["refund"] == "re_1"


def test_refunded_before_by_another_way_is_a_refusal(scripted: Scripted) -> None:
    """A full reading shows that it is none of ours: refused, with what to tell."""
    scripted.will_answer(400, error("invalid_request_error", "charge_already_refunded"))
    scripted.will_answer(200, page(refund_json(effect="cf-other")))
    outcome = refund(tool_at(scripted.url), taken_back("cf-1", **KNOWN)).outcome
    assert isinstance(outcome, Refused)
    assert outcome.code == "already_refunded"


@pytest.mark.parametrize(("status", "body"), [(500, error("api_error")), (200, page(has_more=True))])
def test_refunded_before_and_not_to_be_read_is_in_doubt(scripted: Scripted, status: int, body: str) -> None:
    """Whose refund it is could not be seen, so nothing is proven."""
    scripted.will_answer(400, error("invalid_request_error", "charge_already_refunded"))
    scripted.will_answer(status, body)
    assert isinstance(refund(tool_at(scripted.url), taken_back("cf-1", **KNOWN)).outcome, Lost)
