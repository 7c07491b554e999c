"""A real process is killed (SIGKILL) at every step of a call, under every fault: one effect, and true verdicts.

One test for each tier, fault and database. Its points are those that a first process passes when it lives: before and
after each step, before and after the tool's own request, and inside each of the ledger's transactions.
"""

from __future__ import annotations

import pytest
from crash.life import Point, Tier, Verb
from crash.story import FAULTS, Stage, prepare
from crash.truth import Story, right

BEGIN = {"Read", "Start", "Attempt", "Request"}
LOST = BEGIN | {"Write:SettleLost"}
LOOKED = LOST | {"Ask", "Write:SettleLook"}
# What a process must have passed under each fault, so that no step can silently drop out of the matrix.
STEPS: dict[Tier, dict[str, set[str]]] = {
    "T0": {
        "none": BEGIN | {"Write:SettleReturned", "Sight"},
        "ack_lost": LOST | {"Sight"},
        "refused": BEGIN | {"Write:SettleClosed"},
    },
    "T1": {
        "none": BEGIN | {"Write:SettleReturned", "Sight"},
        "ack_lost": LOOKED | {"Sight"},
        "request_lost": LOOKED | {"Sleep", "Sight"},
        "late": LOOKED | {"Sight"},
        "refused": BEGIN | {"Write:SettleClosed"},
    },
    "T2": {
        "none": BEGIN | {"Write:SettleReturned", "Sight"},
        "ack_lost": LOOKED | {"Sight"},
        "ack_held": LOOKED | {"Sight"},
        "request_lost": LOOKED | {"Sleep", "Write:SettleReturned"},
        "late": LOOKED | {"Sleep", "Sight"},
        "reset_after": LOOKED | {"Sight"},
        "reset_before": LOOKED | {"Sleep", "Write:SettleReturned"},
        "refused": BEGIN | {"Write:SettleClosed"},
        "status_after": LOOKED | {"Sight"},
        "connect_refused": BEGIN | {"Write:SettleClosed", "Sleep", "Write:SettleReturned"},
    },
    "T3": {
        "none": BEGIN | {"Write:SettleReturned", "Sight"},
        "ack_lost": LOST | {"Sleep", "Write:SettleReturned"},
        "request_lost": LOST | {"Sleep", "Write:SettleReturned"},
        "late": LOST | {"Sleep", "Write:SettleReturned"},
        "refused": BEGIN | {"Write:SettleClosed"},
        "status_after": LOST | {"Sleep", "Write:SettleReturned"},
        "connect_refused": BEGIN | {"Write:SettleClosed", "Sleep", "Write:SettleReturned"},
    },
}
# Once is enough where another fault leaves the same world behind and is played in full.
TWICE = {"request_lost", "connect_refused"}
# Where a process dies between the statements of a transaction too; elsewhere just before its COMMIT.
TORN = {"none", "request_lost"}
# Where only some of the points are played: around each commit, around the request, and before each settling.
PARTLY = {"T0", "T1", "T3"}
MATRIX = [(tier, fault) for tier, faults in STEPS.items() for fault in faults]


def test_every_fault_is_played() -> None:
    """The matrix has every fault of the provider for the tier that can prove both ends."""
    assert set(STEPS["T2"]) == set(FAULTS)


@pytest.mark.parametrize(("tier", "fault"), MATRIX, ids=[f"{tier}-{fault}" for tier, fault in MATRIX])
def test_a_process_killed_at_any_point_of_a_call(stage: Stage, tier: Tier, fault: str) -> None:
    """Whoever comes after a killed process finds or sends the effect: the provider has one at most, and every verdict
    on the way and at the end is what the provider counts."""
    prepare(stage.provider, tier)
    calls = 2 if fault == "none" else 1  # a replay, so that it is interrupted too
    whole = Story(tier, fault, None)
    points = stage.rehearse(whole, STEPS[tier][fault], most=2 if fault in TWICE else 1, calls=calls)
    assert {"before", "after", "sql", "commit", "committed"} == {point.moment for point in points}
    if tier in PARTLY:
        points = [point for point in points if _matters(point)]
    if fault not in TORN:
        points = [point for point in points if point.moment != "sql"]
    verbs: tuple[Verb, ...] = ("call", "reconcile") if tier in ("T1", "T2") else ("call",)
    stories = [Story(tier, fault, point, verb=verbs[number % len(verbs)]) for number, point in enumerate(points)]
    endings = stage.play([whole, *stories], calls=calls)
    assert right(endings)
    assert {ending.story.point for ending in endings} == {None, *points}


def _matters(point: Point) -> bool:
    settles = point.step.startswith("Write:") and point.moment == "before"
    return settles or point.step == "Request" or point.moment in ("commit", "committed")


def test_the_points_of_a_first_call(stage: Stage) -> None:
    """A call whose answer comes passes these points in this order: the observer is told of each step before and after
    it, and each of the two transactions writes row and entry and commits once."""
    points = stage.rehearse(Story("T2", "none", None))
    write = ("before", "sql", "commit", "committed", "after")
    assert points == [
        *(Point(moment, "Read") for moment in ("before", "after")),
        *(Point(moment, "Start") for moment in write),
        *(Point(*place) for place in (("before", "Attempt"), ("before", "Request"))),
        *(Point(*place) for place in (("after", "Request"), ("after", "Attempt"))),
        *(Point(moment, "Write:SettleReturned") for moment in write),
    ]
