"""What the model was told stands in the entry that settled the effect, or left it in doubt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cases.scene import named

from counterfoil import (
    Absent,
    Effect,
    Executor,
    Forbidden,
    Found,
    ManualClock,
    Policy,
    Rejected,
    Throttled,
    Tool,
    Unclear,
    tool,
)

Function = Callable[[], Any]


def raising(problem: Exception) -> Function:
    def function() -> Any:
        raise problem

    return function


LOST = raising(TimeoutError())
ENDS: dict[str, tuple[Function, Function | None, str, str]] = {
    "returned": (lambda: "ok", None, "returned", "ok"),
    "a result that is no data": (object, None, "returned", "value_not_stored"),
    "refused": (raising(Rejected("card_declined", "No.")), None, "closed", "card_declined"),
    "refused by a claim": (raising(Rejected("ok", "No.")), None, "closed", "rejected"),
    "refused with odd signs": (raising(Rejected("no\nseat <b>", "No.")), None, "closed", "no_seat_b"),
    "refused with a long word": (raising(Rejected("w" * 200, "No.")), None, "closed", "w" * 64),
    "forbidden": (raising(Forbidden("No.")), None, "closed", "forbidden"),
    "throttled": (raising(Throttled(900.0)), None, "closed", "rate_limited"),
    "lost": (LOST, None, "lost", "effect_unknown"),
    "found": (LOST, lambda: Found("x", reference="a"), "found", "verified"),
    "found as no data": (LOST, lambda: Found(object(), reference="a"), "found", "value_not_stored"),
    "found twice": (LOST, lambda: Found("x", reference=["a", "b"]), "found", "applied_more_than_once"),
    "found in part": (LOST, lambda: Found("x", reference="a", complete=False), "found", "incomplete"),
    "unclear": (LOST, lambda: Unclear("the list is away"), "looked", "effect_unknown"),
    "looking is refused": (LOST, raising(PermissionError()), "looked", "effect_unknown"),
    "looking is forbidden": (LOST, raising(Forbidden("No.")), "looked", "look_forbidden"),
    "absent for now": (LOST, Absent, "looked", "effect_unknown"),
}  # fmt: skip


def acting(function: Function, look: Function | None) -> Tool[..., Any]:
    @tool(key=("order",), policy=Policy(timeout_s=30, patience_s=0.001, wait_s=0.001, grace_s=60))
    def act(effect: Effect, order: str) -> Any:
        """Act for one order. Use it when asked."""
        return function()

    if look is not None:
        act.postcondition(lambda _: look())
    return act


@pytest.mark.parametrize("name", ENDS)
def test_the_entry_has_the_code_that_was_told(ledger_url: str, name: str) -> None:
    """The last entry of the effect and its row have the same code as the message."""
    function, look, event, code = ENDS[name]
    with Executor(ledger_url, [acting(function, look)]) as executor:
        seen = executor.call("act", {"order": "A"})
        last = executor.audit.history(named(seen.effect_id))[-1]
        row = executor.audit.effect(named(seen.effect_id))
    assert (last.event, last.detail["code"], seen.code) == (event, code, code)
    assert row.code == code


def test_absence_that_proves_is_told_as_unavailable(ledger_url: str) -> None:
    """Absent after grace: the entry has the code that the next call would be told, not a word of its own."""
    clock = ManualClock()
    with Executor(ledger_url, [acting(LOST, Absent)], clock=clock) as executor:
        seen = executor.call("act", {"order": "A"})
        clock.advance(1_000)
        told = executor.call("check_effect", {"effect_id": seen.effect_id})
        last = executor.audit.history(named(seen.effect_id))[-1]
    assert (last.event, last.detail["code"], told.code) == ("absent", "unavailable", "unavailable")
