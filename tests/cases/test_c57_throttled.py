"""C57: a rate limit is met with growing pauses, a few tries for each call, and they count as calls."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from random import Random

from guards.conftest import clock, executor_of, world
from outside import Make

from counterfoil import Budget, ManualClock, Policy, Throttled, Tool, tool

__all__ = ["clock", "executor_of", "world"]


class Longest(Random):
    """Jitter that always takes the whole pause."""

    def uniform(self, a: float, b: float) -> float:
        return b


class Limited:
    """A provider that throttles for some seconds; it keeps when it was asked, and by whom."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self.clock = clock
        self.until = clock.wall_us() + round(seconds * 1_000_000)
        self.asked: list[tuple[str, float]] = []

    def tool(self) -> Tool[..., str]:
        """A payment at it, with four tries."""

        @tool(key=("order",), policy=Policy(timeout_s=30, attempts_max=4, wait_s=0.5, patience_s=20))
        def pay(order: str) -> str:
            """Pay one order."""
            self.asked.append((order, self.clock.wall_us() / 1_000_000))
            if self.clock.wall_us() < self.until:
                raise Throttled(None)
            return "paid"

        return pay


def test_the_pauses_grow_and_the_tries_count(executor_of: Make, clock: ManualClock) -> None:
    """Half a second, one, two: then it works. The four tries are four calls of the budget, and the fifth is refused."""
    provider = Limited(clock, 3)
    executor = executor_of(provider.tool(), random=Longest(), budget=Budget(calls_per_task=4))
    assert executor.call("pay", {"order": "A"}, task="t").code == "ok"
    at = [instant for _, instant in provider.asked]
    gaps = [round(later - earlier, 1) for earlier, later in pairwise(at)]
    assert gaps == [0.5, 1.0, 2.0]
    assert executor.call("pay", {"order": "B"}, task="t").code == "budget_exhausted"


def test_a_budget_ends_the_tries_of_a_call(executor_of: Make, clock: ManualClock) -> None:
    """Two calls are left: the third try of this call is not made, and the answer says why."""
    provider = Limited(clock, 1000)
    executor = executor_of(provider.tool(), budget=Budget(calls_per_task=2))
    seen = executor.call("pay", {"order": "A"}, task="t")
    assert (seen.code, seen.verdict) == ("budget_exhausted", "no_effect")
    assert len(provider.asked) == 2


def test_a_long_limit_is_told(executor_of: Make, clock: ManualClock) -> None:
    """Four tries, then `rate_limited` with a time; nothing happened."""
    provider = Limited(clock, 1000)
    executor = executor_of(provider.tool())
    seen = executor.call("pay", {"order": "A"}, task="t")
    assert (seen.code, seen.verdict, seen.retry) == ("rate_limited", "no_effect", "after")
    assert len(provider.asked) == 4


def test_twenty_callers_at_once(executor_of: Make, clock: ManualClock) -> None:
    """Each tries four times at most; who gives up had no effect; each success is one effect, and a rate limit opens no
    breaker."""
    provider = Limited(clock, 5)
    executor = executor_of(provider.tool(), budget=Budget(calls_per_task=1000))
    with ThreadPoolExecutor(20) as threads:
        orders = [f"order {number}" for number in range(20)]
        seen = list(threads.map(lambda order: executor.call("pay", {"order": order}, task="t"), orders))
    assert {(one.code, one.verdict) for one in seen} <= {("ok", "effect_applied"), ("rate_limited", "no_effect")}
    tries = [sum(order == one for order, _ in provider.asked) for one in orders]
    assert 1 <= min(tries) <= max(tries) <= 4
    assert executor._ledger.guards.account("", "t").calls == len(provider.asked)
    assert executor.audit.guards() == []
