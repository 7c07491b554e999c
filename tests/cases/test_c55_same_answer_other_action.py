"""C55: equal answers to different actions are no loop."""

from __future__ import annotations

from guards.conftest import clock, executor_of, world
from guards.failing import Service, act_tool
from outside import Make

__all__ = ["clock", "executor_of", "world"]


def test_four_actions_with_one_answer(executor_of: Make) -> None:
    """Four files are attached, each call returns the same: four effects, no warning."""
    service = Service()
    executor = executor_of(act_tool(service, name="attach"))
    seen = [executor.call("attach", {"what": file}, task="t", turn=1) for file in "abcd"]
    assert [(one.code, one.value, one.stop) for one in seen] == [("ok", "done", None)] * 4
    assert len(service.asked) == 4
    assert len(executor.audit.effects()) == 4
    assert executor.audit.incidents() == []


def test_an_applied_call_is_replayed_however_often(executor_of: Make) -> None:
    """A guard is asked for new attempts only: what is done is told as done, ten times over."""
    service = Service()
    executor = executor_of(act_tool(service))
    seen = [executor.call("act", {"what": "x"}, task="t", turn=1) for _ in range(10)]
    assert [one.code for one in seen] == ["ok"] + ["replayed"] * 9
    assert len(service.asked) == 1
