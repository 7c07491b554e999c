"""The clock on the wall is set, forward or backward, while an effect is in doubt; the time since boot goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from charging import GOOD, charging
from outside import World

from counterfoil import Executor, ManualClock, Verdict

HOUR_S = 3600.0


class JumpingClock(ManualClock):
    """A clock whose wall can be set without the time since boot."""

    def __init__(self) -> None:
        super().__init__()
        self.set_by_us = 0

    def jump(self, seconds: float) -> None:
        self.set_by_us += round(seconds * 1_000_000)

    def wall_us(self) -> int:
        return super().wall_us() + self.set_by_us


@pytest.fixture
def clock() -> JumpingClock:
    """The one clock of host and ledger."""
    return JumpingClock()


@pytest.fixture
def world(clock: JumpingClock) -> World:
    """The outside."""
    return World(clock)


@pytest.fixture
def executor(ledger_url: str, world: World) -> Iterator[Executor]:
    """An executor whose charge looks at once and is not patient."""
    tool = charging(world, patience_s=0.01, attempts_max=1)
    with Executor(ledger_url, tools=[tool], clock=world.clock) as one:
        yield one


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_a_jump_proves_no_absence(executor: Executor, world: World, clock: JumpingClock, jump_s: float) -> None:
    """The request may still land: neither jump makes absence a proof; when it lands it is found, and was sent once."""
    world.next = ["request_lost"]
    assert executor.call("charge", GOOD).verdict is Verdict.EFFECT_UNKNOWN
    clock.jump(jump_s)
    seen = executor.call("charge", GOOD)
    assert (seen.verdict, len(world.requests)) == (Verdict.EFFECT_UNKNOWN, 1)
    world.effects.append(str(seen.effect_id))  # late, inside the grace
    clock.advance(max(0.0, -jump_s))  # a wall that was set back keeps the lease for so much longer: late, not wrong
    found = executor.call("charge", GOOD)
    assert (found.verdict, found.proof, len(world.requests)) == (Verdict.EFFECT_APPLIED, "found", 1)


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_a_doubt_ends_after_a_jump(executor: Executor, world: World, clock: JumpingClock, jump_s: float) -> None:
    """Once the grace is over by both clocks, absence proves: a doubt is not kept for ever."""
    world.next = ["request_lost"]
    executor.call("charge", GOOD)
    clock.jump(jump_s)
    clock.advance(20 + max(0.0, -jump_s))
    seen = executor.call("charge", GOOD)
    events = [entry.event for entry in executor.audit.history(str(seen.effect_id))]
    assert "absent" in events
    assert executor.audit.effects()[0].verdict is not Verdict.EFFECT_UNKNOWN


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_a_jump_under_a_running_attempt(ledger_url: str, world: World, clock: JumpingClock, jump_s: float) -> None:
    """The wall is set while the tool runs: it returns, and is applied; nobody else has sent meanwhile."""
    others: list[str] = []

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("before", "Attempt"):
            clock.jump(jump_s)
            others.append(second.call("charge", GOOD).code)

    tool = charging(world, patience_s=0.01)
    with (
        Executor(ledger_url, tools=[tool], clock=clock) as second,
        Executor(ledger_url, tools=[tool], clock=clock, observer=watch) as first,
    ):
        seen = first.call("charge", GOOD)
        again = second.call("charge", GOOD)
    assert others[0] in ("in_progress", "effect_unknown")
    assert seen.verdict in (Verdict.EFFECT_APPLIED, Verdict.NO_EFFECT)
    assert again.verdict is Verdict.EFFECT_APPLIED
    assert len(world.requests) == 1


@pytest.mark.parametrize("jump_s", [2 * HOUR_S, -2 * HOUR_S])
@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_the_servers_own_clock_is_set(ledger_url: str, jump_s: float) -> None:
    """The host that began knows how long ago that was: the server's jump proves nothing to it, and nothing is sent."""
    world = World(ManualClock())
    world.next = ["request_lost"]
    with settable_server(ledger_url) as server:
        tool = charging(world, grace_s=HOUR_S, patience_s=0.01, attempts_max=1)
        with Executor(ledger_url, tools=[tool]) as executor:
            first = executor.call("charge", GOOD)
            assert first.verdict is Verdict.EFFECT_UNKNOWN
            before = executor.audit.effects()[0].now
            with server.begin() as connection:
                connection.execute(sa.text("UPDATE jump SET by_s = :s"), {"s": jump_s})
            assert abs(executor.audit.effects()[0].now - before) > HOUR_S * 1_000_000
            assert executor.call("charge", GOOD).verdict is Verdict.EFFECT_UNKNOWN
            executor.reconcile()
            assert executor.audit.effects()[0].verdict is Verdict.EFFECT_UNKNOWN
    assert len(world.requests) == 1


@contextmanager
def settable_server(url: str) -> Iterator[sa.Engine]:
    """New connections of that database read a clock that can be set, by the seconds in the table `jump`."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in (
            "CREATE TABLE jump AS SELECT CAST(0 AS double precision) AS by_s",
            (
                "CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
                "'SELECT pg_catalog.clock_timestamp() + by_s * interval ''1 s'' FROM public.jump'"
            ),
            f'ALTER DATABASE "{engine.url.database}" SET search_path = public, pg_catalog',
        ):
            connection.exec_driver_sql(statement)
    yield engine
    engine.dispose()


@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_a_host_with_a_wrong_clock_asks_the_server(ledger_url: str, world: World) -> None:
    """On a server its clock decides: a host that is an hour ahead or behind changes no instant of the ledger."""
    with Executor(ledger_url, tools=[charging(world)]) as executor:
        executor.call("charge", GOOD)
        (row,) = executor.audit.effects()
        with executor._engine.connect() as connection:
            now = connection.scalar(sa.text("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"))
    assert now is not None
    assert 0 <= now - row.begun_at < 60_000_000
