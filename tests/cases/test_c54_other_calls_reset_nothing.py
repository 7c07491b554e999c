"""C54: a success of another call does not clear the failures of this one."""

from __future__ import annotations

from guards.conftest import clock, executor_of, world
from guards.failing import Service, act_tool
from outside import Make

__all__ = ["clock", "executor_of", "world"]


def test_alternating_with_a_success_does_not_reset(executor_of: Make) -> None:
    """cmd(x) fails, note(i) succeeds, fifteen rounds: cmd is tried three times, every note is made."""
    failing, noting = Service(), Service()
    failing.always = "down"
    executor = executor_of(act_tool(failing, name="cmd"), act_tool(noting, name="note"))
    cmds, notes = [], []
    for number in range(15):
        cmds.append(executor.call("cmd", {"what": "x"}, task="t", turn=1).code)
        notes.append(executor.call("note", {"what": str(number)}, task="t", turn=1).code)
    assert cmds == ["unavailable"] * 3 + ["repeated_call"] * 12
    assert set(notes) == {"ok"}
    assert len(failing.asked) == 3


def test_its_own_success_clears(executor_of: Make) -> None:
    """Two passing faults, a success, two more: nothing is blocked, for it works now and then."""
    service = Service("down", "down", "ok", "down", "down", "ok")
    executor = executor_of(act_tool(service))
    seen = [
        executor.call("act", {"what": "x"}, task="t", turn=1, occurrence=None if number < 3 else "2").code
        for number in range(3)
    ]
    assert seen == ["unavailable", "unavailable", "ok"]


def test_changed_arguments_are_another_call(executor_of: Make) -> None:
    """Blocked with one argument, free with another: what is to be rewarded is a change of approach."""
    service = Service("rejected", "rejected")
    executor = executor_of(act_tool(service))
    seen = [executor.call("act", {"what": "x"}, task="t", turn=1).code for _ in range(3)]
    assert seen[2] == "repeated_call"
    assert executor.call("act", {"what": "y"}, task="t", turn=1).code == "ok"


def test_alternating_arguments_come_to_an_end(executor_of: Make) -> None:
    """A tool that fails with ever new arguments is tried ten times in a turn, and then no more."""
    service = Service()
    service.always = "rejected"
    executor = executor_of(act_tool(service))
    seen = [executor.call("act", {"what": str(number)}, task="t", turn=1) for number in range(13)]
    assert [one.code for one in seen] == ["card_declined"] * 10 + ["repeated_call"] * 3
    assert "has failed 10 times" in seen[10].reason
    assert seen[12].stop == "repeated_call"
    (incident,) = executor.audit.incidents()
    assert incident.detail["cap"] == "tool_failures"


def test_counters_hold_over_processes(executor_of: Make) -> None:
    """What one executor has counted another one knows: the counters stand in the ledger."""
    service = Service("rejected", "rejected")
    for _ in range(2):
        executor_of(act_tool(service)).call("act", {"what": "x"}, task="t", turn=1)
    assert executor_of(act_tool(service)).call("act", {"what": "x"}, task="t", turn=1).code == "repeated_call"
