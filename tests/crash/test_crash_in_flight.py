"""A process is killed from outside while its request is under way: what it sent arrives when its sender is dead."""

from __future__ import annotations

from dataclasses import replace

import pytest
from crash.life import Body, Tier
from crash.story import SETTLE_S, Stage, effect_id, prepare
from crash.truth import Story


@pytest.mark.parametrize("body", ["blocking", "coroutine", "blocking_in_loop"])
@pytest.mark.parametrize("tier", ["T0", "T1", "T2", "T3"])
def test_a_process_killed_while_its_request_is_under_way(stage: Stage, tier: Tier, body: Body) -> None:
    """The provider acts after the sender's death. A tier that can look or send under the key ends as applied with one
    effect; a tool without any of it stays unknown and is not sent again."""
    prepare(stage.provider, tier)
    life = stage.life(Story(tier, "none", None, body=body))
    stage.provider.arm("slow", seconds=None, reference=effect_id(life))
    sender = stage.nursery.begin(life)
    stage.provider.await_parked()
    sender.kill()
    assert sender.ended.result() == -9
    row = stage.row(life)
    assert row is not None
    assert row.verdict == "effect_unknown"
    stage.provider.release()
    told = stage.survive(replace(life, calls=2, settle_s=SETTLE_S[tier]))["told"]
    stage.provider.quiesce()
    assert stage.provider.count(row.id) == 1
    assert told[-1]["verdict"] == ("effect_unknown" if tier == "T0" else "effect_applied")
    assert {seen["verdict"] for seen in told} <= {"effect_unknown", "effect_applied"}
