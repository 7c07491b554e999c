"""C09: a key that is used again replays its refusal for ever (https://github.com/medusajs/medusa/pull/16390).

A provider keeps the first answer of a key, refusals and faults included. Whoever keeps the key after a refusal can
never pay; whoever changes it after a timeout pays twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cases.messages import assert_applied, assert_none, assert_unknown
from cases.scene import AMPLE_S, ProviderError, details, find, incidents, named, sent, story
from provider import Provider

from counterfoil import Effect, Executor, KeyPolicy, ManualClock, Policy, Proof, Rejected, Tool, tool

CALL = {"payment": "pay-1", "amount": 70}
RETENTION_S, GRACE_S = 600.0, 5.0
KEYS = KeyPolicy(retention_s=RETENTION_S, concurrent=True, replays_refusals=True)
POLICY = Policy(timeout_s=5.0, grace_s=GRACE_S, patience_s=0.1, wait_s=0.5, attempts_max=1, key_policy=KEYS)


def capture_tool(provider: Provider) -> Tool[..., Any]:
    """It raises `Rejected` for 402, which is the provider's definite no, and its client's error for all else."""

    @tool(key=("payment",), sends="once", policy=POLICY)
    def capture(effect: Effect, payment: str, amount: int) -> dict[str, str]:
        """Capture an authorised payment once."""
        body = {"payment": payment, "amount": amount}
        answer = provider.send(effect.id, key=effect.provider_key, body=body, timeout_s=AMPLE_S)
        if answer.status == 402:
            raise Rejected("capture_window_closed", "the payment can no longer be captured", status=402)
        if answer.status != 201:
            raise ProviderError(answer.status)
        effect.reference = answer.body["id"]
        return {"payment": answer.body["id"]}

    capture.postcondition(lambda effect: find(provider, effect))
    return capture


@contextmanager
def capturing(ledger: str, provider: Provider) -> Iterator[tuple[Executor, ManualClock]]:
    provider.dedupe(RETENTION_S, replays_refusals=True)
    clock = ManualClock()
    with Executor(ledger, [capture_tool(provider)], clock=clock) as executor:
        yield executor, clock
        assert incidents(executor) == []
        keys = [one["provider_key"] for one in details(executor, executor.audit.effects()[0].id, "begun")]
        assert keys == [request["key"] for request in sent(provider)], "each attempt carries the key that it sent"
    provider.quiesce()
    assert provider.count() == 1


def test_after_a_refusal_the_key_is_a_new_one(ledger_url: str, provider: Provider) -> None:
    """Run A: a definite refusal is no effect; the cause is mended, and the next call goes out under a NEW key."""
    with capturing(ledger_url, provider) as (executor, _):
        provider.arm("refuse")
        first = executor.call("capture", CALL)
        assert_none(first, code="capture_window_closed")
        assert (first.proof, provider.count()) == (Proof.REJECTED, 0)
        seen = executor.call("capture", CALL)
        assert_applied(seen, code="ok")
        assert details(executor, seen.effect_id, "begun")[1]["permission"] == Proof.REJECTED
        assert story(executor, seen.effect_id) == [("begun", 1), ("closed", 1), ("begun", 2), ("returned", 2)]
        old, new = [request["key"] for request in sent(provider)]
        assert old != new
        assert executor.audit.effect(named(seen.effect_id)).provider_keys == (old, new)
    stored = provider.send(named(seen.effect_id), key=old, body=CALL)
    assert stored.status == 402, "under the old key it would be refused for ever"
    assert provider.count() == 1


def test_after_a_lost_answer_the_key_stays(ledger_url: str, provider: Provider) -> None:
    """Run B: the answer is lost and the look is blind, so it is unknown; the next call goes out under the SAME key, and
    is answered with what had landed."""
    with capturing(ledger_url, provider) as (executor, _):
        provider.arm("ack_lost")
        provider.arm("error", times=None)
        assert_unknown(executor.call("capture", CALL))
        seen = executor.call("capture", CALL)
        assert_applied(seen, code="ok")
        assert seen.value == {"payment": provider.effects()[0]["id"]}
        assert details(executor, seen.effect_id, "begun")[1]["permission"] == "same_key"
        first, second = [request["key"] for request in sent(provider)]
        assert first == second


def test_after_a_fault_that_is_kept_the_key_stays_until_it_is_forgotten(ledger_url: str, provider: Provider) -> None:
    """Run C: 500 proves nothing; a look after the grace proves that there is none. Absence is a conditional proof, so
    the key is kept where the case has a new one (design: identity): a late landing would still be the same payment. So
    the provider replays its 500 for as long as it remembers it, which is told as unknown each time; then it is paid."""
    with capturing(ledger_url, provider) as (executor, clock):
        provider.arm("refuse", status=500)
        assert_unknown(executor.call("capture", CALL))
        (row,) = executor.audit.effects()
        clock.advance(60)
        checked = executor.call("check_effect", {"effect_id": row.id})
        assert_none(checked, code="unavailable")
        assert (checked.proof, provider.count()) == (Proof.ABSENT_AFTER_GRACE, 0)
        assert_unknown(executor.call("capture", CALL))
        assert provider.count() == 0
        clock.advance(RETENTION_S + 60)
        provider.advance(RETENTION_S + 60)
        assert_applied(executor.call("capture", CALL), code="ok")
        assert [one["permission"] for one in details(executor, row.id, "begun")] == [
            "new", Proof.ABSENT_AFTER_GRACE, Proof.ABSENT_AFTER_GRACE,
        ]  # fmt: skip
        assert {request["key"] for request in sent(provider)} == {row.provider_key}
