"""Recovery is killed too: the process that comes after a crash dies at each of its own steps, and a third one settles.

The first crash leaves each kind of doubt: nothing begun, begun and nothing sent, acted and not recorded, lost.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from crash.life import Point
from crash.story import Stage, prepare
from crash.truth import Story, right

LOOKS = {"Read", "Sleep", "Ask", "Write:SettleLook"}
SENDS = {"Start", "Attempt", "Request", "Write:SettleReturned"}
# first story -> the steps that its recovery takes
RECOVERIES: dict[str, tuple[Story, set[str]]] = {
    "acted": (Story("T2", "none", Point("after", "Request")), LOOKS | {"Sight"}),
    "unsent": (Story("T2", "none", Point("after", "Start")), LOOKS | SENDS),
    "refused": (Story("T2", "refused", Point("after", "Request")), LOOKS | {"Write:SettleClosed"}),
    "keyed": (Story("T3", "ack_lost", Point("after", "Attempt")), {"Read", "Sleep"} | SENDS),
    "swept": (Story("T2", "request_lost", Point("before", "Ask"), verb="reconcile"), {"Ask", "Write:SettleLook"}),
}


@pytest.mark.parametrize("name", RECOVERIES)
def test_a_recovery_killed_at_any_of_its_points(stage: Stage, name: str) -> None:
    """Whatever the second process had done when it was killed, the third one tells the truth, and there is one effect
    at most: recovery may be interrupted and repeated without end."""
    first, steps = RECOVERIES[name]
    prepare(stage.provider, first.tier)
    points = stage.rehearse(first, steps)
    stories = [replace(first, second=point) for point in points if _leaves_its_own_state(point)]
    assert right(stage.play(stories))


def _leaves_its_own_state(point: Point) -> bool:
    """What follows a step directly is the moment before the next one; only looks are worth a second time."""
    once = point.occurrence == 1 or point.step in ("Ask", "Write:SettleLook")
    return once and (point.moment in ("before", "committed") or point.step in ("Request", "Sight"))
