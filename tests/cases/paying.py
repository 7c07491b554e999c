"""A payment at the provider process, by a process whose clock stands where a test says."""

from __future__ import annotations

import os
import signal

from provider import Provider

from counterfoil import Absent, Effect, Executor, Found, ManualClock, Policy, Tool, Unclear, tool

SECOND = 1_000_000
START_US = 1_800_000_000 * SECOND
OK = 200


def pay_at(provider: Provider, policy: Policy, *, killed: str = "") -> Tool[..., dict[str, str]]:
    """The tool. `killed`: its process is killed "before" the request or "after" the effect has landed."""

    @tool(key=("order",), policy=policy)
    def pay(effect: Effect, order: str) -> dict[str, str]:
        """Pay for one order."""
        if killed == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = provider.send(effect.id, body={"order": order})
        if killed == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"payment": answer.body["id"]}

    @pay.postcondition
    def paid(effect: Effect) -> Found[dict[str, str]] | Absent | Unclear:
        answer = provider.look(effect.id)
        if answer.status != OK:
            return Unclear(f"the provider answered {answer.status}")
        seen = [one["id"] for one in answer.body]
        return Found({"payment": seen[0]}, reference=seen) if seen else Absent()

    return pay


def call_and_die(url: str, provider_url: str, killed: str, timeout_s: float, grace_s: float) -> None:
    """Pay for order A in this process, which does not survive it."""
    tool_ = pay_at(Provider.at(provider_url), Policy(timeout_s=timeout_s, grace_s=grace_s), killed=killed)
    with Executor(url, [tool_], clock=ManualClock(START_US)) as executor:
        executor.call("pay", {"order": "A"})
