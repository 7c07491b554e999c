"""C18: start-up recovery adopts an action that its own process runs (https://github.com/dbos-inc/dbos-transact-java/issues/491).

Recovery at launch looked for unfinished rows, found one that a caller of the same process had just inserted, and ran it
a second time. Here an executor starts and is called at once, and recovers while the tool runs: 200 times, with ten
orders in each launch so that starting does not take most of the time.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

from cases.messages import assert_applied
from cases.scene import WAIT_S, find, incidents, looked, post, sent, story
from provider import Provider

from counterfoil import Effect, Executor, Policy, Reconciled, Tool, tool

LAUNCHES = 20
ORDERS = 10
JITTER_S = 0.01


class Launch:
    """One start. The tool of each order returns only after the recovery of that order has been made."""

    def __init__(self, ledger: str, provider: Provider, orders: Sequence[int], random: Random) -> None:
        self._jitter_s = {order: random.uniform(0, JITTER_S) for order in orders}
        self._begun = {order: threading.Event() for order in orders}
        self._recovered = {order: threading.Event() for order in orders}
        self._threads = ThreadPoolExecutor(2 * len(orders))
        self.executor = Executor(ledger, [self._charge(provider)])

    def _charge(self, provider: Provider) -> Tool[..., Any]:
        @tool(key=("order",), sends="once", policy=Policy(timeout_s=30.0, grace_s=5.0))
        def charge(effect: Effect, order: int) -> dict[str, str]:
            """Charge one order."""
            self._begun[order].set()
            done = post(provider, effect, {"order": order})
            assert self._recovered[order].wait(WAIT_S)
            return done

        charge.postcondition(lambda effect: find(provider, effect))
        return charge

    def _recover(self, order: int) -> None:
        """Some milliseconds after the order's intent is durable, and before its tool returns."""
        assert self._begun[order].wait(WAIT_S)
        threading.Event().wait(self._jitter_s[order])  # the jitter of the case: nothing waits for it
        assert self.executor.reconcile() == Reconciled()
        mine = {row.arguments: row for row in self.executor.audit.doubts()}[f'{{"order":{order}}}']
        assert (mine.live, mine.holder, mine.attempts) == (True, self.executor._site.holder, 1)
        assert mine.now < mine.lease_until

    def recovered(self) -> None:
        """All orders are called and recovered, at the same time."""
        calls = [self._threads.submit(self.executor.call, "charge", {"order": order}) for order in self._begun]
        for one in [self._threads.submit(self._recover, order) for order in self._begun]:
            one.result(WAIT_S)
        for event in self._recovered.values():
            event.set()
        for call in calls:
            assert_applied(call.result(WAIT_S), code="ok")
        self._threads.shutdown()


def test_recovery_leaves_live_rows_alone(ledger_url: str, provider: Provider) -> None:
    """Each recovery falls into its call: the row is listed as live, with its owner and its lease, and nothing is done
    to it; the call ends as applied. One effect for each order, and nobody looked at any."""
    jitter = Random(18)  # noqa: S311 - jitter, no secret
    for number in range(LAUNCHES):
        launch = Launch(ledger_url, provider, range(number * ORDERS, (number + 1) * ORDERS), jitter)
        with launch.executor:
            launch.recovered()
    with Executor(ledger_url) as executor:
        rows = executor.audit.effects(limit=10 * LAUNCHES * ORDERS)
        assert len(rows) == LAUNCHES * ORDERS
        for row in rows:
            assert story(executor, row.id) == [("begun", 1), ("returned", 1)]
        assert incidents(executor) == []
    provider.quiesce()
    assert sorted(one["body"]["order"] for one in provider.effects()) == list(range(LAUNCHES * ORDERS))
    assert (len(sent(provider)), looked(provider)) == (LAUNCHES * ORDERS, 0)
