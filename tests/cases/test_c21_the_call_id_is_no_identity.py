"""C21 (kind K05): the model's call id is no identity (openai/openai-agents-python #4254)."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.naming import POLICY, look_for, lose_the_first_answer, settled
from cases.scene import named, post, sent
from provider import Provider

from counterfoil import ALL_ARGUMENTS, Content, Effect, Executor, tool


@pytest.mark.parametrize("key", [("order",), ALL_ARGUMENTS], ids=["by order", "by all arguments"])
def test_four_call_ids_are_one_refund(ledger_url: str, provider: Provider, key: Any) -> None:
    """Lost under the id a; asked again under b, with the members swapped under c, and with a free-text reason under d:
    one effect, to which all four ids are linked."""

    @tool(key=key, sends="once", policy=POLICY)
    def refund(effect: Effect, order: str, amount: int, reason: Annotated[str, Content] = "") -> dict[str, str]:
        """Refund an order. Use it when the customer has sent the goods back."""
        return post(provider, effect, {"order": order, "amount": amount})

    lose_the_first_answer(provider)
    with Executor(ledger_url, tools=[look_for(refund, provider)], clock_margin_s=0.1) as executor:
        first = executor.call("refund", '{"order": "o1", "amount": 500}', task="t", turn=1, call_id="a")
        assert_unknown(first)
        settled(executor)
        second = executor.call("refund", '{"order": "o1", "amount": 500}', task="t", turn=2, call_id="b")
        third = executor.call("refund", '{"amount": 500, "order": "o1"}', task="t", turn=3, call_id="c")
        words = '{"order": "o1", "amount": 500, "reason": "it came broken"}'
        fourth = executor.call("refund", words, task="t", turn=4, call_id="d")
        assert_applied(second, code="verified")
        assert_applied(third, code="replayed")
        assert_applied(fourth, code="replayed")
        assert {one.effect_id for one in (first, second, third, fourth)} == {first.effect_id}
    with Executor(ledger_url) as reader:
        begun, *_ = reader.audit.history(named(first.effect_id))
        linked = {one["call_id"] for one in reader.audit.sightings(named(first.effect_id))}
        assert {begun.detail["call_id"]} | linked == {"a", "b", "c", "d"}
        assert len(reader.audit.effects()) == 1
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
