"""Two reconcilers sweep without a pause while a caller is at work on the same effect."""

from __future__ import annotations

from dataclasses import replace

import pytest
from crash.life import Body, Point
from crash.story import SETTLE_S, Stage
from crash.truth import Story
from races.gate import race

from counterfoil import Verdict

SWEEPING_S = 1.5


@pytest.mark.parametrize("fault", ["none", "ack_lost", "ack_held", "request_lost", "late", "connect_refused"])
def test_two_reconcilers_against_a_live_caller(stage: Stage, fault: str) -> None:
    """Reconcilers never send, never disturb an attempt that is under way, and what they settle is true: the caller
    ends as applied, and the provider has one effect."""
    life = stage.life(Story("T2", fault, None))
    sweeper = replace(life, verb="sweep", calls=0, settle_s=SWEEPING_S)
    body: Body = "coroutine"
    told = race(stage, [replace(life, calls=2, settle_s=SETTLE_S["T2"]), sweeper, replace(sweeper, body=body)])
    stage.provider.quiesce()
    row = stage.row(life)
    assert row is not None
    assert row.verdict is Verdict.EFFECT_APPLIED
    assert stage.provider.count(row.id) == 1
    assert {seen["verdict"] for seen in told if seen["verb"] == "call" and seen["code"] == "ok"} <= {"effect_applied"}
    assert told[-1]["verdict"] == "effect_applied"
    assert [*stage.lies(row), *stage.alarms(row)] == []


@pytest.mark.parametrize("fault", ["ack_lost", "request_lost", "late"])
def test_two_reconcilers_find_the_same_doubt(stage: Stage, fault: str) -> None:
    """After a crash several reconcilers look at one doubt at the same time: they come to one verdict, a true one, and
    send nothing."""
    life = stage.life(Story("T2", fault, None))
    stage.perish(life, Point("after", "Attempt"))
    sent = len(stage.provider.requests())
    sweeper = replace(life, verb="reconcile", calls=0, settle_s=SETTLE_S["T2"])
    told = race(stage, [sweeper, sweeper])
    stage.provider.quiesce()
    row = stage.row(life)
    assert row is not None
    effects = stage.provider.count(row.id)
    assert effects == (0 if fault == "request_lost" else 1)
    assert {seen["verdict"] for seen in told} == {"effect_applied" if effects else "no_effect"}
    assert sum(one["method"] == "POST" for one in stage.provider.requests()) == sent == 1
    assert [*stage.lies(row), *stage.alarms(row)] == []
