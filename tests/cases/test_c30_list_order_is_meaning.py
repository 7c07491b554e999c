"""C30 (kind K07): list order is meaning and must not be sorted away (aws-powertools/powertools-lambda-typescript
#2570)."""

from __future__ import annotations

from typing import Any

import pytest
from cases.messages import assert_applied
from cases.scene import post, sent
from provider import Provider

from counterfoil import ALL_ARGUMENTS, Effect, Executor, tool


@pytest.mark.parametrize(("annotation", "effects"), [(list[str], 2), (set[str], 1)], ids=["list", "set"])
def test_another_order_is_another_route(ledger_url: str, provider: Provider, annotation: Any, effects: int) -> None:
    """The reversed route is another action, the first one again is the stored one; of a set, both are the first."""

    def route(effect: Effect, stops: Any) -> dict[str, str]:
        """Drive a route. Use it when it is confirmed."""
        return post(provider, effect, {"stops": sorted(stops)})

    route.__annotations__["stops"] = annotation
    with Executor(ledger_url, tools=[tool(key=ALL_ARGUMENTS)(route)]) as executor:
        there, back = {"stops": ["A", "B", "C"]}, '{"stops": ["C", "B", "A"]}'
        assert_applied(executor.call("route", there, task="t"), code="ok")
        assert_applied(executor.call("route", back, task="t"), code="ok" if effects == 2 else "replayed")
        assert_applied(executor.call("route", there, task="t"), code="replayed")
        assert len({row.fingerprint for row in executor.audit.effects()}) == effects
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == effects


def test_the_order_of_members_inside_a_list_is_none(ledger_url: str, provider: Provider) -> None:
    """Objects in a list keep their places; how their members are ordered says nothing."""

    @tool(key=ALL_ARGUMENTS)
    def pay(effect: Effect, parts: list[dict[str, int]]) -> dict[str, str]:
        """Pay in parts."""
        return post(provider, effect, {"parts": len(parts)})

    with Executor(ledger_url, tools=[pay]) as executor:
        assert_applied(executor.call("pay", '{"parts": [{"a": 1, "b": 2}, {"a": 3}]}', task="t"), code="ok")
        assert_applied(executor.call("pay", '{"parts": [{"b": 2, "a": 1}, {"a": 3}]}', task="t"), code="replayed")
        assert_applied(executor.call("pay", '{"parts": [{"a": 3}, {"a": 1, "b": 2}]}', task="t"), code="ok")
    provider.quiesce()
    assert provider.count() == 2
