"""What an executor brings for its guards, and the steps of a call that ask them.

Owns how a call is described to them: its similarity, its cost, its limits. They decide in the ledger's transactions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from counterfoil.arguments import Valid
from counterfoil.changes import GUARDED, Applied, Declined
from counterfoil.effect import MICROSECONDS, Row
from counterfoil.errors import LedgerUnavailable, UsageError
from counterfoil.exact_json import MAX_DIGITS
from counterfoil.guard import Admitted, Asks, Blocked, Budget, End, LoopGuard, Repeats, Sign, Twin, similarity
from counterfoil.guard.breaker import CLOSED, Health
from counterfoil.guard.budget import check_amount
from counterfoil.ledger.ledger import Ledger
from counterfoil.looking import checked
from counterfoil.observe import Observation
from counterfoil.runner.check import CHECK_EFFECT
from counterfoil.runner.job import NO_ROW, Job
from counterfoil.runner.look import Looking
from counterfoil.runner.worker import Deadline
from counterfoil.steps import Flow, Started, Tally, Weigh
from counterfoil.tallying import polled, tallied
from counterfoil.telling import blocked_call
from counterfoil.text import storable
from counterfoil.tool import Tool

Mode: TypeAlias = Literal["enforce", "observe"]
PROBE_MARGIN_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What an executor was given for its guards, and who it is.

    Raises:
        UsageError: something is no limit; says how to mend it.
    """

    tenant: str
    actor: str
    budget: Budget | None
    loop: LoopGuard | None
    mode: Mode

    def __post_init__(self) -> None:
        wanted: tuple[tuple[str, Any, type, str], ...] = (
            ("budget", self.budget, Budget, "Budget(calls_per_task=100)"),
            ("loop_guard", self.loop, LoopGuard, "LoopGuard(wrong_input=2)"),
        )
        for name, given, kind, example in wanted:
            if given is not None and not isinstance(given, kind):
                raise UsageError(f"{name}= takes a {kind.__name__}, for example {example}, or None")
        if self.mode not in ("enforce", "observe"):
            raise UsageError(f'mode={self.mode!r}: it is "enforce", or "observe", where guards only count')

    def needs_task(self, task: str | None) -> None:
        """Refuse a call that no budget could count.

        Raises:
            UsageError: the executor has a budget, and the call names no task.
        """
        if self.budget is not None and not task:
            raise UsageError("budget= counts for each task: give call(..., task=...) a name for the piece of work")

    def asks(self, tool: str, task: str = "", turn: int | None = None, **more: Any) -> Asks:
        """What is asked for in this executor's name. Without a task there is nothing to count in."""
        loop, budget = (self.loop, self.budget) if task else (None, None)
        enforce = self.mode == "enforce"
        return Asks(
            tenant=self.tenant, tool=tool, task=task, turn=turn, actor=self.actor, budget=budget, loop=loop,
            enforce=enforce, **more,
        )  # fmt: skip

    def checked(self, job: Job, row: Row, *, looks: bool) -> tuple[Job, Flow[Observation]]:
        """What is known of an effect, and what the loop guard counts of the question."""
        how: dict[str, Any] = {"looks": looks, "errors": job.tool.errors}
        if self.loop is None or not job.task:
            return job, checked(row, row.tool, **how)
        asks = self.asks(CHECK_EFFECT, job.task, job.turn, similar=similarity(CHECK_EFFECT, {"effect_id": row.id}, {}))
        return replace(job, asks=asks), polled(row, row.tool, self.loop, **how)

    def tallied(self, job: Job, one: Flow[Observation]) -> Flow[Observation]:
        """The call, and what the loop guard counts of it."""
        if self.loop is None or not job.task:
            return one
        return tallied(one, self.loop, enforce=self.mode == "enforce")


def asks_of(job: Job, limits: Limits, valid: Valid, again: str) -> Asks:
    """What one attempt of this call asks for. `again` tells wanted repeats apart.

    Raises:
        UsageError: the tool's `cost` fails, or is no unit and amount.
    """
    tool, counts = job.tool, bool(job.task)
    return limits.asks(
        tool.name,
        job.task,
        job.turn,
        similar=similar_to(tool, valid, again) if counts and limits.loop is not None else None,
        cost=cost_of(tool, valid) if counts else None,
        breaker=tool.policy.breaker,
        lease_us=_lease_us(tool),
    )


def with_twin(job: Job, occurrence: str | int | None) -> Asks | None:
    """What a begin asks for, look-alikes included where the tool wants them held."""
    window_s = job.tool.policy.twin_window_s
    if job.asks is None or window_s is None:
        return job.asks
    confirmed = occurrence not in (None, "")
    return replace(job.asks, twin=Twin(round(window_s * MICROSECONDS), confirmed, job.tool.repeatable))


def asks_of_undo(tool: Tool[Any, Any], limits: Limits) -> Asks:
    """Taking an effect back ends a bad day: it is paused by its own name, and no budget or loop guard is against it."""
    return limits.asks(tool.name, breaker=tool.policy.breaker, lease_us=_lease_us(tool))


def _lease_us(tool: Tool[Any, Any]) -> int:
    """How long a probe has: a process that has died with it must not keep the breaker open."""
    return round((tool.policy.timeout_s + PROBE_MARGIN_S) * MICROSECONDS)


def counted(
    ledger: Ledger,
    limits: Limits,
    seen: Observation,
    tool: Tool[Any, Any] | None,
    name: str,
    echo: str,
    task: str | None,
    turn: int | None,
) -> Observation:
    """Arguments that did not fit: what is told, once the loop guard has counted it."""
    if not task or limits.loop is None:
        return seen
    asks = limits.asks(storable(name), task, turn, similar=similar_to_sent(tool, name, echo))
    try:
        blocked = ledger.guards.refused_input(asks)
    except LedgerUnavailable:  # then it is told what is wrong, and not that it was wrong before
        return seen
    return seen if blocked is None else blocked_call(name, None, blocked, echo)


def similar_to(tool: Tool[Any, Any], valid: Valid, again: str) -> bytes:
    """The similarity of a call with these arguments: content counts too, what equals its default does not, and secrets
    count by what stands for them. With the same arguments it is the one of `similar_to_sent`."""
    sent, given = json.loads(valid.echo), json.loads(valid.stored)
    told = {name: one for name, one in given.items() if name in valid.identity}
    told |= {name: given[name] for name in tool.arguments.never_identity if name in given and name in sent}
    told |= {name: str(one) for name, one in valid.identity.items() if name not in given}
    return similarity(tool.name, told | ({" again": again} if again else {}), tool.arguments.alike)


def similar_to_sent(tool: Tool[Any, Any] | None, name: str, echo: str) -> bytes:
    """The similarity of a call whose arguments did not fit, from what was sent."""
    sent = json.loads(echo, parse_int=_number)
    arguments = sent if isinstance(sent, dict) else {"": sent}
    return similarity(name, arguments, {} if tool is None else tool.arguments.alike)


def _number(text: str) -> int | str:
    """An integer that was sent; one that Python does not read, which is refused anyway, counts as its text."""
    return int(text) if len(text) <= MAX_DIGITS else text


def cost_of(tool: Tool[Any, Any], valid: Valid) -> tuple[str, int] | None:
    """What the tool says that this call costs."""
    if tool.cost is None:
        return None
    try:
        given = tool.cost(dict(valid.values))
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is the developer's
        raise UsageError(
            f"the cost= of {tool.name} raised {type(problem).__name__}: it gets the arguments by name, as in "
            'lambda a: ("eur", a["amount_minor"])'
        ) from None
    check_cost(tool.name, given)
    return given


def check_cost(tool: str, given: Any) -> None:
    """Refuse what is no unit and amount.

    Raises:
        UsageError: says how to mend it.
    """
    if not isinstance(given, tuple) or len(given) != 2:
        raise UsageError(f'the cost= of {tool} returns no pair; let it return for example ("eur", 1250)')
    check_amount(f"the cost= of {tool}", *given)


class Guarding(Looking):
    """The steps of a call that ask the guards or tell them; for both shells."""

    admitted: Admitted | None = None

    def start_reading(self, deadline: Deadline) -> Started:
        """Let an attempt of a read-only tool through. Away from the ledger it goes on, unless a budget is to be kept:
        it changes nothing in the world."""
        asks = self.job.asks
        if asks is None:
            return Started(Applied(NO_ROW), deadline)
        self._claim = self.site.ledger.host.fresh()
        try:
            answer = self.site.ledger.guards.admit(asks, self._claim)
        except LedgerUnavailable:
            if asks.budget is not None:
                raise
            return Started(Applied(NO_ROW), deadline)
        if isinstance(answer, Blocked):
            return Started(Declined(None, GUARDED, answer))
        self.admitted = answer
        return Started(Applied(NO_ROW), deadline)

    def weigh(self, step: Weigh) -> None:
        """Count a sign of the service behind a read-only tool, where it changes anything."""
        asks, admitted = self.job.asks, self.admitted
        if asks is None or admitted is None or asks.breaker is None:
            return
        if step.sign is Sign.FAULT or admitted.circuit != CLOSED:
            self.site.ledger.guards.weigh(asks, Health(step.sign, asks.breaker), self._claim)

    def tally(self, step: Tally) -> Repeats | None:
        """Count the end of the call, where it changes anything: a success that nothing failed before does not."""
        asks = self.job.asks
        if asks is None or not asks.task or asks.similar is None:
            return None
        if step.end is End.DONE and (self.admitted is None or not self.admitted.repeats.failures):
            return None
        if step.end is End.UNKNOWN and self.admitted is not None:
            return None  # its own attempt was lost; only what is asked again counts
        if step.end is End.POLLED:
            return self.site.ledger.guards.polled(asks, step.answer or "")
        return self.site.ledger.guards.tally(asks, step.end, step.answer)

    _claim: str = ""
