"""C47: a stalled worker wakes up and overwrites the new owner's record (https://github.com/brendanlong/lion-reader/pull/917).

A worker that paused beyond its lease lost its job to another one, then went on, and finished the job a second time.
Here worker 1 is stopped (SIGSTOP) at three places of its call, worker 2 takes over, and worker 1 gets its SIGCONT.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

import pytest
from cases.messages import assert_applied
from cases.processes import playing
from cases.scene import details, find, incidents, looked, post, sent, story, until, until_free
from provider import Provider

from counterfoil import Effect, Executor, Policy, Proof, Tool, tool

CALL = {"order": "A", "amount": 70}
MARGIN_S = 0.1


def stand_still() -> None:
    """Stop this process here: sent to this very thread, the signal lets it not take one step more."""
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def pay_tool(provider: Provider, stops: str = "") -> Tool[..., Any]:
    policy = Policy(timeout_s=0.8 if stops else 20.0, grace_s=0.3, patience_s=10.0, wait_s=0.1)

    @tool(key=("order",), sends="marked", policy=policy)
    def pay(effect: Effect, order: str, amount: int) -> dict[str, str]:
        """Pay one order."""
        if stops == "in the function":
            stand_still()
        with effect.sending():
            done = post(provider, effect, {"order": order, "amount": amount})
        if stops == "after the dispatch":
            stand_still()
        return done

    pay.postcondition(lambda effect: find(provider, effect))
    return pay


def worker(ledger: str, provider: str, stops: str) -> Any:
    """The play: worker 1, which stands still at its place; what its caller was told in the end."""

    def observer(moment: str, step: str, tool: str, effect_id: str) -> None:
        if stops == "before the dispatch" and (moment, step) == ("before", "Attempt"):
            stand_still()

    tools = [pay_tool(Provider.at(provider), stops)]
    with Executor(ledger, tools, clock_margin_s=MARGIN_S, observer=observer) as executor:
        seen = executor.call("pay", CALL)
        if stops == "after the dispatch":  # its thread may be later than its caller, who hears of worker 2
            until(lambda: ("returned_again", 1) in story(executor, seen.effect_id), "the late result is recorded")
        return [executor._site.holder, seen.as_dict()]


@pytest.mark.parametrize("stops", ["before the dispatch", "in the function"])
def test_a_worker_that_stalls_before_it_sends(ledger_url: str, provider: Provider, stops: str) -> None:
    """Worker 2 proves absence and pays. Worker 1 finds its deadline over in the moment before it would send, sends
    nothing, changes nothing, and tells its caller what worker 2 did."""
    with (
        playing(worker, ledger=ledger_url, provider=provider.url, stops=stops) as child,
        Executor(ledger_url, [pay_tool(provider)], clock_margin_s=MARGIN_S) as executor,
    ):
        child.stopped()
        until_free(executor)
        second = executor.call("pay", CALL)
        assert_applied(second, code="ok")
        taken_over = executor.audit.history(second.effect_id or "")
        child.send_signal(signal.SIGCONT)
        holder, first = child.result()
        assert executor.audit.history(second.effect_id or "") == taken_over, "what the lost owner writes is refused"
        told = [entry for entry in taken_over if entry.event != "looked"]
        assert [(entry.event, entry.attempt) for entry in told] == [
            ("begun", 1), ("absent", 0), ("begun", 2), ("returned", 2),
        ]  # fmt: skip
        assert [entry.actor == holder for entry in told] == [True, False, False, False]
        assert incidents(executor) == []
    check_what_worker_1_tells(first, second)
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def check_what_worker_1_tells(first: dict[str, Any], second: Any) -> None:
    assert (first["verdict"], first["code"], first["ok"]) == ("effect_applied", "replayed", True)
    assert (first["effect_id"], first["value"]) == (second.effect_id, second.value)


def test_a_worker_that_stalls_after_it_has_sent(ledger_url: str, provider: Provider) -> None:
    """Worker 2 finds the payment by its look and sends nothing. What worker 1 says late is kept as evidence beside it,
    and changes neither the verdict nor the value nor the count."""
    with (
        playing(worker, ledger=ledger_url, provider=provider.url, stops="after the dispatch") as child,
        Executor(ledger_url, [pay_tool(provider)], clock_margin_s=MARGIN_S) as executor,
    ):
        child.stopped()
        until_free(executor)
        second = executor.call("pay", CALL)
        assert_applied(second, code="verified")
        assert second.proof is Proof.FOUND
        assert looked(provider) == 1
        child.send_signal(signal.SIGCONT)
        holder, first = child.result()
        assert (first["verdict"], first["ok"]) == ("effect_applied", True)
        assert (first["effect_id"], first["value"]) == (second.effect_id, second.value)
        assert story(executor, second.effect_id) == [("begun", 1), ("found", 0), ("returned_again", 1)]
        (late,) = details(executor, second.effect_id, "returned_again")
        assert late["reference"] == provider.effects()[0]["id"]
        assert executor.audit.history(second.effect_id or "")[2].actor == holder
        (row,) = executor.audit.effects()
        assert (row.verdict, row.count, row.references) == ("effect_applied", 1, (provider.effects()[0]["id"],))
        assert_applied(executor.call("pay", CALL), code="replayed")
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
