"""Where a conversation happens: a ledger, a clock that is set, a provider in another process, and one tool.

Owns the tool `create_payment` in both forms: declared for Counterfoil, and bare for a framework's stock behaviour.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Final, TypeAlias

from cases.scene import AMPLE_S, find
from provider import Answer, Provider

from counterfoil import (
    AsyncExecutor,
    Budget,
    Clock,
    Content,
    Effect,
    Executor,
    Forbidden,
    ManualClock,
    Policy,
    Rejected,
    SystemClock,
    Tool,
    current_effect,
    tool,
)
from counterfoil.adapters import guard

Pay: TypeAlias = Callable[..., dict[str, str]]

TASK: Final = "trip-42"
POLICY: Final = Policy(timeout_s=30, grace_s=60, patience_s=10)


class ProviderError(Exception):
    """The provider answered with a status that is no success."""


@dataclass
class House:
    """One place. `later_s` sets the clock on, as when a process starts again; `real_time`: the clock is not set.

    `existing`: a framework's own tool, guarded in place of the declared one.
    """

    ledger: str
    provider: Provider
    later_s: float = 0.0
    real_time: bool = False
    existing: Any = None

    def __post_init__(self) -> None:
        self._manual = ManualClock()
        self._manual.advance(self.later_s)
        self.clock: Clock = SystemClock() if self.real_time else self._manual

    @contextmanager
    def executor(self) -> Iterator[Executor]:
        """A blocking executor of this place."""
        with Executor(self.ledger, [self.payment()], clock=self.clock, random=Random(1)) as executor:  # noqa: S311
            yield executor

    @asynccontextmanager
    async def async_executor(self) -> AsyncIterator[AsyncExecutor]:
        """An executor of this place for a program with a loop."""
        tools = [self.payment()]
        async with AsyncExecutor(self.ledger, tools, clock=self.clock, random=Random(1)) as executor:  # noqa: S311
            yield executor

    def payment(self) -> Tool[..., Any]:
        """`create_payment(order, amount, note)` for Counterfoil: one POST, and a look by the effect's id."""
        provider = self.provider
        if self.existing is not None:
            return guard(
                self.existing, key=("order",), policy=POLICY, postcondition=lambda effect: find(provider, effect)
            )

        @tool(key=("order",), sends="once", policy=POLICY)
        def create_payment(
            effect: Effect, order: str, amount: int, note: Annotated[str, Content] = ""
        ) -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            answer = _post(provider, effect.id, order, amount, note)
            if answer.status == 402:
                raise Rejected("card_declined", "the card was declined", hint="Ask the customer for another card.")
            if answer.status == 403:
                raise Forbidden("the account may not pay")
            effect.reference = _id(answer)
            return {"payment": _id(answer)}

        create_payment.postcondition(lambda effect: find(provider, effect))
        return create_payment

    def bare(self) -> Pay:
        """The same function as one would write it without Counterfoil."""
        provider = self.provider

        def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return {"payment": _id(_post(provider, order, order, amount, note))}

        return create_payment

    def knowing(self, *, awaited: bool) -> Callable[..., Any]:
        """The same function as one that is there already, and knows Counterfoil only where it sends."""
        provider = self.provider

        def create_payment(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            return {"payment": _id(_post(provider, current_effect().id, order, amount, note))}

        async def create_payment_async(order: str, amount: int, note: str = "") -> dict[str, str]:
            """Pay one order. Use it when the customer has confirmed the amount."""
            answer = await asyncio.to_thread(_post, provider, current_effect().id, order, amount, note)
            return {"payment": _id(answer)}

        create_payment_async.__name__ = create_payment.__name__
        return create_payment_async if awaited else create_payment

    def give(self, budget: Budget) -> None:
        """The task of the conversation gets a budget."""
        with self.executor() as executor:
            executor.task(TASK, budget=budget)

    def reconcile(self) -> None:
        """Another process looks at what is due, much later."""
        self._manual.advance(600)
        with self.executor() as executor:
            executor.reconcile()


def _post(provider: Provider, reference: str, order: str, amount: int, note: str) -> Answer:
    body = {"order": order, "amount": amount, "note": note}
    return provider.send(reference, body=body, timeout_s=AMPLE_S)


def _id(answer: Answer) -> str:
    if answer.status != 201:
        raise ProviderError(f"the provider answered {answer.status}")
    return str(answer.body["id"])
