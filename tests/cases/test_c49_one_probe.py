"""C49: when the cool-down is over, one of fifty concurrent calls is the probe."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from guards.conftest import clock, executor_of, world
from outside import Make

from counterfoil import Breaker, Budget, Executor, ManualClock, Observation, Policy, tool

__all__ = ["clock", "executor_of", "world"]

CALLERS = 50
turns = count(1)


@pytest.mark.parametrize("works", [False, True], ids=["it-fails", "it-works"])
def test_one_probe_of_fifty(executor_of: Make, clock: ManualClock, works: bool) -> None:
    """One attempt is dispatched; it is at work until the other 49 have their answers, which are refusals that used up
    nothing. Its own end decides what the next call hears."""
    asked: list[str] = []
    refused = threading.Semaphore(0)
    healthy = False

    @tool(key=("what",), sends="once", policy=Policy(timeout_s=1000, attempts_max=1, breaker=Breaker(open_s=1)))
    def act(what: str) -> str:
        """Do one thing."""
        asked.append(what)
        if not what.startswith("fault"):
            for _ in range(CALLERS - 1):
                assert refused.acquire(timeout=60)
        if not healthy:
            raise ConnectionRefusedError
        return "done"

    executor = executor_of(act, budget=Budget(calls_per_task=1000))
    for number in range(5):
        call(executor, f"fault {number}")
    assert call(executor, "early").code == "breaker_open"
    clock.advance(1)
    healthy = works

    def one(number: int) -> Observation:
        seen = call(executor, f"call {number}")
        if seen.code == "breaker_open":
            refused.release()
        return seen

    with ThreadPoolExecutor(CALLERS) as threads:
        seen = list(threads.map(one, range(CALLERS)))
    codes = sorted(one.code for one in seen)
    assert codes == sorted(["breaker_open"] * 49 + ["ok" if works else "unavailable"])
    assert len(asked) == 6
    for one_seen in seen:
        if one_seen.code == "breaker_open":
            assert (one_seen.verdict, one_seen.effect_id, one_seen.attempts) == ("no_effect", None, 0)
            assert one_seen.retry_after_s is not None
    assert executor._ledger.guards.account("", "t").calls == 6
    assert sum(row.attempts for row in executor.audit.effects()) == 6
    assert call(executor, "fault later").code == ("ok" if works else "breaker_open")


def call(executor: Executor, what: str) -> Observation:
    """One call in the task; each in a turn of its own, so that no loop guard is in the way."""
    return executor.call("act", {"what": what}, task="t", turn=next(turns))
