"""C46: killed at the platform's limit, and 'in progress' for ever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cases.paying import START_US, pay_at
from provider import Provider

from counterfoil import Executor, ManualClock, Observation, Policy

TESTS = Path(__file__).parents[1]
TIMEOUT_S, GRACE_S = 28.0, 5.0  # with the margin of 2 s the lease is 30 s, and absence proves after 35 s


@pytest.mark.parametrize("killed", ["before", "after"])
def test_a_claim_of_a_killed_process_ends_with_its_lease(ledger_url: str, provider: Provider, killed: str) -> None:
    """At 10 s the caller hears when to ask again; at 40 s it looks and, where nothing had happened, does it; at 60 s it
    is a replay. One effect, and the ledger names both owners."""
    code = f"from cases.paying import call_and_die\ncall_and_die({ledger_url!r}, {provider.url!r}, {killed!r}, 28, 5)"
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    died = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": paths}, check=False)
    assert died.returncode == -signal.SIGKILL
    clock = ManualClock(START_US)
    tool = pay_at(provider, Policy(timeout_s=TIMEOUT_S, grace_s=GRACE_S, patience_s=1))
    with Executor(ledger_url, [tool], clock=clock) as executor:
        seen: list[Observation] = []
        for pause_s in (10, 30, 20):
            clock.advance(pause_s)
            seen.append(executor.call("pay", {"order": "A"}))
        history = executor.audit.history(str(seen[0].effect_id))
        (row,) = executor.audit.effects()
        owner = executor._site.holder
    assert [one.code for one in seen] == ["in_progress", "ok" if killed == "before" else "verified", "replayed"]
    assert seen[0].retry_after_s is not None
    assert 15 < seen[0].retry_after_s <= 20
    events = [entry.event for entry in history]
    if killed == "before":
        assert events == ["begun", "absent", "begun", "returned"]
    else:
        assert events == ["begun", "found"]
    assert len({entry.actor for entry in history if entry.actor != owner}) == 1, "the old owner is on record"
    assert {entry.actor for entry in history[1:]} == {owner}
    assert not row.live
    assert provider.count() == 1
