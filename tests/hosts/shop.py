"""An application that runs on several hosts: one tool that pays at the provider whose address is in PROVIDER."""

from __future__ import annotations

import os

from provider import Provider

from counterfoil import Absent, AsyncExecutor, Effect, Executor, Found, Policy, Unclear, tool

OK = 200
LOOK_S = 1.0


def provider() -> Provider:
    return Provider.at(os.environ["PROVIDER"])


@tool(
    key=("order",),
    sends="marked",
    policy=Policy(timeout_s=1, grace_s=2, patience_s=0.05, wait_s=0.05, wait_max_s=0.2, look_timeout_s=5, breaker=None),
)
def pay(effect: Effect, order: str) -> dict[str, str]:
    """Pay for one order."""
    with effect.sending():
        answer = provider().send(effect.id, key=effect.provider_key, body={"order": order}, timeout_s=0.5)
    return {"payment": answer.body["id"]}


@pay.postcondition
def paid(effect: Effect) -> Found[dict[str, str]] | Absent | Unclear:
    answer = provider().look(effect.id, timeout_s=LOOK_S)
    if answer.status != OK:
        return Unclear(f"the provider answered {answer.status}")
    seen = [one["id"] for one in answer.body]
    return Found({"payment": seen[0]}, reference=seen) if seen else Absent()


def executor() -> Executor:
    return Executor(os.environ["COUNTERFOIL_LEDGER"], [pay], clock_margin_s=0.5)


def asynchronous() -> AsyncExecutor:
    return AsyncExecutor(os.environ["COUNTERFOIL_LEDGER"], [pay], clock_margin_s=0.5)
