"""An application as a user would write one: tools that act on a world, which is a file named in SHOP_WORLD.

The world is shut (nobody can look) until it holds {"open": true}. An order that begins with "lost" is charged and its
answer is lost; one that begins with "swallowed" never arrives; one that begins with "declined" is refused.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any

from counterfoil import (
    Absent,
    AsyncExecutor,
    Clock,
    Content,
    Effect,
    Executor,
    Found,
    KeyPolicy,
    Policy,
    Rejected,
    Unclear,
    tool,
)

print("the shop opens")  # noqa: T201 - applications do print while they are imported


def world() -> dict[str, Any]:
    file = Path(os.environ["SHOP_WORLD"])
    content: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"open": False, "orders": []}
    return content


def keep(content: dict[str, Any]) -> None:
    Path(os.environ["SHOP_WORLD"]).write_text(json.dumps(content))


@tool(key=("order",), policy=Policy(timeout_s=1, grace_s=5, patience_s=0.5, review_after_s=60, breaker=None))
def charge(effect: Effect, order: str, amount_minor: int, note: Annotated[str, Content] = "") -> dict[str, str]:
    """Charge the customer's card once for one order."""
    if order.startswith("declined"):
        raise Rejected("card_declined", "the card was declined", hint="Ask for another card.")
    if not order.startswith("swallowed"):
        content = world()
        keep(content | {"orders": [*content["orders"], effect.id]})
    if order.startswith(("lost", "swallowed")):
        raise TimeoutError
    return {"payment": f"pi_{order}"}


@charge.postcondition
def charged(effect: Effect) -> Found[dict[str, str]] | Absent | Unclear:
    print("the shop looks")  # noqa: T201 - as above
    seen = world()
    if not seen["open"]:
        return Unclear("the shop is shut")
    if effect.id in seen["orders"]:
        return Found({"payment": "pi_found"}, reference=f"pi_{effect.id}")
    return Absent()


@tool(key=("guest",))
def invite(guest: str) -> str:
    """Send one guest an invitation."""
    return guest


@tool(key=("order",), policy=Policy(timeout_s=2, grace_s=3, key_policy=KeyPolicy(retention_s=3600)))
def refund(effect: Effect, order: str) -> str:
    """Give the money for one order back."""
    return effect.provider_key


@tool(read_only=True)
def price(order: str) -> int:
    """Tell what an order costs, in cents."""
    return len(order)


TOOLS = (charge, invite, refund, price)


def executor(clock: Clock | None = None, tenant: str = "") -> Executor:
    return Executor(os.environ["COUNTERFOIL_LEDGER"], TOOLS, clock=clock, tenant=tenant)


def asynchronous() -> AsyncExecutor:
    return AsyncExecutor(os.environ["COUNTERFOIL_LEDGER"], TOOLS)


async def coroutine() -> Executor:
    return executor()


def failing() -> Executor:
    raise RuntimeError("the password is hunter2")


def nothing() -> None:
    """Returns no executor."""
