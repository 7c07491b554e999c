"""C12: the gateway says 504 while the backend finishes the job (https://github.com/openSUSE/osc/pull/1860).

A client listed 504 among the statuses to retry; the proxy had given up, the backend went on, and the order was made
twice. Here the backend stores the order when the test lets it, after the caller has heard the status and called again.
"""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from cases.messages import assert_applied, assert_none, assert_unknown
from cases.scene import AMPLE_S, details, find, incidents, looked, named, sent, story, until
from provider import Provider

from counterfoil import Effect, Executor, ManualClock, Observation, Policy, Proof, Throttled, tool

CALL = {"order": "A-1", "amount": 500}
GRACE_S = 30.0


def order_tool(provider: Provider, *, rejects: tuple[type[Exception], ...] = (), declares: bool = False) -> Any:
    """Its client raises for every status that is no success. `declares`: 503 means "refused before processing" here."""
    policy = Policy(timeout_s=5.0, grace_s=GRACE_S, patience_s=0.1, wait_s=0.5, attempts_max=3)

    @tool(key=("order",), sends="once", rejects=rejects, policy=policy)
    def create_order(effect: Effect, order: str, amount: int) -> dict[str, str]:
        """Order something once."""
        body = {"reference": effect.id, "key": None, "body": {"order": order, "amount": amount}}
        with httpx.Client(trust_env=False, follow_redirects=False, timeout=AMPLE_S) as client:
            answer = client.post(f"{provider.url}/effects", json=body)
        if declares and answer.status_code == 503:
            raise Throttled(60.0, "the shop takes no orders at the moment")
        effect.reference = answer.raise_for_status().json()["id"]
        return {"payment": answer.json()["id"]}

    create_order.postcondition(lambda effect: find(provider, effect))
    return create_order


def check_the_message(seen: Observation, status: int) -> None:
    """The status, that it may have happened, no repeat, and one next action: wait and check."""
    assert_unknown(seen)
    assert str(status) in seen.reason
    check_the_doubt(seen)


def check_the_doubt(seen: Observation) -> None:
    assert_unknown(seen)
    assert "may have been carried out, or may still be" in seen.reason
    assert "Do not call create_order for this again, in any wording." in seen.next_action
    assert f"Call check_effect with effect_id {seen.effect_id} in " in seen.next_action


def call_twice(executor: Executor, provider: Provider, status: int) -> str:
    """The call, and the same call straight after the error: blocked, and recorded with its way to the first attempt."""
    first = executor.call("create_order", CALL, turn=1, call_id="call_1")
    check_the_message(first, status)
    second = executor.call("create_order", CALL, turn=2, call_id="call_2")
    check_the_doubt(second)
    assert first.effect_id == second.effect_id
    effect_id = named(first.effect_id)
    until(lambda: len(executor.audit.sightings(effect_id)) == 2, "what replays leave is written behind")
    blocked = executor.audit.sightings(effect_id)[1]
    assert (blocked["call_id"], blocked["turn"], blocked["code"]) == ("call_2", 2, "effect_unknown")
    (begun,) = details(executor, effect_id, "begun")
    assert (begun["call_id"], begun["turn"]) == ("call_1", 1)
    (lost,) = details(executor, effect_id, "lost")
    assert lost["reason"] == f"httpx.HTTPStatusError with the status {status}"
    assert len(sent(provider)) == 1
    return effect_id


@pytest.mark.parametrize("status", [504, 502])
def test_the_backend_finishes_after_the_gateway_has_given_up(ledger_url: str, provider: Provider, status: int) -> None:
    """Unknown at first, although the error's class is listed as a refusal; applied once the look sees the order. One
    request and one order."""
    tools = [order_tool(provider, rejects=(httpx.HTTPStatusError,))]
    clock = ManualClock()
    with Executor(ledger_url, tools, clock=clock) as executor:
        provider.arm("late", status=status)
        effect_id = call_twice(executor, provider, status)
        assert provider.count() == 0
        provider.release()
        provider.quiesce()
        clock.advance(1)
        seen = executor.call("create_order", CALL, turn=3)
        assert_applied(seen, code="verified")
        assert seen.value == {"payment": provider.effects()[0]["id"]}
        told = [one for one in story(executor, effect_id) if one[0] != "looked"]
        assert told == [("begun", 1), ("lost", 1), ("found", 0)]
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def test_503_and_nothing_stored(ledger_url: str, provider: Provider) -> None:
    """503 by itself proves nothing: unknown until a look after the settle window finds nothing, and only then the same
    call carries it out."""
    clock = ManualClock()
    with Executor(ledger_url, [order_tool(provider)], clock=clock) as executor:
        provider.arm("status", status=503)
        effect_id = call_twice(executor, provider, 503)
        (row,) = executor.audit.effects()
        assert row.absent_from is not None
        clock.advance((row.absent_from - row.now) / 1_000_000 - 0.5)
        check_the_doubt(executor.call("check_effect", {"effect_id": effect_id}, turn=3))
        clock.advance(1)
        checked = executor.call("check_effect", {"effect_id": effect_id}, turn=4)
        assert_none(checked, code="unavailable")
        assert (checked.proof, checked.retry, provider.count()) == (Proof.ABSENT_AFTER_GRACE, "after", 0)
        assert_applied(executor.call("create_order", CALL, turn=5), code="ok")
        told = [one for one in story(executor, effect_id) if one[0] != "looked"]
        assert told == [("begun", 1), ("lost", 1), ("absent", 0), ("begun", 2), ("returned", 2)]
    provider.quiesce()
    assert (provider.count(), len(sent(provider))) == (1, 2)


def test_503_that_the_tool_declares_as_refused(ledger_url: str, provider: Provider) -> None:
    """Where the tool says that this status means "not processed", it is no effect at once, and may be tried later."""
    with Executor(ledger_url, [order_tool(provider, declares=True)], clock=ManualClock()) as executor:
        provider.arm("status", status=503)
        first = executor.call("create_order", CALL)
        assert_none(first, code="rate_limited")
        assert (first.proof, first.retry, first.retry_after_s) == (Proof.REJECTED, "after", 60.0)
        assert looked(provider) == provider.count() == 0
        assert_applied(executor.call("create_order", CALL), code="ok")
        assert story(executor, first.effect_id) == [("begun", 1), ("closed", 1), ("begun", 2), ("returned", 2)]
    provider.quiesce()
    assert provider.count() == 1
