"""Round after round: when the next one comes, and what happens while the ledger is away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack
from random import Random
from typing import Any

import pytest
from cutting import away
from outside import Make, MakeAsync, World

from counterfoil import AsyncExecutor, Executor, LedgerUnavailable, Reconciled, Round, SystemClock, Tool, UsageError
from counterfoil.runner.watch import AWAY_MOST_S, Watch

GOOD = {"order": "A", "amount": 5}
SECOND = 1_000_000


def watch_of(executor: Executor, interval_s: float = 10) -> Watch:
    return Watch(executor._ledger, ["charge"], "", interval_s=interval_s, claim_s=60, random=Random(1))  # noqa: S311


def test_a_round_tells_what_is_left_and_when_the_next_look_is_due(
    charge: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """Until the next due look, at most the interval; nothing due waits the interval; what is due now waits a little."""
    executor = executor_of(charge)
    watch = watch_of(executor)
    nothing = watch.looked(executor.reconcile())
    assert (nothing.number, nothing.doubts, nothing.due_at, nothing.pause_s) == (1, 0, None, 10)
    world.next, world.looks = ["ack_lost"], ["raises"] * 100
    executor.call("charge", GOOD)
    (row,) = executor.audit.effects()
    assert row.look_at is not None
    seen = watch.looked(Reconciled())
    assert (seen.doubts, seen.due_at) == (1, row.look_at)
    assert seen.pause_s == pytest.approx(min(10, (row.look_at - row.now) / SECOND))
    world.clock.advance(7 + (row.look_at - row.now) / SECOND - 12)
    assert watch.looked(Reconciled()).pause_s == pytest.approx(5)
    world.clock.advance(100)
    assert watch.looked(Reconciled()).pause_s == 0.1


def test_a_claim_and_a_lease_are_not_due(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """While a call is under way its effect is no doubt, and its look is due when its lease is over."""
    seen: list[Round] = []
    watch = watch_of(executor_of(charge))

    def observe(moment: str, step: str, tool: str, effect_id: str) -> None:
        if step == "Attempt":
            seen.append(watch.looked(Reconciled()))

    executor = executor_of(charge, observer=observe)
    executor.call("charge", GOOD)
    (row,) = executor.audit.effects()
    assert {one.doubts for one in seen} == {0}
    assert [one.due_at for one in seen] == [row.begun_at + 7 * SECOND + 1] * 2, "a timeout of 5 s and the margin of 2 s"


def test_each_round_without_the_ledger_waits_longer(executor_of: Make) -> None:
    """Half a second, doubling up to half a minute, with jitter; the first good round begins anew. Counts go on."""
    watch = watch_of(executor_of())
    gone = LedgerUnavailable("the ledger's database does not answer", certain=True)
    rounds = [watch.away(gone) for _ in range(12)]
    for exponent, one in enumerate(rounds):
        most = min(0.5 * 2**exponent, AWAY_MOST_S)
        assert most / 2 <= one.pause_s <= most
    assert {one.trouble for one in rounds} == {"the ledger's database does not answer"}
    assert watch.looked(Reconciled(looked=2)).number == 13
    assert watch.away(gone).pause_s <= 0.5
    assert watch.total == Reconciled(looked=2)


@pytest.mark.parametrize("times", [{"interval_s": 0}, {"interval_s": float("nan")}, {"claim_s": -1}])
def test_times_that_are_none_are_refused(executor_of: Make, times: dict[str, Any]) -> None:
    """Said before the first round."""
    with pytest.raises(UsageError, match="above 0"):
        executor_of().watch(**times)


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.1)


@pytest.mark.usefixtures("_impatient")
def test_a_watch_outlives_a_ledger_that_is_away(charge: Tool[..., Any], ledger_url: str) -> None:
    """Told, waited for, and gone on with; the rounds end when it is asked to stop, with what they did together."""
    stop, seen = threading.Event(), []
    with Executor(ledger_url, [charge]) as executor, ExitStack() as gone:

        def told(one: Round) -> None:
            seen.append(one)
            if len(seen) == 1:
                gone.enter_context(away(executor._engine))
            if len(seen) == 3:
                gone.close()
            if len(seen) == 4:
                stop.set()

        assert executor.watch(stop=stop, interval_s=0.01, told=told) == Reconciled()
    assert [one.trouble is None for one in seen] == [True, False, False, True]
    assert [one.number for one in seen] == [1, 2, 3, 4]


@pytest.mark.usefixtures("_impatient")
def test_an_asynchronous_watch_does_the_same(charge: Tool[..., Any], ledger_url: str) -> None:
    """Told, waited for, gone on with, and ended by an event of the loop."""
    seen: list[Round] = []

    async def run() -> Reconciled:
        stop = asyncio.Event()
        async with AsyncExecutor(ledger_url, [charge], clock=SystemClock()) as executor:
            with ExitStack() as gone:

                def told(one: Round) -> None:
                    seen.append(one)
                    if len(seen) == 1:
                        gone.enter_context(away(executor._engine))
                    if len(seen) == 2:
                        gone.close()
                    if len(seen) == 3:
                        stop.set()

                return await executor.watch(stop=stop, interval_s=0.01, told=told)

    assert asyncio.run(run()) == Reconciled()
    assert [one.trouble is None for one in seen] == [True, False, True]


@pytest.mark.parametrize("kind", ["blocking", "asynchronous"])
def test_what_was_taken_and_not_looked_at_is_given_back(
    charge: Tool[..., Any], world: World, executor_of: Make, async_executor_of: MakeAsync, kind: str
) -> None:
    """Asked to stop during a look, it ends after it; the other effects are due at once for whoever comes next."""
    executor = executor_of(charge)
    world.next, world.looks = ["ack_lost"] * 3, ["raises"] * 1000
    for order in "ABC":
        executor.call("charge", {"order": order, "amount": 5})
    world.looks.clear()
    world.clock.advance(1000)

    asked: list[Callable[[], None]] = []

    def observe(moment: str, step: str, tool: str, effect_id: str) -> None:
        if step == "Ask":
            asked[0]()

    async def run() -> Reconciled:
        stop = asyncio.Event()
        asked.append(stop.set)
        async with async_executor_of(charge, observer=observe) as other:
            return await other.watch(stop=stop)

    if kind == "blocking":
        stop = threading.Event()
        asked.append(stop.set)
        done = executor_of(charge, observer=observe).watch(stop=stop)
    else:
        done = asyncio.run(run())
    assert (done.looked, done.applied) == (1, 1)
    assert sum(row.look_at is not None and row.look_at <= row.now for row in executor.audit.doubts()) == 2
    assert executor.reconcile().applied == 2
