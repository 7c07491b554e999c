"""C39: COMMIT was sent, the connection was lost. On SQLite it is injected: tests/calls/test_ledger_trouble.py."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from charging import GOOD, charging
from outside import World
from pgproxy import Fate, proxy_before
from postgres import PostgresServer

from counterfoil import Executor, ManualClock, Verdict
from counterfoil.ledger.schema import effects


@pytest.mark.parametrize("fate", ["lost before", "lost meanwhile", "lost after"])
@pytest.mark.parametrize("place", ["begin", "settle"])
@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_c39_the_connection_is_cut_at_commit(
    ledger_url: str, postgres_server: PostgresServer, place: str, fate: Fate
) -> None:
    """A real cut before, while or after the server commits, at begin and settle: one request, applied, one row."""
    clock = ManualClock()
    world = World(clock)
    with (
        proxy_before(postgres_server.socket) as proxy,
        Executor(proxy.url(str(sa.make_url(ledger_url).database)), tools=[charging(world)], clock=clock) as executor,
    ):
        proxy.happened.clear()
        proxy.fates = [fate] if place == "begin" else ["counts", fate]
        seen = executor.call("charge", GOOD)
        assert fate in proxy.happened
        assert (seen.code, seen.verdict, seen.attempts) == ("ok", Verdict.EFFECT_APPLIED, 1)
        assert len(world.requests) == 1
        assert [entry.event for entry in executor.audit.history(str(seen.effect_id))] == ["begun", "returned"]
        with executor._engine.connect() as connection:
            assert connection.scalar(sa.select(sa.func.count()).select_from(effects)) == 1


@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_c39_nothing_is_dispatched_between_a_lost_begin_and_its_reading_again(
    ledger_url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The begin counted and the server is gone: nothing is sent, nothing is claimed; the next call looks first."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)
    clock = ManualClock()
    world = World(clock)
    with (
        proxy_before(postgres_server.socket) as proxy,
        Executor(proxy.url(str(sa.make_url(ledger_url).database)), tools=[charging(world)], clock=clock) as executor,
    ):
        proxy.fates = ["lost after"]
        proxy.when_lost = proxy.take_away
        seen = executor.call("charge", GOOD)
        assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
        assert world.requests == []
        proxy.bring_back()
        clock.advance(100)
        again = executor.call("charge", GOOD)
        events = [entry.event for entry in executor.audit.history(str(again.effect_id))]
    assert (again.code, again.attempts, len(world.requests)) == ("ok", 2, 1)
    assert events[0] == "begun"
    assert events[-1] == "returned"
