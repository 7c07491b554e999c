"""Recoverers of one doubt at once: watchers, callers and reconcilers, of both executors, after a crash."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest
from crash.life import Life, Point, Tier, Told
from crash.story import SETTLE_S, TRIES, Stage, Unreached
from crash.truth import Story
from races.gate import race

from counterfoil import Verdict

# Tier, fault, and where the first process dies: acted and not recorded, begun and never sent, lost, late.
DOUBTS: list[tuple[Tier, str, Point]] = [
    ("T1", "none", Point("after", "Request")),
    ("T2", "none", Point("after", "Request")),
    ("T2", "none", Point("before", "Request")),
    ("T2", "request_lost", Point("after", "Attempt")),
    ("T2", "late", Point("after", "Attempt")),
    ("T2", "ack_lost", Point("before", "Write:SettleLook")),
]


def _doubt(stage: Stage, tier: Tier, fault: str, death: Point) -> Life:
    for _ in range(TRIES):
        life = stage.life(Story(tier, fault, None))
        with suppress(Unreached):  # the machine was too slow for this order of things
            stage.perish(life, death)
            row = stage.row(life)
            assert row is not None
            assert row.verdict is Verdict.EFFECT_UNKNOWN
            return life
    raise AssertionError(f"never came to its point: {tier} {fault} {death}")


def test_two_watchers_and_two_callers_come_upon_one_doubt(stage: Stage) -> None:
    """Two `watch` loops and two callers find one doubt at the same moment: they come to one end, a true one, one effect
    at most is there, and only callers send."""

    def played(doubt: tuple[Tier, str, Point]) -> tuple[Life, list[Told], int]:
        life = _doubt(stage, *doubt)
        caller = replace(life, calls=1, settle_s=SETTLE_S[life.tier])
        watcher = replace(life, verb="watch", calls=0, settle_s=SETTLE_S[life.tier])
        lives = [watcher, replace(watcher, body="coroutine"), caller, replace(caller, body="coroutine")]
        return life, race(stage, lives), len(lives)

    with ThreadPoolExecutor(len(DOUBTS)) as threads:
        ends = list(threads.map(played, DOUBTS))
    stage.provider.quiesce()
    for (life, told, number), doubt in zip(ends, DOUBTS, strict=True):
        row = stage.row(life)
        assert row is not None
        assert len(told) >= number
        assert (row.verdict, stage.count(life)) == (Verdict.EFFECT_APPLIED, 1), (doubt, told)
        assert [seen for seen in told if seen["verdict"] == "effect_applied" and not seen["count"]] == [], doubt
        assert [seen["verdict"] for seen in told if seen["verb"] == "call"][-1] == "effect_applied", doubt
        assert [*stage.lies(row), *stage.alarms(row)] == [], doubt
        requests = [one for one in stage.provider.requests() if one["reference"] == row.id]
        assert sum(one["method"] == "POST" for one in requests) <= row.attempts, doubt


@pytest.mark.parametrize("tier", ["T3", "T4"])
def test_two_callers_send_again_or_take_back_at_once(stage: Stage, tier: Tier) -> None:
    """Where a provider de-duplicates or takes back, two callers in doubt at once do it without a second effect."""
    stage.prepare(tier)
    for death in (Point("before", "Request"), Point("after", "Request")):
        life = _doubt(stage, tier, "none", death)
        caller = replace(life, calls=1, settle_s=SETTLE_S[tier])
        told = race(stage, [caller, replace(caller, body="coroutine"), caller])
        stage.provider.quiesce()
        row = stage.row(life)
        assert row is not None
        assert (row.verdict, stage.count(life)) == (Verdict.EFFECT_APPLIED, 1), told
        assert [seen for seen in told if seen["verdict"] == "effect_applied" and not seen["count"]] == []
        assert [*stage.lies(row), *stage.alarms(row)] == []
