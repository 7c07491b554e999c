"""The OpenAI Agents SDK: an agent on the Responses model, over a client whose every request fails once.

Sessions are on. The SDK writes a round into the session when it has ended, so a session that was interrupted in a round
has what the user said; the model is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adapters.conformance.driver import Ended
from adapters.conformance.drivers.openai import as_response, told_items
from adapters.conformance.drivers.wire import Wire
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Model
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, RunResult, SQLiteSession, function_tool
from openai import AsyncOpenAI

from counterfoil.adapters.openai_agents import stopped, tools, until_stopped


class OpenAIAgents:
    """An agent and the runner."""

    name = "openai-agents"
    flags_errors = False
    cancellable = True

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        async with (
            house.async_executor() as executor,
            Wire(model, told_items, as_response).asynchronous() as http,
        ):
            agent = Agent("clerk", model=over(http), tools=list(tools(executor)), tool_use_behavior=until_stopped)
            ended = await _run(agent, task, store, resumes)
        stop = stopped(ended)
        return Ended(stop, tuple(told_items({"input": ended.to_input_list()})) if stop else ())

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        @function_tool
        async def create_payment(order: str, amount: int, note: str | None = None) -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return await asyncio.to_thread(pay, order, amount, note or "")

        async with Wire(model, told_items, as_response).asynchronous() as http:
            agent = Agent("clerk", model=over(http), tools=[create_payment])
            await _run(agent, "stock", store, resumes)

    def existing(self, function: Callable[..., Any]) -> Any:
        return function_tool(function)


def over(http: Any) -> OpenAIResponsesModel:
    """The SDK's model; its client repeats what fails."""
    return OpenAIResponsesModel("stub", AsyncOpenAI(api_key="stub", http_client=http, max_retries=2))


async def _run(agent: Agent[None], task: str, store: Path, resumes: bool) -> RunResult:
    session = SQLiteSession(task, store / "session.db")
    try:
        config = RunConfig(group_id=task, tracing_disabled=True)
        return await Runner.run(agent, "Go on." if resumes else "Pay order A-1.", session=session, run_config=config)
    finally:
        session.close()
