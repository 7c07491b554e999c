"""C42: the effect is there, and the database goes away before the outcome is written."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from ledger_access import Access, access_to
from ledger_client import CLOCK_MARGIN_S, client, pay_at
from postgres import PostgresServer
from provider import Provider

from counterfoil import Executor, Observation, Verdict


@pytest.fixture
def access(ledger_url: str, postgres_server: PostgresServer) -> Iterator[Access]:
    """The way to this test's ledger, on each database."""
    with access_to(ledger_url, postgres_server) as way:
        yield way


def test_c42_away_for_a_moment(access: Access, provider: Provider) -> None:
    """Away for less than the patience: applied, a little late; only the record was tried again."""

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("after", "Attempt"):
            access.take_away()
            threading.Timer(0.5, access.bring_back).start()

    with Executor(access.url, tools=[pay_at(provider)], observer=watch) as executor:
        seen = executor.call("pay", {"order": "A"})
        assert (seen.code, seen.verdict, seen.attempts) == ("ok", Verdict.EFFECT_APPLIED, 1)
        assert [entry.event for entry in executor.audit.history(str(seen.effect_id))] == ["begun", "returned"]
    assert len(provider.requests()) == 1


def test_c42_away_for_long_and_the_process_is_killed(access: Access, provider: Provider) -> None:
    """The caller hears that the record is pending; killed, restarted, looked at: applied, and one request in all."""
    with client(url=access.url, provider=provider.url, orders=["A"], patience_s=0.3, stop_after="Attempt") as first:
        first.go()
        assert first.heard() == "Attempt"
        access.take_away()
        first.go()
        told = first.heard()
        assert (told["code"], told["verdict"]) == ("ledger_unavailable", "effect_unknown")
        assert "its record is pending" in told["text"]
    access.bring_back()
    with Executor(access.url, tools=[pay_at(provider)], clock_margin_s=CLOCK_MARGIN_S) as executor:
        seen = settled(executor)
        events = [entry.event for entry in executor.audit.history(str(seen.effect_id))]
    assert (seen.verdict, seen.proof, seen.attempts) == (Verdict.EFFECT_APPLIED, "found", 1)
    assert events == ["begun", "found"]
    sent = [one for one in provider.requests() if one["method"] == "POST"]
    assert len(sent) == provider.count() == 1


def settled(executor: Executor) -> Observation:
    """Ask until the attempt that was left behind is no longer in progress."""
    until = time.monotonic() + 20
    while (seen := executor.call("pay", {"order": "A"})).code == "in_progress":
        assert time.monotonic() < until
    return seen
