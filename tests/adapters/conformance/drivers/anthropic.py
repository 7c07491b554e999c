"""The Anthropic SDK: Messages in a loop of one's own, with either client; its own `tool_runner` as the stock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic as sdk
from adapters.conformance.driver import Ended
from adapters.conformance.drivers.kept import keep, kept
from adapters.conformance.drivers.wire import Wire
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model, Told

from counterfoil.adapters import anthropic

ASK: dict[str, Any] = {"role": "user", "content": "Pay order A-1."}


class Anthropic:
    """The asynchronous client."""

    name = "anthropic"
    flags_errors = True
    cancellable = True

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        said = kept(store) if resumes else [ASK]
        response: Any = said[-1]
        async with house.async_executor() as executor, Wire(model, told_in, as_response).asynchronous() as http:
            client = sdk.AsyncAnthropic(api_key="stub", http_client=http)
            tools: Any = anthropic.tools(executor)
            for turn in range(1, 20):
                if turn > 1 or not resumes:
                    response = await client.messages.create(model="stub", max_tokens=99, messages=said, tools=tools)  # type: ignore[arg-type]
                    said.append({"role": "assistant", "content": response.model_dump(exclude_none=True)["content"]})
                    keep(store, said)
                answers = await anthropic.answer_async(executor, response, task=task, turn=turn)
                said += answers.messages
                if answers.stop:
                    return Ended(answers.stop, tuple(told_in({"messages": said})))
                if not answers.messages:
                    return Ended()
        raise AssertionError("the conversation does not end")

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        async def create_payment(order: str, amount: int, note: str = "") -> str:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return str(await asyncio.to_thread(pay, order, amount, note))

        async with Wire(model, told_in, as_response).asynchronous() as http:
            client = sdk.AsyncAnthropic(api_key="stub", http_client=http)
            tool = sdk.beta_async_tool(create_payment)
            runner = client.beta.messages.tool_runner(model="stub", max_tokens=99, messages=[ASK], tools=[tool])  # type: ignore[list-item]
            await runner.until_done()

    def existing(self, function: Callable[..., Any]) -> Any:
        return function


class AnthropicBlocking:
    """The other client."""

    name = "anthropic-blocking"
    flags_errors = True
    cancellable = False

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        return await asyncio.to_thread(self._converse, house, model, task, store, resumes)

    def _converse(self, house: House, model: Model, task: str, store: Path, resumes: bool) -> Ended:
        said = kept(store) if resumes else [ASK]
        response: Any = said[-1]
        with house.executor() as executor, Wire(model, told_in, as_response).blocking() as http:
            client = sdk.Anthropic(api_key="stub", http_client=http)
            tools: Any = anthropic.tools(executor)
            for turn in range(1, 20):
                if turn > 1 or not resumes:
                    response = client.messages.create(model="stub", max_tokens=99, messages=said, tools=tools)  # type: ignore[arg-type]
                    said.append({"role": "assistant", "content": response.model_dump(exclude_none=True)["content"]})
                    keep(store, said)
                answers = anthropic.answer(executor, response, task=task, turn=turn)
                said += answers.messages
                if answers.stop:
                    return Ended(answers.stop, tuple(told_in({"messages": said})))
                if not answers.messages:
                    return Ended()
        raise AssertionError("the conversation does not end")

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        await asyncio.to_thread(self._stock, pay, model)

    def _stock(self, pay: Pay, model: Model) -> None:
        def create_payment(order: str, amount: int, note: str = "") -> str:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return str(pay(order, amount, note))

        with Wire(model, told_in, as_response).blocking() as http:
            client = sdk.Anthropic(api_key="stub", http_client=http)
            tool = sdk.beta_tool(create_payment)
            client.beta.messages.tool_runner(
                model="stub",
                max_tokens=99,
                messages=[ASK],  # type: ignore[list-item]
                tools=[tool],
            ).until_done()

    def existing(self, function: Callable[..., Any]) -> Any:
        return function


# ---------------------------------------------------------------- the form of the API


def told_in(request: dict[str, Any]) -> list[Told]:
    content = request["messages"][-1]["content"]
    results = [one for one in content if one["type"] == "tool_result"] if isinstance(content, list) else []
    return [Told(one["tool_use_id"], _text(one["content"]), one.get("is_error", False)) for one in results]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(one["text"] for one in content)


def _blocks(calls: tuple[Call, ...]) -> list[dict[str, Any]]:
    made = [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.arguments} for one in calls]
    return made or [{"type": "text", "text": "Done."}]


def as_response(calls: tuple[Call, ...]) -> dict[str, Any]:
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "stub",
        "content": _blocks(calls),
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
