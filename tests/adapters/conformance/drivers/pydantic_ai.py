"""Pydantic AI: an agent with a function for its model. Its retries of tools are on.

The messages are kept as JSON after each step of the run, and a run that was interrupted is taken up from them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adapters.conformance.driver import Ended
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model, Told
from pydantic_ai import Agent, ModelRetry, Tool, capture_run_messages
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from counterfoil.adapters.pydantic_ai import ExecutorToolset, RunStopped

RETRIES = 3


class PydanticAI:
    """An agent with a toolset."""

    name = "pydantic-ai"
    flags_errors = True
    cancellable = True

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        async with house.async_executor() as executor:
            agent = Agent(model_of(model), toolsets=[ExecutorToolset(executor)], retries=RETRIES)
            with capture_run_messages() as messages:
                try:
                    await _run(agent, store, resumes, conversation_id=task)
                except RunStopped as stopped:
                    return Ended(stopped.observation.stop, tuple(_told(messages)))
        return Ended()

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        agent = Agent(model_of(model), retries=RETRIES)

        @agent.tool_plain
        async def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            try:
                return await asyncio.to_thread(pay, order, amount, note)
            except Exception as problem:
                raise ModelRetry(f"the payment failed: {problem}") from problem

        await _run(agent, store, resumes)

    def existing(self, function: Callable[..., Any]) -> Any:
        return Tool(function)


async def _run(agent: Agent[None, str], store: Path, resumes: bool, **more: Any) -> None:
    file = store / "messages.json"
    history = ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if resumes else None
    async with agent.iter(None if resumes else "Pay order A-1.", message_history=history, **more) as run:
        async for _ in run:
            file.write_bytes(ModelMessagesTypeAdapter.dump_json(run.all_messages()))


def model_of(model: Model) -> FunctionModel:
    async def respond(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=_parts(model.reply(_told(messages))))

    return FunctionModel(respond)


def _parts(calls: tuple[Call, ...]) -> list[Any]:
    made: list[Any] = [ToolCallPart(one.name, one.arguments, tool_call_id=one.id) for one in calls]
    return made or [TextPart("Done.")]


def _told(messages: list[ModelMessage]) -> list[Told]:
    told = []
    for part in messages[-1].parts:
        if isinstance(part, ToolReturnPart):
            # "retried" asks the model for another try: no text of the suite begins so.
            asks = "" if part.outcome in ("success", "failed") else f"{part.outcome}: "
            text = asks + part.model_response_str(wrap_if_error=False)
            told.append(Told(part.tool_call_id, text, part.outcome != "success"))
        elif isinstance(part, RetryPromptPart):
            told.append(Told(part.tool_call_id, part.model_response(), True))
    return told
