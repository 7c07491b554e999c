"""AsyncExecutor's process is killed: at each step of a call, for coroutines and for blocking tools in its threads."""

from __future__ import annotations

import pytest
from crash.life import Body, Point, Verb
from crash.story import Stage
from crash.truth import Story, right

COMMON = {"Read", "Start", "Attempt", "Request"}
STEPS = {
    "none": COMMON | {"Write:SettleReturned"},
    "request_lost": COMMON | {"Write:SettleLost", "Ask", "Write:SettleLook", "Sleep", "Write:SettleReturned"},
}


@pytest.mark.parametrize("fault", STEPS)
@pytest.mark.parametrize("body", ["coroutine", "blocking_in_loop"])
def test_an_event_loop_killed_at_any_point_of_a_call(stage: Stage, fault: str, body: Body) -> None:
    """With AsyncExecutor too, one effect at most is at the provider, and every verdict is what it counts."""
    whole = Story("T2", fault, None, body=body)
    points = stage.rehearse(whole, STEPS[fault], most=1)
    if body == "blocking_in_loop":  # it differs from the coroutine in how it is attempted
        points = [point for point in points if _of_the_attempt(point)]
    verbs: tuple[Verb, ...] = ("call", "reconcile")
    stories = [Story("T2", fault, point, verb=verbs[n % 2], body=body) for n, point in enumerate(points)]
    assert right(stage.play([whole, *stories]))


def _of_the_attempt(point: Point) -> bool:
    return point.step in ("Attempt", "Request") or point.moment in ("commit", "committed")
