"""LangChain and LangGraph: an agent with middleware, awaited, and a graph of one's own around a `ToolNode`, invoked.

The framework's retries of tools and of nodes are on, and its checkpoints, in a file: what was interrupted goes on from
the last one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from adapters.conformance.driver import Ended
from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model, Told
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import RetryPolicy

from counterfoil.adapters.langchain import ExecutorMiddleware, stopped, tools

ASK = HumanMessage("Pay order A-1.")
AGAIN = RetryPolicy(initial_interval=0.01, max_attempts=3, retry_on=Exception)


class LangChain:
    """`create_agent`."""

    name = "langchain"
    flags_errors = True
    cancellable = True

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        async with house.async_executor() as executor, AsyncSqliteSaver.from_conn_string(_file(store)) as saver:
            middleware = [_retries(), ExecutorMiddleware(executor)]
            agent = create_agent(Scripted(script=model), middleware=middleware, checkpointer=saver)
            return _ended(await agent.ainvoke(_asked(resumes), _of(task), durability="sync"))

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        @tool
        async def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return await asyncio.to_thread(pay, order, amount, note)

        async with AsyncSqliteSaver.from_conn_string(_file(store)) as saver:
            agent = create_agent(Scripted(script=model), [create_payment], middleware=[_retries()], checkpointer=saver)
            await agent.ainvoke(_asked(resumes), _of("stock"), durability="sync")

    def existing(self, function: Callable[..., Any]) -> Any:
        return tool(function)


class LangGraph:
    """A graph with a `ToolNode`."""

    name = "langgraph"
    flags_errors = True
    cancellable = False

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        return await asyncio.to_thread(self._converse, house, model, task, store, resumes)

    def _converse(self, house: House, model: Model, task: str, store: Path, resumes: bool) -> Ended:
        with house.executor() as executor, SqliteSaver.from_conn_string(_file(store)) as saver:
            node = ToolNode(tools(executor), wrap_tool_call=ExecutorMiddleware(executor).wrap_tool_call)
            return _ended(graph(model, node, saver).invoke(_asked(resumes), _of(task), durability="sync"))

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> None:
        @tool
        def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return pay(order, amount, note)

        def invoked() -> None:
            with SqliteSaver.from_conn_string(_file(store)) as saver:
                graph(model, ToolNode([create_payment]), saver).invoke(_asked(resumes), _of("stock"), durability="sync")

        await asyncio.to_thread(invoked)

    def existing(self, function: Callable[..., Any]) -> Any:
        return tool(function)


class Scripted(BaseChatModel):
    """The model of the suite as a chat model."""

    script: Any

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Scripted:
        """The script knows what it calls."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=said(self.script.reply(_told(messages))))])


def said(calls: Sequence[Call]) -> AIMessage:
    """The model's message."""
    made = [{"name": one.name, "args": one.arguments, "id": one.id, "type": "tool_call"} for one in calls]
    return AIMessage("" if made else "Done.", tool_calls=made)


def _told(messages: list[BaseMessage]) -> list[Told]:
    told: list[Told] = []
    for one in messages:
        if isinstance(one, ToolMessage):
            told.append(Told(one.tool_call_id, str(one.content), one.status == "error"))
        else:
            told.clear()
    return told


# ---------------------------------------------------------------- the graphs


def _retries() -> ToolRetryMiddleware:
    return ToolRetryMiddleware(max_retries=2, initial_delay=0.01)


def graph(model: Model, node: ToolNode, saver: Any = None) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Model and tools in turn, until the model calls none or the run stops."""
    chat = Scripted(script=model)
    building = StateGraph(MessagesState)
    building.add_node("model", lambda state: {"messages": [chat.invoke(state["messages"])]})
    building.add_node("tools", node, retry_policy=AGAIN)
    building.add_edge(START, "model")
    building.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    building.add_conditional_edges("tools", lambda state: END if stopped(state) else "model")
    return building.compile(checkpointer=saver or InMemorySaver())


def _of(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}


def _asked(resumes: bool) -> Any:
    """Nothing new is said where a thread goes on from its checkpoint."""
    return None if resumes else {"messages": [ASK]}


def _ended(state: Any) -> Ended:
    stop = stopped(state)
    return Ended(stop, tuple(_told(state["messages"])) if stop else ())


def _file(store: Path) -> str:
    return str(store / "checkpoints.db")
