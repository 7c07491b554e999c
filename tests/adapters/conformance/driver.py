"""What an adapter brings to the suite: one driver, which runs a scripted conversation through its framework.

To add an adapter: write `drivers/NAME.py` with a `Driver`, and name it in `drivers/__init__.py`. Nothing else knows
any framework. A driver puts the model's results into `Told`s from what the framework is about to send to the model,
not from what the adapter returned, and has the framework's own retries switched on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from adapters.conformance.house import House, Pay
from adapters.conformance.model import Call, Model


@dataclass(frozen=True, slots=True)
class Ended:
    """How a conversation ended: by the model's last word, or stopped by the code of an observation."""

    stop: str | None = None


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

    async def converse(
        self, house: House, model: Model, *, task: str, pending: tuple[Call, ...] | None = None
    ) -> Ended:
        """Go on until the model ends or the run stops. The tools are `house.executor()`'s or its asynchronous twin's.

        `pending`: the framework takes the conversation up again from what was stored, where the model had made these
        calls and no result was stored.
        """

    async def stock(self, pay: Pay, model: Model, *, pending: tuple[Call, ...] | None = None) -> Any:
        """The same conversation with `pay(order, amount, note)` as the framework's own kind of tool, as its manual has
        it. What it raises ends the conversation."""
