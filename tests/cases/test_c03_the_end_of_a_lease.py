"""C03: a lease that is over was taken for the right to run again (https://github.com/aws-powertools/powertools-lambda-python/issues/8049).

To cure stuck records a layer let the next caller execute once the first one's time was over; with a withdrawal inside,
a timeout then led straight to a second withdrawal. Here one process dies with three withdrawals landed and none
recorded, its leases end after 2 s, and the same three calls come at 1 s, at 3 s and a day later.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from cases.messages import assert_applied, assert_unknown
from cases.paying import START_US
from cases.processes import playing
from cases.scene import WAIT_S, details, find, incidents, looked, named, post, sent, story
from provider import Provider

from counterfoil import Effect, Executor, KeyPolicy, ManualClock, Observation, Policy, Tool, Verdict, tool

MARGIN_S = 1.0
TIMEOUT_S = 1.0  # with the margin the lease is 2 s
TOOLS = ("withdraw_with_a_look", "withdraw_under_a_key", "withdraw_blindly")
CALL = {"k": "k-1", "amount": 100}
DAY_S = 86_400


def withdrawals(provider: Provider, landed: threading.Semaphore | None = None) -> list[Tool[..., Any]]:
    """Three tools. With `landed`, none of them comes back from its withdrawal."""

    def withdrawal(name: str, keys: KeyPolicy | None, grace_s: float | None) -> Tool[..., Any]:
        policy = Policy(timeout_s=TIMEOUT_S, grace_s=grace_s, patience_s=0.1, wait_s=0.5, key_policy=keys)

        @tool(key=("k",), name=name, sends="once", policy=policy)
        def withdraw(effect: Effect, k: str, amount: int) -> dict[str, str]:
            """Withdraw an amount once for one k."""
            done = post(provider, effect, {"k": k, "amount": amount}, key=effect.provider_key if keys else None)
            if landed is not None:
                landed.release()
                threading.Event().wait()
            return done

        return withdraw

    checked, keyed, blind = TOOLS
    one = withdrawal(checked, None, 60.0)
    one.postcondition(lambda effect: find(provider, effect))
    return [one, withdrawal(keyed, KeyPolicy(retention_s=600.0, concurrent=True), 5.0), withdrawal(blind, None, None)]


def die(ledger: str, provider: str) -> None:
    """The play: three withdrawals land, and the process is gone before any of them is recorded."""
    landed = threading.Semaphore(0)
    tools = withdrawals(Provider.at(provider), landed)
    executor = Executor(ledger, tools, clock=ManualClock(START_US), clock_margin_s=MARGIN_S)
    threads = ThreadPoolExecutor(len(tools))
    for name in TOOLS:
        threads.submit(executor.call, name, CALL)
    for _ in tools:
        assert landed.acquire(timeout=WAIT_S)
    os.kill(os.getpid(), signal.SIGKILL)


class Heir:
    """Another process's executor, after the first one died; its clock stands where the test says."""

    def __init__(self, executor: Executor, clock: ManualClock) -> None:
        self.executor = executor
        self.clock = clock

    def withdraw(self, name: str) -> Observation:
        return self.executor.call(name, CALL)

    def at(self, seconds: float) -> None:
        self.clock.advance(seconds - (self.clock.wall_us() - START_US) / 1_000_000)


@contextmanager
def heir(ledger: str, provider: Provider) -> Iterator[Heir]:
    provider.dedupe(600.0)
    with playing(die, ledger=ledger, provider=provider.url) as child:
        assert child.ended() == -signal.SIGKILL
    provider.quiesce()
    assert provider.count() == 3
    clock = ManualClock(START_US)
    with Executor(ledger, withdrawals(provider), clock=clock, clock_margin_s=MARGIN_S) as executor:
        yield Heir(executor, clock)


def test_the_end_of_a_lease_is_the_right_to_look(ledger_url: str, provider: Provider) -> None:
    """With a look: applied. Safe by key: sent again under the same key, applied. Neither: unknown, and closed for good.
    One effect in all three, and before the lease is over nobody does anything at all."""
    checked, keyed, blind = TOOLS
    with heir(ledger_url, provider) as one:
        one.at(1)
        for name in TOOLS:
            assert_unknown(one.withdraw(name), code="in_progress")
        assert (len(sent(provider)), looked(provider)) == (3, 0)
        one.at(3)
        check_the_look(one, provider, checked)
        check_the_key(one, provider, keyed)
        check_neither(one, provider, blind)
        assert incidents(one.executor) == []
        provider.quiesce()
        assert [provider.count(row.id) for row in one.executor.audit.effects()] == [1, 1, 1]
    assert provider.count() == 3


def check_the_look(one: Heir, provider: Provider, name: str) -> None:
    provider.arm("error")
    blinded = one.withdraw(name)
    assert_unknown(blinded)
    assert len(sent(provider)) == 3, "a look that cannot see gives no right to send"
    seen = one.withdraw(name)
    assert_applied(seen, code="verified")
    assert seen.value == {"payment": provider.effects(seen.effect_id)[0]["id"]}
    assert story(one.executor, seen.effect_id) == [("begun", 1), ("looked", 0), ("found", 0)]
    assert len(sent(provider)) == 3


def check_the_key(one: Heir, provider: Provider, name: str) -> None:
    seen = one.withdraw(name)
    assert_applied(seen, code="ok")
    assert seen.value == {"payment": provider.effects(seen.effect_id)[0]["id"]}
    assert story(one.executor, seen.effect_id) == [("begun", 1), ("begun", 2), ("returned", 2)]
    begun = details(one.executor, seen.effect_id, "begun")
    assert begun[1]["permission"] == "same_key"
    keys = [request["key"] for request in sent(provider) if request["reference"] == seen.effect_id]
    assert keys == [begun[0]["provider_key"], begun[1]["provider_key"]] == [keys[0]] * 2
    assert len(sent(provider)) == 4


def check_neither(one: Heir, provider: Provider, name: str) -> None:
    for seconds in (3, DAY_S, 30 * DAY_S):
        one.at(seconds)
        seen = one.withdraw(name)
        assert_unknown(seen)
        assert "may have been carried out" in seen.reason
        assert "a person has to check it" in seen.next_action
        (left,) = [row for row in one.executor.audit.doubts() if row.id == seen.effect_id]
        assert (left.verdict, left.attempts, left.live) == (Verdict.EFFECT_UNKNOWN, 1, False)
        assert story(one.executor, seen.effect_id) == [("begun", 1)]
        assert len([request for request in sent(provider) if request["reference"] == named(seen.effect_id)]) == 1
