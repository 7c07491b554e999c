"""A process that is stopped (SIGSTOP) past its lease is not dead: when it goes on, it sends nothing more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from crash.life import Body, Life, Point
from crash.nursery import Born
from crash.story import SETTLE_S, Stage, prepare
from crash.truth import Story

PAUSED_S = 30.0
WHERE = [
    Point("after", "Read"),
    Point("before", "Start"),
    Point("after", "Start"),
    Point("before", "Attempt"),
    Point("after", "Request"),
    Point("after", "Attempt"),
    Point("before", "Write:SettleReturned"),
    Point("after", "Write:SettleReturned"),
]


@pytest.mark.parametrize("body", ["blocking", "coroutine"])
@pytest.mark.parametrize("point", WHERE, ids=str)
def test_a_process_that_was_paused_past_its_lease(stage: Stage, point: Point, body: Body) -> None:
    """While it stands still, another process settles the effect, by looking or by sending after proven absence. When
    it wakes up, its deadline is over: no second effect comes of it, and what it is told is so."""
    life = stage.life(Story("T2", "none", None, body=body))
    sleeper = _paused(stage, replace(life, point=point, stop=True, out=f"{life.out}-sleeper"))
    told = stage.survive(replace(life, calls=2, settle_s=SETTLE_S["T2"]))["told"]
    assert told[-1]["verdict"] == "effect_applied"
    sleeper.resume()
    assert sleeper.ended.result(PAUSED_S) == 0
    own = stage.record(replace(life, out=f"{life.out}-sleeper"))["told"]
    stage.provider.quiesce()
    row = stage.row(life)
    assert row is not None
    assert stage.provider.count(row.id) == 1
    assert [(seen["verdict"], seen["count"]) for seen in own] == [("effect_applied", 1)]
    assert [*stage.lies(row), *stage.alarms(row)] == []


@pytest.mark.parametrize("point", [*WHERE[1:3], Point("before", "Request")], ids=str)
def test_a_paused_process_and_a_keyed_provider(stage: Stage, point: Point) -> None:
    """Under a provider key even a request that a paused process sends much too late is the same effect."""
    prepare(stage.provider, "T3")
    life = stage.life(Story("T3", "none", None))
    sleeper = _paused(stage, replace(life, point=point, stop=True, out=f"{life.out}-sleeper"))
    told = stage.survive(replace(life, calls=2, settle_s=SETTLE_S["T3"]))["told"]
    assert told[-1]["verdict"] == "effect_applied"
    sleeper.resume()
    assert sleeper.ended.result(PAUSED_S) == 0
    stage.provider.quiesce()
    row = stage.row(life)
    assert row is not None
    assert stage.provider.count(row.id) == 1
    assert [*stage.lies(row), *stage.alarms(row)] == []


def _paused(stage: Stage, life: Life) -> Born:
    """A process that has come to its point and stands still there."""
    marker = Path(life.marker)
    marker.unlink(missing_ok=True)
    born = stage.nursery.begin(life)
    born.await_stopped(marker)
    return born
