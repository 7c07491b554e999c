"""C29: the order of keys changes the identity (aws-powertools/powertools-lambda-python #638)."""

from __future__ import annotations

from typing import Any

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.scene import find, post, sent, story, until_free
from provider import Provider

from counterfoil import ALL_ARGUMENTS, Effect, Executor, Policy, tool

FORWARDS = '{"a": 1, "b": {"c": 2, "d": 3}}'
BACKWARDS = '{"b": {"d": 3, "c": 2}, "a": 1}'


@pytest.mark.parametrize("reading", [FORWARDS, {"a": 1, "b": {"c": 2, "d": 3}}], ids=["text", "object"])
def test_reversed_members_are_the_same_call(ledger_url: str, provider: Provider, reading: str | dict[str, Any]) -> None:
    """Lost, and asked again with the members reversed at both levels: one fingerprint, one effect, applied."""

    @tool(key=ALL_ARGUMENTS, sends="once", policy=Policy(timeout_s=20.0, grace_s=60.0, patience_s=0.05, wait_s=0.5))
    def pay(effect: Effect, a: int, b: dict[str, int]) -> dict[str, str]:
        """Pay what the parts say."""
        return post(provider, effect, {"a": a, "b": b})

    pay.postcondition(lambda effect: find(provider, effect))
    provider.arm("ack_lost")
    provider.arm("stale")
    with Executor(ledger_url, tools=[pay], clock_margin_s=0.1) as executor:
        first = executor.call("pay", reading, task="t")
        assert_unknown(first)
        until_free(executor)
        second = executor.call("pay", BACKWARDS, task="t")
        assert_applied(second, code="verified")
        third = executor.call("pay", FORWARDS, task="t")
        assert_applied(third, code="replayed")
        (effect,) = executor.audit.effects()
        assert {one.effect_id for one in (first, second, third)} == {effect.id}
        assert story(executor, effect.id) == [("begun", 1), ("lost", 1), ("looked", 0), ("found", 0)]

        other = executor.call("pay", '{"a": 1, "b": {"c": 3, "d": 2}}', task="t")
        assert_applied(other, code="ok")
        first_row, other_row = sorted(executor.audit.effects(), key=lambda row: row.created_at)
        assert first_row.fingerprint != other_row.fingerprint, "other values are another call"
    provider.quiesce()
    assert provider.count(effect.id) == 1
    assert provider.count() == len(sent(provider)) == 2
