"""Declarations that type checkers must refuse. Every marked line fails, and no other line does.

Nothing here is ever called: most of it would be refused when it runs, too.
"""

from __future__ import annotations

from collections.abc import Iterator

from counterfoil.attempt import Effect
from counterfoil.effect import Absent, Found, Unclear
from counterfoil.tool import Policy, Tool, tool


def declarations() -> None:
    tool(("order",))  # type: ignore[call-arg]
    tool(key="order")  # type: ignore[arg-type]
    tool(key=("order",), sends="twice")  # type: ignore[arg-type]
    tool(key=("order",), rejects=(KeyboardInterrupt,))  # type: ignore[arg-type]
    tool(key=("order",), rejects=ValueError)  # type: ignore[arg-type]
    tool(key=("order",), retries=3)  # type: ignore[call-arg]
    tool(key=("order",), policy={"timeout_s": 3})  # type: ignore[arg-type]
    Policy(timeout_s="3")  # type: ignore[arg-type]
    Policy(verify="never")  # type: ignore[arg-type]
    Policy(10.0)  # type: ignore[call-arg]


def postconditions() -> None:
    @tool(key=("order",))
    def charge(effect: Effect, order: str) -> int:
        """Charge the card once for one order."""
        return len(effect.id + order)

    @charge.postcondition  # type: ignore[arg-type]
    def another_value(effect: Effect) -> Found[str] | Absent:
        return Absent()

    @charge.postcondition  # type: ignore[arg-type]
    def no_evidence(effect: Effect) -> bool:
        return True

    @charge.postcondition  # type: ignore[arg-type]
    def nothing(effect: Effect) -> Found[int] | Absent | None:
        return None

    @charge.postcondition  # type: ignore[arg-type]
    def takes_arguments(effect: Effect, order: str) -> Absent:
        return Absent()

    @charge.postcondition  # type: ignore[arg-type]
    def takes_something_else(order: str) -> Absent:
        return Absent()

    @charge.postcondition  # type: ignore[arg-type]
    async def another_value_later(effect: Effect) -> Found[str] | Unclear:
        return Unclear("never")

    @charge.postcondition  # type: ignore[arg-type]
    def many(effect: Effect) -> Iterator[Absent]:
        yield Absent()


def inferences() -> tuple[object, ...]:
    @tool(key=("order",))
    def charge(effect: Effect, order: str) -> int:
        """Charge the card once for one order."""
        return len(effect.id + order)

    @tool(read_only=True)
    async def search(words: str) -> list[str]:
        return [words]

    value_differs: Tool[..., str] = charge  # type: ignore[assignment]
    parameters_differ: Tool[[int], list[str]] = search  # type: ignore[assignment]
    coroutine_is_no_value: Tool[[str], object] = search  # type: ignore[assignment]
    return value_differs, parameters_differ, coroutine_is_no_value
