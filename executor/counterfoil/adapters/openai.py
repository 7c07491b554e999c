"""The OpenAI API in a loop of your own: tools for a request, and the messages that answer its calls.

Owns the two forms, Responses and Chat Completions. It imports nothing of OpenAI's: what the SDK returned is read by
attribute, plain JSON data by member. There is no flag for an error in this API, so the text carries the code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterfoil.adapters.calls import (
    Answers,
    AnyExecutor,
    Call,
    Message,
    Place,
    answered,
    answered_async,
    member,
)
from counterfoil.adapters.strict_schema import OPENAI, exact_or_none, without_added_nulls
from counterfoil.observe import Observation
from counterfoil.runner.executor import Executor


def tools(executor: AnyExecutor, *, strict: bool | None = None) -> list[dict[str, Any]]:
    """The executor's tools for `client.responses.create(tools=…)`, strict where that can be said.

    In a strict schema every argument is required: one with a default may be null there, and a null that only this made
    possible is taken out again before the call. A tool with a dict of free names, `Any` or a tuple is not strict.

    Args:
        strict: None: where it can be said. True: refuse what cannot be strict. False: none of them.

    Raises:
        UsageError: with `strict=True`, a tool that cannot be strict; says where, and how to mend it.
    """
    return [{"type": "function", **one} for one in _functions(executor, strict)]


def chat_tools(executor: AnyExecutor, *, strict: bool | None = None) -> list[dict[str, Any]]:
    """The executor's tools for `client.chat.completions.create(tools=…)`; see `tools`."""
    return [{"type": "function", "function": one} for one in _functions(executor, strict)]


def answer(
    executor: Executor, response: Any, *, task: str | None = None, turn: int | None = None, context: Any = None
) -> Answers:
    """Run every call in a response, one after the other, and say what to append to the conversation.

    Append the model's own message or output items first, then `.messages`; end the loop when `.stop` is a code.
    A call of a tool that the executor does not have is answered `unknown_tool`: where the loop has other tools too,
    hand over its calls one by one.

    Args:
        response: what `responses.create` or `chat.completions.create` returned, a message, or one call of either.
        task: the piece of work, the same after a restart.
        turn: the round of the model.
        context: handed to the tools as `effect.context`.

    Raises:
        UsageError: see `Executor.call`.

    Example:
        >>> import tempfile, pathlib
        >>> from counterfoil import Executor, tool
        >>> @tool(key=("order",))
        ... def remind(order: str) -> str:
        ...     "Send the customer a reminder for one order. Use it when an order is overdue."
        ...     return "sent"
        >>> call = {"type": "function_call", "call_id": "c1", "name": "remind", "arguments": '{"order": "A"}'}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Executor(f"sqlite:///{pathlib.Path(folder) / 'ledger.db'}", tools=[remind]) as executor:
        ...         answers = answer(executor, {"output": [call]}, task="t")
        >>> answers.messages[0]["call_id"], answers.observations[0].code, answers.stop
        ('c1', 'ok', None)
    """
    chat, calls = _calls(executor, response)
    return answered(executor, calls, Place(task=task, turn=turn, context=context), _chat if chat else _item)


async def answer_async(
    executor: AnyExecutor, response: Any, *, task: str | None = None, turn: int | None = None, context: Any = None
) -> Answers:
    """As `answer`, the calls of the turn side by side."""
    chat, calls = _calls(executor, response)
    said = _chat if chat else _item
    return await answered_async(executor, calls, Place(task=task, turn=turn, context=context), said)


# ---------------------------------------------------------------- details


def _functions(executor: AnyExecutor, strict: bool | None) -> Iterator[dict[str, Any]]:
    for one in executor.schemas():
        exact = None if strict is False else exact_or_none(one, OPENAI, demanded=bool(strict))
        yield {**one, "parameters": exact or one["parameters"], "strict": exact is not None}


def _calls(executor: AnyExecutor, response: Any) -> tuple[bool, list[Call]]:
    """Whether it is Chat Completions, and the calls."""
    choices, output = member(response, "choices"), member(response, "output")
    message = member(choices[0], "message") if choices else response
    if output is not None:
        return False, [_of_item(executor, one) for one in output if member(one, "type") == "function_call"]
    if member(response, "type") == "function_call":
        return False, [_of_item(executor, response)]
    if member(response, "type") == "function":
        return True, [_of_chat(executor, response)]
    called = member(message, "tool_calls") or ()
    return True, [_of_chat(executor, one) for one in called if member(one, "type") == "function"]


def _of_item(executor: AnyExecutor, item: Any) -> Call:
    return _call(executor, member(item, "name"), member(item, "arguments"), member(item, "call_id"))


def _of_chat(executor: AnyExecutor, call: Any) -> Call:
    function = member(call, "function")
    return _call(executor, member(function, "name"), member(function, "arguments"), member(call, "id"))


def _call(executor: AnyExecutor, name: str, arguments: str, call_id: str) -> Call:
    tool = executor.tools.get(name)
    meant = arguments if tool is None else without_added_nulls(arguments, tool.arguments.schema())
    return Call(name, meant, call_id)


def _item(call: Call, seen: Observation) -> Message:
    return {"type": "function_call_output", "call_id": call.id, "output": seen.text}


def _chat(call: Call, seen: Observation) -> Message:
    return {"role": "tool", "tool_call_id": call.id, "content": seen.text}
