"""C05: a stale replica says "not there" (https://github.com/deploymenttheory/terraform-provider-microsoft365/pull/3316).

A provider made an assignment, read an old replica of the directory, concluded that it was missing and lost track of it.
Here the answer is lost and the directory hides the assignment for 4 s, from the call's own look too; the model repeats
the call at 1, 2 and 3 s, with the time for which a look may miss it declared as 10 s, and wrongly as 0.
"""

from __future__ import annotations

from typing import Any

from cases.messages import assert_applied, assert_unknown
from cases.paying import SECOND
from cases.scene import details, find, incidents, looked, post, sent, story
from provider import Provider

from counterfoil import Effect, Executor, ManualClock, Policy, Proof, Tool, Verdict, tool

CALL = {"user": "ann", "role": "auditor"}
TIMEOUT_S, MARGIN_S = 0.5, 0.1


def assign_tool(provider: Provider, grace_s: float) -> Tool[..., Any]:
    policy = Policy(timeout_s=TIMEOUT_S, grace_s=grace_s, patience_s=0.1, wait_s=0.5)

    @tool(key=("user", "role"), sends="once", policy=policy)
    def assign(effect: Effect, user: str, role: str) -> dict[str, str]:
        """Assign a role to a user."""
        return post(provider, effect, {"user": user, "role": role})

    assign.postcondition(lambda effect: find(provider, effect))
    return assign


def test_not_found_yet_is_unknown_within_the_declared_time(ledger_url: str, provider: Provider) -> None:
    """Unknown at 0, 1, 2 and 3 s, in words that do not say "not there"; found at 4 s. One request, one effect, and the
    book has each look with its time and its outcome."""
    clock = ManualClock()
    with Executor(ledger_url, [assign_tool(provider, 10.0)], clock=clock, clock_margin_s=MARGIN_S) as executor:
        begun_us = clock.wall_us()
        provider.arm("ack_lost")
        provider.arm("stale", times=None)
        for _ in range(4):
            seen = executor.call("assign", CALL)
            assert_unknown(seen)
            assert "may have been carried out, or may still be" in seen.reason
            clock.advance(1)
        provider.disarm()
        found = executor.call("assign", CALL)
        assert_applied(found, code="verified")
        assert found.value == {"payment": provider.effects()[0]["id"]}
        looks = [entry for entry in executor.audit.history(found.effect_id or "") if entry.event in ("looked", "found")]
        assert [(entry.at - begun_us) // SECOND for entry in looks] == [0, 1, 2, 3, 4]
        assert [(entry.event, entry.detail.get("evidence")) for entry in looks] == [("looked", "absent")] * 4 + [
            ("found", None)
        ]
        assert all(entry.detail["asked_at"] <= entry.at for entry in looks)
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
    assert looked(provider) == 5


def test_a_time_declared_too_short_is_believed_and_the_double_is_found(ledger_url: str, provider: Provider) -> None:
    """Declared as 0, absence at 1 s is proof, so a second assignment goes out; the next look of reconcile sees both of
    them, and raises the anomaly with both references."""
    clock = ManualClock()
    with Executor(ledger_url, [assign_tool(provider, 0.0)], clock=clock, clock_margin_s=MARGIN_S) as executor:
        provider.arm("ack_lost")
        provider.arm("stale", times=None)
        assert_unknown(executor.call("assign", CALL))
        clock.advance(1)
        (row,) = executor.audit.effects()
        checked = executor.call("check_effect", {"effect_id": row.id})
        assert (checked.verdict, checked.proof) == (Verdict.NO_EFFECT, Proof.ABSENT_AFTER_GRACE)
        again = executor.call("assign", CALL)
        assert_applied(again, code="ok")
        assert incidents(executor) == []

        clock.advance(3)
        provider.disarm()
        assert executor.reconcile().looked == 1
        both = [one["id"] for one in provider.effects()]
        (anomaly,) = executor.audit.incidents()
        assert (anomaly.kind, anomaly.effect_id, anomaly.tool) == ("applied_more_than_once", row.id, "assign")
        assert anomaly.detail["count"] == 2
        assert sorted(executor.audit.effect(row.id).references) == sorted(both)
        assert sorted(details(executor, row.id, "found")[0]["references"]) == sorted(both)
        assert story(executor, row.id) == [
            ("begun", 1), ("lost", 1), ("looked", 0), ("absent", 0), ("begun", 2), ("returned", 2), ("found", 0),
        ]  # fmt: skip
        assert_applied(executor.call("assign", CALL), code="applied_more_than_once")
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 2
