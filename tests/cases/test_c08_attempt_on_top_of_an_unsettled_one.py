"""C08: a new attempt on top of an unsettled one (killbill/killbill #643).

A process pays and loses its answer; an hour later another process pays the same invoice, and nobody has reconciled.
The hour is an hour of the one clock that ledger and executors use.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.processes import playing
from cases.scene import details, find, looked, post, sent, story
from provider import Provider

from counterfoil import Effect, Executor, ManualClock, Policy, Proof, Tool, Verdict, tool

EARLIER_US = 1_800_000_000_000_000
HOUR_S = 3600
CALL = {"inv": 1, "amount": 40}


def pay_tool(provider: Provider, *, looks: bool) -> Tool[..., Any]:
    @tool(key=("inv",), sends="once", policy=Policy(timeout_s=5.0, grace_s=30.0, patience_s=0.1, wait_s=0.5))
    def pay(effect: Effect, inv: int, amount: int) -> dict[str, str]:
        """Pay one invoice."""
        return post(provider, effect, {"inv": inv, "amount": amount})

    if looks:
        pay.postcondition(lambda effect: find(provider, effect))
    return pay


def earlier(ledger: str, provider: str) -> str:
    """The play: the first payment, by a host that cannot look."""
    tools = [pay_tool(Provider.at(provider), looks=False)]
    with Executor(ledger, tools=tools, clock=ManualClock(EARLIER_US)) as executor:
        return executor.call("pay", CALL).verdict


def an_hour_later(ledger: str, provider: Provider) -> Executor:
    clock = ManualClock(EARLIER_US + HOUR_S * 1_000_000)
    return Executor(ledger, tools=[pay_tool(provider, looks=True)], clock=clock)


def pay_and_lose_the_answer(how: Literal["ack_lost", "request_lost"], ledger: str, provider: Provider) -> None:
    provider.arm(how)
    with playing(earlier, ledger=ledger, provider=provider.url) as child:
        assert child.result() == Verdict.EFFECT_UNKNOWN
    provider.quiesce()
    assert looked(provider) == 0


def test_what_landed_is_found_first(ledger_url: str, provider: Provider) -> None:
    """The look comes before the decision: it is found, so nothing begins."""
    pay_and_lose_the_answer("ack_lost", ledger_url, provider)
    with an_hour_later(ledger_url, provider) as executor:
        seen = executor.call("pay", CALL)
        assert_applied(seen, code="verified")
        assert "had been carried out" in seen.reason
        assert seen.value == {"payment": provider.effects()[0]["id"]}
        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1), ("found", 0)]
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == looked(provider) == 1


@pytest.mark.parametrize("failing", ["error", "empty"])
def test_a_look_that_fails_permits_nothing(ledger_url: str, provider: Provider, failing: Any) -> None:
    """An hour is long after every grace, and still only a full answer of the look may permit a second attempt."""
    pay_and_lose_the_answer("ack_lost", ledger_url, provider)
    provider.arm(failing, times=None)
    with an_hour_later(ledger_url, provider) as executor:
        seen = executor.call("pay", CALL)
        assert_unknown(seen)
        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1), ("looked", 0)]
        (looked_at,) = details(executor, seen.effect_id, "looked")
        assert looked_at["evidence"] == "unclear"
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def test_what_was_lost_on_its_way_is_carried_out_now(ledger_url: str, provider: Provider) -> None:
    """The look proves absence, in the same call and before the second attempt begins; then it is paid, once."""
    pay_and_lose_the_answer("request_lost", ledger_url, provider)
    with an_hour_later(ledger_url, provider) as executor:
        seen = executor.call("pay", CALL)
        assert_applied(seen, code="ok")
        assert story(executor, seen.effect_id) == [
            ("begun", 1), ("lost", 1), ("absent", 0), ("begun", 2), ("returned", 2),
        ]  # fmt: skip
        (absent,) = details(executor, seen.effect_id, "absent")
        assert (absent["verdict"], absent["proof"]) == (Verdict.NO_EFFECT, Proof.ABSENT_AFTER_GRACE)
        assert details(executor, seen.effect_id, "begun")[1]["permission"] == Proof.ABSENT_AFTER_GRACE
        history = executor.audit.history(seen.effect_id or "")
        assert [entry.seq for entry in history] == [1, 2, 3, 4, 5], "no change of the row came between"
    provider.quiesce()
    requests = [request["method"] for request in provider.requests()]
    assert requests == ["POST", "GET", "POST"]
    assert provider.count() == 1
