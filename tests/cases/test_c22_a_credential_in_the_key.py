"""C22 (kind K05): a short-lived credential is part of the key (tempoxyz/pympp #155)."""

from __future__ import annotations

from typing import Any

from cases.messages import assert_applied, assert_unknown
from cases.naming import POLICY, look_for, lose_the_first_answer, settled
from cases.scene import post, sent
from provider import Provider
from told.test_hygiene import raw

from counterfoil import ALL_ARGUMENTS, Effect, Executor, tool


def context(number: int) -> dict[str, Any]:
    """What is new at each try."""
    return {
        "auth_token": f"tok-{number}-4f9a77c1",
        "trace_id": f"trace-{number}-4f9a77c1",
        "attempt_no": number,
        "now": f"2026-03-04T09:00:0{number}.4977Z",
    }


def test_a_retry_with_new_tokens_is_the_same_payment(ledger_url: str, provider: Provider) -> None:
    """Key and fingerprint are those of the first try; the tool had each token in hand, and the ledger has none."""
    held: list[Any] = []

    @tool(key=ALL_ARGUMENTS, sends="once", policy=POLICY)
    def pay(effect: Effect, order: str, amount: int) -> dict[str, str]:
        """Pay an order."""
        held.append(effect.context["auth_token"])
        return post(provider, effect, {"order": order, "amount": amount})

    lose_the_first_answer(provider)
    with Executor(ledger_url, tools=[look_for(pay, provider)], clock_margin_s=0.1) as executor:
        first = executor.call("pay", {"order": "o1", "amount": 5}, task="t", context=context(1))
        assert_unknown(first)
        (before,) = executor.audit.effects()
        settled(executor)
        second = executor.call("pay", {"order": "o1", "amount": 5}, task="t", context=context(2))
        assert_applied(second, code="verified")
        (after,) = executor.audit.effects()
        assert (after.key, after.fingerprint) == (before.key, before.fingerprint)
    assert held == [context(1)["auth_token"]]
    dump = raw(ledger_url)
    told = [value for number in (1, 2) for value in context(number).values() if isinstance(value, str)]
    assert [value for value in told if value in dump] == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
