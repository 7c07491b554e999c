"""What LangChain and LangGraph have beyond a run: checkpoints, approvals, both kinds of graph, tools of others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from adapters.conformance.drivers.langchain import ASK, Scripted, graph
from adapters.conformance.house import House
from adapters.conformance.model import Call, Model, Turn
from adapters.conformance.scenarios import pays, turn
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from provider import Provider

from counterfoil import ALL_ARGUMENTS, AsyncExecutor, Executor, UsageError, current_effect
from counterfoil.adapters import guard
from counterfoil.adapters.langchain import ExecutorMiddleware, stopped, tools

THREAD: RunnableConfig = {"configurable": {"thread_id": "trip-42"}}


@pytest.fixture
def house(tmp_path: Path, provider: Provider) -> House:
    return House(f"sqlite:///{tmp_path / 'ledger.db'}", provider)


def test_an_approval_that_is_given_twice_pays_once(house: House) -> None:
    """The same interrupt is answered twice, the second time from the checkpoint before it, as a time traveller does."""
    model = Model([turn(pays()), turn(), turn()])

    async def once() -> None:
        async with house.async_executor() as executor:
            asking = HumanInTheLoopMiddleware(interrupt_on={"create_payment": True})
            middleware = [asking, ExecutorMiddleware(executor)]
            agent: Any = create_agent(Scripted(script=model), middleware=middleware, checkpointer=InMemorySaver())
            asked = await agent.ainvoke({"messages": [ASK]}, THREAD)
            assert asked["__interrupt__"]
            assert house.provider.count() == 0
            before = (await agent.aget_state(THREAD)).config
            approval: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})
            for config in (THREAD, before):
                await agent.ainvoke(approval, config)

    asyncio.run(once())
    assert [told[0].text.split("code: ")[1].split(")")[0] for told in model.heard] == ["ok", "replayed"]
    assert house.provider.count() == 1


def test_a_decision_that_edits_or_rejects(house: House) -> None:
    """A person refuses: nothing is sent. In another thread a person pays another amount: that is paid. In a third one
    the first amount is approved: a conflict, and nothing is sent for it."""
    model = Model([turn(pays()), turn()] * 3)
    edited = {"name": "create_payment", "args": {"order": "A-1", "amount": 12}}
    decisions = ({"type": "reject"}, {"type": "edit", "edited_action": edited}, {"type": "approve"})
    counts = []
    with house.executor() as executor:
        asking = HumanInTheLoopMiddleware(
            interrupt_on={"create_payment": {"allowed_decisions": ["approve", "edit", "reject"]}}
        )
        middleware = [asking, ExecutorMiddleware(executor)]
        agent: Any = create_agent(Scripted(script=model), middleware=middleware, checkpointer=InMemorySaver())
        for number, one in enumerate(decisions):
            thread: RunnableConfig = {"configurable": {"thread_id": f"trip-{number}"}}
            agent.invoke({"messages": [ASK]}, thread)
            agent.invoke(Command(resume={"decisions": [one]}), thread)
            counts.append(house.provider.count())
    assert counts == [0, 1, 1]
    refused, paid, conflict = (told[0].text for told in model.heard)
    assert "code:" not in refused
    assert "(code: ok)" in paid
    assert "(code: key_conflict)" in conflict
    assert [one["body"]["amount"] for one in house.provider.effects()] == [12]


def test_an_interrupt_inside_a_guarded_function_is_a_lost_answer(tmp_path: Path) -> None:
    """As the page says: nothing proves that it sent nothing before. The graph is not interrupted, and the function is
    not run again from its beginning, as the framework would do."""
    ran = []

    def ask(order: str) -> str:
        """Pay one order."""
        ran.append(order)
        return str(interrupt("may I?"))

    model = Model([Turn((Call("ask", {"order": "A"}),)), Turn((Call("ask", {"order": "A"}),))])
    with Executor(f"sqlite:///{tmp_path / 'ledger.db'}", [guard(ask, key=("order",))]) as executor:
        agent: Any = create_agent(
            Scripted(script=model), middleware=[ExecutorMiddleware(executor)], checkpointer=InMemorySaver()
        )
        ended = agent.invoke({"messages": [ASK]}, THREAD)
    assert "__interrupt__" not in ended
    assert all("(code: effect_unknown)" in told[0].text for told in model.heard)
    assert (len(model.heard), ran) == (2, ["A"])


def test_a_tool_node_awaited_and_an_agent_invoked(house: House) -> None:
    """The other two of the four ways: one payment between them, which the second replays; a stop ends both."""

    async def awaited(model: Model) -> Any:
        async with house.async_executor() as executor:
            made = ExecutorMiddleware(executor)
            node = ToolNode(tools(executor), wrap_tool_call=made.wrap_tool_call, awrap_tool_call=made.awrap_tool_call)
            return await graph(model, node).ainvoke({"messages": [ASK]}, THREAD)

    def invoked(model: Model) -> Any:
        with house.executor() as executor:
            agent: Any = create_agent(Scripted(script=model), middleware=[ExecutorMiddleware(executor)])
            return agent.invoke({"messages": [ASK]}, THREAD)

    first, second = Model([turn(pays())]), Model([turn(pays())])
    assert stopped(asyncio.run(awaited(first))) is None
    assert stopped(invoked(second)) is None
    assert "(code: ok)" in first.heard[0][0].text
    assert "(code: replayed)" in second.heard[0][0].text
    house.provider.arm("refuse", times=None, status=403)
    third, fourth = Model([turn(pays("B")), turn(pays("B"))]), Model([turn(pays("C")), turn(pays("C"))])
    ends = [asyncio.run(awaited(third)), invoked(fourth)]
    assert [stopped(end) for end in ends] == ["forbidden", "forbidden"]
    assert (third.heard, fourth.heard) == ([], [])
    assert house.provider.count() == 1


def test_a_stopped_thread_goes_on_when_a_person_says_so(house: House) -> None:
    """The result stays in the thread, with its flag and the observation; the next message is answered."""
    house.provider.arm("refuse", status=403)
    model = Model([turn(pays()), turn(pays())])
    with house.executor() as executor:
        agent: Any = create_agent(
            Scripted(script=model), middleware=[ExecutorMiddleware(executor)], checkpointer=InMemorySaver()
        )
        ended = agent.invoke({"messages": [ASK]}, THREAD)
        (told,) = (one for one in ended["messages"] if isinstance(one, ToolMessage))
        assert (told.status, told.artifact["stop"], stopped(ended)) == ("error", "forbidden", "forbidden")
        assert stopped(agent.invoke({"messages": ["Now you may."]}, THREAD)) is None
    assert house.provider.count() == 1


def test_the_task_is_the_thread_and_the_turn_its_round(house: House) -> None:
    """A thread that goes on stays one task, and its rounds count on; the ids of calls are recorded. A tool invoked in a
    loop of one's own has its task from the config, and no turn."""
    model = Model([turn(pays("A")), turn(), turn(pays("B"))])
    with house.executor() as executor:
        agent: Any = create_agent(
            Scripted(script=model), middleware=[ExecutorMiddleware(executor)], checkpointer=InMemorySaver()
        )
        for _ in range(2):
            agent.invoke({"messages": [ASK]}, THREAD)
        call = {"type": "tool_call", "name": "create_payment", "args": {"order": "C", "amount": 1}, "id": "c"}
        message = tools(executor)[0].invoke(call, {"configurable": {"thread_id": "mine"}})
        rows = sorted(executor.audit.effects(), key=lambda row: str(row.arguments))
        begun = [executor.audit.history(row.id)[0].detail for row in rows]
    found = [(row.task, one.get("turn"), one["call_id"]) for row, one in zip(rows, begun, strict=True)]
    assert found == [("trip-42", 1, "call_1_0"), ("trip-42", 3, "call_3_0"), ("mine", None, "c")]
    assert (message.status, message.tool_call_id) == ("success", "c")


def test_a_tool_of_langchain_is_guarded(tmp_path: Path) -> None:
    """Its name, description, function and the framework's own context are kept; the model does not see the context.
    Another tool beside it stays the framework's."""

    @langchain_tool("greet_guest")
    async def greet(name: str, runtime: ToolRuntime) -> str:
        """Greet a guest."""
        return f"{name} {runtime.tool_call_id} {bool(current_effect().id)}"

    @langchain_tool
    def weather() -> str:
        """Tell the weather."""
        return "rain"

    model = Model([Turn((Call("greet_guest", {"name": "Ada"}), Call("weather", {})))])

    async def once() -> None:
        made = guard(greet, key=ALL_ARGUMENTS, context="runtime")
        assert (made.name, made.description) == ("greet_guest", "Greet a guest.")
        assert list(made.schema()["parameters"]["properties"]) == ["name"]
        async with AsyncExecutor(f"sqlite:///{tmp_path / 'ledger.db'}", [made]) as executor:
            agent: Any = create_agent(Scripted(script=model), [weather], middleware=[ExecutorMiddleware(executor)])
            await agent.ainvoke({"messages": [ASK]}, THREAD)

    asyncio.run(once())
    greeted, told = model.heard[0]
    assert 'Result: "Ada call_1_0 True"' in greeted.text
    assert told.text == "rain"


def test_an_async_executor_does_not_run_where_nothing_awaits(house: House) -> None:
    """The developer hears of it, before anything is begun."""

    async def once() -> None:
        async with house.async_executor() as executor:
            with pytest.raises(UsageError, match="ainvoke"):
                tools(executor)[0].invoke({"order": "A", "amount": 1})
            assert "(code: ok)" in await tools(executor)[0].ainvoke({"order": "A", "amount": 1})

    asyncio.run(once())
    assert house.provider.count() == 1


def test_without_a_thread_the_run_is_the_task(tmp_path: Path) -> None:
    """A tool that is keyed by all its arguments has a task to be keyed in, where the run's config has an id."""

    def note(text: str) -> str:
        """Write a note."""
        return text

    with Executor(f"sqlite:///{tmp_path / 'ledger.db'}", [guard(note, key=ALL_ARGUMENTS)]) as executor:
        run = UUID(int=7)
        tools(executor)[0].invoke({"text": "hello"}, {"run_id": run})
        (row,) = executor.audit.effects()
    assert row.task == str(run)
