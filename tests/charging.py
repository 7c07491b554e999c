"""A tool of tier T2 that marks its sending, for tests that bring their own ledger."""

from __future__ import annotations

from typing import Any

from outside import World

from counterfoil import Absent, Effect, Found, Policy, Tool, tool

GOOD = {"order": "A", "amount": 5}


def charging(world: World, **changed: Any) -> Tool[..., Any]:
    """A charge in that world. `changed` goes to the policy."""
    policy: dict[str, Any] = {"timeout_s": 5, "grace_s": 2, "patience_s": 20}

    @tool(key=("order",), sends="marked", policy=Policy(**policy | changed))
    def charge(effect: Effect, order: str, amount: int) -> dict[str, int]:
        """Charge the customer's card once for one order."""
        with effect.sending():
            world.act(effect)
        return {"amount": amount}

    @charge.postcondition
    def charged(effect: Effect) -> Found[dict[str, int]] | Absent:
        if world.count(effect.id) == 0:
            return Absent()
        return Found({"amount": effect.arguments["amount"]}, reference=None, count=world.count(effect.id))

    return charge
