"""C27: the provider forgets keys after a day (https://github.com/crbnos/carbon/issues/252).

An integration relied on a fixed key for ever, while the provider keeps keys for 24 hours: a day later the same call
made a second customer. The clocks of ledger and provider are moved on by the test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cases.messages import assert_applied, assert_unknown
from cases.scene import details, looked, named, post, sent, story
from provider import Provider

from counterfoil import Effect, Executor, KeyPolicy, ManualClock, Observation, Policy, Tool, Verdict, tool

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S
CALL = {"email": "ann@example.org"}
POLICY = Policy(
    timeout_s=10.0, grace_s=60.0, patience_s=5.0, wait_s=0.5, attempts_max=1,
    key_policy=KeyPolicy(retention_s=DAY_S, concurrent=True),
)  # fmt: skip


def customer_tool(provider: Provider) -> Tool[..., Any]:
    """Safe by key for a day, and nothing to look with."""

    @tool(key=("email",), sends="once", policy=POLICY)
    def create_customer(effect: Effect, email: str) -> dict[str, str]:
        """Create a customer."""
        return post(provider, effect, {"email": email}, key=effect.provider_key)

    return create_customer


class Shop:
    """An executor and a provider, both of whose clocks the test moves on."""

    def __init__(self, executor: Executor, provider: Provider, clock: ManualClock) -> None:
        self.executor, self.provider, self.clock = executor, provider, clock

    def create(self) -> Observation:
        return self.executor.call("create_customer", CALL)

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.provider.advance(seconds)


@contextmanager
def shop(ledger: str, provider: Provider) -> Iterator[Shop]:
    """The shop after the first answer was lost."""
    provider.dedupe(DAY_S)
    provider.arm("ack_lost")
    clock = ManualClock()
    with Executor(ledger, [customer_tool(provider)], clock=clock) as executor:
        one = Shop(executor, provider, clock)
        begun_at = clock.wall_us()
        assert_unknown(one.create())
        (row,) = executor.audit.effects()
        assert (row.keyed, row.key_first_begun_at) == (True, begun_at), "from here on the key ages"
        yield one
    provider.quiesce()
    assert provider.count() == 1
    assert looked(provider) == 0


def test_after_23_hours_the_key_still_protects(ledger_url: str, provider: Provider) -> None:
    """The same key goes out again and is recognised: applied, one customer."""
    with shop(ledger_url, provider) as one:
        one.later(23 * HOUR_S)
        seen = one.create()
        assert_applied(seen, code="ok")
        assert seen.value == {"payment": provider.effects()[0]["id"]}
        assert story(one.executor, seen.effect_id) == [("begun", 1), ("lost", 1), ("begun", 2), ("returned", 2)]
        assert details(one.executor, seen.effect_id, "begun")[1]["permission"] == "same_key"
        assert len({request["key"] for request in sent(provider)}) == 1
    assert len(sent(provider)) == 2


def test_after_25_hours_it_does_not(ledger_url: str, provider: Provider) -> None:
    """Unknown, and nothing is sent any more: the message says that the key protects nothing, and sends the caller to a
    person. The record stays unknown for a year, is told to a person, and does not expire."""
    with shop(ledger_url, provider) as one:
        for later_s in (25 * HOUR_S, 365 * DAY_S):
            one.later(later_s)
            seen = one.create()
            assert_unknown(seen)
            assert "may have been carried out" in seen.reason
            assert "its key has expired: it can no longer prevent a double" in seen.reason
            assert "a person has to check it" in seen.next_action
            assert "check_effect" not in seen.next_action
            one.executor.reconcile()
            (row,) = one.executor.audit.doubts()
            assert (row.id, row.verdict, row.attempts) == (seen.effect_id, Verdict.EFFECT_UNKNOWN, 1)
            assert story(one.executor, named(seen.effect_id)) == [("begun", 1), ("lost", 1)]
            checked = one.executor.call("check_effect", {"effect_id": row.id})
            assert_unknown(checked)
            assert "a person has to check it" in checked.next_action
        (told,) = one.executor.audit.incidents()
        (left,) = one.executor.audit.doubts()
        assert (told.kind, told.effect_id) == ("doubt_left", left.id)
    assert len(sent(provider)) == 1
