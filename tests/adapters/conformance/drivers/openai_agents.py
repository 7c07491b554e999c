"""The OpenAI Agents SDK: an agent on the Responses model, over a client whose every request fails once."""

from __future__ import annotations

import asyncio
from typing import Any

from adapters.conformance.driver import Ended
from adapters.conformance.drivers.openai import as_response, told_items
from adapters.conformance.drivers.wire import Wire
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model
from agents import Agent, OpenAIResponsesModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI

from counterfoil.adapters.openai_agents import stopped, tools, until_stopped


class OpenAIAgents:
    """An agent and the runner."""

    name = "openai-agents"
    flags_errors = False
    cancellable = True

    async def converse(
        self, house: House, model: Model, *, task: str, pending: tuple[Call, ...] | None = None
    ) -> Ended:
        async with (
            house.async_executor() as executor,
            Wire(model, told_items, as_response, pending).asynchronous() as http,
        ):
            agent = Agent("clerk", model=over(http), tools=list(tools(executor)), tool_use_behavior=until_stopped)
            ended = await Runner.run(agent, "Pay order A-1.", run_config=_config(task))
        return Ended(stopped(ended))

    async def stock(self, pay: Pay, model: Model, *, pending: tuple[Call, ...] | None = None) -> None:
        @function_tool
        async def create_payment(order: str, amount: int, note: str | None = None) -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return await asyncio.to_thread(pay, order, amount, note or "")

        async with Wire(model, told_items, as_response, pending).asynchronous() as http:
            agent = Agent("clerk", model=over(http), tools=[create_payment])
            await Runner.run(agent, "Pay order A-1.", run_config=_config("stock"))


def over(http: Any) -> OpenAIResponsesModel:
    """The SDK's model; its client repeats what fails."""
    return OpenAIResponsesModel("stub", AsyncOpenAI(api_key="stub", http_client=http, max_retries=2))


def _config(task: str) -> RunConfig:
    return RunConfig(group_id=task, tracing_disabled=True)
