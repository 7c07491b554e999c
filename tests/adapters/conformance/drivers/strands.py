"""Strands: an agent with a scripted model. Its model retries are on, and a hook that has each failed tool run again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from adapters.conformance.driver import Ended
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model, Told
from strands import Agent, tool
from strands.event_loop._retry import ModelRetryStrategy
from strands.hooks import AfterToolCallEvent
from strands.models import Model as StrandsModel
from strands.types.exceptions import ModelThrottledException

from counterfoil.adapters.strands import ExecutorPlugin, stopped


class Strands:
    """An agent with the plugin."""

    name = "strands"
    flags_errors = True
    cancellable = True

    async def converse(
        self, house: House, model: Model, *, task: str, pending: tuple[Call, ...] | None = None
    ) -> Ended:
        async with house.async_executor() as executor:
            agent = agent_on(Scripted(model, pending), plugins=[ExecutorPlugin(executor, task=task)])
            return Ended(stopped(await agent.invoke_async("Pay order A-1.")))

    async def stock(self, pay: Pay, model: Model, *, pending: tuple[Call, ...] | None = None) -> None:
        @tool
        async def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return await asyncio.to_thread(pay, order, amount, note)

        await agent_on(Scripted(model, pending), tools=[create_payment]).invoke_async("Pay order A-1.")


def agent_on(model: Scripted, **more: Any) -> Agent:
    """An agent that says nothing, repeats what it can, and runs once more each tool that did not succeed."""
    strategy = ModelRetryStrategy(max_attempts=3, initial_delay=0, max_delay=0)
    agent = Agent(model, callback_handler=None, retry_strategy=strategy, **more)
    seen: set[str] = set()

    def once_more(event: AfterToolCallEvent) -> None:
        if event.result["status"] == "error" and event.tool_use["toolUseId"] not in seen:
            seen.add(event.tool_use["toolUseId"])
            event.retry = True

    agent.add_hook(once_more, AfterToolCallEvent)
    return agent


class Scripted(StrandsModel):
    """The model of the suite. Every second request to it fails as an overloaded one does.

    `first`: calls that the model makes at once, in place of its next turn.
    """

    def __init__(self, script: Model, first: tuple[Call, ...] | None = None) -> None:
        self._script = script
        self._first = first
        self._fails = True

    def update_config(self, **_: Any) -> None:
        """There is nothing to configure."""

    def get_config(self) -> Any:
        """There is nothing to configure."""
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        """Nobody asks for it."""
        raise NotImplementedError

    async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """One response."""
        if self._fails:
            self._fails = False
            raise ModelThrottledException("overloaded")
        self._fails = True
        calls, self._first = self._first, None
        for one in _response(calls or self._script.reply(_told(messages[-1]))):
            yield one


def _told(message: Any) -> list[Told]:
    results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
    return [Told("".join(part["text"] for part in one["content"]), one["status"] == "error") for one in results]


def _response(calls: Sequence[Call]) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"messageStart": {"role": "assistant"}}]
    for one in calls:
        said += [
            {"contentBlockStart": {"start": {"toolUse": {"name": one.name, "toolUseId": one.id}}}},
            {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(one.arguments)}}}},
            {"contentBlockStop": {}},
        ]
    if not calls:
        text = {"contentBlockDelta": {"delta": {"text": "Done."}}}
        said += [{"contentBlockStart": {"start": {}}}, text, {"contentBlockStop": {}}]
    return [*said, {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}]
