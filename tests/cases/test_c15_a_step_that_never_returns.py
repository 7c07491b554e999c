"""C15: a step that never reaches its return sends the mail three times (https://github.com/recoupable/app/issues/1918).

A long step recorded its outcome only at its end, was killed at the platform's limit and started again, and a customer
got one report three times. Here a supervisor kills three starts (SIGKILL): the first before the tool has returned, the
others in the work after it; the fourth may end.
"""

from __future__ import annotations

import signal
from typing import Any

from cases.messages import assert_applied
from cases.processes import hear, playing, say
from cases.scene import find, incidents, looked, named, post, sent, story, until
from provider import Provider

from counterfoil import Effect, Executor, Policy, Proof, Tool, tool

CALL = {"customer": "ann", "day": "2027-03-04"}


def report_tool(provider: Provider, *, stays: bool = False) -> Tool[..., Any]:
    """`stays`: once the mail has gone the function does not come back."""

    @tool(key=("customer", "day"), policy=Policy(timeout_s=1.0, grace_s=60.0, patience_s=10.0, wait_s=0.05))
    def send_report(effect: Effect, customer: str, day: str) -> dict[str, str]:
        """Mail a customer the report of one day."""
        done = post(provider, effect, {"customer": customer, "day": day})
        if stays:
            say("the mail has gone")
            hear()
        return done

    send_report.postcondition(lambda effect: find(provider, effect))
    return send_report


def step(ledger: str, provider: str, start: int) -> str:
    """The play: one start of the long step. It works on until the test says that it is done."""
    tools = [report_tool(Provider.at(provider), stays=start == 1)]
    with Executor(ledger, tools, clock_margin_s=0.1) as executor:
        seen = executor.call("send_report", CALL, task="daily", call_id=f"start-{start}")
        say([executor._site.holder, seen.as_dict()])
        hear()  # the other work
    return "all the work is done"


def is_on_record(executor: Executor, effect_id: str, start: int) -> bool:
    return any(one["call_id"] == f"start-{start}" for one in executor.audit.sightings(effect_id))


def test_three_starts_are_killed_and_one_mail_is_sent(ledger_url: str, provider: Provider) -> None:
    """The later starts learn that the report is out and go on with their other work; the start that was killed stands
    in the ledger with its one dispatch."""
    with Executor(ledger_url) as executor:
        with playing(step, ledger=ledger_url, provider=provider.url, start=1) as child:
            assert child.heard() == "the mail has gone"
            child.send_signal(signal.SIGKILL)
            assert child.ended() == -signal.SIGKILL
        provider.quiesce()
        (row,) = executor.audit.effects()
        told: list[Any] = []
        for start in (2, 3, 4):
            with playing(step, ledger=ledger_url, provider=provider.url, start=start) as child:
                told.append(child.heard())
                if start < 4:
                    until(lambda start=start: is_on_record(executor, row.id, start), "the start is on record")  # type: ignore[misc]
                    child.send_signal(signal.SIGKILL)
                    assert child.ended() == -signal.SIGKILL
                else:
                    child.tell("the work is done")
                    assert child.result() == "all the work is done"
        check_what_they_learnt(executor, provider, row.id, told)
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == looked(provider) == 1


def check_what_they_learnt(executor: Executor, provider: Provider, effect_id: str, told: list[Any]) -> None:
    assert [(seen["verdict"], seen["code"]) for _, seen in told] == [
        ("effect_applied", "verified"), ("effect_applied", "replayed"), ("effect_applied", "replayed"),
    ]  # fmt: skip
    assert "interrupted" in told[0][1]["reason"]
    for _, seen in told:
        assert (seen["ok"], seen["value"]) == (True, {"payment": provider.effects()[0]["id"]})
        assert seen["next_action"].startswith("Go on")
    assert [row.id for row in executor.audit.effects()] == [effect_id]
    assert story(executor, effect_id) == [("begun", 1), ("found", 0)]
    begun, found = executor.audit.history(effect_id)
    assert begun.detail["call_id"] == "start-1"
    assert begun.actor not in [holder for holder, _ in told], "begun by the start that was killed"
    assert found.actor == told[0][0]
    assert incidents(executor) == []
    last = executor.call("check_effect", {"effect_id": named(effect_id)})
    assert_applied(last, code="replayed")
    assert last.proof is Proof.FOUND
