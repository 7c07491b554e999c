"""The tool that is called, and a world that does nothing and takes no time, so that the ledger is what is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.side import receipt

from counterfoil import Effect, Found, Policy, Tool, Unclear, tool

# The patience lets a call that is to leave a doubt behind end at its first look.
POLICY = Policy(timeout_s=60, grace_s=60, patience_s=30, look_timeout_s=60)
HASTY = Policy(timeout_s=60, grace_s=60, patience_s=0.001, look_timeout_s=60)


@dataclass
class World:
    """What the tool and its postcondition do. `inside` runs between begin and settle."""

    loses: bool = False
    shows: bool = True
    inside: Callable[[], None] | None = None

    def pay(self, effect: Effect, order: str) -> dict[str, Any]:
        """Do as told."""
        if self.inside is not None:
            self.inside()
        if self.loses:
            raise TimeoutError
        return receipt(int(order.rpartition("-")[2]))

    def look(self, effect: Effect) -> Found[dict[str, Any]] | Unclear:
        """Find it, or say nothing."""
        if not self.shows:
            return Unclear("the provider does not answer")
        return Found(receipt(int(effect.arguments["order"].rpartition("-")[2])), reference=None)


def blocking(world: World, policy: Policy = POLICY) -> Tool[..., Any]:
    """The tool as a function."""

    @tool(key=("order",), sends="once", policy=policy)
    def charge(effect: Effect, order: str, amount_minor: int, currency: str, payment_method: str) -> dict[str, Any]:
        """Charge the customer's card once for one order."""
        return world.pay(effect, order)

    @charge.postcondition
    def charged(effect: Effect) -> Found[dict[str, Any]] | Unclear:
        return world.look(effect)

    return charge


def asynchronous(world: World) -> Tool[..., Any]:
    """The tool as a coroutine function, of the same name."""

    @tool(key=("order",), sends="once", policy=POLICY)
    async def charge(
        effect: Effect, order: str, amount_minor: int, currency: str, payment_method: str
    ) -> dict[str, Any]:
        """Charge the customer's card once for one order."""
        return world.pay(effect, order)

    @charge.postcondition
    async def charged(effect: Effect) -> Found[dict[str, Any]] | Unclear:
        return world.look(effect)

    return charge
