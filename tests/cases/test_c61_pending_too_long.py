"""C61: pending too long, therefore 'failed'."""

from __future__ import annotations

from typing import Any

import pytest
from cases.paying import START_US, pay_at
from provider import Provider
from typer.testing import CliRunner

from counterfoil import Executor, ManualClock, Policy, UsageError, Verdict
from counterfoil.cli.app import app

ROUNDS = 40


def test_age_and_failed_checks_make_no_verdict(ledger_url: str, provider: Provider) -> None:
    """However long and often the check fails, the effect stays unknown and a person is told once, with how long, how
    often and why; looking goes on, slower. When the check works again, it is applied. One effect all the time."""
    clock = ManualClock(START_US)
    told: list[Any] = []
    policy = Policy(timeout_s=5, grace_s=5, patience_s=1, review_after_s=3600)
    with Executor(ledger_url, [pay_at(provider, policy)], clock=clock, on_incident=told.append) as executor:
        provider.arm("ack_lost")
        provider.arm("error", times=None, status=503)
        first = executor.call("pay", {"order": "A"})
        effect_id = str(first.effect_id)
        pauses = []
        for _ in range(ROUNDS):
            row = executor.audit.effect(effect_id)
            assert (row.verdict, row.proof) == (Verdict.EFFECT_UNKNOWN, None)
            assert row.look_at is not None
            pauses.append((row.look_at - row.now) / 1_000_000)
            clock.advance(max(0.0, pauses[-1]) + 0.001)
            assert executor.reconcile().looked == 1
        (incident,) = told
        assert (incident.kind, incident.effect_id, incident.tool) == ("doubt_left", effect_id, "pay")
        assert incident.detail["reason"] == "the provider answered 503"
        assert incident.detail["unknown_s"] >= 3600
        assert incident.detail["looks"] > 10
        assert executor.audit.incidents() == [incident]
        assert max(pauses) == pytest.approx(3600, abs=1)
        assert max(pause for pause in pauses[:12]) <= 600.001
        again = executor.call("pay", {"order": "A"})
        assert (again.code, again.verdict) == ("effect_unknown", Verdict.EFFECT_UNKNOWN)
        shown = CliRunner().invoke(app, ["doubts", "--ledger", ledger_url], env={"COLUMNS": "120"})
        looks = executor.audit.effect(effect_id).looks
        assert f"{looks} looks" in shown.stdout
        version = executor.audit.effect(effect_id).version
        for word in ({"by": "", "why": "seen"}, {"by": "N. N.", "why": " "}):
            with pytest.raises(UsageError, match="named person"):
                executor.resolve(effect_id, Verdict.NO_EFFECT, version=version, **word)
        provider.disarm()
        clock.advance(4000)
        assert executor.reconcile().applied == 1
        assert executor.call("pay", {"order": "A"}).code == "replayed"
    assert provider.count() == 1
