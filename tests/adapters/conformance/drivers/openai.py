"""The OpenAI SDK in a loop of one's own: Responses with the asynchronous client, Chat Completions with the other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai as sdk
from adapters.conformance.driver import Ended
from adapters.conformance.drivers.kept import keep, kept
from adapters.conformance.drivers.wire import Wire
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model, Told

from counterfoil.adapters import openai

ASK: dict[str, Any] = {"role": "user", "content": "Pay order A-1."}


class OpenAI:
    """Responses."""

    name = "openai"
    flags_errors = False
    cancellable = True

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        said = kept(store) if resumes else [ASK]
        response: Any = {"output": _calls_at_the_end(said)}
        async with house.async_executor() as executor, Wire(model, told_items, as_response).asynchronous() as http:
            client = sdk.AsyncOpenAI(api_key="stub", http_client=http)
            for turn in range(1, 20):
                if turn > 1 or not resumes:
                    response = await client.responses.create(model="stub", input=said, tools=openai.tools(executor))  # type: ignore[arg-type]
                    said += [one.model_dump(exclude_none=True) for one in response.output]
                    keep(store, said)
                answers = await openai.answer_async(executor, response, task=task, turn=turn)
                said += answers.messages
                if answers.stop:
                    return Ended(answers.stop, tuple(told_items({"input": said})))
                if not answers.messages:
                    return Ended()
        raise AssertionError("the conversation does not end")

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        said = kept(store) if resumes else [ASK]
        calls = _calls_at_the_end(said)
        async with Wire(model, told_items, as_response).asynchronous() as http:
            client = sdk.AsyncOpenAI(api_key="stub", http_client=http)
            while True:
                for one in calls:
                    result = await asyncio.to_thread(_result, pay, one["arguments"])
                    said.append({"type": "function_call_output", "call_id": one["call_id"], "output": result})
                response = await client.responses.create(model="stub", input=said)  # type: ignore[arg-type]
                said += [one.model_dump(exclude_none=True) for one in response.output]
                keep(store, said)
                calls = _calls_at_the_end(said)
                if not calls:
                    return

    def existing(self, function: Callable[..., Any]) -> Any:
        return function


class OpenAIChat:
    """Chat Completions."""

    name = "openai-chat"
    flags_errors = False
    cancellable = False

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        return await asyncio.to_thread(self._converse, house, model, task, store, resumes)

    def _converse(self, house: House, model: Model, task: str, store: Path, resumes: bool) -> Ended:
        said = kept(store) if resumes else [ASK]
        message: Any = said[-1]
        with house.executor() as executor, Wire(model, told_messages, as_completion).blocking() as http:
            client = sdk.OpenAI(api_key="stub", http_client=http)
            for turn in range(1, 20):
                if turn > 1 or not resumes:
                    completion = client.chat.completions.create(
                        model="stub",
                        messages=said,  # type: ignore[arg-type]
                        tools=openai.chat_tools(executor),  # type: ignore[arg-type]
                    )
                    message = completion.choices[0].message
                    said.append(message.model_dump(exclude_none=True))
                    keep(store, said)
                answers = openai.answer(executor, message, task=task, turn=turn)
                said += answers.messages
                if answers.stop:
                    return Ended(answers.stop, tuple(told_messages({"messages": said})))
                if not answers.messages:
                    return Ended()
        raise AssertionError("the conversation does not end")

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        await asyncio.to_thread(self._stock, pay, model, store, resumes)

    def _stock(self, pay: Pay, model: Model, store: Path, resumes: bool) -> None:
        said = kept(store) if resumes else [ASK]
        with Wire(model, told_messages, as_completion).blocking() as http:
            client = sdk.OpenAI(api_key="stub", http_client=http)
            while True:
                for one in said[-1].get("tool_calls", ()):
                    result = _result(pay, one["function"]["arguments"])
                    said.append({"role": "tool", "tool_call_id": one["id"], "content": result})
                completion = client.chat.completions.create(model="stub", messages=said)  # type: ignore[arg-type]
                said.append(completion.choices[0].message.model_dump(exclude_none=True))
                keep(store, said)
                if not said[-1].get("tool_calls"):
                    return

    def existing(self, function: Callable[..., Any]) -> Any:
        return function


def _result(pay: Pay, arguments: str) -> str:
    """What a loop does that has nothing else: the result, or the error as text."""
    try:
        return json.dumps(pay(**json.loads(arguments)))
    except Exception as problem:  # noqa: BLE001
        return f"error: {problem}"


# ---------------------------------------------------------------- the forms of the two APIs


def told_items(request: dict[str, Any]) -> list[Told]:
    told: list[Told] = []
    for one in request["input"]:
        if one.get("type") == "function_call_output":
            told.append(Told(one["call_id"], one["output"]))
        else:
            told.clear()
    return told


def _calls_at_the_end(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls that have no result yet."""
    calls: list[dict[str, Any]] = []
    for one in said:
        calls = [*calls, one] if one.get("type") == "function_call" else []
    return calls


def _item(call: Call) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{call.id}",
        "call_id": call.id,
        "name": call.name,
        "arguments": json.dumps(_with_nulls(call)),
        "status": "completed",
    }


def _with_nulls(call: Call) -> dict[str, Any]:
    """The arguments as a strict schema has the model write them: what it leaves out is null."""
    return {"note": None, **call.arguments} if call.name == "create_payment" else call.arguments


def as_response(calls: tuple[Call, ...]) -> dict[str, Any]:
    text = {"type": "output_text", "text": "Done.", "annotations": []}
    last = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": "r",
        "object": "response",
        "created_at": 0,
        "model": "stub",
        "status": "completed",
        "output": [_item(one) for one in calls] or [last],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def told_messages(request: dict[str, Any]) -> list[Told]:
    told: list[Told] = []
    for one in request["messages"]:
        if one["role"] == "tool":
            told.append(Told(one["tool_call_id"], one["content"]))
        else:
            told.clear()
    return told


def _message(calls: tuple[Call, ...]) -> dict[str, Any]:
    made = [
        {"type": "function", "id": one.id, "function": {"name": one.name, "arguments": json.dumps(_with_nulls(one))}}
        for one in calls
    ]
    return {"role": "assistant", "content": None if made else "Done."} | ({"tool_calls": made} if made else {})


def as_completion(calls: tuple[Call, ...]) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": _message(calls)}
    return {"id": "c", "object": "chat.completion", "created": 0, "model": "stub", "choices": [choice]}
