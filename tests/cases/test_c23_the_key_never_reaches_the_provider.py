"""C23: the key never reaches the provider (fireblocks/fireblocks-sdk-py #97).

The tool is declared to be safe by key and never takes the key that the executor holds out to it.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.scene import details, incidents, post, sent, story, until_free
from provider import Provider

from counterfoil import Effect, Executor, KeyPolicy, Policy, Tool, Verdict, tool

KEYS = KeyPolicy(retention_s=600.0, concurrent=True)


def transaction_tool(provider: Provider, *, forgets: bool, attempts_max: int = 3) -> Tool[..., Any]:
    policy = Policy(
        timeout_s=20.0, grace_s=0.2, patience_s=0.5, wait_s=0.05, attempts_max=attempts_max, key_policy=KEYS
    )

    @tool(key=("order",), policy=policy)
    def transact(effect: Effect, order: str) -> dict[str, str]:
        """Make one transaction for an order."""
        return post(provider, effect, {"order": order}, key=None if forgets else effect.provider_key)

    return transact


def opened(ledger: str, provider: Provider, **settings: Any) -> Executor:
    return Executor(ledger, tools=[transaction_tool(provider, **settings)], clock_margin_s=0.1)


def test_nothing_is_resent_by_a_key_that_was_not_used(ledger_url: str, provider: Provider) -> None:
    """The answer is lost and the policy would resend: since the key was not taken, it stays unknown and is not sent."""
    provider.dedupe(600.0)
    provider.arm("ack_lost")
    with opened(ledger_url, provider, forgets=True) as executor:
        seen = executor.call("transact", {"order": "A"})
        assert_unknown(seen)
        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1)]
        until_free(executor)
        assert_unknown(executor.call("transact", {"order": "A"}))
        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1)]

        (incident,) = executor.audit.incidents()
        assert (incident.kind, incident.tool, incident.effect_id) == ("provider_key_unused", "transact", seen.effect_id)
        assert incident.detail["attempt"] == 1
        (lost,) = details(executor, seen.effect_id, "lost")
        assert lost.get("key_unused") is True, "the attempt itself notes that it did not take its key"
    provider.quiesce()
    assert [request["key"] for request in sent(provider)] == [None]
    assert provider.count() == 1


@pytest.mark.parametrize("ending", ["returned", "lost"])
def test_the_tool_is_no_longer_taken_as_safe_by_key(
    ledger_url: str, provider: Provider, ending: Literal["returned", "lost"]
) -> None:
    """One attempt that was seen not to use its key ends resending for the tool, on every host, until a person says."""
    provider.dedupe(600.0)
    if ending == "lost":
        provider.arm("ack_lost")
    with opened(ledger_url, provider, forgets=True) as executor:
        executor.call("transact", {"order": "A"})
        assert incidents(executor) == ["provider_key_unused"]
    with opened(ledger_url, provider, forgets=False, attempts_max=1) as executor:
        provider.arm("ack_lost")
        seen = executor.call("transact", {"order": "B"})
        assert_unknown(seen)
        assert_unknown(executor.call("transact", {"order": "B"}))
        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1)]
        assert incidents(executor) == ["provider_key_unused"], "one incident for the tool, not one for each call"

        executor.trust_keys("transact")
        mended = executor.call("transact", {"order": "B"})
        assert_applied(mended, code="ok")
        assert details(executor, mended.effect_id, "begun")[1]["permission"] == "same_key"
    provider.quiesce()
    assert provider.count(seen.effect_id) == 1
    assert provider.count() == 2


def test_the_developer_finds_tool_and_key_in_the_ledger(ledger_url: str, provider: Provider) -> None:
    """The incident names the tool and the key that was held out, and says so once although three attempts forgot it."""
    with opened(ledger_url, provider, forgets=True) as executor:
        for order in ("A", "B", "C"):
            assert executor.call("transact", {"order": order}).verdict is Verdict.EFFECT_APPLIED
        (incident,) = executor.audit.incidents()
        (first,) = executor.audit.effects(where={"order": "A"})
        assert (incident.kind, incident.tool, incident.effect_id) == ("provider_key_unused", "transact", first.id)
        assert incident.detail["provider_key"] == first.provider_key
    provider.quiesce()
    assert provider.count() == 3
