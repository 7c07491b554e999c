"""The scripted agent, a process of its own: it reads calls from its input, one JSON object a line, and answers them.

Owns the two ways of calling that the demo compares: through Counterfoil, and with a plain retry. The first line of its
input says where everything is (an address of a ledger may carry a password, and command lines are public).
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Protocol

import httpx
import stripe

from counterfoil import Executor
from counterfoil_tools import icalendar
from counterfoil_tools.bookings import caldav_tools
from counterfoil_tools.demo.script import CHARGE
from counterfoil_tools.payments import stripe_client, stripe_tools

TASK: Final = "demo"
# A lost answer is noticed after ANSWER_S; absence proves GRACE_S and the ledger's clock margin after TIMEOUT_S.
ANSWER_S: Final = 2.5
TIMEOUT_S: Final = 3.5
GRACE_S: Final = 1.0
PATIENCE_S: Final = 20.0
TRIES: Final = 3
SLOT_MINUTES: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the agent finds its providers and its ledger, and whether it retries blindly."""

    stripe_url: str
    calendar_url: str
    ledger: str
    tenant: str
    blindly: bool

    def line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


class Caller(Protocol):
    """One way of calling tools. The answer is what `Observation.as_dict` gives, or its likeness."""

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]: ...


def executor(settings: Settings) -> Executor:
    """The executor of the demo, with its tools. No key policy: localstripe ignores keys."""
    times: Any = {"timeout_s": TIMEOUT_S, "grace_s": GRACE_S, "patience_s": PATIENCE_S}
    account = _account(settings)
    calendar = httpx.Client(timeout=ANSWER_S, trust_env=False)
    tools = [*stripe_tools(account, **times), *caldav_tools(calendar, calendar_url=settings.calendar_url, **times)]
    return Executor(settings.ledger, tools=tools, tenant=settings.tenant)


class Careful:
    """Calls through Counterfoil."""

    def __init__(self, settings: Settings) -> None:
        self._executor = executor(settings)
        self._turn = 0

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._turn += 1
        seen = self._executor.call(tool, arguments, task=TASK, turn=self._turn, call_id=f"call_{uuid.uuid4().hex[:8]}")
        return seen.as_dict()


class Blind:
    """Calls the same providers with what many agents have today: on any error of the transport, three tries."""

    def __init__(self, settings: Settings) -> None:
        self._account = _account(settings)
        self._calendar = httpx.Client(base_url=settings.calendar_url, timeout=ANSWER_S, trust_env=False)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        act = self._charge if tool == CHARGE else self._book
        text = ""
        for tries in range(1, TRIES + 1):
            try:
                return _told(act(arguments), tries)
            except stripe.CardError:
                return _told(f"{tool} failed: the card was declined.", tries)
            except (stripe.APIConnectionError, httpx.TransportError) as error:
                text = f"{tool} failed: {type(error).__name__}."
        return _told(text, TRIES)

    def _charge(self, arguments: Mapping[str, Any]) -> str:
        wanted: Any = {
            "amount": arguments["amount_minor"],
            "currency": arguments["currency"],
            "payment_method": arguments["payment_method"],
            "confirm": True,
            "metadata": {"order": arguments["order"]},
        }
        return f"charge succeeded: {self._account.v1.payment_intents.create(wanted).id}."

    def _book(self, arguments: Mapping[str, Any]) -> str:
        uid = uuid.uuid4().hex
        content = icalendar.event(
            uid=uid,
            start=datetime.fromisoformat(arguments["slot"]),
            minutes=SLOT_MINUTES,
            summary=arguments["title"],
            contact=arguments["guest"],
        )
        headers = {"If-None-Match": "*", "Content-Type": "text/calendar; charset=utf-8"}
        self._calendar.put(f"{uid}.ics", content=content, headers=headers).raise_for_status()
        return f"book_slot succeeded: {uid}."


def _account(settings: Settings) -> stripe.StripeClient:
    return stripe_client("sk_test_agent", base_url=settings.stripe_url, timeout_s=ANSWER_S, trust_env=False)


def _told(text: str, tries: int) -> dict[str, Any]:
    return {"text": text, "verdict": None, "proof": None, "code": None, "attempts": tries, "candidates": []}


def main() -> int:
    """Read the settings, then calls until the input ends."""
    settings = Settings(**json.loads(sys.stdin.readline()))
    caller: Caller = Blind(settings) if settings.blindly else Careful(settings)
    for line in sys.stdin:
        asked = json.loads(line)
        sys.stdout.write(json.dumps(caller.call(asked["tool"], asked["arguments"])) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
