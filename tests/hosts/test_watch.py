"""`reconcile --watch` by several processes on one ledger: they share the work, stop cleanly, replace each other."""

from __future__ import annotations

import signal
from collections import Counter
from typing import Any

import pytest
from hosts.processes import caller, watcher
from hosts.shop import pay
from provider import Provider

from counterfoil import Executor, Verdict
from counterfoil.ledger.ledger import Ledger


def doubts(url: str, provider: Provider, monkeypatch: pytest.MonkeyPatch, count: int) -> list[str]:
    """The ids of so many effects whose answers were lost, in the ledger, with their looks due."""
    monkeypatch.setenv("PROVIDER", provider.url)
    provider.arm("ack_lost", times=count)
    provider.arm("error", times=None, status=500)
    with Executor(url, [pay], clock_margin_s=0.5) as executor:
        seen = [executor.call("pay", {"order": f"D-{number}"}) for number in range(count)]
        executor._ledger.give_back(executor.audit.doubts())
    assert {one.code for one in seen} == {"effect_unknown"}
    provider.disarm()
    return [str(one.effect_id) for one in seen]


def test_two_watchers_and_live_callers_share_one_ledger(
    ledger_url: str, provider: Provider, hosts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every lost answer is settled by a watcher or a caller, each look is made by one of them, no effect happens twice,
    and the watchers send nothing. SIGTERM ends a watcher with 0, Ctrl-C with 130."""
    doubts(ledger_url, provider, monkeypatch, 6)
    provider.arm("ack_lost", times=4, skip=6)
    provider.arm("request_lost", times=2, skip=10)
    start = hosts(ledger_url)
    callers = [caller(start) for _ in range(2)]
    watchers = [watcher(start), watcher(start, app="asynchronous")]
    callers[0].until(lambda told: told["order"] == "A-16")
    assert [caller.ended() for caller in callers] == [0, 0]
    for one in watchers:
        one.until(lambda told: told["left"] == 0)
    assert [watchers[0].ended(signal.SIGTERM), watchers[1].ended(signal.SIGINT)] == [0, 130]
    provider.quiesce()
    with Executor(ledger_url, [pay], clock_margin_s=0.5) as executor:
        rows = executor.audit.effects(limit=1000)
        entries = [entry for row in rows for entry in executor.audit.history(row.id)]
    counted = Counter(one["reference"] for one in provider.effects())
    assert {row.id: int(row.verdict is Verdict.EFFECT_APPLIED) for row in rows} == {
        row.id: counted[row.id] for row in rows
    }
    assert len(rows) >= 23
    looks = sum(told["looked"] for one in watchers for told in one.told)
    assert looks == sum(entry.actor == "reconcile" for entry in entries)
    assert looks >= 6
    sent = sum(request["method"] == "POST" for request in provider.requests())
    assert sent == sum(entry.event == "begun" for entry in entries)


def test_a_watcher_that_is_asked_to_stop_finishes_its_look(
    ledger_url: str, provider: Provider, hosts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look under way is written, no other is begun, and what it had taken is due again for everybody."""
    blocking = ledger_url.startswith("sqlite")
    number, app, code = (signal.SIGTERM, "executor", 0) if blocking else (signal.SIGINT, "asynchronous", 130)
    known = doubts(ledger_url, provider, monkeypatch, 3)
    provider.arm("hang", times=1)
    one = watcher(hosts(ledger_url), app=app)
    provider.await_parked(1, timeout_s=30)
    assert one.ended(number) == code
    with Executor(ledger_url, [pay], clock_margin_s=0.5) as executor:
        rows = [executor.audit.effect(effect_id) for effect_id in known]
        looked = {row.id for row in rows if any(e.actor == "reconcile" for e in executor.audit.history(row.id))}
    assert (sum(told["looked"] for told in one.told), len(looked)) == (1, 1)
    assert all(row.look_at is not None and row.look_at <= row.now for row in rows if row.id not in looked)


def test_another_watcher_takes_over_when_one_was_killed_in_a_look(
    ledger_url: str, provider: Provider, hosts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed process had taken stays with it until its claim is over; then another looks and settles it."""
    (effect_id,) = doubts(ledger_url, provider, monkeypatch, 1)
    start = hosts(ledger_url)
    provider.arm("hang", times=1)
    killed = watcher(start, claim=4)
    provider.await_parked(1, timeout_s=30)
    killed.ended(signal.SIGKILL)
    assert sum(told["looked"] for told in killed.told) == 0
    with Executor(ledger_url, [pay], clock_margin_s=0.5) as executor:
        claimed = executor.audit.effect(effect_id)
        other = watcher(start, claim=4)
        other.until(lambda told: told["left"] == 0)
        assert other.ended(signal.SIGTERM) == 0
        settled = executor.audit.history(effect_id)[-1]
    assert sum(told["looked"] for told in other.told) == 1
    assert (settled.event, settled.actor) == ("found", "reconcile")
    assert claimed.look_at is not None
    assert settled.at >= claimed.look_at
    assert provider.count(effect_id) == 1


def test_two_hosts_never_take_the_same_effect(
    ledger_url: str, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one has taken the other does not get, until the claim is over or it was given back."""
    known = doubts(ledger_url, provider, monkeypatch, 4)
    with Executor(ledger_url, [pay], clock_margin_s=0.5) as one, Executor(ledger_url, [pay]) as two:
        ledgers: list[Ledger] = [one._ledger, two._ledger]
        mine = ledgers[0].take_due(["pay"], "", limit=2, claim_us=60_000_000)
        theirs = ledgers[1].take_due(["pay"], "", limit=4, claim_us=60_000_000)
        assert (len(mine), len(theirs)) == (2, 2)
        assert {row.id for row in (*mine, *theirs)} == set(known)
        ledgers[0].give_back(mine)
        again = ledgers[1].take_due(["pay"], "", limit=4, claim_us=60_000_000)
        assert {row.id for row in again} == {row.id for row in mine}
