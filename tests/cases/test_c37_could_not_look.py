"""C37: "does not exist" against "could not look" (juspay/hyperswitch #3675).

The request is lost. The look is then answered in several ways, of which only 404 means that the order is unknown there.
"""

from __future__ import annotations

import re
from typing import Any, Self

import pytest
from cases.messages import assert_applied, assert_none, assert_unknown, assert_well_formed
from cases.scene import AMPLE_S, Evidence, ProviderError, details, looked, post, sent, story
from provider import Provider

from counterfoil import Absent, Effect, Executor, Found, ManualClock, Policy, Proof, Tool, Unclear, Verdict, tool

CREDENTIAL = "sk-live-4711"
BLIND: dict[str, dict[str, Any]] = {
    "401": {"kind": "error", "status": 401, "payload": {"error": f"{CREDENTIAL} has expired"}},
    "403": {"kind": "error", "status": 403, "payload": {"error": "not yours"}},
    "429": {"kind": "error", "status": 429, "payload": {"error": "slow down"}},
    "500": {"kind": "error", "status": 500, "payload": {"error": "oops"}},
    "empty": {"kind": "empty"},
}
POLICY = Policy(timeout_s=5.0, grace_s=30.0, patience_s=0.1, wait_s=0.5)
CALL = {"order": "A"}


def look(provider: Provider, effect: Effect) -> Evidence:
    """Only 404 is absence. A body that is missing says nothing; every other status is an error, as of any client."""
    answer = provider.look(effect.id, timeout_s=AMPLE_S)
    if answer.status == 404:
        return Absent()
    if answer.status != 200:
        raise ProviderError(answer.status)
    if not answer.body:
        return Unclear("200 and an empty body")
    return Found({"payment": answer.body[0]["id"]}, reference=answer.body[0]["id"])


def order_tool(provider: Provider) -> Tool[..., Any]:
    @tool(key=("order",), sends="once", policy=POLICY)
    def pay_order(effect: Effect, order: str) -> dict[str, str]:
        """Pay one order."""
        return post(provider, effect, {"order": order})

    pay_order.postcondition(lambda effect: look(provider, effect))
    return pay_order


class Desk:
    """An executor on a clock of its own, after the one request was lost."""

    def __init__(self, ledger: str, provider: Provider, answer: dict[str, Any]) -> None:
        self.clock = ManualClock()
        self.executor = Executor(ledger, tools=[order_tool(provider)], clock=self.clock)
        provider.arm("request_lost")
        provider.arm(times=None, **answer)

    def __enter__(self) -> Self:
        self.first = self.pay()
        return self

    def __exit__(self, *_: object) -> None:
        self.executor.close()

    def pay(self) -> Any:
        return self.executor.call("pay_order", CALL, context={"credential": CREDENTIAL})

    def check(self) -> Any:
        return self.executor.call("check_effect", {"effect_id": self.first.effect_id})


UNKNOWN_ORDER = {"kind": "error", "status": 404, "payload": {"error": "order unknown"}}


def test_404_is_absence_and_after_the_window_it_proves(ledger_url: str, provider: Provider) -> None:
    """Within the window unknown; after it no effect, with nothing sent; and only then the retry is permitted."""
    with Desk(ledger_url, provider, UNKNOWN_ORDER) as desk:
        assert_unknown(desk.first)
        assert details(desk.executor, desk.first.effect_id, "looked")[0]["evidence"] == "absent"
        desk.clock.advance(3600)
        seen = desk.check()
        assert_none(seen, code="unavailable")
        assert (seen.proof, seen.retry) == (Proof.ABSENT_AFTER_GRACE, "after")
        provider.quiesce()
        assert provider.count() == 0

        provider.disarm()
        assert_applied(desk.pay(), code="ok")
        assert story(desk.executor, desk.first.effect_id) == [
            ("begun", 1), ("lost", 1), ("looked", 0), ("absent", 0), ("begun", 2), ("returned", 2),
        ]  # fmt: skip
    provider.quiesce()
    assert provider.count() == 1
    assert len(sent(provider)) == 2


@pytest.mark.parametrize("answer", BLIND)
def test_every_other_answer_says_nothing(ledger_url: str, provider: Provider, answer: str) -> None:
    """Unknown, at once and an hour later, for the caller, the check and reconcile; nothing is sent again."""
    with Desk(ledger_url, provider, BLIND[answer]) as desk:
        desk.clock.advance(3600)
        for seen in (desk.first, desk.check(), desk.pay()):
            assert (seen.verdict, seen.ok, seen.proof) == (Verdict.EFFECT_UNKNOWN, False, None)
            if answer not in ("401", "403"):  # these two are about the credential of the look
                assert_unknown(seen)
        desk.clock.advance(3600)
        done = desk.executor.reconcile()
        assert (done.looked, done.unknown, done.no_effect, done.applied) == (1, 1, 0, 0)
        outcomes = details(desk.executor, desk.first.effect_id, "looked")
        assert [one["evidence"] for one in outcomes] == ["unclear"] * looked(provider)
        assert all(one["reason"] for one in outcomes)
        assert {one["verdict"] for one in outcomes} == {"effect_unknown"}
    provider.quiesce()
    assert provider.count() == 0
    assert len(sent(provider)) == 1


def test_an_expired_credential_is_named_and_not_shown(ledger_url: str, provider: Provider) -> None:
    """401: the one next action is about the credential, without it; a retry is not invited."""
    with Desk(ledger_url, provider, BLIND["401"]) as desk:
        desk.clock.advance(3600)
        for seen in (desk.first, desk.check(), desk.pay()):
            assert_well_formed(seen)
            assert re.search(r"credential", seen.next_action, re.IGNORECASE), seen.next_action
            assert_unknown(seen, code=seen.code)
            assert CREDENTIAL not in seen.text
            assert CREDENTIAL not in str(seen.as_dict())
        for entry in desk.executor.audit.history(desk.first.effect_id):
            assert CREDENTIAL not in str(entry)


def test_the_outcomes_of_looks_are_kept_apart(ledger_url: str, provider: Provider) -> None:
    """The book shows absent, failed, and present as three different things."""
    with Desk(ledger_url, provider, UNKNOWN_ORDER) as desk:
        for answer in ("401", "429", "empty"):
            provider.disarm()
            provider.arm(times=None, **BLIND[answer])
            assert desk.check().verdict is Verdict.EFFECT_UNKNOWN
        provider.disarm()
        provider.send(desk.first.effect_id, body={"order": "A"})  # the lost request arrives after all
        assert_applied(desk.check(), code="verified")
        told = desk.executor.audit.history(desk.first.effect_id)
        assert [(entry.event, entry.detail.get("evidence")) for entry in told[2:]] == [
            ("looked", "absent"), ("looked", "unclear"), ("looked", "unclear"), ("looked", "unclear"), ("found", None),
        ]  # fmt: skip
    assert provider.count() == 1


def test_a_failed_look_is_stored_with_its_reason(ledger_url: str, provider: Provider) -> None:
    """An engineer can tell from the book why each look failed: the status of an error, or the words of the look."""
    with Desk(ledger_url, provider, UNKNOWN_ORDER) as desk:
        for answer in BLIND:
            provider.disarm()
            provider.arm(times=None, **BLIND[answer])
            desk.check()
        reasons = [str(one.get("reason")) for one in details(desk.executor, desk.first.effect_id, "looked")]
        assert (reasons[0], reasons[-1]) == ("None", "200 and an empty body")
        for status, reason in zip(("401", "403", "429", "500"), reasons[1:-1], strict=True):
            assert status in reason, reason
