"""Strands: an agent with a scripted model. Its model retries are on, and a hook that has each failed tool run again.

Sessions are on, in files: one that was interrupted tells the model that its tool was, and the model calls again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from adapters.conformance.driver import Ended
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model, Told
from strands import Agent, tool
from strands.event_loop._retry import ModelRetryStrategy
from strands.hooks import AfterToolCallEvent
from strands.models import Model as StrandsModel
from strands.session import FileSessionManager
from strands.types.exceptions import ModelThrottledException

from counterfoil.adapters.strands import ExecutorPlugin, stopped

INTERRUPTED: Final = "Tool was interrupted."
"""What a session says in place of a result that it has not: no tool said it."""


class Strands:
    """An agent with the plugin."""

    name = "strands"
    flags_errors = True
    cancellable = True

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        async with house.async_executor() as executor:
            agent = agent_on(Scripted(model), plugins=[ExecutorPlugin(executor)], session_manager=_session(task, store))
            stop = stopped(await agent.invoke_async(_asked(resumes)))
            # The last message is the framework's own word that the turn has ended.
            return Ended(stop, tuple(_told(agent.messages[-2])) if stop else ())

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        @tool
        async def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return await asyncio.to_thread(pay, order, amount, note)

        agent = agent_on(Scripted(model), tools=[create_payment], session_manager=_session("stock", store))
        await agent.invoke_async(_asked(resumes))

    def existing(self, function: Callable[..., Any]) -> Any:
        return tool(function)


def _session(task: str, store: Path) -> FileSessionManager:
    return FileSessionManager(session_id=task, storage_dir=str(store))


def _asked(resumes: bool) -> str:
    return "Go on." if resumes else "Pay order A-1."


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
    """The model of the suite. Every second request to it fails as an overloaded one does."""

    def __init__(self, script: Model) -> None:
        self._script = script
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
        for one in _response(self._script.reply(_told(messages[-1]))):
            yield one


def _told(message: Any) -> list[Told]:
    results = [block["toolResult"] for block in message["content"] if "toolResult" in block]
    told = [
        Told(one["toolUseId"], "".join(part["text"] for part in one["content"]), one["status"] == "error")
        for one in results
    ]
    return [one for one in told if one.text != INTERRUPTED]


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
