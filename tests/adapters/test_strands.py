"""What Strands has beyond a run: sessions, interrupts, hooks that retry, tools that the agent has already.

Strands is imported in the tests alone, because this file is collected where it is not installed, too.
"""

from __future__ import annotations

import asyncio
import doctest
from pathlib import Path
from typing import Any

import pytest
from adapters.conformance.house import House
from adapters.conformance.model import Call, Model, Turn
from adapters.conformance.scenarios import pays, turn
from provider import Provider

from counterfoil import ALL_ARGUMENTS, AsyncExecutor, current_effect
from counterfoil.adapters import guard

pytestmark = pytest.mark.needs_strands


@pytest.fixture
def house(tmp_path: Path, provider: Provider) -> House:
    return House(f"sqlite:///{tmp_path / 'ledger.db'}", provider)


def agent_of(executor: Any, model: Model, **more: Any) -> Any:
    """An agent with the plugin and with retries of its model and of tools that did not succeed."""
    from adapters.conformance.drivers.strands import Scripted, agent_on

    from counterfoil.adapters.strands import ExecutorPlugin

    return agent_on(Scripted(model), plugins=[ExecutorPlugin(executor)], **more)


def test_an_interrupt_that_is_answered_twice_pays_once(house: House) -> None:
    """A hook asks a person before the payment. The stopped agent is stored and answered in two processes' stead: one
    payment, and both models hear that it is done."""
    from strands.hooks import BeforeToolCallEvent

    def asks(event: BeforeToolCallEvent) -> None:
        event.interrupt("approve", reason="a payment")

    async def once() -> list[str]:
        heard = []
        async with house.async_executor() as executor:
            agent = agent_of(executor, Model([turn(pays())]))
            agent.add_hook(asks, BeforeToolCallEvent)
            asked = await agent.invoke_async("Pay.")
            assert asked.stop_reason == "interrupt"
            assert house.provider.count() == 0
            stored = agent.take_snapshot(preset="session")
            answers = [{"interruptResponse": {"interruptId": one.id, "response": "yes"}} for one in asked.interrupts]
            for _ in range(2):
                model = Model([])
                later = agent_of(executor, model)
                later.add_hook(asks, BeforeToolCallEvent)
                later.load_snapshot(stored)
                await later.invoke_async(answers)
                heard.append(model.heard[0][0].text)
        return heard

    first, second = asyncio.run(once())
    assert "(code: ok)" in first
    assert "(code: replayed)" in second
    assert house.provider.count() == 1


def test_a_hook_that_retries_is_overruled(house: House) -> None:
    """A decline reaches the model, although a hook asks for another try of what did not succeed."""
    house.provider.arm("refuse", status=402)
    model = Model([turn(pays())])

    async def once() -> None:
        async with house.async_executor() as executor:
            await agent_of(executor, model).invoke_async("Pay.")

    asyncio.run(once())
    assert "(code: card_declined)" in model.heard[0][0].text
    assert [one["method"] for one in house.provider.requests()].count("POST") == 1


def test_a_stopped_agent_goes_on_when_a_person_says_so(house: House) -> None:
    """The turn ends with the code, the result stays in the messages with its flag, and the next request is answered,
    also with the state of the last one."""
    from counterfoil.adapters.strands import stopped

    house.provider.arm("refuse", status=403)

    async def once() -> tuple[Any, Any, list[Any]]:
        state: dict[str, Any] = {}
        async with house.async_executor() as executor:
            agent = agent_of(executor, Model([turn(pays()), turn(pays())]))
            ended = await agent.invoke_async("Pay.", invocation_state=state)
            results = [block["toolResult"] for block in agent.messages[-2]["content"]]
            again = await agent.invoke_async("Now you may.", invocation_state=state)
        return stopped(ended), stopped(again), results

    first, second, results = asyncio.run(once())
    assert (first, second) == ("forbidden", None)
    assert [one["status"] for one in results] == ["error"]
    assert house.provider.count() == 1


def test_the_task_is_the_session_and_the_turn_its_round(house: House) -> None:
    """An agent's rounds count on over its requests; the ids of calls are recorded."""

    async def once() -> tuple[str, list[tuple[Any, Any, Any]]]:
        async with house.async_executor() as executor:
            agent = agent_of(executor, Model([turn(pays("A")), turn(), turn(pays("B"))]))
            for _ in range(2):
                await agent.invoke_async("Pay.")
            rows = sorted(executor.audit.effects(), key=lambda row: str(row.arguments))
            begun = [executor.audit.history(row.id)[0].detail for row in rows]
            found = [(row.task, one["turn"], one["call_id"]) for row, one in zip(rows, begun, strict=True)]
            return agent.session_id, found

    session, found = asyncio.run(once())
    assert found == [(session, 1, "call_1_0"), (session, 3, "call_3_0")]


def test_a_tool_that_the_agent_has_is_guarded_where_it_stands(tmp_path: Path) -> None:
    """The agent's own tool of that name is put aside, in its registry and where a hook puts it back; another stays."""
    from strands import tool
    from strands.hooks import BeforeToolCallEvent

    @tool(name="greet_guest")
    def greet(name: str) -> str:
        """Greet a guest."""
        return f"{name} {bool(current_effect().id)}"

    @tool
    def weather() -> str:
        """Tell the weather."""
        return "rain"

    def puts_back(event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] == "greet_guest":
            event.selected_tool = greet

    made = guard(greet, key=ALL_ARGUMENTS)
    assert (made.name, made.description) == ("greet_guest", "Greet a guest.")
    model = Model([Turn((Call("greet_guest", {"name": "Ada"}), Call("weather", {})))])

    async def once() -> None:
        async with AsyncExecutor(f"sqlite:///{tmp_path / 'ledger.db'}", [made]) as executor:
            agent = agent_of(executor, model, tools=[greet, weather])
            agent.add_hook(puts_back, BeforeToolCallEvent)
            await agent.invoke_async("Greet Ada.")

    asyncio.run(once())
    greeted, told = model.heard[0]
    assert 'Result: "Ada True"' in greeted.text
    assert told.text == "rain"


def test_a_blocking_executor_does_as_well(house: House) -> None:
    """Its calls run in threads, two of a batch at once."""
    model = Model([turn(pays("A"), pays("B"))])
    with house.executor() as executor:
        agent_of(executor, model)("Pay both.")
    assert [one.error for one in model.heard[0]] == [False, False]
    assert house.provider.count() == 2


def test_the_examples_of_the_adapter_run() -> None:
    """They are not collected, because the module cannot be imported where Strands is not installed."""
    from counterfoil.adapters import strands

    failed, attempted = doctest.testmod(strands)
    assert failed == 0
    assert attempted > 0
