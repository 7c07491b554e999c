"""Counterfoil executes tool calls that change the outside world, and knows afterwards what it knows.

At most one effect per key, unless the earlier attempt is proven to have had none. When nothing can be proven, the
verdict is `effect_unknown`, nothing is sent again, and a later look or a person decides.
"""

from counterfoil.arguments import Content, NotSecret, Secret
from counterfoil.attempt import Effect, current_effect
from counterfoil.clock import Clock, ManualClock, SystemClock
from counterfoil.effect import Absent, Entry, Found, Incident, Proof, Revoked, Row, Unclear, Verdict
from counterfoil.errors import (
    CounterfoilError,
    DeadlinePassed,
    Forbidden,
    LedgerError,
    LedgerUnavailable,
    Rejected,
    StaleVersion,
    Throttled,
    UsageError,
)
from counterfoil.guard import Alike, Breaker, Budget, LoopGuard
from counterfoil.key_policy import KeyPolicy
from counterfoil.observe import Observation
from counterfoil.reconcile import Reconciled
from counterfoil.runner.async_executor import AsyncExecutor
from counterfoil.runner.executor import Executor
from counterfoil.runner.hearing import Called, CallObserver
from counterfoil.runner.messages import Messages
from counterfoil.runner.task import AsyncTask, Task
from counterfoil.runner.watch import Round
from counterfoil.spec import ErrorSpec
from counterfoil.tool import ALL_ARGUMENTS, Policy, Tool, tool

__all__ = [
    "ALL_ARGUMENTS",
    "Absent",
    "Alike",
    "AsyncExecutor",
    "AsyncTask",
    "Breaker",
    "Budget",
    "CallObserver",
    "Called",
    "Clock",
    "Content",
    "CounterfoilError",
    "DeadlinePassed",
    "Effect",
    "Entry",
    "ErrorSpec",
    "Executor",
    "Forbidden",
    "Found",
    "Incident",
    "KeyPolicy",
    "LedgerError",
    "LedgerUnavailable",
    "LoopGuard",
    "ManualClock",
    "Messages",
    "NotSecret",
    "Observation",
    "Policy",
    "Proof",
    "Reconciled",
    "Rejected",
    "Revoked",
    "Round",
    "Row",
    "Secret",
    "StaleVersion",
    "SystemClock",
    "Task",
    "Throttled",
    "Tool",
    "Unclear",
    "UsageError",
    "Verdict",
    "current_effect",
    "tool",
]
