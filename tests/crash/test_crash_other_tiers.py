"""A process is killed at every step of T4, which can take an effect back, and of T5, which is one transaction."""

from __future__ import annotations

import pytest
from crash.life import Body, Verb
from crash.story import Stage
from crash.truth import Story, right

BEGIN = {"Read", "Start", "Attempt", "Request"}
REVOKED = BEGIN | {"Write:SettleLost", "Sight", "Revocation"}
STEPS = {
    "none": BEGIN | {"Write:SettleReturned"},
    "ack_lost": REVOKED,
    "request_lost": REVOKED,
    "late": REVOKED,
    "refused": BEGIN | {"Write:SettleClosed"},
}


@pytest.mark.parametrize("fault", STEPS)
def test_a_process_killed_at_any_point_of_a_call_or_a_revoke(stage: Stage, fault: str) -> None:
    """Killed in the call or in the revoke that follows a lost answer: whoever comes after takes it back or finds it,
    a late request meets the stone, and in the end there is one effect and its verdict says so."""
    stage.prepare("T4")
    points = stage.rehearse(Story("T4", fault, None), STEPS[fault], most=2)
    if fault != "request_lost":
        points = [point for point in points if point.moment != "sql" and point.occurrence == 1]
    endings = stage.play([Story("T4", fault, None), *(Story("T4", fault, point) for point in points)])
    assert right(endings)
    assert {ending.story.point for ending in endings} == {None, *points}


@pytest.mark.parametrize("body", ["blocking", "blocking_in_loop"])
def test_a_process_killed_at_any_point_of_its_one_transaction(stage: Stage, body: Body) -> None:
    """Killed anywhere in the transaction, also between the function's write and COMMIT: effect and record are both
    there or both not, there is never a doubt, and the next call makes it one."""
    stage.prepare("T5")
    points = stage.rehearse(Story("T5", "none", None, body=body), {"Read", "Transact", "Request", "Sight"}, calls=2)
    assert {"before", "after", "sql", "commit", "committed"} == {point.moment for point in points}
    verbs: tuple[Verb, ...] = ("call", "reconcile")
    stories = [Story("T5", "none", point, verb=verbs[n % 2], body=body) for n, point in enumerate(points)]
    endings = stage.play([Story("T5", "none", None, body=body), *stories], calls=2)
    assert right(endings)
    assert {seen["verdict"] for ending in endings for seen in ending.told} == {"effect_applied"}
