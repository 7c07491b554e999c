"""The world of the demo: two real servers, a fault proxy before each, and the counts at the servers themselves.

Owns what is started and its complete end. It knows no agent and no ledger; what it counts it asks the servers straight,
past the proxies.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from types import TracebackType
from typing import Final

import httpx
import stripe

from counterfoil_tools import servers
from counterfoil_tools.faultproxy import FaultProxy
from counterfoil_tools.payments import stripe_client

COUNT_S: Final = 10.0


class World:
    """Two providers behind fault proxies, between entering and leaving the `with` block.

    Raises:
        UsageError: the packages of the servers are not installed.
        ServerFailed: a server did not start.
    """

    def __init__(self) -> None:
        self._stripe = servers.localstripe()
        self._caldav = servers.radicale()
        self._ends = ExitStack()

    def __enter__(self) -> World:
        with ExitStack() as ends:
            ends.enter_context(self._stripe)
            ends.enter_context(self._caldav)
            self.payments = ends.enter_context(FaultProxy(self._stripe.host, self._stripe.port))
            self.bookings = ends.enter_context(FaultProxy(self._caldav.host, self._caldav.port))
            base_url = self._caldav.url + servers.CALENDAR_PATH
            self._calendar = ends.enter_context(httpx.Client(base_url=base_url, timeout=COUNT_S, trust_env=False))
            self._account = stripe_client("sk_test_counts", base_url=self._stripe.url, trust_env=False)
            self._ends = ends.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    @property
    def stripe_url(self) -> str:
        return self.payments.url

    @property
    def calendar_url(self) -> str:
        return self.bookings.url + servers.CALENDAR_PATH

    def paid(self) -> Counter[str]:
        """Payments that succeeded at the provider, by order."""
        counts: Counter[str] = Counter()
        for intent in self._intents():
            if intent.status == "succeeded" and intent.metadata is not None:
                counts[intent.metadata.to_dict()["order"]] += 1
        return counts

    def booked(self) -> Counter[str]:
        """Events in the calendar, by guest."""
        return Counter(line.removeprefix("CONTACT:") for line in self._lines() if line.startswith("CONTACT:"))

    def duplicates(self) -> int:
        """How many there are too many: payments beyond one for each order, events beyond one for each slot."""
        slots = Counter(line for line in self._lines() if line.startswith("DTSTART:"))
        return sum(count - 1 for counts in (self.paid(), slots) for count in counts.values())

    def _intents(self) -> list[stripe.PaymentIntent]:
        found: list[stripe.PaymentIntent] = []
        while True:
            page = self._account.v1.payment_intents.list(
                {"limit": 100, "starting_after": found[-1].id} if found else {"limit": 100}
            )
            found += page.data
            if not page.has_more:
                return found

    def _lines(self) -> list[str]:
        answer = self._calendar.get("")
        answer.raise_for_status()
        return answer.text.splitlines()
