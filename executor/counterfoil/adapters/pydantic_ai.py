"""Pydantic AI: a toolset that puts an executor's tools before the model.

Owns the way from `call_tool` to `executor.call`. A failure reaches the model as `ToolFailed`, never as `ModelRetry`,
which invites another try; `observation.stop` ends the run with `RunStopped` once every call of its step has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic_ai import RunContext, ToolFailed, ToolReturn
from pydantic_ai.exceptions import AgentRunError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from counterfoil.adapters.calls import AnyExecutor, Call, Place, observed_async
from counterfoil.observe import Observation

# The executor validates, and tells what is wrong in its own words.
_ANYTHING: Final = SchemaValidator(core_schema.dict_schema())


class RunStopped(AgentRunError):
    """An observation said that the run stops. `observation` is that one."""

    def __init__(self, observation: Observation) -> None:
        super().__init__(f"stopped ({observation.stop}): {observation.reason}")
        self.observation = observation


class ExecutorToolset(AbstractToolset[Any]):
    """The tools of an executor, `check_effect` among them, for `Agent(toolsets=[…])`.

    The task is the conversation's id: give `conversation_id=` to a run, or the messages of the earlier run, so that it
    is the same after a restart; a run id is new each time. The turn is the number of the model's responses so far. A
    tool gets the framework's `RunContext`, with your dependencies, as `effect.context`.

    Args:
        executor: the executor.
        task: the piece of work, in place of the conversation's id.

    Example:
        >>> from pydantic_ai import Agent
        >>> from counterfoil import AsyncExecutor
        >>> def agent_with(executor: AsyncExecutor) -> Agent:
        ...     return Agent(toolsets=[ExecutorToolset(executor)])
    """

    def __init__(self, executor: AnyExecutor, *, task: str | None = None) -> None:
        self._executor = executor
        self._task = task
        self._stopped: Observation | None = None

    @property
    def id(self) -> str:
        """The name of the toolset: there can be one in an agent."""
        return "counterfoil"

    async def for_run(self, ctx: RunContext[Any]) -> ExecutorToolset:
        """One for this run alone, because a run that stops must not stop another."""
        return ExecutorToolset(self._executor, task=self._task)

    async def for_run_step(self, ctx: RunContext[Any]) -> ExecutorToolset:
        """The same.

        Raises:
            RunStopped: an observation of the step before said so.
        """
        if self._stopped is not None:
            raise RunStopped(self._stopped)
        return self

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """The definitions of the executor's tools."""
        return {one["name"]: self._tool(one) for one in self._executor.schemas()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> ToolReturn[str]:
        """Run one call: its text for the model, its observation as the metadata of the return.

        Raises:
            ToolFailed: it is not done; the text says what is known.
        """
        turn = sum(isinstance(one, ModelResponse) for one in ctx.messages)
        place = Place(task=self._task or ctx.conversation_id, turn=turn, context=ctx)
        seen = await observed_async(self._executor, Call(name, tool_args, ctx.tool_call_id), place)
        if seen.stop is not None:
            self._stopped = self._stopped or seen
        if not seen.ok:
            raise ToolFailed(seen.text)
        return ToolReturn(return_value=seen.text, metadata=seen.as_dict())

    def _tool(self, schema: Mapping[str, Any]) -> ToolsetTool[Any]:
        described = ToolDefinition(
            name=schema["name"], description=schema["description"], parameters_json_schema=schema["parameters"]
        )
        return ToolsetTool(toolset=self, tool_def=described, max_retries=1, args_validator=_ANYTHING)
