"""Strands: a plugin that puts an executor's tools into an agent, by its hooks.

Owns the way from a tool use to `executor.call` and back to a tool result, whose status is "error" where it is not done.
Whether to try again is for the tool's policy and the model: a hook that asks for it (`retry` of an
`AfterToolCallEvent`) is overruled. `observation.stop` ends the agent's turn once every tool of the batch has ended.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final

from strands import Agent
from strands.hooks import AfterToolCallEvent, AfterToolsEvent, BeforeInvocationEvent, BeforeToolCallEvent, HookOrder
from strands.plugins import Plugin
from strands.types.tools import AgentTool, ToolSpec, ToolUse

from counterfoil.adapters.calls import AnyExecutor, Call, Place, observed_async

STOPPED: Final = "counterfoil/stopped"


class ExecutorTool(AgentTool):
    """One tool of an executor, for `Agent(tools=[…])`; with `ExecutorPlugin` it need not be given."""

    def __init__(self, executor: AnyExecutor, schema: Mapping[str, Any], task: str | None = None) -> None:
        super().__init__()
        self._executor = executor
        self._schema = schema
        self._task = task

    @property
    def tool_name(self) -> str:
        """The tool's name."""
        return str(self._schema["name"])

    @property
    def tool_spec(self) -> ToolSpec:
        """What the model sees of it."""
        schema = {"json": self._schema["parameters"]}
        return {"name": self.tool_name, "description": self._schema["description"], "inputSchema": schema}

    @property
    def tool_type(self) -> str:
        """The kind of tool."""
        return "counterfoil"

    async def stream(
        self, tool_use: ToolUse, invocation_state: dict[str, Any], **_: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Run one call; the only event is its result.

        Raises:
            UsageError: see `Executor.call`. The framework makes an error result of it.
        """
        agent = invocation_state["agent"]
        turn = sum(one["role"] == "assistant" for one in agent.messages)
        place = Place(task=self._task or agent.session_id, turn=turn, context=invocation_state)
        call = Call(self.tool_name, tool_use["input"], tool_use["toolUseId"])
        seen = await observed_async(self._executor, call, place)
        if seen.stop is not None:
            invocation_state.setdefault("request_state", {}).setdefault(STOPPED, seen.stop)
        status = "success" if seen.ok else "error"
        yield {"toolUseId": call.id, "status": status, "content": [{"text": seen.text}]}


class ExecutorPlugin(Plugin):
    """The tools of an executor, `check_effect` among them, for `Agent(plugins=[…])`.

    A tool of the same name that the agent has by then is put aside: with `guard(existing, …)` in the executor, the
    agent's own tool is guarded where it stands. The task is the session's id: give the agent a session manager, so that
    it is the same after a restart. The turn is the number of the model's messages so far. A tool gets the invocation's
    state, a dict with the agent in it, as `effect.context`.

    Args:
        executor: an `AsyncExecutor`, or an `Executor`, which runs in a thread.
        task: the piece of work, in place of the session's id.

    Example:
        >>> from counterfoil import AsyncExecutor
        >>> def agent_with(model, executor: AsyncExecutor) -> Agent:
        ...     return Agent(model, plugins=[ExecutorPlugin(executor)])
    """

    def __init__(self, executor: AnyExecutor, *, task: str | None = None) -> None:
        super().__init__()
        made = [ExecutorTool(executor, one, task) for one in executor.schemas()]
        self._by_name = {one.tool_name: one for one in made}

    @property
    def name(self) -> str:
        """The name of the plugin: there can be one in an agent."""
        return "counterfoil"

    def init_agent(self, agent: Agent) -> None:
        """Put the tools into the agent, and the hooks."""
        for one in self._by_name.values():
            if one.tool_name in agent.tool_registry.registry:
                agent.tool_registry.replace(one)
            else:
                agent.tool_registry.register_tool(one)
        agent.add_hook(_begin, BeforeInvocationEvent)
        # Last, so that no other hook puts a bare tool back, nor has one run again.
        agent.add_hook(self._choose, BeforeToolCallEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._once, AfterToolCallEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(_end, AfterToolsEvent)

    def _choose(self, event: BeforeToolCallEvent[Any]) -> None:
        event.selected_tool = self._by_name.get(event.tool_use["name"], event.selected_tool)

    def _once(self, event: AfterToolCallEvent[Any]) -> None:
        if event.tool_use["name"] in self._by_name:
            event.retry = False


def stopped(result: Any) -> str | None:
    """The code that ended the agent's turn, else None.

    Args:
        result: the `AgentResult` of the invocation.
    """
    code = result.state.get(STOPPED)
    return None if code is None else str(code)


# ---------------------------------------------------------------- details


def _begin(event: BeforeInvocationEvent) -> None:
    """A new request is a new run, also where its caller hands in the state of the last one, which stays as it is."""
    state = event.invocation_state
    if STOPPED in state.get("request_state", {}):
        state["request_state"] = {name: value for name, value in state["request_state"].items() if name != STOPPED}


def _end(event: AfterToolsEvent) -> None:
    code = event.invocation_state.get("request_state", {}).get(STOPPED)
    if code is not None:
        event.end_turn = f"Stopped: {code}."
