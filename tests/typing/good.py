"""Declarations that type checkers must accept, with the types that they must infer."""

from __future__ import annotations

from typing import Any, assert_type

from counterfoil.attempt import Effect
from counterfoil.effect import Absent, Found, Unclear
from counterfoil.key_policy import KeyPolicy
from counterfoil.tool import ALL_ARGUMENTS, AnyTool, Policy, Tool, tool


class Declined(Exception):
    """A refusal of some provider."""


@tool(key=("order",), sends="marked", rejects=(Declined,), policy=Policy(timeout_s=10, grace_s=60))
def charge(effect: Effect, order: str, cents: int) -> dict[str, str]:
    """Charge the card once for one order."""
    with effect.sending():
        return {"payment": f"{order}-{cents}-{effect.id}"}


@charge.postcondition
def charged(effect: Effect) -> Found[dict[str, str]] | Absent | Unclear:
    if not effect.id:
        return Unclear("no id")
    return Found({"payment": effect.id}, reference=effect.id) if effect.arguments else Absent()


@tool(key=ALL_ARGUMENTS, policy=Policy(grace_s=5, key_policy=KeyPolicy(retention_s=86_400)))
async def book(effect: Effect, room: str, *, nights: int = 1) -> int:
    """Book a room."""
    return nights + len(effect.provider_key) + len(room)


@book.postcondition
async def booked(effect: Effect) -> Found[int] | Absent | Unclear:
    return Found(1, reference=None, count=1) if effect.attempt else Absent()


@tool(key=("to",))
def mail(to: str) -> None:
    """Send a mail."""


@mail.postcondition
def mailed(effect: Effect) -> Unclear:
    return Unclear("mail cannot be looked up")


@tool(read_only=True)
async def search(words: str) -> list[str]:
    return words.split()


ALL: list[AnyTool] = [charge, book, mail, search]


def inferred() -> tuple[object, ...]:
    """What the decorator makes of each function: the effect is gone, and a coroutine's own result is the value."""
    charge_as: Tool[[str, int], dict[str, str]] = charge
    book_as: Tool[..., int] = book
    search_as: Tool[[str], list[str]] = search
    assert_type(charge.tier in ("T0", "T1"), bool)
    assert_type(mail.schema(), dict[str, Any])
    return charge_as, book_as, search_as
