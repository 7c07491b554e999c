"""C36: the check is answered from a cache (https://github.com/crewAIInc/crewAI/pull/3078).

A framework answered a repeated read with its first answer, so that an agent which wanted to verify a creation kept
seeing the listing from before. Here the host caches every read of its model; the executor's own look must not be one.
"""

from __future__ import annotations

import json
from typing import Any

from cases.messages import assert_applied
from cases.scene import AMPLE_S, Evidence, incidents, looked, post, sent, story
from provider import Provider

from counterfoil import Absent, Effect, Executor, Found, Observation, Policy, Proof, Tool, Unclear, Verdict, tool


def order_tools(provider: Provider) -> list[Tool[..., Any]]:
    """A read-only listing, and a creation whose look is the same listing with the same arguments."""

    def listing() -> list[dict[str, Any]] | None:
        answer = provider.look(timeout_s=AMPLE_S)
        return answer.body if answer.status == 200 and isinstance(answer.body, list) else None

    @tool(read_only=True)
    def list_orders() -> list[dict[str, Any]] | None:
        """List all orders."""
        return listing()

    @tool(key=("order",), sends="once", policy=Policy(timeout_s=20.0, grace_s=5.0))
    def create_order(effect: Effect, order: str) -> dict[str, str]:
        """Order something once."""
        return post(provider, effect, {"order": order})

    @create_order.postcondition
    def created(effect: Effect) -> Evidence:
        orders = listing()
        if orders is None:
            return Unclear("no list came back")
        own = [one["id"] for one in orders if one["reference"] == effect.id]
        return Found({"payment": own[0]}, reference=own) if own else Absent()

    return [list_orders, create_order]


class CachingHost:
    """The host through which the model calls: a read that was made before is answered with what it said then."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._answers: dict[str, Observation] = {}
        self.hits = 0

    def call(self, name: str, arguments: dict[str, Any]) -> Observation:
        question = json.dumps([name, arguments], sort_keys=True)
        if question in self._answers:
            self.hits += 1
            return self._answers[question]
        seen = self._executor.call(name, arguments, task="shop", turn=1)
        if seen.verdict is Verdict.NO_EFFECT and seen.ok:
            self._answers[question] = seen
        return seen


def test_the_look_reaches_the_provider(ledger_url: str, provider: Provider) -> None:
    """The listing is read before, the creation's answer is lost, and the executor's look, equal to the read in every
    argument, reaches the provider: two reads arrive there, and the order is found. The host's own cache stays stale."""
    with Executor(ledger_url, order_tools(provider)) as executor:
        host = CachingHost(executor)
        assert host.call("list_orders", {}).value == []
        provider.arm("ack_lost")
        seen = host.call("create_order", {"order": "A"})
        assert_applied(seen, code="verified")
        assert (seen.proof, seen.value) == (Proof.FOUND, {"payment": provider.effects()[0]["id"]})
        assert looked(provider) == 2
        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1), ("found", 0)]
        assert host.call("list_orders", {}).value == []
        assert (host.hits, looked(provider)) == (1, 2), "the cache is one"
        assert [one["id"] for one in executor.call("list_orders", {}).value] == [provider.effects()[0]["id"]]
        assert looked(provider) == 3, "the executor itself keeps no answer of a read"
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
