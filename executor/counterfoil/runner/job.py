"""What a call works with: the site that all calls of an executor share, and the job of one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from counterfoil.attempt import Effect
from counterfoil.changes import Begin
from counterfoil.clock import Clock
from counterfoil.effect import (
    Absent,
    Evidence,
    Found,
    Row,
    Unclear,
    Verdict,
)
from counterfoil.errors import Forbidden
from counterfoil.failure import name_of, status_of
from counterfoil.guard import Asks
from counterfoil.ledger.ledger import Ledger
from counterfoil.runner.backlog import Backlog
from counterfoil.runner.messages import Messages
from counterfoil.runner.overrun import Overruns
from counterfoil.runner.worker import Workers
from counterfoil.tool import Tool

REASON_MAX = 500
# Stands where a read-only tool has no row.
NO_ROW = Row(
    key=b"", id="", tenant="", tool="", task="", fingerprint=b"", canonical_version=0, arguments="", echo="",
    verdict=Verdict.NO_EFFECT,
)  # fmt: skip


class Observer(Protocol):
    """Told of each step before and after it. `moment` is "before" or "after"; `step` the step's name, for a write
    with the change in it ("Write:SettleReturned"). It runs in the call's own thread and must not raise."""

    def __call__(self, moment: str, step: str, tool: str, effect_id: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Site:
    """What every call of one executor shares."""

    ledger: Ledger
    clock: Clock
    holder: str
    attempts: Workers
    looks: Workers
    overruns: Overruns
    backlog: Backlog
    observer: Observer | None
    random: Random
    messages: Messages
    see: Callable[[Row, str, Job], None]


@dataclass(frozen=True, slots=True)
class Job:
    """One call (or one look) at one effect: the tool, what the caller gave, and how its begin reads."""

    tool: Tool[Any, Any]
    effect_id: str
    actor: str
    begin: Begin | None = None
    values: Mapping[str, Any] | None = field(default=None, repr=False)
    context: Any = field(default=None, repr=False)
    task: str = ""
    turn: int | None = None
    call_id: str | None = None
    asks: Asks | None = None


def bare(found: Found[Any]) -> Found[None]:
    """What was found, without its value."""
    return Found(
        None,
        reference=found.references or None,
        count=found.count,
        complete=found.complete,
        matches=found.matches,
    )


def interrupt_of(problem: BaseException) -> BaseException | None:
    """What must reach the caller after the record: not a cancellation that the function raised for itself."""
    return None if isinstance(problem, (Exception, asyncio.CancelledError)) else problem


def invoke(tool: Tool[Any, Any], effect: Effect, values: Mapping[str, Any]) -> Any:
    """Call the tool's function with its arguments by name."""
    return tool.function(effect, **values) if tool.takes_effect else tool.function(**values)


def of_failed_look(problem: BaseException) -> Unclear:
    """What a postcondition that raised tells: never absence; and whether its credential is to blame, by a status."""
    status = 403 if isinstance(problem, Forbidden) else status_of(problem)
    reason = f"the postcondition raised {name_of(type(problem))}"
    told = reason if status is None else f"{reason} with the status {status}"
    return Unclear(told, "look_forbidden" if status in (401, 403) else None)


def as_evidence(answer: Any) -> Evidence:
    """What a postcondition returned, if it is evidence; anything else is unclear."""
    if isinstance(answer, (Found, Absent, Unclear)):
        return answer
    return Unclear(f"the postcondition returned {name_of(type(answer))}, not Found, Absent or Unclear")
