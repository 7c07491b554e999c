"""C25 (kind K06): one tenant's key returns another tenant's result (paveg/hono-idempotency #126, arun0009/idempotent
#217)."""

from __future__ import annotations

import pytest
from cases.messages import assert_applied
from cases.scene import named, post, sent
from provider import Provider

from counterfoil import Effect, Executor, Tool, UsageError, tool


def order_tool(provider: Provider) -> Tool[..., dict[str, str]]:
    @tool(key=("name",))
    def create_order(effect: Effect, name: str, item: str) -> dict[str, str]:
        """Create an order. Use it when the customer has chosen."""
        return post(provider, effect, {"name": name, "item": item})

    return create_order


@pytest.mark.parametrize("items", [("lamp", "chair"), ("lamp", "lamp")], ids=["other arguments", "equal arguments"])
def test_each_tenant_has_its_own_order_1(ledger_url: str, provider: Provider, items: tuple[str, str]) -> None:
    """Both are applied, each as an action of its own; nothing of T1 stands in what T2 is told; who names no tenant is
    refused, and the refusal names what is missing."""
    tools = [order_tool(provider)]
    with Executor(ledger_url, tools, tenant="T1") as one, Executor(ledger_url, tools, tenant="T2") as other:
        first = one.call("create_order", {"name": "order-1", "item": items[0]}, key="order-1")
        second = other.call("create_order", {"name": "order-1", "item": items[1]}, key="order-1")
        assert_applied(first, code="ok")
        assert_applied(second, code="ok")
        assert first.value != second.value
        for word in (named(first.effect_id), str(first.value), "T1"):
            assert word not in second.message("json") + str(second.as_dict())
        assert [row.id for row in one.audit.effects()] == [first.effect_id]
        assert [row.id for row in other.audit.effects()] == [second.effect_id]
    with pytest.raises(UsageError, match=r"give Executor\(..., tenant=...\)"):
        Executor(ledger_url, tools)
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 2
