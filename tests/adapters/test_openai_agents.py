"""What the OpenAI Agents SDK has beyond a run: approvals, sessions, tools of others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from adapters.conformance.drivers.openai import as_response, told_items
from adapters.conformance.drivers.openai_agents import over
from adapters.conformance.drivers.wire import Wire
from adapters.conformance.house import House
from adapters.conformance.model import Call, Model, Turn
from adapters.conformance.scenarios import pays, turn
from agents import Agent, RunConfig, Runner, RunState, SQLiteSession, function_tool
from agents.tool_context import ToolContext
from provider import Provider

from counterfoil import ALL_ARGUMENTS, AsyncExecutor, current_effect
from counterfoil.adapters import guard
from counterfoil.adapters.openai_agents import stopped, tools, until_stopped

CONFIG = RunConfig(group_id="trip-42", tracing_disabled=True)


@pytest.fixture
def house(tmp_path: Path, provider: Provider) -> House:
    return House(f"sqlite:///{tmp_path / 'ledger.db'}", provider)


@asynccontextmanager
async def agent_with(executor: AsyncExecutor, model: Model, *, asks: bool = False) -> AsyncIterator[Agent[Any]]:
    """An agent of the executor's tools, on a model that follows the script."""
    made = tools(executor)
    for one in made:
        one.needs_approval = asks
    async with Wire(model, told_items, as_response).asynchronous() as http:
        yield Agent("clerk", model=over(http), tools=list(made), tool_use_behavior=until_stopped)


def test_an_approval_that_is_given_twice_pays_once(house: House) -> None:
    """The state of the interrupted run is stored as text and taken up twice: one payment, and both models hear it."""

    async def once() -> list[str]:
        heard = []
        async with house.async_executor() as executor:
            async with agent_with(executor, Model([turn(pays())]), asks=True) as agent:
                asked = await Runner.run(agent, "Pay.", run_config=CONFIG)
            stored = asked.to_state().to_string()
            assert house.provider.count() == 0
            for _ in range(2):
                model = Model([])
                async with agent_with(executor, model, asks=True) as agent:
                    state: RunState[Any, Any] = await RunState.from_string(agent, stored)
                    for one in state.get_interruptions():
                        state.approve(one)
                    await Runner.run(agent, state, run_config=CONFIG)
                heard.append(model.heard[0][0].text)
        return heard

    first, second = asyncio.run(once())
    assert "(code: ok)" in first
    assert "(code: replayed)" in second
    assert house.provider.count() == 1


def test_a_session_goes_on_after_a_stop(house: House) -> None:
    """The text is the final output and stays in the session; the next run is asked and answered."""
    house.provider.arm("refuse", status=403)

    async def once() -> tuple[Any, list[Any], Any]:
        session = SQLiteSession("trip-42")
        model = Model([turn(pays()), turn(pays())])
        async with house.async_executor() as executor, agent_with(executor, model) as agent:
            ended = await Runner.run(agent, "Pay.", session=session, run_config=CONFIG)
            kept = await session.get_items()
            again = await Runner.run(agent, "Now you may.", session=session, run_config=CONFIG)
        session.close()
        return ended, kept, again

    ended, kept, again = asyncio.run(once())
    assert (stopped(ended), stopped(again), again.final_output) == ("forbidden", None, "Done.")
    assert "(code: forbidden)" in ended.final_output
    assert ended.final_output in [one.get("output") for one in kept]
    assert house.provider.count() == 1


def test_the_task_is_the_group_and_the_turn_the_request(house: House) -> None:
    """A group's id is the same after a restart; the ids of calls are recorded."""

    async def once() -> list[tuple[Any, Any, Any]]:
        model = Model([turn(pays("A")), turn(pays("B"))])
        async with house.async_executor() as executor, agent_with(executor, model) as agent:
            await Runner.run(agent, "Pay.", run_config=CONFIG)
            rows = sorted(executor.audit.effects(), key=lambda row: str(row.arguments))
            begun = [executor.audit.history(row.id)[0].detail for row in rows]
            return [(row.task, one["turn"], one["call_id"]) for row, one in zip(rows, begun, strict=True)]

    assert asyncio.run(once()) == [("trip-42", 1, "call_1_0"), ("trip-42", 2, "call_2_0")]


def test_a_tool_of_the_sdk_is_guarded(tmp_path: Path) -> None:
    """Name, description and function come out of it, and the SDK's context still goes in."""

    @function_tool(name_override="greet_guest")
    async def greet(context: ToolContext[str], name: str) -> str:
        """Greet a guest."""
        return f"{context.context}, {name}, {context.tool_call_id}, {bool(current_effect().id)}"

    made = guard(greet, key=ALL_ARGUMENTS, context="context")
    assert (made.name, made.description) == ("greet_guest", "Greet a guest.")
    assert list(made.schema()["parameters"]["properties"]) == ["name"]
    model = Model([Turn((Call("greet_guest", {"name": "Ada"}),))])

    async def once() -> None:
        ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
        async with AsyncExecutor(ledger, [made]) as executor, agent_with(executor, model) as agent:
            await Runner.run(agent, "Greet Ada.", context="Welcome", run_config=CONFIG)

    asyncio.run(once())
    assert 'Result: "Welcome, Ada, call_1_0, True"' in model.heard[0][0].text
