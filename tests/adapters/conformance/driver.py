"""What an adapter brings to the suite: one driver, which runs a scripted conversation through its framework.

To add an adapter: write `drivers/NAME.py` with a `Driver`, and name it in `drivers/__init__.py`. Nothing else knows
any framework. A driver puts the model's results into `Told`s from what the framework is about to send to the model,
not from what the adapter returned, and has the framework's own retries switched on. What the framework keeps of a
conversation to go on after a crash (checkpoints, sessions, messages) is switched on too, in files.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from adapters.conformance.house import House, Pay
from adapters.conformance.model import Model, Told


@dataclass(frozen=True, slots=True)
class Ended:
    """How a conversation ended: by the model's last word, or stopped by the code of an observation.

    `told`: where it was stopped, the results of its last round, as they stand in the conversation for whoever goes on.
    """

    stop: str | None = None
    told: tuple[Told, ...] = ()


class Driver(Protocol):
    """One framework.

    Attributes:
        name: what the tests and the table call it.
        flags_errors: its results carry a flag for errors.
        cancellable: a conversation is a coroutine that can be cancelled while a tool runs.
    """

    name: str
    flags_errors: bool
    cancellable: bool

    async def converse(self, house: House, model: Model, *, task: str, store: Path, resumes: bool = False) -> Ended:
        """Go on until the model ends or the run stops. The tools are `house.executor()`'s or its asynchronous twin's.

        `store`: an empty folder for what the framework keeps. `resumes`: there was a conversation with that folder,
        which was interrupted; the framework takes it up again from what is there, and from nothing else.
        """

    async def stock(self, pay: Pay, model: Model, *, store: Path, resumes: bool = False) -> Any:
        """The same conversation with `pay(order, amount, note)` as the framework's own kind of tool, as its manual has
        it. What it raises ends the conversation."""

    def existing(self, function: Callable[..., Any]) -> Any:
        """The framework's own kind of tool, made of a function or a coroutine function; the function where it has
        none."""
