"""The shipped tools under an executor with a ledger, as an agent calls them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import stripe
from tools.world import events

from counterfoil import Executor, KeyPolicy, Tool
from counterfoil_tools import servers
from counterfoil_tools.bookings import caldav_tools
from counterfoil_tools.faultproxy import Fault, FaultProxy
from counterfoil_tools.payments import stripe_client, stripe_tools

ORDER: dict[str, Any] = {"order": "A-1", "amount_minor": 1250, "currency": "eur", "payment_method": "pm_card_visa"}
ADA: dict[str, Any] = {"slot": "2026-03-04T09:00:00Z", "guest": "Ada", "title": "first visit"}
TIMES: dict[str, Any] = {"timeout_s": 2.0, "patience_s": 10.0, "grace_s": 1.0}


def all_tools(stripe_url: str, caldav_url: str, **options: Any) -> list[Tool[..., Any]]:
    account = stripe_client("sk_test_agent", base_url=stripe_url, timeout_s=0.5, trust_env=False)
    calendar = httpx.Client(trust_env=False, timeout=0.5)
    booking = caldav_tools(calendar, calendar_url=caldav_url + servers.CALENDAR_PATH, **TIMES, **options)
    return [*stripe_tools(account, **TIMES, **options), *booking]


@pytest.fixture
def executor(
    tmp_path: Path,
    stripe_proxy: FaultProxy,
    caldav_proxy: FaultProxy,
    payments: stripe.StripeClient,
    calendar: httpx.Client,
) -> Iterator[Executor]:
    tools = all_tools(stripe_proxy.url, caldav_proxy.url)
    with Executor(f"sqlite:///{tmp_path / 'ledger.db'}", tools=tools) as executor:
        yield executor


def taken(client: stripe.StripeClient) -> int:
    return sum(intent.status == "succeeded" for intent in client.v1.payment_intents.list({"limit": 100}).data)


def test_after_a_declined_card_the_same_order_is_paid_with_another(
    executor: Executor, payments: stripe.StripeClient
) -> None:
    """The hint of the refusal works as it says: another card for the same order is no conflict, and pays once."""
    declined = executor.call("charge", {**ORDER, "payment_method": "pm_card_chargeCustomerFail"})
    assert (declined.code, declined.verdict) == ("card_declined", "no_effect")
    assert "another card, then charge the same order" in declined.next_action
    paid = executor.call("charge", ORDER)
    assert (paid.code, paid.verdict, paid.attempts) == ("ok", "effect_applied", 2)
    assert executor.call("charge", {**ORDER, "payment_method": "pm_card_mastercard"}).code == "replayed"
    assert taken(payments) == 1


def test_two_guests_on_one_slot_are_two_effects(executor: Executor, calendar: httpx.Client) -> None:
    """The second guest is refused with a free slot, and booking that one is one more event."""
    assert executor.call("book_slot", ADA).code == "ok"
    refused = executor.call("book_slot", {**ADA, "guest": "Bob"})
    assert (refused.code, refused.verdict) == ("slot_taken", "no_effect")
    booked = executor.call("book_slot", {**ADA, "guest": "Bob", "slot": refused.candidates[0]})
    assert (booked.code, booked.value["slot"]) == ("ok", "2026-03-04T09:30:00+00:00")
    assert len(events(calendar)) == 2


def test_a_lost_answer_costs_no_second_payment(
    executor: Executor, payments: stripe.StripeClient, stripe_proxy: FaultProxy
) -> None:
    """A connection reset after the charge: found by looking, one attempt, one payment, owned by its id."""
    stripe_proxy.arm(Fault("reset_after", method="POST"))
    seen = executor.call("charge", ORDER)
    assert (seen.code, seen.proof, seen.attempts) == ("verified", "found", 1)
    assert executor.audit.effect(seen.effect_id or "").references == (seen.value["payment"],)
    assert taken(payments) == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("charge", {**ORDER, "amount_minor": 0}, "amount_minor"),
        ("charge", {**ORDER, "amount_minor": True}, "amount_minor"),
        ("charge", {**ORDER, "currency": "EUR"}, "currency"),
        ("charge", {**ORDER, "order": ""}, "order"),
        ("book_slot", {**ADA, "slot": "2026-03-04T09:00:00"}, "slot"),
        ("book_slot", {**ADA, "guest": ""}, "guest"),
    ],
)
def test_bad_arguments_are_told_and_nothing_is_sent(
    executor: Executor,
    stripe_proxy: FaultProxy,
    caldav_proxy: FaultProxy,
    tool: str,
    arguments: dict[str, Any],
    field: str,
) -> None:
    """Amounts below one, a currency in capitals, a time without an offset, empty names: told by field, unsent."""
    seen = executor.call(tool, arguments)
    assert (seen.code, seen.verdict) == ("invalid_arguments", "no_effect")
    assert [detail["field"] for detail in seen.details] == [field]
    assert stripe_proxy.counts().seen == caldav_proxy.counts().seen == {}


def test_with_a_key_policy_a_booking_is_sent_again_at_once(
    tmp_path: Path, stripe_proxy: FaultProxy, caldav_proxy: FaultProxy, calendar: httpx.Client
) -> None:
    """Where the calendar keeps what is booked, a request that never arrived is sent again without proof of absence."""
    policy = KeyPolicy(retention_s=3600, concurrent=True)
    tools = all_tools(stripe_proxy.url, caldav_proxy.url, key_policy=policy)
    assert [one.tier for one in tools] == ["T3", "T4"]
    caldav_proxy.arm(Fault("swallow", method="PUT"))
    with Executor(f"sqlite:///{tmp_path / 'ledger.db'}", tools=tools) as executor:
        seen = executor.call("book_slot", ADA)
        assert (seen.code, seen.attempts) == ("ok", 2)
        history = executor.audit.history(seen.effect_id or "")
    assert [entry.detail["permission"] for entry in history if entry.event == "begun"] == ["new", "same_key"]
    assert len(events(calendar)) == 1


def test_the_schemas_tell_a_model_what_to_give(executor: Executor) -> None:
    """Names, descriptions and limits of the arguments, and nothing of the effect."""
    schemas = {schema["name"]: schema["parameters"] for schema in executor.schemas()}
    charge, book = schemas["charge"], schemas["book_slot"]
    assert set(charge["properties"]) == {"order", "amount_minor", "currency", "payment_method", "customer"}
    assert charge["required"] == ["order", "amount_minor", "currency", "payment_method"]
    assert charge["properties"]["amount_minor"]["exclusiveMinimum"] == 0
    assert book["properties"]["slot"]["format"] == "date-time"
    assert all(each.get("description") for schema in (charge, book) for each in schema["properties"].values())
