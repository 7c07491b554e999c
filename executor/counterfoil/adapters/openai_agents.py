"""The OpenAI Agents SDK: an executor's tools for an agent, and what ends a run.

Owns the way from `on_invoke_tool` to `executor.call`. What comes back is text, because there is no flag for an error
here; nothing is raised, because that ends the run and cancels the calls beside it, and because the SDK's own text for
an error invites another try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agents import (
    FunctionTool,
    FunctionToolResult,
    RunContextWrapper,
    ToolCallOutputItem,
    ToolsToFinalOutputResult,
)
from agents.result import RunResultBase
from agents.tool_context import ToolContext

from counterfoil.adapters.calls import AnyExecutor, Call, Place, observed_async
from counterfoil.adapters.strict_schema import OPENAI, exact_or_none, without_added_nulls


def tools(executor: AnyExecutor, *, task: str | None = None) -> list[FunctionTool]:
    """The executor's tools, `check_effect` among them, for `Agent(tools=…, tool_use_behavior=until_stopped)`.

    The task is `RunConfig.group_id`, the id of the conversation; give the same after a restart. The turn is the number
    of requests to the model in the run. A tool gets the SDK's `ToolContext` as `effect.context`. Schemas are strict
    where that can be said; see `counterfoil.adapters.openai.tools`. Set `needs_approval` on what this returns where a
    person is to be asked; leave `timeout_seconds` alone: the tool's policy bounds the call.

    Args:
        executor: an `AsyncExecutor`, or an `Executor`, which runs in a thread.
        task: the piece of work, in place of the group's id.

    Raises:
        UsageError: during the run; see `Executor.call`.

    Example:
        >>> from agents import Agent
        >>> from counterfoil import AsyncExecutor
        >>> def agent_with(executor: AsyncExecutor) -> Agent:
        ...     return Agent("clerk", tools=tools(executor), tool_use_behavior=until_stopped)
    """
    return [_tool(executor, one, task) for one in executor.schemas()]


def until_stopped(_: RunContextWrapper[Any], results: Sequence[FunctionToolResult]) -> ToolsToFinalOutputResult:
    """End the run where an observation says so, once every call of the turn has ended; its text is the final output.

    It is an agent's `tool_use_behavior`. Else the model is asked again, as ever.
    """
    stop = next((one.output for one in results if isinstance(one.output, _Stop)), None)
    return ToolsToFinalOutputResult(is_final_output=stop is not None, final_output=stop)


def stopped(result: RunResultBase) -> str | None:
    """The code that ended the run, else None."""
    outputs = (one.output for one in result.new_items if isinstance(one, ToolCallOutputItem))
    return next((one.code for one in outputs if isinstance(one, _Stop)), None)


# ---------------------------------------------------------------- details


class _Stop(str):
    """The text of an observation that ends the run, and its code. The SDK hands on what a tool returned, or copies."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, text: str, code: str) -> _Stop:
        made = super().__new__(cls, text)
        made.code = code
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return (str(self), self.code)


def _tool(executor: AnyExecutor, schema: Mapping[str, Any], task: str | None) -> FunctionTool:
    exact = exact_or_none(schema, OPENAI)
    known = executor.tools.get(schema["name"])

    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        group = None if context.run_config is None else context.run_config.group_id
        meant = arguments if known is None else without_added_nulls(arguments, known.arguments.schema())
        place = Place(task=task or group, turn=context.usage.requests, context=context)
        seen = await observed_async(executor, Call(schema["name"], meant, context.tool_call_id), place)
        return seen.text if seen.stop is None else _Stop(seen.text, seen.stop)

    return FunctionTool(
        name=schema["name"],
        description=schema["description"],
        params_json_schema=exact or dict(schema["parameters"]),
        on_invoke_tool=invoke,
        strict_json_schema=exact is not None,
    )
