"""LangChain and LangGraph: an executor's tools for an agent, for a `ToolNode`, or for a loop of your own.

Owns the way from a tool call to `executor.call` and back to a `ToolMessage`, whose `status` is "error" where it is not
done. Nothing is raised at the framework, so its retries have nothing to repeat. `observation.stop` ends the run: the
middleware jumps to the end of the agent's graph; in a graph of your own an edge asks `stopped`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import PrivateAttr

from counterfoil.adapters.calls import AnyExecutor, Call, Place, member, observed, observed_async
from counterfoil.errors import UsageError
from counterfoil.observe import Observation
from counterfoil.runner.executor import Executor

Answer = ToolMessage | Command[Any]


class ExecutorTool(BaseTool):
    """One tool of an executor. Invoked with a tool call it gives a `ToolMessage`, without one the text.

    The task is `configurable.thread_id` of the run's config, else the run's id. The message's artifact is the
    observation as JSON data. In an agent or a `ToolNode`, give it `ExecutorMiddleware` too: it knows the turn, and it
    ends the run.
    """

    _executor: AnyExecutor = PrivateAttr()
    _task: str | None = PrivateAttr(default=None)

    def __init__(self, executor: AnyExecutor, schema: Mapping[str, Any], task: str | None = None) -> None:
        super().__init__(
            name=schema["name"],
            description=schema["description"],
            args_schema={"title": schema["name"], "description": schema["description"], **schema["parameters"]},
        )
        self._executor = executor
        self._task = task

    # The executor validates, and tells what is wrong in its own words; so these two stand before the framework's own
    # validation.

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """Run one call. Raises UsageError with an AsyncExecutor."""
        call, is_message = self._called(input)
        known = ensure_config(config)
        seen = observed(_blocking(self._executor), call, _place(known, self._task, None, known))
        return _message(call, seen) if is_message else seen.text

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002
        """As `invoke`, with either executor."""
        call, is_message = self._called(input)
        known = ensure_config(config)
        seen = await observed_async(self._executor, call, _place(known, self._task, None, known))
        return _message(call, seen) if is_message else seen.text

    def _run(self, **arguments: Any) -> str:
        return observed(_blocking(self._executor), Call(self.name, arguments), Place(task=self._task)).text

    async def _arun(self, **arguments: Any) -> str:
        return (await observed_async(self._executor, Call(self.name, arguments), Place(task=self._task))).text

    def _called(self, given: Any) -> tuple[Call, bool]:
        if isinstance(given, dict) and given.get("type") == "tool_call":
            return Call(self.name, given["args"], given["id"]), True
        return Call(self.name, given), False


def tools(executor: AnyExecutor, *, task: str | None = None) -> list[BaseTool]:
    """The executor's tools, `check_effect` among them, for `ToolNode(…)` and `model.bind_tools(…)`.

    Args:
        executor: an `Executor` for graphs that are invoked, either for graphs that are awaited.
        task: the piece of work, in place of the thread's id.

    Example:
        >>> import tempfile
        >>> from counterfoil import Executor
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Executor(f"sqlite:///{folder}/ledger.db") as executor:
        ...         [one.name for one in tools(executor)]
        ['check_effect']
    """
    return [ExecutorTool(executor, one, task) for one in executor.schemas()]


class ExecutorMiddleware(AgentMiddleware[Any, Any, Any]):
    """The tools of an executor for `create_agent(model, middleware=[…])`; the agent needs no `tools=` for them.

    The task is the thread's id (`configurable.thread_id`), so that it is the same after a restart from a checkpoint;
    without one it is the run's id. The turn is the number of the model's messages so far. A tool gets the framework's
    `ToolRuntime` as `effect.context`. A tool that the executor does not have is left to the framework.

    For a `ToolNode`: `ToolNode(tools(executor), wrap_tool_call=made.wrap_tool_call, awrap_tool_call=…)`.

    Args:
        executor: an `Executor` for agents that are invoked, either for agents that are awaited.
        task: the piece of work, in place of the thread's id.

    Example:
        >>> from langchain.agents import create_agent
        >>> from counterfoil import AsyncExecutor
        >>> def agent_with(model, executor: AsyncExecutor):
        ...     return create_agent(model, middleware=[ExecutorMiddleware(executor)])
    """

    def __init__(self, executor: AnyExecutor, *, task: str | None = None) -> None:
        super().__init__()
        self._executor = executor
        self._task = task
        self.tools: Sequence[BaseTool] = tools(executor, task=task)
        self._names = frozenset(one.name for one in self.tools)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Run one call, or leave it to `handler` where it is for another tool."""
        if request.tool_call["name"] not in self._names:
            return handler(request)
        call, place = self._asked(request)
        return _message(call, observed(_blocking(self._executor), call, place))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """As `wrap_tool_call`."""
        if request.tool_call["name"] not in self._names:
            return await handler(request)
        call, place = self._asked(request)
        return _message(call, await observed_async(self._executor, call, place))

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Jump to the end where an observation of the last turn said that the run stops."""
        return None if stopped(state) is None else {"jump_to": "end"}

    def _asked(self, request: ToolCallRequest) -> tuple[Call, Place]:
        called = request.tool_call
        turn = sum(isinstance(one, AIMessage) for one in _messages(request.state)) or None
        place = _place(request.runtime.config, self._task, turn, request.runtime)
        return Call(called["name"], called["args"], called["id"]), place


def stopped(state: Any) -> str | None:
    """The code that ends the run, else None: of the results that the model has not answered yet.

    Ask it of what an agent returned, or in the edge of a graph of your own from the `ToolNode` on.

    Args:
        state: a state with `messages`, or a list of messages.
    """
    for one in reversed(_messages(state)):
        if not isinstance(one, ToolMessage):
            return None
        about = one.artifact
        if isinstance(about, dict) and "verdict" in about and isinstance(about.get("stop"), str):
            return str(about["stop"])
    return None


# ---------------------------------------------------------------- details


def _messages(state: Any) -> Sequence[Any]:
    return state if isinstance(state, list) else member(state, "messages") or ()


def _place(config: RunnableConfig, task: str | None, turn: int | None, context: Any) -> Place:
    thread = config.get("configurable", {}).get("thread_id") or config.get("metadata", {}).get("thread_id")
    known = task or thread or config.get("run_id")
    return Place(task=None if known is None else str(known), turn=turn, context=context)


def _message(call: Call, seen: Observation) -> ToolMessage:
    return ToolMessage(
        content=seen.text,
        name=call.name,
        tool_call_id=call.id or "",
        status="success" if seen.ok else "error",
        artifact=seen.as_dict(),
    )


def _blocking(executor: AnyExecutor) -> Executor:
    if isinstance(executor, Executor):
        return executor
    raise UsageError("an AsyncExecutor needs a graph that is awaited (ainvoke, astream): give an Executor here")
