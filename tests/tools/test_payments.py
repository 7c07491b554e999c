"""The payment tool against a real Stripe server: what it takes, what it proves, what it leaves open."""

from __future__ import annotations

import json
from typing import Any

import pytest
import stripe
from tools.world import Scripted, attempt, look, until

from counterfoil import Tool
from counterfoil.effect import Absent, Found, Lost, NeverSent, Refused, Unclear
from counterfoil.errors import DeadlinePassed, UsageError
from counterfoil_tools.faultproxy import Fault, FaultKind, FaultProxy
from counterfoil_tools.payments import stripe_client, stripe_tools

PAID: dict[str, Any] = {"order": "order-1", "amount_minor": 1250, "currency": "eur", "payment_method": "pm_card_visa"}
DECLINED: dict[str, Any] = {**PAID, "payment_method": "pm_card_chargeCustomerFail"}
INTENTS = "/v1/payment_intents"


def tool_at(url: str, **options: Any) -> Tool[..., Any]:
    client = stripe_client("sk_test_agent", base_url=url, timeout_s=0.5, trust_env=False)
    return stripe_tools(client, grace_s=1.0, **options)[0]


@pytest.fixture
def charge(stripe_proxy: FaultProxy, payments: stripe.StripeClient) -> Tool[..., Any]:
    return tool_at(stripe_proxy.url)


def statuses(client: stripe.StripeClient) -> list[str]:
    return [intent.status for intent in client.v1.payment_intents.list({"limit": 100}).data]


def plant(client: stripe.StripeClient, effect: str, *, count: int = 1, confirm: bool = False, **more: Any) -> None:
    """Payments that are there already."""
    wanted: Any = {"amount": 1, "currency": "eur", "metadata": {"effect": effect}, **more}
    if confirm:
        wanted |= {"confirm": True}
    for _ in range(count):
        client.v1.payment_intents.create(wanted)


def test_a_charge_is_taken_once_and_found_by_its_effect(charge: Tool[..., Any], payments: stripe.StripeClient) -> None:
    """The provider holds one payment of the right amount; the look finds it, tells the same value, and owns its id."""
    done = attempt(charge, "cf-1", **PAID)
    assert statuses(payments) == ["succeeded"]
    assert done.value == {"payment": done.value["payment"], "order": "order-1", "amount_minor": 1250, "currency": "eur"}
    found = look(charge, "cf-1", **PAID)
    assert isinstance(found, Found)
    assert (found.value, found.references, found.count) == (done.value, (done.value["payment"],), 1)
    assert isinstance(look(charge, "cf-2", **PAID), Absent)


@pytest.mark.parametrize("kind", ["lose_answer", "reset_after"])
def test_a_lost_answer_is_lost_and_the_payment_is_found(
    charge: Tool[..., Any], payments: stripe.StripeClient, stripe_proxy: FaultProxy, kind: FaultKind
) -> None:
    """The function proves nothing, sends no second request by itself, and the look finds the one payment."""
    stripe_proxy.arm(Fault(kind, method="POST", path=INTENTS))
    assert isinstance(attempt(charge, "cf-1", **PAID).outcome, Lost)
    assert stripe_proxy.counts().seen == {"POST": 1}
    assert statuses(payments) == ["succeeded"]
    found = look(charge, "cf-1", **PAID)
    assert isinstance(found, Found)
    assert found.count == 1


@pytest.mark.parametrize("kind", ["swallow", "reset_before"])
def test_a_request_that_never_arrived_is_lost_and_absent(
    charge: Tool[..., Any], payments: stripe.StripeClient, stripe_proxy: FaultProxy, kind: FaultKind
) -> None:
    """The same symptom without a payment: the function still proves nothing, and a full look says absent."""
    stripe_proxy.arm(Fault(kind, method="POST", path=INTENTS))
    assert isinstance(attempt(charge, "cf-1", **PAID).outcome, Lost)
    assert isinstance(look(charge, "cf-1", **PAID), Absent)
    assert statuses(payments) == []


def test_a_server_that_is_not_there_was_never_sent_to() -> None:
    """A refused connection proves that this attempt sent nothing."""
    assert isinstance(attempt(tool_at("http://127.0.0.1:1"), "cf-1", **PAID).outcome, NeverSent)


def test_a_declined_card_is_a_refusal_with_a_way_on(charge: Tool[..., Any], payments: stripe.StripeClient) -> None:
    """The refusal says what to do in our words; the intent that it leaves at the provider is no payment to the look."""
    refusal = attempt(charge, "cf-1", **DECLINED).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.field, refusal.status) == ("card_declined", "payment_method", 402)
    assert refusal.reason == "The card was declined"
    assert refusal.hint is not None
    assert "another card" in refusal.hint
    assert statuses(payments) == ["requires_payment_method"]
    assert isinstance(look(charge, "cf-1", **DECLINED), Absent)


def test_a_payment_after_a_declined_one_counts_once(charge: Tool[..., Any], payments: stripe.StripeClient) -> None:
    """A declined try and a paid one of the same effect are one payment."""
    attempt(charge, "cf-1", **DECLINED)
    attempt(charge, "cf-1", **PAID)
    assert sorted(statuses(payments)) == ["requires_payment_method", "succeeded"]
    found = look(charge, "cf-1", **PAID)
    assert isinstance(found, Found)
    assert found.count == 1


def test_the_look_reads_every_page(charge: Tool[..., Any], payments: stripe.StripeClient) -> None:
    """Two payments of one effect, the first on the first page and the second on the third, are both counted."""
    plant(payments, "cf-1", confirm=True, payment_method="pm_card_visa")
    plant(payments, "cf-other", count=210)
    plant(payments, "cf-1", confirm=True, payment_method="pm_card_visa")
    found = look(charge, "cf-1", seconds=30, **PAID)
    assert isinstance(found, Found)
    assert (found.count, len(set(found.references))) == (2, 2)


def test_an_unfinished_scan_never_says_absent(payments: stripe.StripeClient, stripe_proxy: FaultProxy) -> None:
    """By its cap of pages or by its deadline: what was not read to the end is unclear, but what was seen is found."""
    plant(payments, "cf-1", confirm=True, payment_method="pm_card_visa")
    plant(payments, "cf-other", count=100)
    capped = tool_at(stripe_proxy.url, pages_max=1)
    assert isinstance(look(capped, "cf-2", **PAID), Unclear)
    assert isinstance(look(capped, "cf-2", seconds=0.1, **PAID), Unclear)
    assert isinstance(look(capped, "cf-1", **PAID), Found)
    assert isinstance(look(tool_at(stripe_proxy.url, pages_max=2), "cf-2", **PAID), Absent)


def test_a_look_that_gets_no_answer_raises(charge: Tool[..., Any], stripe_proxy: FaultProxy) -> None:
    """A look whose own answer is lost says so by an error; it never becomes absence."""
    stripe_proxy.arm(Fault("lose_answer", method="GET"))
    with pytest.raises(stripe.APIConnectionError):
        look(charge, "cf-1", **PAID)


def test_a_processing_payment_is_unclear_until_it_ends(charge: Tool[..., Any], payments: stripe.StripeClient) -> None:
    """Neither returned nor refused, and unclear to the look, until the bank has refused the debit: then absent."""
    debit: Any = {"type": "sepa_debit", "sepa_debit": {"iban": "DE62370400440532013001"}, "billing_details": {}}
    method = payments.v1.payment_methods.create(debit)
    arguments = {**PAID, "payment_method": method.id}
    assert isinstance(attempt(charge, "cf-1", **arguments).outcome, Lost)
    assert isinstance(look(charge, "cf-1", **arguments), Unclear)
    assert until(lambda: isinstance(look(charge, "cf-1", **arguments), Absent))


def test_a_payment_that_waits_for_the_customer_is_unclear(
    charge: Tool[..., Any], payments: stripe.StripeClient
) -> None:
    """A payment that the customer's bank wants confirmed may still be taken: neither returned, refused nor absent."""
    card: Any = {"number": "4000002500003155", "exp_month": 12, "exp_year": 2030, "cvc": "123"}
    method = payments.v1.payment_methods.create({"type": "card", "card": card})
    arguments = {**PAID, "payment_method": method.id}
    assert isinstance(attempt(charge, "cf-1", **arguments).outcome, Lost)
    assert statuses(payments) == ["requires_action"]
    assert isinstance(look(charge, "cf-1", **arguments), Unclear)


def test_invalid_arguments_are_refused_in_our_words(charge: Tool[..., Any], payments: stripe.StripeClient) -> None:
    """A payment method that does not exist is a refusal that names what to check, without the provider's text."""
    refusal = attempt(charge, "cf-1", **{**PAID, "payment_method": "pm_none"}).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.status) == ("invalid_payment", 404)
    assert refusal.reason == "The payment provider does not accept these arguments"
    assert statuses(payments) == []


def test_a_key_without_rights_is_forbidden(stripe_server: Any) -> None:
    """Credentials that the provider does not know end in `forbidden`, which no other arguments mend."""
    client = stripe_client("nonsense", base_url=stripe_server.url, trust_env=False)
    refusal = attempt(stripe_tools(client, grace_s=1)[0], "cf-1", **PAID).outcome
    assert isinstance(refusal, Refused)
    assert refusal.code == "forbidden"


def test_what_goes_over_the_wire(scripted: Scripted) -> None:
    """One request: the provider key as idempotency key, the effect's id and the order as metadata, confirmed."""
    scripted.will_answer(500, "{}")
    assert isinstance(attempt(tool_at(scripted.url), "cf-1", customer="cus_1", **PAID).outcome, Lost)
    ((method, path, headers, body),) = scripted.requests
    assert (method, path, headers["idempotency-key"]) == ("POST", INTENTS, "cf-1-k0")
    assert "metadata[effect]=cf-1&metadata[order]=order-1" in body.replace("%5B", "[").replace("%5D", "]")
    assert {"confirm=true", "off_session=true", "customer=cus_1"} < set(body.split("&"))


def error(kind: str, code: str = "") -> str:
    return json.dumps({"error": {"type": kind, "code": code, "message": "secret upstream text"}})


@pytest.mark.parametrize(
    ("status", "body", "code", "wait_s"),
    [
        (402, error("card_error", "card_declined"), "card_declined", None),
        (402, error("card_error", "authentication_required"), "authentication_required", None),
        (402, error("card_error", "expired_card"), "card_declined", None),
        (403, error("invalid_request_error"), "forbidden", None),
        (429, error("rate_limit_error"), "rate_limited", 7.0),
    ],
)
def test_answers_that_prove_a_refusal(
    scripted: Scripted, status: int, body: str, code: str, wait_s: float | None
) -> None:
    """A stable code for each refusal, the provider's waiting time where it names one, and none of its words."""
    scripted.will_answer(status, body, Retry_After="7")
    refusal = attempt(tool_at(scripted.url), "cf-1", **PAID).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.retry_after_s) == (code, wait_s)
    assert "upstream" not in f"{refusal.reason} {refusal.hint}"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("idempotency_error")),
        (409, error("idempotency_error", "idempotency_key_in_use")),
        (429, error("invalid_request_error", "lock_timeout")),
        (500, error("api_error")),
        (503, "not json"),
        (200, "not json"),
        (307, ""),
        (302, ""),
    ],
)
def test_answers_that_prove_nothing(scripted: Scripted, status: int, body: str) -> None:
    """Conflicts of keys, locks, server errors, nonsense and redirects leave it in doubt; one request went out."""
    scripted.will_answer(status, body, Location="/elsewhere")
    assert isinstance(attempt(tool_at(scripted.url), "cf-1", **PAID).outcome, Lost)
    assert len(scripted.requests) == 1


def test_a_finer_decline_is_said(scripted: Scripted) -> None:
    """The reason of a decline is told where the provider gives one that we know."""
    details = {"type": "card_error", "code": "card_declined", "decline_code": "insufficient_funds", "message": "no"}
    scripted.will_answer(402, json.dumps({"error": details}))
    refusal = attempt(tool_at(scripted.url), "cf-1", **PAID).outcome
    assert isinstance(refusal, Refused)
    assert (refusal.code, refusal.reason) == ("card_declined", "The card has not enough funds")


@pytest.mark.parametrize("status", ["processing", "requires_capture", "requires_confirmation", "levitating"])
def test_a_payment_that_is_not_finished_is_unclear(scripted: Scripted, status: str) -> None:
    """Money on its way or held, and a status that this tool has never heard of, are neither success nor failure."""
    intent = {"id": "pi_1", "object": "payment_intent", "status": status, "metadata": {"effect": "cf-1"}}
    scripted.will_answer(200, json.dumps({"object": "list", "data": [intent], "has_more": False}))
    assert isinstance(look(tool_at(scripted.url), "cf-1", **PAID), Unclear)


def test_nothing_is_sent_after_the_deadline(scripted: Scripted) -> None:
    """An attempt whose time is over ends before the request."""
    done = attempt(tool_at(scripted.url), "cf-1", seconds=0, **PAID)
    assert isinstance(done.error, DeadlinePassed)
    assert scripted.requests == []


def test_a_wait_ends_before_the_deadline(stripe_proxy: FaultProxy, payments: stripe.StripeClient) -> None:
    """A client with a long timeout gives up inside the attempt, so that the function itself can say what happened."""
    client = stripe_client("sk_test_1", base_url=stripe_proxy.url, timeout_s=3600, trust_env=False)
    stripe_proxy.arm(Fault("lose_answer"))
    done = attempt(stripe_tools(client, grace_s=1)[0], "cf-1", seconds=0.5, **PAID)
    assert isinstance(done.outcome, Lost)


@pytest.mark.parametrize(
    ("client", "fault"),
    [
        (stripe.StripeClient("sk_test_1"), "retries by itself"),
        (stripe.StripeClient("sk_test_1", max_network_retries=1), "retries by itself"),
        (stripe.StripeClient("sk_test_1", max_network_retries=0), "follows redirects"),
        (stripe.StripeClient("sk_test_1", max_network_retries=0, http_client=stripe.UrllibClient()), "redirects"),
    ],
)
def test_a_client_that_could_pay_twice_is_refused(client: stripe.StripeClient, fault: str) -> None:
    """Retries of the SDK and redirects of its HTTP client are refused at registration, with the way to mend it."""
    with pytest.raises(UsageError, match=rf"{fault}.*stripe_client\(api_key\)"):
        stripe_tools(client, grace_s=60)


def test_a_payment_that_looks_alike_is_held_unless_it_is_said_otherwise() -> None:
    """On for this payment tool, for ten minutes; its refund is one for each payment anyway."""
    client = stripe_client("sk_test_1", base_url="http://127.0.0.1:8420")
    (charge,) = stripe_tools(client, grace_s=60)
    assert charge.policy.twin_window_s == 600
    assert charge.compensation_tool is not None
    assert charge.compensation_tool.policy.twin_window_s is None
    assert stripe_tools(client, grace_s=60, twin_window_s=None)[0].policy.twin_window_s is None
