"""Traces and metrics for OpenTelemetry (extra `telemetry`): one span for each call, and counters beside it.

Owns the names of spans, attributes and instruments. It hears what the model is told and which steps were taken, never
arguments, values or exceptions' texts; so nothing of those can leave through it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from threading import Lock
from typing import Final, Protocol

from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, MeterProvider
from opentelemetry.metrics import Observation as Reading
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider

from counterfoil.codes import CODES, GUARDED, Category
from counterfoil.effect import MICROSECONDS, Incident, Row, Verdict
from counterfoil.errors import LedgerError
from counterfoil.observe import Observation
from counterfoil.runner.hearing import Called

FAILING_MOST: Final = 10_000
_UNKNOWN_TOOL: Final = "unknown"


class Doubts(Protocol):
    """What the gauge asks."""

    def doubts(self, *, limit: int = 1000) -> list[Row]: ...


class Audited(Protocol):
    """An Executor or an AsyncExecutor."""

    @property
    def audit(self) -> Doubts: ...


@dataclass(slots=True)
class _Call:
    tool: str
    task: str
    span: Span
    attempts: int = 0
    looks: int = 0


_present: ContextVar[_Call | None] = ContextVar("counterfoil_call", default=None)


class Telemetry:
    """An observer that makes spans and metrics.

    A span `counterfoil.call` has the attributes `counterfoil.tool`, `.code`, `.verdict`, `.category`, `.replayed`,
    `.proof`, `.stop`, `.attempts` (made by this call), `.looks`, `.effect_id`, `.task` and `.turn`. An unknown
    effect gives it the status ERROR, and so does an exception that leaves the call: its class alone is noted. Counters:
    `counterfoil.calls` (tool, code, verdict), `counterfoil.recoverable_errors` (tool, code), `counterfoil.recoveries`
    (tool: a call that succeeded after failed ones in the same task), `counterfoil.looks` (tool),
    `counterfoil.attempts` (tool), `counterfoil.blocked_calls` (tool, code), `counterfoil.stops` (tool, code: calls
    that ended with `observation.stop`) and `counterfoil.incidents` (tool, kind:
    caps that were hit, doubts left, effects applied more than once). The gauge `counterfoil.oldest_unknown_s` stands
    once `gauge` was called.

    Args:
        tracer_provider: whose spans these are; the global one when left out.
        meter_provider: whose instruments these are; the global one when left out.

    Example:
        >>> import tempfile
        >>> from counterfoil import Executor
        >>> telemetry = Telemetry()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ledger = f"sqlite:///{folder}/ledger.db"
        ...     with Executor(ledger, observer=telemetry, on_incident=telemetry.incident) as executor:
        ...         telemetry.gauge(executor)
        ...         executor.call("pay", {}).code
        'unknown_tool'
    """

    def __init__(
        self, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer("counterfoil", version("counterfoil"), tracer_provider)
        meter = metrics.get_meter("counterfoil", version("counterfoil"), meter_provider)
        self._meter = meter
        count = meter.create_counter
        self._calls = count("counterfoil.calls", "{call}", "Calls, by what was told.")
        self._errors = count("counterfoil.recoverable_errors", "{call}", "Calls that the model can mend or repeat.")
        self._recoveries = count("counterfoil.recoveries", "{call}", "Successes after failures in the same task.")
        self._looks = count("counterfoil.looks", "{look}", "Postconditions asked.")
        self._attempts = count("counterfoil.attempts", "{attempt}", "Functions of tools run.")
        self._blocked = count("counterfoil.blocked_calls", "{call}", "Calls that a guard refused.")
        self._stops = count("counterfoil.stops", "{call}", "Calls that tell the agent to end its run.")
        self._incidents = count("counterfoil.incidents", "{incident}", "What a person should see.")
        self._failing: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = Lock()

    # ------------------------------------------------------------ what the executor tells

    def called(self, call: Called) -> None:
        """A call came."""
        span = self._tracer.start_span("counterfoil.call", kind=SpanKind.INTERNAL)
        if call.task:
            span.set_attribute("counterfoil.task", call.task)
        if call.turn is not None:
            span.set_attribute("counterfoil.turn", call.turn)
        _present.set(_Call(call.tool, call.task or "", span))

    def __call__(self, moment: str, step: str, tool: str, effect_id: str) -> None:
        """A step begins or has ended."""
        if moment != "before":
            return
        call = _present.get()
        if step in ("Attempt", "Transact"):
            self._attempts.add(1, {"counterfoil.tool": tool})
            if call is not None:
                call.attempts += 1
        elif step == "Ask":
            self._looks.add(1, {"counterfoil.tool": tool})
            if call is not None:
                call.looks += 1

    def told(self, observation: Observation) -> None:
        """A call has ended with what the model is told."""
        call = _present.get()
        if call is None:
            return
        _present.set(None)
        # A name that the model made up is no label: there would be as many as it can make up.
        tool = _UNKNOWN_TOOL if observation.code == "unknown_tool" else call.tool
        self._count(tool, call.task, observation)
        span = call.span
        about: dict[str, str | bool | int | None] = {
            "tool": tool,
            "code": observation.code,
            "verdict": str(observation.verdict),
            "category": observation.category,
            "replayed": observation.replayed,
            "attempts": call.attempts,
            "looks": call.looks,
            "stop": observation.stop,
            "proof": None if observation.proof is None else str(observation.proof),
            "effect_id": observation.effect_id,
        }
        span.set_attributes({f"counterfoil.{name}": value for name, value in about.items() if value is not None})
        if observation.verdict is Verdict.EFFECT_UNKNOWN:
            span.set_status(StatusCode.ERROR, observation.code)
        span.end()

    def raised(self, problem: BaseException) -> None:
        """A call was left by an exception: a cancellation, or the developer's mistake."""
        call = _present.get()
        if call is None:
            return
        _present.set(None)
        call.span.set_attributes({"counterfoil.tool": call.tool, "counterfoil.attempts": call.attempts})
        call.span.set_status(StatusCode.ERROR, type(problem).__name__)
        call.span.end()

    def incident(self, incident: Incident) -> None:
        """An incident was written: hand this to the executor as `on_incident`."""
        self._incidents.add(1, {"counterfoil.tool": incident.tool, "counterfoil.kind": incident.kind})

    def gauge(self, executor: Audited) -> None:
        """Report the age of the executor's oldest unknown effect, in seconds; 0 when there is none. It is read from the
        ledger whenever the metrics are collected; while the ledger is away nothing is reported."""
        self._meter.create_observable_gauge(
            "counterfoil.oldest_unknown_s", [_oldest(executor.audit)], "s", "Age of the oldest unknown effect."
        )

    # ------------------------------------------------------------ counting

    def _count(self, tool: str, task: str, observation: Observation) -> None:
        named = {"counterfoil.tool": tool}
        coded = named | {"counterfoil.code": observation.code}
        self._calls.add(1, coded | {"counterfoil.verdict": str(observation.verdict)})
        if observation.code in GUARDED:
            self._blocked.add(1, coded)
        elif observation.category in (str(Category.RECOVERABLE), str(Category.RETRYABLE)):
            self._errors.add(1, coded)
        if observation.stop is not None:
            self._stops.add(1, coded)
        if self._recovered((task, tool), observation):
            self._recoveries.add(1, named)

    def _recovered(self, whose: tuple[str, str], observation: Observation) -> bool:
        with self._lock:
            if observation.ok:
                return self._failing.pop(whose, self) is None
            if observation.code in CODES and CODES[observation.code].category is Category.DONE:
                return False
            self._failing[whose] = None
            self._failing.move_to_end(whose)
            while len(self._failing) > FAILING_MOST:
                self._failing.popitem(last=False)
            return False


def _oldest(audit: Doubts) -> Callable[[CallbackOptions], Iterable[Reading]]:
    def read(_: CallbackOptions) -> Iterable[Reading]:
        try:
            oldest = audit.doubts(limit=1)
        except LedgerError:
            return []
        return [Reading((one.now - one.unknown_since) / MICROSECONDS) for one in oldest] or [Reading(0.0)]

    return read
