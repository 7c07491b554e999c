"""The database goes away at each step of a call: for a moment, or for longer than the call is patient."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from charging import GOOD, charging
from ledger_access import Access, access_to
from outside import World
from postgres import PostgresServer

from counterfoil import Executor, ManualClock, Observation, Verdict

BEFORE_SENDING = ["Read", "Start"]
AFTER_SENDING = ["Attempt", "Write:SettleReturned"]
IN_DOUBT = ["Attempt", "Write:SettleLost", "Ask", "Write:SettleLook"]
STEPS = [
    *((step, "none") for step in BEFORE_SENDING),
    *((step, "none") for step in AFTER_SENDING),
    *((step, "ack_lost") for step in IN_DOUBT),
]


@pytest.fixture
def access(ledger_url: str, postgres_server: PostgresServer) -> Iterator[Access]:
    """The way to this test's ledger, on each database."""
    with access_to(ledger_url, postgres_server) as way:
        yield way


class Taking:
    """An observer that takes the ledger away before one step, once."""

    def __init__(self, access: Access, step: str, back_s: float | None) -> None:
        self.access, self.step, self.back_s = access, step, back_s
        self.done = False

    def __call__(self, moment: str, step: str, tool: str, effect_id: str) -> None:
        if self.done or (moment, step) != ("before", self.step):
            return
        self.done = True
        self.access.take_away()
        if self.back_s is not None:
            threading.Timer(self.back_s, self.access.bring_back).start()


def settled(executor: Executor, world: World) -> Observation:
    """What is told once the ledger is back and every deadline is over."""
    assert executor._site.backlog.flush()
    world.clock.advance(100)
    return executor.call("charge", GOOD)


@pytest.mark.parametrize(("step", "fault"), STEPS)
def test_away_for_a_moment(access: Access, step: str, fault: str) -> None:
    """Away for less than the patience: the caller notices nothing; one attempt, one request."""
    world = World(ManualClock())
    world.next = [fault]
    taking = Taking(access, step, back_s=0.2)
    with Executor(access.url, tools=[charging(world)], clock=world.clock, observer=taking) as executor:
        seen = executor.call("charge", GOOD)
        assert taking.done
        assert (seen.verdict, seen.attempts, seen.value) == (Verdict.EFFECT_APPLIED, 1, {"amount": 5})
    assert len(world.requests) == 1


@pytest.mark.parametrize(("step", "fault"), STEPS)
def test_away_for_long(access: Access, step: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away for longer: unknown, and the text says whether this call has sent; nothing is ever sent twice."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.2)
    world = World(ManualClock())
    world.next = [fault]
    taking = Taking(access, step, back_s=None)
    with Executor(access.url, tools=[charging(world)], clock=world.clock, observer=taking) as executor:
        seen = executor.call("charge", GOOD)
        assert taking.done
        assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
        sent = step not in BEFORE_SENDING
        assert len(world.requests) == sent
        assert ("this call sent nothing" in seen.text) is not sent
        access.bring_back()
        again = settled(executor, world)
        assert (again.verdict, again.attempts, again.value) == (Verdict.EFFECT_APPLIED, 1, {"amount": 5})
    assert len(world.requests) == 1


def test_away_while_another_waits(access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever finds an attempt of another's under way, and then no ledger, sends nothing and claims nothing."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.2)
    world = World(ManualClock())
    tool = charging(world)
    waiting = threading.Event()
    told: list[Observation] = []

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("before", "Attempt"):
            thread.start()
            assert waiting.wait(20)

    def second_watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("before", "Sleep") and not waiting.is_set():
            access.take_away()
            waiting.set()

    with (
        Executor(access.url, tools=[tool], clock=world.clock, observer=watch) as first,
        Executor(access.url, tools=[tool], clock=world.clock, observer=second_watch) as second,
    ):
        thread = threading.Thread(target=lambda: told.append(second.call("charge", GOOD)))
        seen = first.call("charge", GOOD)
        thread.join()
        access.bring_back()
        again = settled(first, world)
    assert seen.verdict is told[0].verdict is Verdict.EFFECT_UNKNOWN
    assert told[0].code in ("ledger_unavailable", "in_progress")
    assert again.verdict is Verdict.EFFECT_APPLIED
    assert len(world.requests) == 1
