"""Four agents that want one payment. Each says at the end whether it was made, or that it does not know.

Owns how they decide. The first three call the provider themselves, as agents do today; the last has an executor
between, and obeys the next action of each message: it reads nothing else of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

from episodes.market import LAG_S, LATE_S, Market, Refused, ServerError, Throttled

import counterfoil
from counterfoil import Absent, Effect, Executor, Found, Policy, Tool, Unclear, tool

Said: TypeAlias = Literal["done", "not done", "reported"]
Agent: TypeAlias = Callable[[Market, str], Said]
TRIES: Final = 5
PAUSE_S: Final = 1.0
FAILURES: Final = (Refused, Throttled, ServerError, TimeoutError, KeyboardInterrupt)
MOVES_MOST: Final = 60


def never_again(market: Market, _: str) -> Said:
    """One request; what fails has failed."""
    try:
        market.pay("order")
    except FAILURES:
        return "not done"
    return "done"


def blind(market: Market, _: str) -> Said:
    """The same request again until one is answered."""
    for _number in range(TRIES):
        try:
            market.pay("order")
        except FAILURES:
            market.clock.advance(PAUSE_S)
        else:
            return "done"
    return "not done"


def looks_once(market: Market, _: str) -> Said:
    """After a failure it looks once, and sends again if it sees nothing."""
    for _number in range(TRIES):
        try:
            market.pay("order")
        except FAILURES:
            market.clock.advance(PAUSE_S)
            try:
                if market.look("order"):
                    return "done"
            except ServerError:
                continue
        else:
            return "done"
    return "not done"


def obedient(market: Market, ledger: str) -> Said:
    """It calls through Counterfoil and does what the next action says, word by word."""
    with Executor(ledger, [pay_with(market)], clock=market.clock) as executor:
        call: tuple[str, dict[str, Any]] = ("pay", {"order": "order"})
        for _ in range(MOVES_MOST):
            try:
                seen = executor.call(*call)
            except KeyboardInterrupt:  # the process was interrupted; started anew it asks for the same again
                continue
            move = understood(seen.next_action)
            match move:
                case (name, arguments, seconds):
                    market.clock.advance(seconds)
                    executor.reconcile()  # as a watcher does on every host
                    call = (name, arguments or {"order": "order"})
                case said:
                    return said
        return "reported"


def understood(action: str) -> Said | tuple[str, dict[str, Any], float]:
    """What an agent does that reads the next action and nothing else: a call and the seconds before it, or its end."""
    seconds = float(found[1]) if (found := re.search(r"in (\d+) s", action)) else 0.0
    if named := re.search(r"[Cc]all check_effect with effect_id (\S+) in", action):
        return "check_effect", {"effect_id": named[1]}, seconds
    if action.startswith(("Stop", "Report", "Do not", "Ask the user")) or "only if a separate one is really" in action:
        return "reported"
    if re.search(r"[Cc]all pay again|^Use another|^Call one of the known tools", action):
        return "pay", {}, seconds
    if action.startswith("Go on"):
        return "done"
    raise AssertionError(f"an agent would not know what to do: {action}")


def pay_with(market: Market) -> Tool[..., Any]:
    """The tool, as its author declares it: what proves nothing is not called a refusal, and the grace covers both how
    late a request may land and how long a look may miss it."""
    grace_s = LATE_S + LAG_S

    @tool(key=("order",), sends="marked", policy=Policy(timeout_s=5, grace_s=grace_s, patience_s=60, attempts_max=5))
    def pay(effect: Effect, order: str) -> dict[str, str]:
        """Pay one order. Use it after the customer has confirmed the total."""
        with effect.sending():
            try:
                return {"receipt": market.pay(effect.id)}
            except Refused:
                raise ConnectionRefusedError from None
            except Throttled:
                raise counterfoil.Throttled(2.0) from None

    @pay.postcondition
    def paid(effect: Effect) -> Found[dict[str, str]] | Absent | Unclear:
        shown = market.look(effect.id)
        return Found({"receipt": "found"}, reference=None, count=shown) if shown else Absent()

    return pay


AGENTS: Final[dict[str, Agent]] = {
    "tries again": blind,
    "never tries again": never_again,
    "looks once, then tries again": looks_once,
    "through Counterfoil": obedient,
}
