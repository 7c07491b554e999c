"""The Anthropic API in a loop of your own: tools for a request, and the message that answers its calls.

Owns the form of Messages. It imports nothing of Anthropic's: what the SDK returned is read by attribute, plain JSON
data by member. The SDK's own `tool_runner` sends the `repr` of an exception to the model; this sends the observation.
"""

from __future__ import annotations

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
from counterfoil.adapters.strict_limits import Room
from counterfoil.adapters.strict_schema import ANTHROPIC, LESS, exact_or_none
from counterfoil.errors import UsageError
from counterfoil.observe import Observation
from counterfoil.runner.executor import Executor


def tools(executor: AnyExecutor, *, strict: bool | None = None) -> list[dict[str, Any]]:
    """The executor's tools for `client.messages.create(tools=…)`, strict where that can be said.

    Optional arguments stay optional; constraints that a strict schema does not take become words of the description. A
    tool with a dict of free names, `Any`, a tuple or a type that contains itself is not strict. The API takes 20 strict
    tools in one request, with 24 optional arguments and 16 unions in all: in the order of the executor's tools, one for
    which there is no room left is not strict.

    Args:
        strict: None: where it can be said and there is room. True: refuse what is not strict. False: none of them.

    Raises:
        UsageError: with `strict=True`, a tool that cannot be strict; says where, and how to mend it.
    """
    room = Room()
    made = []
    for one in executor.schemas():
        shown = {"name": one["name"], "description": one["description"]}
        exact = None if strict is False else exact_or_none(one, ANTHROPIC, demanded=bool(strict))
        if exact is not None and room.takes(exact):
            made.append(shown | {"input_schema": exact, "strict": True})
        elif strict:
            raise UsageError(f"the tool {one['name']} is one too many: a request takes no more strict tools; {LESS}")
        else:
            made.append(shown | {"input_schema": one["parameters"]})
    return made


def answer(
    executor: Executor, response: Any, *, task: str | None = None, turn: int | None = None, context: Any = None
) -> Answers:
    """Run every call in a message, one after the other, and say what to append to the conversation.

    Append the model's own message first, then `.messages`: one message with the result of every call, or none when
    there was no call. End the loop when `.stop` is a code.
    A call of a tool that the executor does not have is answered `unknown_tool`: where the loop has other tools too,
    hand over its calls one by one.

    Args:
        response: what `messages.create` returned, or one `tool_use` block of it.
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
        >>> use = {"type": "tool_use", "id": "c1", "name": "remind", "input": {"order": ""}}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Executor(f"sqlite:///{pathlib.Path(folder) / 'ledger.db'}", tools=[remind]) as executor:
        ...         answers = answer(executor, {"content": [use]}, task="t")
        >>> answers.messages[0]["content"][0]["is_error"], answers.observations[0].code
        (True, 'invalid_arguments')
    """
    return _one_message(answered(executor, _calls(response), Place(task=task, turn=turn, context=context), _result))


async def answer_async(
    executor: AnyExecutor, response: Any, *, task: str | None = None, turn: int | None = None, context: Any = None
) -> Answers:
    """As `answer`, the calls of the turn side by side."""
    place = Place(task=task, turn=turn, context=context)
    return _one_message(await answered_async(executor, _calls(response), place, _result))


# ---------------------------------------------------------------- details


def _calls(response: Any) -> list[Call]:
    blocks = [response] if member(response, "type") == "tool_use" else member(response, "content") or ()
    return [
        Call(member(one, "name"), member(one, "input"), member(one, "id"))
        for one in blocks
        if member(one, "type") == "tool_use"
    ]


def _result(call: Call, seen: Observation) -> Message:
    return {"type": "tool_result", "tool_use_id": call.id, "content": seen.text, "is_error": not seen.ok}


def _one_message(answers: Answers) -> Answers:
    """All results of a turn belong into one message of the user."""
    if not answers.messages:
        return answers
    return Answers(({"role": "user", "content": list(answers.messages)},), answers.observations)
