"""C50: bad requests of one caller do not open the breaker for all."""

from __future__ import annotations

import pytest
from guards.conftest import clock, executor_of, world
from guards.failing import Service, act_tool
from outside import Make

from counterfoil import Breaker, Executor

__all__ = ["clock", "executor_of", "world"]


def codes(executor: Executor, whats: str) -> list[str]:
    """One call for each letter, each in a task of its own."""
    return [executor.call("act", {"what": what}, task=what).code for what in whats]


def test_bad_requests_do_not_count(executor_of: Make) -> None:
    """Ten bad requests (400, 404, 409, 422, refusals, a bug of the tool, too many requests): the good one after them is
    carried out."""
    ends = ("400", "404", "409", "422", "rejected", "invalid", "bug", "throttled", "400", "422")
    service = Service(*ends)
    executor = executor_of(act_tool(service, breaker=Breaker()))
    codes(executor, "abcdefghij")
    assert len(service.asked) == 10
    assert codes(executor, "k") == ["ok"]
    assert executor.audit.guards() == []


@pytest.mark.parametrize("end", ["bug", "invalid", "rejected", "404", "throttled"])
def test_one_of_them_over_and_over_does_not_count_either(executor_of: Make, end: str) -> None:
    """Five in a row of the same kind: the sixth call is carried out."""
    executor = executor_of(act_tool(Service(*([end] * 5)), breaker=Breaker()))
    codes(executor, "abcde")
    assert codes(executor, "f") == ["ok"]


@pytest.mark.parametrize("end", ["lost", "down", "500", "503"])
def test_faults_count(executor_of: Make, end: str) -> None:
    """Timeouts, refused connections and 5xx open it: after five the good call is refused, and its service not asked."""
    service = Service(*([end] * 5))
    executor = executor_of(act_tool(service, breaker=Breaker()))
    codes(executor, "abcde")
    refused = executor.call("act", {"what": "f"}, task="f")
    assert (refused.code, refused.verdict) == ("breaker_open", "no_effect")
    assert len(service.asked) == 5
    (state,) = executor.audit.guards()
    assert (state.tool, state.failures) == ("act", 5)
    counted = [
        entry.detail.get("fault")
        for row in executor.audit.effects()
        for entry in executor.audit.history(row.id)
        if entry.event in ("lost", "closed")
    ]
    assert counted == [True] * 5, "the history shows which attempts counted"


def test_an_answer_in_between_begins_the_count_anew(executor_of: Make) -> None:
    """Only faults in a row count: four, a success, four more."""
    service = Service(*["down"] * 4, "ok", *["down"] * 4)
    executor = executor_of(act_tool(service, breaker=Breaker()))
    codes(executor, "abcdefghi")
    assert codes(executor, "j") == ["ok"]
