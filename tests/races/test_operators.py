"""A person decides while machines work on the same effect: only on what was read, and never over a live attempt."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace
from threading import Barrier

import pytest
from crash.life import CLIENT_S, MARGIN_S, ORDER, SWEEP_S, TOOL, Life, Point, Tier, Watch
from crash.shop import Shop
from crash.story import SETTLE_S, Stage, effect_id
from crash.truth import Story

from counterfoil import Executor, Row, StaleVersion, UsageError, Verdict
from counterfoil.effect import MICROSECONDS

OPERATORS = 8
DECIDED_S = 30.0


@pytest.fixture
def executors() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def _executor(opened: ExitStack, life: Life) -> Executor:
    tools = [Shop(life, Watch(life)).tool()]
    return opened.enter_context(Executor(life.ledger, tools, tenant=life.tenant, clock_margin_s=MARGIN_S))


def _doubt(stage: Stage, tier: Tier, fault: str) -> tuple[Life, Row]:
    """An effect that is unknown after a crash, read when no attempt can send any more."""
    life = stage.life(Story(tier, fault, None))
    stage.perish(life, Point("after", "Attempt"))
    while True:
        row = stage.row(life)
        assert row is not None
        if row.now > row.sends_until + MARGIN_S * MICROSECONDS:
            return life, row
        time.sleep(SWEEP_S)


def test_a_decision_about_what_has_changed_since(stage: Stage, executors: ExitStack) -> None:
    """A worker's look is written between a person's reading and the decision: the decision is refused as stale, and
    the worker's finding stands."""
    life, read = _doubt(stage, "T2", "ack_lost")
    worker, operator = _executor(executors, life), _executor(executors, life)
    assert worker.call(TOOL, ORDER).code == "verified"
    with pytest.raises(StaleVersion):
        operator.resolve(read.id, "no_effect", by="Ada", why="the bank says so", version=read.version)
    row = stage.row(life)
    assert row is not None
    assert (row.verdict, row.version) == (Verdict.EFFECT_APPLIED, read.version + 1)
    assert stage.provider.count(row.id) == 1


def test_a_look_that_settled_nothing_makes_a_reading_stale_too(stage: Stage, executors: ExitStack) -> None:
    """A decision speaks about the history that was read: one more entry, even one that settled nothing, refuses it."""
    life, read = _doubt(stage, "T1", "request_lost")
    worker, operator = _executor(executors, life), _executor(executors, life)
    assert worker.call(TOOL, ORDER).code == "effect_unknown"
    with pytest.raises(StaleVersion):
        operator.resolve(read.id, "no_effect", by="Ada", why="the bank says so", version=read.version)
    again = operator.audit.effect(read.id)
    assert again.verdict is Verdict.EFFECT_UNKNOWN
    decided = operator.resolve(read.id, "no_effect", by="Ada", why="the bank says so", version=again.version)
    assert decided.verdict is Verdict.NO_EFFECT


def test_no_decision_while_a_function_still_runs(stage: Stage, executors: ExitStack) -> None:
    """The caller has given up, but its thread may still send: `no_effect` is refused, and is taken once it cannot."""
    life = stage.life(Story("T0", "request_lost", None))
    stage.provider.disarm()
    stage.provider.arm("request_lost", mode="hold", reference=effect_id(life))
    worker, operator = _executor(executors, life), _executor(executors, life)
    assert worker.call(TOOL, ORDER).code == "effect_unknown"
    read = operator.audit.effect(effect_id(life))
    with pytest.raises(UsageError, match="may still be sending"):
        _decided_as_read(operator, read.id)
    decided = _decided_at_last(operator, read.id)
    assert decided.now > decided.begun_at + CLIENT_S * MICROSECONDS  # not before the thread had ended
    assert (decided.verdict, stage.provider.count(read.id)) == (Verdict.NO_EFFECT, 0)
    assert worker.call(TOOL, ORDER).code == "ok"
    stage.provider.quiesce()
    assert stage.provider.count(read.id) == 1


def _decided_as_read(operator: Executor, effect: str) -> Row:
    """The decision of a person who reads again what has changed since: an overrun may come between."""
    while True:
        version = operator.audit.effect(effect).version
        with suppress(StaleVersion):
            return operator.resolve(effect, "no_effect", by="Ada", why="it never came", version=version)


def _decided_at_last(operator: Executor, effect: str) -> Row:
    """The decision of a person who asks again until no attempt may send any more."""
    until = time.monotonic() + DECIDED_S
    while True:
        read = operator.audit.effect(effect)
        try:
            return operator.resolve(effect, "no_effect", by="Ada", why="it never came", version=read.version)
        except (UsageError, StaleVersion):
            assert time.monotonic() < until
            time.sleep(SWEEP_S)


@pytest.mark.parametrize("verdict", ["effect_applied", "no_effect"])
def test_of_many_decisions_about_one_reading_one_counts(stage: Stage, executors: ExitStack, verdict: str) -> None:
    """Persons who have all read the same version decide at once: one decision is written, the others are refused."""
    life, read = _doubt(stage, "T0", "ack_lost" if verdict == "effect_applied" else "request_lost")
    persons = [_executor(executors, life) for _ in range(OPERATORS)]
    start = Barrier(OPERATORS)

    def decide(number: int) -> str:
        start.wait()
        try:
            persons[number].resolve(read.id, verdict, by=f"Ada {number}", why="asked the bank", version=read.version)
        except StaleVersion:
            return "stale"
        return "written"

    with ThreadPoolExecutor(OPERATORS) as threads:
        ends = sorted(threads.map(decide, range(OPERATORS)))
    assert ends == ["stale"] * (OPERATORS - 1) + ["written"]
    row = stage.row(life)
    assert row is not None
    assert (row.verdict, row.version) == (Verdict(verdict), read.version + 1)


@pytest.mark.parametrize("fault", ["ack_lost", "late", "request_lost"])
def test_a_decision_races_with_callers_and_a_reconciler(stage: Stage, executors: ExitStack, fault: str) -> None:
    """A person who says what is so, callers and a reconciler meet on one doubt: whoever comes first, one effect, and
    the last word of the ledger is what the provider has."""
    life, _ = _doubt(stage, "T2", fault)
    stage.provider.quiesce()
    hands = [_executor(executors, life) for _ in range(4)]
    start = Barrier(4)
    truth = "effect_applied" if stage.provider.count(effect_id(life)) else "no_effect"

    def decide() -> None:
        start.wait()
        read = hands[0].audit.effect(effect_id(life))
        try:
            hands[0].resolve(read.id, truth, by="Ada", why="asked the bank", version=read.version)
        except (StaleVersion, UsageError):
            return

    def reconcile() -> None:
        start.wait()
        hands[1].reconcile()

    def call(number: int) -> str:
        start.wait()
        return str(hands[number].call(TOOL, ORDER).verdict)

    with ThreadPoolExecutor(4) as threads:
        others = [threads.submit(decide), threads.submit(reconcile)]
        calls = [threads.submit(call, number) for number in (2, 3)]
        for one in others:
            one.result()
        told = {one.result() for one in calls}
    stage.survive(replace(life, calls=2, settle_s=SETTLE_S["T2"]))
    stage.provider.quiesce()
    row = stage.row(life)
    assert row is not None
    assert told <= {"effect_applied", "no_effect"}
    assert row.verdict is Verdict.EFFECT_APPLIED
    assert stage.provider.count(row.id) == 1
    assert [*stage.lies(row)] == []
