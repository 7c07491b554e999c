"""What an observer may hear besides the steps: that a call came, and what was told at its end.

Owns the frame around a call. What an observer is, and that it must not raise, stands in `job`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from counterfoil.observe import Observation
from counterfoil.runner.job import Observer

Tell: TypeAlias = Callable[[Observation], Observation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call as it came: nothing of it is checked yet.

    Args:
        tool: the name that was asked for.
        task: the task, or None.
        turn: the round of the model in the task, or None.
        call_id: the model's id of the call, or None.
    """

    tool: str
    task: str | None = None
    turn: int | None = None
    call_id: str | None = None


@runtime_checkable
class CallObserver(Observer, Protocol):
    """An observer that also hears whole calls: `called` before anything else, then the steps, then `told` with what
    the model is told, or `raised` with the exception that left the call. All in the call's own thread or task. None of
    them may raise."""

    def called(self, call: Called) -> None:
        """A call came."""

    def told(self, observation: Observation) -> None:
        """It has ended, and this is what the model is told."""

    def raised(self, problem: BaseException) -> None:
        """It was left by an exception: a cancellation, or the developer's mistake."""


@contextmanager
def heard(observer: Observer | None, call: Called) -> Iterator[Tell]:
    """Frame a call: what is handed to `tell` is what the model is told."""
    if observer is None or not isinstance(observer, CallObserver):
        yield _same
        return
    observer.called(call)

    def tell(observation: Observation) -> Observation:
        observer.told(observation)
        return observation

    try:
        yield tell
    except BaseException as problem:
        observer.raised(problem)
        raise


def _same(observation: Observation) -> Observation:
    return observation
