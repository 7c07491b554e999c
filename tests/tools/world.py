"""What the tests of the shipped tools ask with: attempts and looks without an executor, and a scripted provider."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from counterfoil import Tool
from counterfoil.attempt import Effect, Gate, GateState, running
from counterfoil.effect import Absent, Found, Lost, NeverSent, Refused, Unclear
from counterfoil.failure import classify
from counterfoil_tools import icalendar

ATTEMPT_S = 1.0


@dataclass
class Scripted:
    """A provider that answers what it is told to: for answers that the real servers never give."""

    url: str
    answers: list[tuple[int, dict[str, str], str]] = field(default_factory=list)
    requests: list[tuple[str, str, dict[str, str], str]] = field(default_factory=list)

    def will_answer(self, status: int, body: str = "", **headers: str) -> None:
        self.answers.append((status, {name.replace("_", "-"): value for name, value in headers.items()}, body))


@dataclass
class Attempt:
    """One attempt of a tool by hand: the value that its function returned, or the error that it raised."""

    value: Any = None
    error: BaseException | None = None
    gate: GateState = GateState.UNTOUCHED

    @property
    def outcome(self) -> NeverSent | Refused | Lost:
        """What the executor makes of the error."""
        assert self.error is not None, f"returned {self.value}"
        return classify(self.error, sends="marked", rejects=(), gate=self.gate)


def attempt(
    tool: Tool[..., Any], name: str, *, seconds: float = ATTEMPT_S, original: Effect | None = None, **arguments: Any
) -> Attempt:
    """Run the tool's function once for the effect called `name`, as the executor would."""
    gate = _gate(seconds)
    key = f"{name}-k0"
    effect = Effect(id=name, provider_key=key, arguments=arguments, attempt=1, gate=gate, original=original)
    with running(effect):
        try:
            return Attempt(value=tool.function(effect, **arguments), gate=gate.state)
        except Exception as error:  # noqa: BLE001 - it is judged by the test
            return Attempt(error=error, gate=gate.state)


def look(
    tool: Tool[..., Any], name: str, *, seconds: float = ATTEMPT_S, original: Effect | None = None, **arguments: Any
) -> Found[Any] | Absent | Unclear:
    """Ask the tool's postcondition about the effect called `name`. What it raises comes through."""
    effect = Effect(id=name, arguments=arguments, attempt=0, gate=_gate(seconds), original=original)
    assert tool.postcondition_function is not None
    with running(effect):
        evidence: Found[Any] | Absent | Unclear = tool.postcondition_function(effect)
        return evidence


def until(reached: Callable[[], bool], *, seconds: float = 10.0) -> bool:
    """Ask again and again until it holds, for what a server in another process does by its own clock."""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            return False
    return True


def taken_back(name: str, *, value: Any = None, references: tuple[str, ...] = (), **arguments: Any) -> Effect:
    """The effect called `name` as a revoke or a compensation sees it: what the ledger keeps of it."""
    return Effect(id=name, provider_key=f"{name}-k0", arguments=arguments, value=value, references=references)


def bookings(client: httpx.Client) -> dict[str, str]:
    """Whose the booked slots are by resource name: the events of the calendar server that are not cancelled."""
    stored = {name: icalendar.stored(client.get(name).text) for name in events(client)}
    return {name: event.owner for name, event in stored.items() if event is not None and not event.cancelled}


def events(client: httpx.Client) -> list[str]:
    """The resource names of all events that the calendar server holds."""
    answer = client.request("PROPFIND", "", headers={"Depth": "1"})
    assert answer.status_code == 207
    return sorted(re.findall(r"<href>[^<]*/([^/<]+\.ics)</href>", answer.text))


def _gate(seconds: float) -> Gate:
    end = time.monotonic() + seconds
    return Gate(lambda: end - time.monotonic())
