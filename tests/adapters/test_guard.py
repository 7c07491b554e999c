"""A function or tool that is there already becomes a tool of Counterfoil."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapters.conformance.model import Call, Model, Turn
from mcp.server.mcpserver.tools import Tool as McpTool
from provider import Provider
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai import Tool as PydanticTool

from counterfoil import (
    ALL_ARGUMENTS,
    Absent,
    AsyncExecutor,
    Effect,
    Executor,
    Found,
    KeyPolicy,
    ManualClock,
    Policy,
    UsageError,
    current_effect,
)
from counterfoil.adapters import guard
from counterfoil.adapters.pydantic_ai import ExecutorToolset

POLICY = Policy(timeout_s=30, grace_s=60, patience_s=10)


def paying(provider: Provider) -> Callable[..., dict[str, str]]:
    """A function that knows Counterfoil only where it sends."""

    def pay(order: str, amount: int = 10) -> dict[str, str]:
        """Pay one order."""
        answer = provider.send(current_effect().id, key=current_effect().provider_key, body={"amount": amount})
        return {"payment": answer.body["id"]}

    return pay


def looking(provider: Provider) -> Callable[[Effect], Found[Any] | Absent]:
    def look(effect: Effect) -> Found[Any] | Absent:
        ids = [one["id"] for one in provider.look(effect.id).body]
        return Found({"payment": ids[0]}, reference=ids) if ids else Absent()

    return look


def test_a_guarded_function_is_found_after_a_lost_answer(ledger_url: str, provider: Provider) -> None:
    """Key, policy and postcondition beside it do for a plain function what they do for a declared tool."""
    provider.arm("ack_lost")
    pay = guard(paying(provider), key=("order",), policy=POLICY, postcondition=looking(provider))
    assert (pay.name, pay.description, pay.tier) == ("pay", "Pay one order.", "T2")
    with Executor(ledger_url, [pay]) as executor:
        assert [executor.call("pay", {"order": "A"}).code for _ in range(2)] == ["verified", "replayed"]
    assert provider.count() == 1


def test_a_guarded_function_can_send_under_a_key(ledger_url: str, provider: Provider) -> None:
    """A key policy is open to it, because it reaches the key through `current_effect()`: the resend has the same."""
    provider.dedupe(3600.0)
    provider.arm("ack_lost")
    policy = Policy(timeout_s=5, grace_s=1, patience_s=20, key_policy=KeyPolicy(retention_s=3600))
    tools = [guard(paying(provider), key=("order",), policy=policy)]
    with Executor(ledger_url, tools, clock=ManualClock()) as executor:
        assert executor.call("pay", {"order": "A"}).ok
    assert provider.count() == 1
    assert len({one["key"] for one in provider.requests()}) == 1


def test_a_coroutine_function_stays_one(tmp_path: Path) -> None:
    """It runs in the loop of the executor, and has its effect there."""

    async def note(text: str) -> str:
        """Write a note."""
        await asyncio.sleep(0)
        return f"{text} {current_effect().id}"

    async def once() -> None:
        made = guard(note, key=ALL_ARGUMENTS, name="write_note", description="Write one note.")
        async with AsyncExecutor(f"sqlite:///{tmp_path / 'ledger.db'}", [made]) as executor:
            seen = await executor.call("write_note", {"text": "hello"}, task="t")
            assert seen.value == f"hello {seen.effect_id}"

    asyncio.run(once())


def test_the_tools_of_frameworks_are_opened(provider: Provider) -> None:
    """Name, description and function come out of the tool objects."""
    pay = paying(provider)
    for existing in (PydanticTool(pay, name="settle"), McpTool.from_function(pay, name="settle")):
        made = guard(existing, key=("order",), policy=POLICY)
        assert (made.name, made.description) == ("settle", "Pay one order.")
        assert list(made.schema()["parameters"]["properties"]) == ["order", "amount"]


def test_a_tool_that_takes_the_frameworks_context_still_gets_it(tmp_path: Path) -> None:
    """The context of Pydantic AI, with the dependencies, reaches the function; the model does not see the parameter."""
    from adapters.conformance.drivers.pydantic_ai import model_of

    def greet(ctx: RunContext[str], name: str) -> str:
        """Greet a guest."""
        return f"{ctx.deps}, {name}, {ctx.tool_call_id}"

    async def once() -> None:
        made = guard(PydanticTool(greet), key=ALL_ARGUMENTS)
        assert list(made.schema()["parameters"]["properties"]) == ["name"]
        model = Model([Turn((Call("greet", {"name": "Ada"}),))])
        async with AsyncExecutor(f"sqlite:///{tmp_path / 'ledger.db'}", [made]) as executor:
            agent = Agent(model_of(model), deps_type=str, toolsets=[ExecutorToolset(executor)])
            await agent.run("Greet Ada.", deps="Welcome", conversation_id="t")
            (row,) = executor.audit.effects()
        assert 'Result: "Welcome, Ada, call_1_0"' in model.heard[0][0].text
        assert row.task == "t"

    asyncio.run(once())


def test_an_invitation_to_retry_is_a_lost_answer(ledger_url: str, provider: Provider) -> None:
    """A framework's "try again", raised after the send, proves nothing, and does not reach the model."""

    def pay(order: str) -> str:
        """Pay one order."""
        provider.send(current_effect().id, body={})
        raise ModelRetry("please try again")

    with Executor(ledger_url, [guard(pay, key=("order",))]) as executor:
        seen = executor.call("pay", {"order": "A"})
        assert seen.code == "effect_unknown"
        assert "try again" not in seen.text
        executor.call("pay", {"order": "A"})
    assert provider.count() == 1


def test_what_cannot_be_guarded_is_refused() -> None:
    """An object without a function, a tool in our form already, a context that is no parameter."""

    def takes(effect: Effect, order: str) -> None:
        """Take the effect."""

    def plain(order: str) -> None:
        """Take none."""

    for wrong, context, says in (
        (object(), None, "finds no function"),
        (takes, None, "decorate it"),
        (plain, "ctx", "no parameter"),
    ):
        with pytest.raises(UsageError, match=says):
            guard(wrong, key=("order",), context=context)
