"""C56: a process that dies in the middle of a purchase; its money is held until the end of the purchase is proven."""

from __future__ import annotations

import os
import signal
from typing import Any

from cases.processes import playing
from cases.scene import until

from counterfoil import Absent, Budget, Effect, Executor, Policy, Tool, tool

BUDGET = Budget(spend={"eur": 1000})
MARGIN_S = 0.1


def deadly_buy(*, dies: bool) -> Tool[..., Any]:
    """A purchase in whose middle the process is killed, if it is to be; nothing of it ever arrives."""

    @tool(key=("order",), cost=lambda a: ("eur", 700), policy=Policy(timeout_s=1, grace_s=0))
    def buy(order: str) -> str:
        """Buy one thing. Use it when it is wanted."""
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return "bought"

    buy.postcondition(lambda effect: look(effect))
    return buy


def look(_: Effect) -> Absent:
    """Nothing is ever there."""
    return Absent()


def life(url: str) -> None:
    """Begin a purchase and die in it."""
    with Executor(url, [deadly_buy(dies=True)], budget=BUDGET, clock_margin_s=MARGIN_S) as executor:
        executor.call("buy", {"order": "A"}, task="t")


def test_money_is_held_over_a_crash(ledger_url: str) -> None:
    """Killed between begin and settle: the 700 are reserved, another purchase does not fit, and is let through as soon
    as a look has proven that there was none."""
    with playing(life, url=ledger_url) as child:
        assert child.ended() == -signal.SIGKILL
    with Executor(ledger_url, [deadly_buy(dies=False)], budget=BUDGET, clock_margin_s=MARGIN_S) as executor:
        assert [one["event"] for one in executor.audit.spending("t")] == ["reserved"]
        assert executor.call("buy", {"order": "B"}, task="t").code == "budget_exhausted"
        until(lambda: executor.reconcile().no_effect == 1, "the absence is proven")
        assert executor.call("buy", {"order": "B"}, task="t").code == "ok"
        assert executor.task("t").spent == {"eur": 700}
