"""C26 (kind K06): no key given, and all callers share one record (aws-powertools/powertools-lambda-typescript #1501).

Here identity is declared: there is no fall-back, and a call without its identity is refused.
"""

from __future__ import annotations

from typing import Any

import pytest
from cases.messages import assert_applied, assert_none
from cases.scene import post, sent
from provider import Provider

from counterfoil import ALL_ARGUMENTS, Effect, Executor, UsageError, tool

CALLS: list[dict[str, Any]] = [
    {"amount": 1},
    {"amount": 2},
    {"order_id": None, "amount": 3},
    {"order_id": "", "amount": 4},
]


def test_four_calls_without_identity_are_four_refusals(ledger_url: str, provider: Provider) -> None:
    """Each names the missing field; nothing is sent, and there is no record, least of all of an empty name."""

    @tool(key=("order_id",))
    def pay(effect: Effect, amount: int, order_id: str | None = None) -> dict[str, str]:
        """Pay an order."""
        return post(provider, effect, {"order_id": order_id, "amount": amount})

    with Executor(ledger_url, tools=[pay]) as executor:
        for arguments in CALLS:
            seen = executor.call("pay", arguments)
            assert_none(seen, code="invalid_arguments")
            assert "order_id" in seen.text
        with pytest.raises(UsageError, match="key= is empty"):
            executor.call("pay", {"order_id": "o1", "amount": 1}, key="")
        assert executor.audit.effects() == []
    provider.quiesce()
    assert sent(provider) == []


def test_all_arguments_are_an_identity_too(ledger_url: str, provider: Provider) -> None:
    """Where the whole of the arguments was declared to be the identity, four different calls are four effects."""

    @tool(key=ALL_ARGUMENTS)
    def pay(effect: Effect, amount: int, order_id: str | None = None) -> dict[str, str]:
        """Pay an order."""
        return post(provider, effect, {"order_id": order_id, "amount": amount})

    with Executor(ledger_url, tools=[pay]) as executor:
        for arguments in CALLS:
            assert_applied(executor.call("pay", arguments, task="t"), code="ok")
        assert len({row.fingerprint for row in executor.audit.effects()}) == len(CALLS)
        with pytest.raises(UsageError, match="task="):
            executor.call("pay", CALLS[0])
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == len(CALLS)
