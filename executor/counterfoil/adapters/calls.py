"""What the adapters have in common: a call as a framework hands it over, and what goes back to the model.

Owns the way from there to `executor.call` and back. It knows no framework; the text that a model reads is the
observation's, unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from counterfoil.observe import Observation
from counterfoil.runner.async_executor import AsyncExecutor
from counterfoil.runner.executor import Executor

AnyExecutor: TypeAlias = Executor | AsyncExecutor
Message: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. `id` is the model's, recorded and never identity: a model makes a new one each time."""

    name: str
    arguments: str | bytes | Mapping[str, Any]
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """What one turn of the model has led to.

    Attributes:
        messages: what to append to the conversation, in the form of the API.
        observations: one for each call, in its order.
    """

    messages: tuple[Message, ...]
    observations: tuple[Observation, ...]

    @property
    def stop(self) -> str | None:
        """The code that ends the run, else None. Append the messages, end the loop, and call a person."""
        return next((one.stop for one in self.observations if one.stop is not None), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call belongs: see `Executor.call`."""

    task: str | None = None
    turn: int | None = None
    context: Any = None


def observed(executor: Executor, call: Call, place: Place) -> Observation:
    """Run one call. Raises as `Executor.call` does."""
    return executor.call(
        call.name, call.arguments, task=place.task, turn=place.turn, call_id=call.id, context=place.context
    )


async def observed_async(executor: AnyExecutor, call: Call, place: Place) -> Observation:
    """Run one call without holding up the loop, whichever kind of executor it is.

    A cancellation of an `AsyncExecutor` is recorded, then raised. An `Executor` runs in a thread, which a cancellation
    cannot reach: its call goes on to its end, and that is recorded.
    """
    if isinstance(executor, Executor):
        return await asyncio.to_thread(observed, executor, call, place)
    return await executor.call(
        call.name, call.arguments, task=place.task, turn=place.turn, call_id=call.id, context=place.context
    )


def answered(
    executor: Executor, calls: Iterable[Call], place: Place, said: Callable[[Call, Observation], Message]
) -> Answers:
    """Run the calls of one turn, one after the other; `said` puts an observation into the form of the API."""
    asked = list(calls)
    seen = [observed(executor, call, place) for call in asked]
    return Answers(tuple(map(said, asked, seen)), tuple(seen))


async def answered_async(
    executor: AnyExecutor, calls: Iterable[Call], place: Place, said: Callable[[Call, Observation], Message]
) -> Answers:
    """Run the calls of one turn side by side; each gets its own outcome."""
    asked = list(calls)
    seen = await asyncio.gather(*(observed_async(executor, call, place) for call in asked))
    return Answers(tuple(map(said, asked, seen)), tuple(seen))


def member(thing: Any, name: str) -> Any:
    """A member of what an API answered: an object of its SDK, or plain JSON data. None where it has none."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
