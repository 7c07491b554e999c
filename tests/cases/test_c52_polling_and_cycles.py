"""C52: polling is not cut off, and a cycle of three failing calls is seen."""

from __future__ import annotations

from guards.conftest import clock, executor_of, world
from guards.failing import Service, act_tool, read_tool
from outside import Make

__all__ = ["clock", "executor_of", "world"]


def test_polling_a_read_only_tool_with_changing_answers_is_never_blocked(executor_of: Make) -> None:
    """Twenty looks at a job whose state changes: each is answered."""
    service = Service()
    service.always = "changing"
    executor = executor_of(read_tool(service))
    seen = [executor.call("get_status", {"job": "7"}, task="t", turn=1) for _ in range(20)]
    assert {one.code for one in seen} == {"read"}
    assert len(service.asked) == 20


def test_equal_answers_have_a_limit_of_their_own(executor_of: Make) -> None:
    """The seventh time that nothing has changed the tool is not asked; another job, or another turn, is another
    question."""
    service = Service()
    executor = executor_of(read_tool(service))
    seen = [executor.call("get_status", {"job": "7"}, task="t", turn=1) for _ in range(9)]
    assert [one.code for one in seen] == ["read"] * 6 + ["repeated_call"] * 3
    assert "same answer 6 times" in seen[6].reason
    assert len(service.asked) == 6
    assert executor.call("get_status", {"job": "8"}, task="t", turn=1).code == "read"
    assert executor.call("get_status", {"job": "7"}, task="t", turn=2).code == "read"


def test_a_failing_cycle_of_three_is_blocked(executor_of: Make) -> None:
    """A B C, again and again, each failing in the same way: each is tried twice, and then no more."""
    service = Service()
    service.always = "rejected"
    executor = executor_of(act_tool(service))
    seen = [executor.call("act", {"what": what}, task="t", turn=1) for _ in range(8) for what in "ABC"]
    assert [one.code for one in seen[:6]] == ["card_declined"] * 6
    assert {one.code for one in seen[6:]} == {"repeated_call"}
    assert service.asked == [(what, 0) for _ in range(2) for what in "ABC"]
    kinds = [one.kind for one in executor.audit.incidents()]
    assert kinds == ["repeated_call"] * 3, "one for each fingerprint, however often it is called"


def test_the_same_failing_call_is_blocked_after_two(executor_of: Make) -> None:
    """charge(x) three times: the third is answered as a tool result, before anything is sent, and occupies no key."""
    service = Service("rejected", "rejected")
    executor = executor_of(act_tool(service))
    seen = [executor.call("act", {"what": "x"}, task="t", turn=1) for _ in range(3)]
    assert [one.code for one in seen] == ["card_declined", "card_declined", "repeated_call"]
    block = seen[2]
    assert (block.ok, block.verdict, block.retry, block.stop) == (False, "no_effect", "never", None)
    assert "Do not call act for this again" in block.next_action
    assert len(service.asked) == 2
    (incident,) = executor.audit.incidents()
    assert incident.kind == "repeated_call"
    wanted = {"task": "t", "turn": 1, "cap": "wrong_input", "limit": 2, "used": 2, "refused": True}
    assert wanted.items() <= incident.detail.items()
    assert executor.call("act", {"what": "x"}, task="t", turn=2).code == "ok", "a new turn counts anew"
