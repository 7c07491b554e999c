"""What the cases share: a payment at the provider, how to look for it, and how to read the story of an effect.

Owns no fixture and no assertion about messages (`messages.py`) or processes (`processes.py`). Effects are counted at
the provider, which is another process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa
from provider import Provider

from counterfoil import Absent, Effect, Executor, Found, Policy, Tool, Unclear, tool

Evidence = Found[Any] | Absent | Unclear
Look = Callable[[Effect], Evidence]

WAIT_S: Final = 20.0
# Where no fault holds a connection, so that only a busy machine could reach it.
AMPLE_S: Final = 10.0
POLL_S: Final = 0.01


class ProviderError(Exception):
    """The provider answered with a status that is no success. By itself it proves nothing."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def post(
    provider: Provider, effect: Effect, body: Any, *, key: str | None = None, timeout_s: float | None = None
) -> dict[str, str]:
    """One request for one effect, which carries `effect.id`. The client sends once and follows nothing."""
    answer = provider.send(effect.id, key=key, body=body, timeout_s=timeout_s or AMPLE_S)
    if answer.status != 201:
        raise ProviderError(answer.status)
    effect.reference = answer.body["id"]
    return {"payment": answer.body["id"]}


def find(provider: Provider, effect: Effect) -> Evidence:
    """Look for what carries `effect.id`: only a full answer counts, and only an empty list is absence."""
    answer = provider.look(effect.id, timeout_s=AMPLE_S)
    if answer.status != 200 or not isinstance(answer.body, list):
        return Unclear(f"the provider answered {answer.status}")
    ids = [one["id"] for one in answer.body]
    return Found({"payment": ids[0]}, reference=ids) if ids else Absent()


def payment_tool(provider: Provider, policy: Policy, *, looks: bool = True) -> Tool[..., Any]:
    """`create_payment(order, amount)`: one POST, no de-duplication, and (unless `looks` is False) a look by id."""

    @tool(key=("order",), sends="once", policy=policy)
    def create_payment(effect: Effect, order: str, amount: int) -> dict[str, str]:
        """Pay one order. Use it when the customer has confirmed the amount."""
        return post(provider, effect, {"order": order, "amount": amount}, timeout_s=0.3)

    if looks:
        create_payment.postcondition(lambda effect: find(provider, effect))
    return create_payment


def story(executor: Executor, effect_id: str | None) -> list[tuple[str, int]]:
    """The entries of an effect as (event, attempt), oldest first."""
    return [(entry.event, entry.attempt) for entry in executor.audit.history(named(effect_id))]


def details(executor: Executor, effect_id: str | None, event: str) -> list[dict[str, Any]]:
    """The details of all entries of one kind, oldest first."""
    return [entry.detail for entry in executor.audit.history(named(effect_id)) if entry.event == event]


def incidents(executor: Executor) -> list[str]:
    """The kinds of the open incidents, oldest first."""
    return [one.kind for one in reversed(executor.audit.incidents())]


def named(effect_id: str | None) -> str:
    """The id, which an observation about an effect always has."""
    assert effect_id is not None
    return effect_id


def until(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds, for at most `WAIT_S` seconds of real time."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"it did not come to this: {what}")
        time.sleep(POLL_S)


def until_free(executor: Executor, effect_id: str | None = None) -> None:
    """Wait until nobody holds the one effect of this ledger any more: its lease is over, by the ledger's time."""

    def free() -> bool:
        (row,) = executor.audit.effects()
        return not row.live

    until(free, "the lease is over")


@contextmanager
def database(ledger: str) -> Iterator[sa.Engine]:
    """The ledger's database without the ledger, for questions about the tables themselves."""
    engine = sa.create_engine(ledger)
    try:
        yield engine
    finally:
        engine.dispose()


def sent(provider: Provider) -> list[dict[str, Any]]:
    """The requests for an effect that arrived at the provider, looks left out."""
    return [request for request in provider.requests() if request["method"] == "POST"]


def looked(provider: Provider) -> int:
    """How many looks arrived at the provider."""
    return sum(request["method"] == "GET" for request in provider.requests())
