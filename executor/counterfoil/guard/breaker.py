"""The breaker of one tool: after several passing faults in a row nothing is sent for a while, then one probe.

Owns when it opens, who is the probe, and what closes it. Only faults of the service count; a refusal is an answer, and
an answer says that the service is there. Opening settles no effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from counterfoil.effect import MICROSECONDS
from counterfoil.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """When a tool is left alone.

    Args:
        failures: so many passing faults in a row (unavailable, timed out, 5xx) open it.
        open_s: for so many seconds nothing begins; then one attempt is the probe.

    Raises:
        UsageError: a number out of range; says how to mend it.

    Example:
        >>> Breaker(failures=3).open_s
        60.0
    """

    failures: int = 5
    open_s: float = 60.0

    def __post_init__(self) -> None:
        if type(self.failures) is not int or self.failures < 1:
            raise UsageError(f"Breaker(failures={self.failures!r}): give a whole number, 1 or more")
        if type(self.open_s) not in (int, float) or not (math.isfinite(self.open_s) and self.open_s > 0):
            raise UsageError(f"Breaker(open_s={self.open_s!r}): give a finite number of seconds above 0")

    @property
    def open_us(self) -> int:
        """`open_s` in microseconds."""
        return round(self.open_s * MICROSECONDS)


class Sign(StrEnum):
    """What the end of an attempt says of the service behind its tool."""

    FAULT = "fault"
    ANSWER = "answer"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Health:
    """A sign, and the breaker that it is for."""

    sign: Sign
    breaker: Breaker


@dataclass(frozen=True, slots=True)
class Circuit:
    """What the ledger keeps of a breaker. `opened_at` None: closed. While it is open, at most one attempt is the
    probe: the one of `probe_claim`, until `probe_until` (then its process has died, and another may be it)."""

    failures: int = 0
    opened_at: int | None = None
    probe_claim: str | None = None
    probe_until: int | None = None


CLOSED = Circuit()


def wait_us(circuit: Circuit, breaker: Breaker, now: int) -> int:
    """Microseconds until an attempt may begin; 0 when it may now, as the probe if the breaker is open.

    Example:
        >>> wait_us(Circuit(5, opened_at=0), Breaker(open_s=60), 20_000_000)
        40000000
    """
    if circuit.opened_at is None:
        return 0
    cooled = circuit.opened_at + breaker.open_us
    if now < cooled:
        return cooled - now
    if circuit.probe_until is not None and now <= circuit.probe_until:
        return max(1, circuit.probe_until - now)
    return 0


def probing(circuit: Circuit, claim: str, until: int) -> Circuit:
    """As it is once the attempt of `claim` is the probe."""
    return replace(circuit, probe_claim=claim, probe_until=until)


def after(circuit: Circuit, health: Health, claim: str | None, now: int) -> Circuit:
    """As it is after the end of the attempt of `claim`. While it is open, only the probe has a say."""
    probe = circuit.probe_claim is not None and circuit.probe_claim == claim
    if circuit.opened_at is not None and not probe:
        return circuit
    match health.sign:
        case Sign.ANSWER:
            return CLOSED
        case Sign.NOTHING:
            return replace(circuit, probe_claim=None, probe_until=None) if probe else circuit
        case Sign.FAULT:
            failures = circuit.failures + 1
            opens = probe or failures >= health.breaker.failures
            return Circuit(failures, now if opens else None)
