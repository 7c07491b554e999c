"""Refund, cancel and release under an executor with a ledger, against the real servers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import stripe
from tools.world import bookings, events

from counterfoil import Executor, Proof, Verdict
from counterfoil_tools import servers
from counterfoil_tools.bookings import caldav_tools
from counterfoil_tools.faultproxy import Fault, FaultKind, FaultProxy
from counterfoil_tools.payments import stripe_client, stripe_tools

ORDER: dict[str, Any] = {"order": "A-1", "amount_minor": 1250, "currency": "eur", "payment_method": "pm_card_visa"}
ADA: dict[str, Any] = {"slot": "2026-03-04T09:00:00Z", "guest": "Ada", "title": "first visit"}
BOB: dict[str, Any] = {**ADA, "guest": "Bob"}
NAME = "20260304T090000Z.ics"
REFUNDS = "/v1/refunds"


@pytest.fixture
def executor(
    tmp_path: Path,
    stripe_proxy: FaultProxy,
    caldav_proxy: FaultProxy,
    payments: stripe.StripeClient,
    calendar: httpx.Client,
) -> Iterator[Executor]:
    """Refunds are looked for with patience; a lost booking is left in doubt at once, for a revoke to end."""
    account = stripe_client("sk_test_agent", base_url=stripe_proxy.url, timeout_s=0.5, trust_env=False)
    client = httpx.Client(trust_env=False, timeout=0.5)
    paying = stripe_tools(account, timeout_s=2.0, patience_s=10.0, grace_s=1.0)
    booking = caldav_tools(
        client, calendar_url=caldav_proxy.url + servers.CALENDAR_PATH, timeout_s=2.0, patience_s=0.3, grace_s=60.0
    )
    with Executor(f"sqlite:///{tmp_path / 'ledger.db'}", tools=[*paying, *booking]) as executor:
        yield executor


def refunds(client: stripe.StripeClient) -> list[int]:
    return [made.amount for made in client.v1.refunds.list({"limit": 100}).data]


@pytest.mark.parametrize(
    ("kind", "proof", "attempts"), [("lose_answer", Proof.FOUND, 1), ("swallow", Proof.RETURNED, 2)]
)
def test_a_refund_is_given_once(
    executor: Executor,
    payments: stripe.StripeClient,
    stripe_proxy: FaultProxy,
    kind: FaultKind,
    proof: Proof,
    attempts: int,
) -> None:
    """Its answer lost: found. Its request lost: proven absent and sent again. One refund at the provider either way."""
    paid = executor.call("charge", ORDER)
    stripe_proxy.arm(Fault(kind, method="POST", path=REFUNDS))
    seen = executor.compensate(str(paid.effect_id))
    assert (seen.verdict, seen.proof, seen.attempts) == (Verdict.EFFECT_APPLIED, proof, attempts)
    assert executor.compensate(str(paid.effect_id)).code == "replayed"
    assert refunds(payments) == [1250]
    assert executor.call("charge", ORDER).code == "ended"


def test_a_revoke_ends_a_doubt_before_the_late_original_lands(
    executor: Executor, calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """Acknowledged, then the delayed original arrives and is refused: no booking. The guest can book again."""
    caldav_proxy.arm(Fault("delay", method="PUT", seconds=5))
    doubt = executor.call("book_slot", ADA)
    assert doubt.verdict is Verdict.EFFECT_UNKNOWN
    seen = executor.revoke(str(doubt.effect_id))
    assert (seen.verdict, seen.proof) == (Verdict.NO_EFFECT, Proof.REVOKED)
    assert caldav_proxy.counts().acted["PUT"] == 1
    assert caldav_proxy.wait(lambda counts: counts.acted["PUT"] == 2, timeout_s=20)
    assert (events(calendar), bookings(calendar)) == ([NAME], {})
    again = executor.call("book_slot", ADA)
    assert (again.code, bookings(calendar)) == ("ok", {NAME: str(again.effect_id)})


def test_a_revoke_finds_what_had_landed(executor: Executor, calendar: httpx.Client, caldav_proxy: FaultProxy) -> None:
    """The booking is there, and no look could say so: applied, as found by the revoke."""
    caldav_proxy.arm(Fault("lose_answer", method="PUT"))
    caldav_proxy.arm(Fault("reset_before", method="GET", count=99))
    doubt = executor.call("book_slot", ADA)
    assert doubt.verdict is Verdict.EFFECT_UNKNOWN
    caldav_proxy.disarm()
    seen = executor.revoke(str(doubt.effect_id))
    assert (seen.verdict, seen.proof, seen.value["resource"]) == (Verdict.EFFECT_APPLIED, Proof.FOUND, NAME)
    assert len(bookings(calendar)) == 1


def test_a_revoke_in_doubt_is_ended_by_sending_it_again(
    executor: Executor, calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """Every answer to the stone is lost at first: unknown; called again, it is recognised."""
    caldav_proxy.arm(Fault("swallow", method="PUT"))
    doubt = executor.call("book_slot", ADA)
    caldav_proxy.arm(Fault("reset_after", method="PUT"))
    caldav_proxy.arm(Fault("reset_after", method="GET", count=9))
    assert executor.revoke(str(doubt.effect_id)).verdict is Verdict.EFFECT_UNKNOWN
    caldav_proxy.disarm()
    seen = executor.revoke(str(doubt.effect_id))
    assert (seen.proof, bookings(calendar)) == (Proof.REVOKED, {})


def test_what_was_released_is_booked_by_another_guest(
    executor: Executor, calendar: httpx.Client, caldav_proxy: FaultProxy
) -> None:
    """Released once, booked by the next guest although the answer is lost, and each effect tells its own truth."""
    caldav_proxy.arm(Fault("lose_answer", method="PUT"))
    ada = executor.call("book_slot", ADA)  # found by a look, so that it owns the resource's name
    assert (ada.code, executor.compensate(str(ada.effect_id)).code) == ("verified", "ok")
    assert (executor.call("book_slot", ADA).code, bookings(calendar)) == ("ended", {})
    caldav_proxy.arm(Fault("delay", method="PUT", seconds=0.01))  # the first storing, refused
    caldav_proxy.arm(Fault("lose_answer", method="PUT"))
    bob = executor.call("book_slot", BOB)
    assert (bob.code, bookings(calendar)) == ("verified", {NAME: str(bob.effect_id)})
    assert executor.compensate(str(ada.effect_id)).code == "replayed"
    assert bookings(calendar) == {NAME: str(bob.effect_id)}


def test_a_task_is_rolled_back(executor: Executor, calendar: httpx.Client, payments: stripe.StripeClient) -> None:
    """Booking and charge of one task, newest first: the money is back and the slot is free."""
    executor.call("charge", ORDER, task="visit")
    executor.call("book_slot", ADA, task="visit")
    executor.call("book_slot", {**BOB, "slot": "2026-03-04T10:00:00Z"}, task="another")
    assert [seen.code for seen in executor.rollback("visit").values()] == ["ok", "ok"]
    assert (refunds(payments), list(bookings(calendar))) == ([1250], ["20260304T100000Z.ics"])
