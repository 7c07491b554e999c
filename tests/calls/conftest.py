"""A world with a settable clock that a tool changes, and an executor on each database."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from outside import World

from counterfoil import Absent, AsyncExecutor, Effect, Executor, Found, ManualClock, Policy, Tool, Unclear, tool


@pytest.fixture
def clock() -> ManualClock:
    """The one clock of executor and ledger."""
    return ManualClock()


@pytest.fixture
def world(clock: ManualClock) -> World:
    """The outside."""
    return World(clock)


@pytest.fixture
def charge(world: World) -> Tool[..., Any]:
    """A tool of tier T2 that marks its sending."""

    @tool(key=("order",), sends="marked", policy=Policy(timeout_s=5, grace_s=2, patience_s=20))
    def charge(effect: Effect, order: str, amount: int) -> dict[str, int]:
        """Charge the customer's card once for one order."""
        with effect.sending():
            world.act(effect)
        return {"amount": amount}

    @charge.postcondition
    def charged(effect: Effect) -> Found[dict[str, int]] | Absent | Unclear:
        fault = world.looks.pop(0) if world.looks else "none"
        if fault == "raises":
            raise RuntimeError("upstream body with a secret")
        if fault == "nonsense":
            return "yes"  # type: ignore[return-value]
        if fault == "hangs":
            world.clock.advance(60)
            world.go_on.wait(10)
        if world.count(effect.id) == 0:
            return Absent()
        amount = effect.arguments["amount"]
        return Found({"amount": amount}, reference=None, count=world.count(effect.id))

    return charge


@pytest.fixture
def executor_of(ledger_url: str, clock: ManualClock) -> Iterator[Callable[..., Executor]]:
    """Makes executors on this test's ledger, closed at its end."""
    with ExitStack() as stack:

        def make(*tools: Tool[..., Any], **settings: Any) -> Executor:
            return stack.enter_context(Executor(ledger_url, tools=tools, clock=clock, **settings))

        yield make


@pytest.fixture
def async_executor_of(ledger_url: str, clock: ManualClock) -> Callable[..., AsyncExecutor]:
    """Makes asynchronous executors on this test's ledger; the test closes them."""

    def make(*tools: Tool[..., Any], **settings: Any) -> AsyncExecutor:
        return AsyncExecutor(ledger_url, tools=tools, clock=clock, **settings)

    return make
