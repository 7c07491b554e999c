"""C07: the same id called by many at once (dbos-inc/dbos-transact-py #544).

The tool takes as long as it takes for the last of the twenty callers to arrive, instead of 0.5 s: the provider holds
the one request until all others are known to wait. So they overlap in each of the 50 rounds, and a round is short.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any

import sqlalchemy as sa
from cases.messages import assert_applied, assert_unknown
from cases.processes import Child, hear, playing, say
from cases.scene import WAIT_S, database, incidents, post, sent, story
from provider import Provider

from counterfoil import Effect, Executor, Observation, Policy, Proof, Tool, tool

ROUNDS = 50
THREADS = 20
PROCESSES = 4
EACH = THREADS // PROCESSES


class Company:
    """Counts the callers of one round that are inside: at work in the tool, or waiting for the one that is."""

    def __init__(self, complete: Callable[[], None], members: int) -> None:
        self._lock = threading.Lock()
        self._complete = complete
        self._members = members
        self._inside: set[int] = set()

    def enter(self, caller: int) -> None:
        with self._lock:
            before = len(self._inside)
            self._inside.add(caller)
            if before < len(self._inside) == self._members:
                self._inside = set(range(-self._members, 0))  # the round is complete: nobody counts any more
                self._complete()

    def leave(self) -> None:
        with self._lock:
            self._inside = set()


class Crowd:
    """One executor and its calling threads."""

    def __init__(self, ledger: str, provider: Provider, members: int, complete: Callable[[], None], patience_s: float):
        self.company = Company(complete, members)
        self._barrier = threading.Barrier(members)
        self._threads = ThreadPoolExecutor(members)
        self.executor = Executor(
            ledger, tools=[self._charge(provider, patience_s)], clock_margin_s=0.1, observer=self._observe
        )

    def _charge(self, provider: Provider, patience_s: float) -> Tool[..., Any]:
        @tool(key=("order",), sends="once", policy=Policy(timeout_s=30.0, patience_s=patience_s))
        def charge(effect: Effect, order: int) -> dict[str, str]:
            """Charge one order."""
            self.company.enter(0)  # a thread of the executor's own, on behalf of the caller that waits for it
            return post(provider, effect, {"order": order}, timeout_s=effect.remaining_s)

        return charge

    def _observe(self, moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) in (("before", "Sleep"), ("before", "Sight")):
            self.company.enter(threading.get_ident())

    def round(self, order: int) -> list[Observation]:
        def one() -> Observation:
            self._barrier.wait(WAIT_S)
            try:
                return self.executor.call("charge", {"order": order})
            finally:
                self.company.enter(threading.get_ident())  # whatever it was told, nobody need wait for it

        calls = [self._threads.submit(one) for _ in range(self._barrier.parties)]
        seen = [call.result(WAIT_S * 2) for call in calls]
        self.company.leave()
        return seen

    def close(self) -> None:
        self._threads.shutdown()
        self.executor.close()


def check_the_ledger(ledger: str, provider: Provider, rounds: int) -> None:
    """One row, one attempt and one effect for each round; the key is unique by constraint, not by luck."""
    with Executor(ledger) as executor:
        rows = executor.audit.effects(limit=10 * rounds)
        assert len({row.key for row in rows}) == len(rows) == rounds
        for row in rows:
            assert (row.attempts, row.count, row.proof) == (1, 1, Proof.RETURNED)
            assert story(executor, row.id) == [("begun", 1), ("returned", 1)]
        assert incidents(executor) == []
    with database(ledger) as engine:
        assert sa.inspect(engine).get_pk_constraint("effects")["constrained_columns"] == ["key"]
    provider.quiesce()
    assert Counter(one["reference"] for one in provider.effects()) == Counter({row.id: 1 for row in rows})
    assert len(sent(provider)) == rounds


def test_twenty_threads(ledger_url: str, provider: Provider) -> None:
    """In each of 50 rounds one call is carried out, nineteen join it, and all hear that it is done."""
    provider.arm("slow", times=None)
    complete = threading.Event()
    crowd = Crowd(ledger_url, provider, THREADS, complete.set, patience_s=20.0)
    with closing(crowd), ThreadPoolExecutor(1) as running:
        for order in range(ROUNDS):
            rounds = running.submit(crowd.round, order)
            assert complete.wait(WAIT_S), "all twenty are inside"
            complete.clear()
            provider.await_parked()
            provider.release()
            seen = rounds.result(WAIT_S * 2)
            assert Counter(one.code for one in seen) == {"ok": 1, "replayed": THREADS - 1}
            assert len({(one.effect_id, str(one.value)) for one in seen}) == 1
            for one in seen:
                assert_applied(one, code=one.code)
    check_the_ledger(ledger_url, provider, ROUNDS)


def test_latecomers_without_patience(ledger_url: str, provider: Provider) -> None:
    """Who will not wait hears that it is in progress, which is no failure; asked again, it is done."""
    provider.arm("slow", times=None)
    complete = threading.Event()
    crowd = Crowd(ledger_url, provider, THREADS, complete.set, patience_s=0.01)
    with closing(crowd), ThreadPoolExecutor(1) as running:
        rounds = running.submit(crowd.round, 1)
        assert complete.wait(WAIT_S), "all twenty are inside"
        provider.await_parked()
        provider.release()
        seen = rounds.result(WAIT_S * 2)
        assert Counter(one.code for one in seen) == {"ok": 1, "in_progress": THREADS - 1}
        for one in seen:
            if one.code == "in_progress":
                assert_unknown(one, code="in_progress")
        assert_applied(crowd.executor.call("charge", {"order": 1}), code="replayed")
    check_the_ledger(ledger_url, provider, 1)


def crowd_of_five(ledger: str, provider: str) -> str:
    """The play: five threads, one round for each number that the test says, until it says nothing more."""
    crowd = Crowd(ledger, Provider.at(provider), EACH, lambda: say("inside"), patience_s=20.0)
    say("ready")
    while (order := hear()) is not None:
        say([[one.code, one.effect_id, one.value] for one in crowd.round(order)])
    crowd.close()
    return "done"


def test_four_processes_of_five_threads(ledger_url: str, provider: Provider) -> None:
    """The same over four processes: one of the twenty carries it out, in each of 50 rounds."""
    provider.arm("slow", times=None)
    with ExitStack() as stack:
        children: list[Child] = [
            stack.enter_context(playing(crowd_of_five, ledger=ledger_url, provider=provider.url))
            for _ in range(PROCESSES)
        ]
        assert [child.heard() for child in children] == ["ready"] * PROCESSES
        for order in range(ROUNDS):
            for child in children:
                child.tell(order)
            assert [child.heard() for child in children] == ["inside"] * PROCESSES
            provider.await_parked()
            provider.release()
            seen = [one for child in children for one in child.heard()]
            assert Counter(code for code, _, _ in seen) == {"ok": 1, "replayed": THREADS - 1}
            assert len({(effect_id, str(value)) for _, effect_id, value in seen}) == 1
        for child in children:
            child.hang_up()
            assert child.result() == "done"
    check_the_ledger(ledger_url, provider, ROUNDS)
