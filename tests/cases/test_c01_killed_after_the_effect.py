"""C01: the process is killed after the effect, before the step returned (langchain-ai/langgraph #7417).

A real process is ended by SIGKILL at four points of one call; another process opens the same ledger and calls again.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.processes import playing
from cases.scene import details, find, looked, post, sent, story, until_free
from provider import Provider

from counterfoil import Effect, Executor, Policy, Proof, Tool, Verdict, tool

CALL = {"amount": 250, "to": "landlord", "ref": "rent-7"}
POINTS = {
    "P0": ("before", "Start"),
    "P1": ("after", "Start"),
    "P3": ("after", "Write:SettleReturned"),
}


def transfer_tool(
    provider: Provider, *, timeout_s: float = 20.0, patience_s: float = 5.0, killed_inside: bool = False
) -> Tool[..., Any]:
    policy = Policy(timeout_s=timeout_s, grace_s=0.2, patience_s=patience_s, wait_s=0.1)

    @tool(key=("ref",), sends="once", policy=policy)
    def transfer(effect: Effect, amount: int, to: str, ref: str) -> dict[str, str]:
        """Transfer money once for one reference."""
        done = post(provider, effect, {"amount": amount, "to": to, "ref": ref})
        if killed_inside:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    transfer.postcondition(lambda effect: find(provider, effect))
    return transfer


def killed(ledger: str, provider: str, point: str, timeout_s: float) -> None:
    """The play: one call, ended by SIGKILL at `point`."""
    wanted = POINTS.get(point)

    def observer(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == wanted:
            os.kill(os.getpid(), signal.SIGKILL)

    one = transfer_tool(Provider.at(provider), timeout_s=timeout_s, killed_inside=point == "P2")
    Executor(ledger, tools=[one], clock_margin_s=0.1, observer=observer).call("transfer", CALL)


def kill_at(point: str, ledger: str, provider: Provider, *, timeout_s: float = 0.5) -> None:
    with playing(killed, ledger=ledger, provider=provider.url, point=point, timeout_s=timeout_s) as child:
        assert child.ended() == -signal.SIGKILL
    provider.quiesce()


def reopened(ledger: str, provider: Provider, *, patience_s: float = 5.0) -> Executor:
    return Executor(ledger, tools=[transfer_tool(provider, patience_s=patience_s)], clock_margin_s=0.1)


def test_killed_before_the_intent_is_durable(ledger_url: str, provider: Provider) -> None:
    """P0: nothing stands in the ledger and nothing was sent; the next call carries it out, once."""
    kill_at("P0", ledger_url, provider)
    assert provider.count() == 0
    with reopened(ledger_url, provider) as executor:
        assert executor.audit.effects() == []
        seen = executor.call("transfer", CALL)
        assert_applied(seen, code="ok")
        assert story(executor, seen.effect_id) == [("begun", 1), ("returned", 1)]
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def test_killed_with_the_intent_durable_and_nothing_sent(ledger_url: str, provider: Provider) -> None:
    """P1: absence is proven by a look after the grace, and only then is it carried out, once."""
    kill_at("P1", ledger_url, provider)
    assert provider.count() == 0
    with reopened(ledger_url, provider) as executor:
        (left,) = executor.audit.effects()
        assert (left.verdict, left.attempts) == (Verdict.EFFECT_UNKNOWN, 1)
        until_free(executor)
        seen = executor.call("transfer", CALL)
        assert_applied(seen, code="ok")
        told = story(executor, seen.effect_id)
        assert [one for one in told if one[0] != "looked"] == [
            ("begun", 1), ("absent", 0), ("begun", 2), ("returned", 2),
        ]  # fmt: skip
        (absent,) = details(executor, seen.effect_id, "absent")
        assert (absent["verdict"], absent["proof"]) == (Verdict.NO_EFFECT, Proof.ABSENT_AFTER_GRACE)
        assert absent["asked_at"] > absent["absent_from"] >= left.sends_until
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def test_a_call_while_the_dead_process_holds_its_lease(ledger_url: str, provider: Provider) -> None:
    """P1, called before the lease is over: in progress, not looked at and not sent."""
    kill_at("P1", ledger_url, provider, timeout_s=60.0)
    with reopened(ledger_url, provider, patience_s=0.01) as executor:
        seen = executor.call("transfer", CALL)
        assert_unknown(seen, code="in_progress")
        assert story(executor, seen.effect_id) == [("begun", 1)]
    provider.quiesce()
    assert provider.requests() == []


def test_killed_with_the_effect_landed_and_not_recorded(ledger_url: str, provider: Provider) -> None:
    """P2: the look finds it; the model hears that it had been carried out, and nothing is sent again."""
    kill_at("P2", ledger_url, provider)
    assert provider.count() == 1
    with reopened(ledger_url, provider) as executor:
        (left,) = executor.audit.effects()
        until_free(executor)
        seen = executor.call("transfer", CALL)
        assert_applied(seen, code="verified")
        assert "interrupted" in seen.reason
        assert "had been carried out" in seen.reason
        assert (seen.proof, seen.value) == (Proof.FOUND, {"payment": provider.effects()[0]["id"]})
        assert story(executor, seen.effect_id) == [("begun", 1), ("found", 0)]
        begun, found = executor.audit.history(seen.effect_id or "")
        assert begun.actor == left.holder != found.actor, "begun by the process that died, settled by this one"
        assert begun.detail["verdict"] == Verdict.EFFECT_UNKNOWN
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def test_killed_with_the_outcome_recorded_and_not_delivered(ledger_url: str, provider: Provider) -> None:
    """P3: the ledger has the result, so it is replayed; neither a look nor a request goes out."""
    kill_at("P3", ledger_url, provider)
    with reopened(ledger_url, provider) as executor:
        seen = executor.call("transfer", CALL)
        assert_applied(seen, code="replayed")
        assert seen.replayed
        assert (seen.proof, seen.value) == (Proof.RETURNED, {"payment": provider.effects()[0]["id"]})
        assert story(executor, seen.effect_id) == [("begun", 1), ("returned", 1)]
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
    assert looked(provider) == 0


@pytest.mark.parametrize("failing", ["error", "empty"])
def test_the_first_look_after_the_restart_fails(ledger_url: str, provider: Provider, failing: Any) -> None:
    """P2 with a look that cannot see: unknown and closed, nothing is sent; the next call finds it."""
    kill_at("P2", ledger_url, provider)
    provider.arm(failing)
    with reopened(ledger_url, provider, patience_s=0.01) as executor:
        until_free(executor)
        first = executor.call("transfer", CALL)
        assert_unknown(first)
        assert story(executor, first.effect_id) == [("begun", 1), ("looked", 0)]
        second = executor.call("transfer", CALL)
        assert_applied(second, code="verified")
        assert story(executor, second.effect_id) == [("begun", 1), ("looked", 0), ("found", 0)]
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
    assert looked(provider) == 2
