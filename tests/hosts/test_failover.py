"""The ledger's PostgreSQL dies under load and its synchronous replica takes over."""

from __future__ import annotations

import signal
from collections import Counter
from typing import Any

import pytest
from conftest import prepare_ledger
from hosts.cluster import running_cluster
from hosts.processes import caller, watcher
from hosts.shop import pay
from provider import Provider

from counterfoil import Executor, Verdict


@pytest.mark.usefixtures("postgres_server")
def test_no_verdict_is_lost_and_nothing_is_sent_twice_when_the_primary_dies(
    provider: Provider, hosts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at once under callers and watchers, the replica promoted: the same processes go on, whatever was told as
    applied stands in the ledger, and each effect is at the provider once. Nothing was sent that the ledger does not
    know."""
    monkeypatch.setenv("PROVIDER", provider.url)
    with running_cluster(prepare_ledger) as cluster:
        start = hosts(cluster.url)
        callers = [caller(start) for _ in range(3)]
        watchers = [watcher(start) for _ in range(2)]
        provider.arm("ack_lost", times=6, skip=4)
        provider.arm("request_lost", times=2, skip=6)
        for one in callers:
            one.until(lambda told: told["order"] == "A-8")
        for one in watchers:
            one.until(lambda told: told["trouble"] is None)
        cluster.kill_primary()
        for one in callers:
            one.until(lambda told: told["code"] == "ledger_unavailable")
        watchers[0].until(lambda told: told["trouble"] is not None)
        cluster.promote()
        (*_, last) = [one.until(lambda told: told["code"] == "ok")["order"] for one in callers]
        provider.arm("ack_lost", times=3)
        goal = f"A-{int(last.removeprefix('A-')) + 6}"
        callers[-1].until(lambda told: told["order"] == goal)
        assert [one.ended() for one in callers] == [0, 0, 0]
        for one in watchers:
            one.until(lambda told: told["left"] == 0)
            assert one.ended(signal.SIGTERM) == 0
        provider.quiesce()
        told = [told for one in callers for told in one.told]
        with Executor(cluster.url, [pay], clock_margin_s=0.5) as executor:
            rows = {row.id: row for row in executor.audit.effects(limit=10_000)}
    counted = Counter(one["reference"] for one in provider.effects())
    assert set(counted) <= set(rows)
    assert {name: row.verdict for name, row in rows.items()} == {
        name: Verdict.EFFECT_APPLIED if counted[name] else Verdict.NO_EFFECT for name in rows
    }
    assert max(counted.values()) == 1
    applied = {one["effect_id"] for one in told if one["verdict"] == Verdict.EFFECT_APPLIED}
    assert applied <= {name for name, row in rows.items() if row.verdict is Verdict.EFFECT_APPLIED}
    assert len(applied) >= 14
