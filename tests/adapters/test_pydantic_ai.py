"""What Pydantic AI has beyond a run: approvals, two runs at once, messages that go on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from adapters.conformance.drivers.pydantic_ai import model_of
from adapters.conformance.house import House
from adapters.conformance.model import Model
from adapters.conformance.scenarios import pays, turn
from provider import Provider
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied, capture_run_messages
from pydantic_ai.messages import ToolReturnPart

from counterfoil.adapters.pydantic_ai import ExecutorToolset, RunStopped


@pytest.fixture
def house(tmp_path: Path, provider: Provider) -> House:
    return House(f"sqlite:///{tmp_path / 'ledger.db'}", provider, real_time=True)


def test_an_approval_that_is_given_twice_pays_once(house: House) -> None:
    """The deferred call is taken up from the same messages twice, as when a form is sent twice: one payment, and both
    models hear that it is done."""

    async def once() -> list[str]:
        heard = []
        async with house.async_executor() as executor:
            toolsets = [ExecutorToolset(executor).approval_required()]
            model = model_of(Model([turn(pays())]))
            asked = await Agent(model, output_type=[str, DeferredToolRequests], toolsets=toolsets).run("Pay.")
            assert isinstance(asked.output, DeferredToolRequests)
            given = DeferredToolResults(approvals={one.tool_call_id: True for one in asked.output.approvals})
            for _ in range(2):
                later = Model([])
                agent: Agent[None, Any] = Agent(
                    model_of(later), output_type=[str, DeferredToolRequests], toolsets=toolsets
                )
                await agent.run(message_history=asked.all_messages(), deferred_tool_results=given)
                heard.append(later.heard[0][0].text)
        return heard

    first, second = asyncio.run(once())
    assert "(code: ok)" in first
    assert "(code: replayed)" in second
    assert house.provider.count() == 1


def test_an_approval_that_changes_or_denies(house: House) -> None:
    """A person denies: nothing is sent. From the same messages a person approves another amount: that is paid. Then the
    first amount is approved, too: a conflict, and nothing is sent for it."""

    async def once() -> list[tuple[str, int]]:
        found = []
        async with house.async_executor() as executor:
            toolsets = [ExecutorToolset(executor).approval_required()]
            model = model_of(Model([turn(pays())]))
            asked = await Agent(model, output_type=[str, DeferredToolRequests], toolsets=toolsets).run("Pay.")
            assert isinstance(asked.output, DeferredToolRequests)
            (call,) = asked.output.approvals
            for said in (ToolDenied("no"), ToolApproved(override_args={"order": "A-1", "amount": 12}), True):
                later = Model([])
                agent: Agent[None, Any] = Agent(
                    model_of(later), output_type=[str, DeferredToolRequests], toolsets=toolsets
                )
                given = DeferredToolResults(approvals={call.tool_call_id: said})
                await agent.run(message_history=asked.all_messages(), deferred_tool_results=given)
                found.append((later.heard[0][0].text, house.provider.count()))
        return found

    (denied, none), (paid, one), (conflict, still_one) = asyncio.run(once())
    assert (none, one, still_one) == (0, 1, 1)
    assert "code:" not in denied
    assert "(code: ok)" in paid
    assert "(code: key_conflict)" in conflict
    assert [one["body"]["amount"] for one in house.provider.effects()] == [12]


def test_a_run_that_stops_keeps_its_messages_and_stops_no_other(house: House) -> None:
    """The result is among the messages of the stopped run, with its flag; the agent's next run begins anew."""
    house.provider.arm("refuse", status=403)

    async def once() -> tuple[list[Any], str | None]:
        async with house.async_executor() as executor:
            agent = Agent(model_of(Model([turn(pays()), turn(pays())])), toolsets=[ExecutorToolset(executor)])
            with capture_run_messages() as messages:
                with pytest.raises(RunStopped) as stopped:
                    await agent.run("Pay.", conversation_id="t")
                parts = [part for message in messages for part in message.parts]
            await agent.run("Pay again.", conversation_id="t")
            return parts, stopped.value.observation.stop

    parts, stop = asyncio.run(once())
    (told,) = (part for part in parts if isinstance(part, ToolReturnPart))
    assert (stop, told.outcome) == ("forbidden", "failed")
    assert house.provider.count() == 1


def test_a_blocking_executor_serves_too(house: House) -> None:
    """Calls of one turn run side by side in threads, and each gets its own outcome."""

    async def once() -> list[str]:
        model = Model([turn(pays("A"), pays("B"), pays("A"))])
        with house.executor() as executor:
            await Agent(model_of(model), toolsets=[ExecutorToolset(executor)]).run("Pay.")
        return [told.text.partition("code: ")[2].partition(")")[0] for told in model.heard[0]]

    codes = asyncio.run(once())
    assert codes[1] == "ok"
    assert sorted([codes[0], codes[2]]) == ["ok", "replayed"]
    assert house.provider.count() == 2


def test_the_task_is_the_conversation_and_the_turn_its_round(house: House) -> None:
    """A conversation that goes on in a second run stays one task, and its rounds count on; call ids are recorded."""

    async def once() -> list[tuple[str, Any, Any]]:
        async with house.async_executor() as executor:
            agent = Agent(
                model_of(Model([turn(pays("A")), turn(), turn(pays("B"))])), toolsets=[ExecutorToolset(executor)]
            )
            first = await agent.run("Pay A.", conversation_id="trip-42")
            await agent.run("Pay B.", message_history=first.all_messages())
            rows = sorted(executor.audit.effects(), key=lambda row: str(row.arguments))
            begun = [executor.audit.history(row.id)[0].detail for row in rows]
            return [(row.task, one["turn"], one["call_id"]) for row, one in zip(rows, begun, strict=True)]

    assert asyncio.run(once()) == [("trip-42", 1, "call_1_0"), ("trip-42", 3, "call_3_0")]
