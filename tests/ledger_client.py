"""A process that makes calls on a ledger, for tests of several processes: `python tests/ledger_client.py JSON`.

It says "ready" when its ledger is open, makes the calls when told "go", says what it was told by each as one line of
JSON, and then stays until its standard input ends. Must not import other modules of the tests but the provider's.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from provider import Provider

from counterfoil import Absent, Effect, Executor, Found, Policy, Tool, tool
from counterfoil.ledger import ledger as the_ledger

CLOCK_MARGIN_S = 0.1


def pay_at(provider: Provider) -> Tool[..., Any]:
    """A payment at the provider in another process."""

    @tool(key=("order",), sends="marked", policy=Policy(timeout_s=2, grace_s=0.1, patience_s=5))
    def pay(effect: Effect, order: str) -> str:
        """Pay one order once. Use it after the customer has confirmed."""
        with effect.sending():
            provider.send(effect.id, body={"order": order})
        return order

    @pay.postcondition
    def paid(effect: Effect) -> Found[str] | Absent:
        seen = provider.look(effect.id).body
        return Found(str(effect.arguments["order"]), reference=None, count=len(seen)) if seen else Absent()

    return pay


def main(settings: dict[str, Any]) -> None:
    """Make the calls: all when told to go, or `one_by_one`. After each step named `stop_after` it says so and waits."""
    if "patience_s" in settings:
        vars(the_ledger)["PATIENCE_S"] = settings["patience_s"]

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if moment == "after" and step == settings.get("stop_after"):
            _say(step)
            sys.stdin.readline()

    with Executor(
        settings["url"],
        tools=[pay_at(Provider.at(settings["provider"]))],
        observer=watch,
        clock_margin_s=CLOCK_MARGIN_S,
    ) as executor:
        _say("ready")
        if not settings.get("one_by_one"):
            sys.stdin.readline()
        for order in settings["orders"]:
            if settings.get("one_by_one"):
                sys.stdin.readline()
            seen = executor.call("pay", {"order": order})
            _say({"code": seen.code, "verdict": str(seen.verdict), "text": seen.text})
        sys.stdin.read()


def _say(line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Client:
    """Such a process, seen by the test."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @property
    def _input(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin

    def heard(self) -> Any:
        """The next thing it says."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def go(self) -> None:
        """Let it go on."""
        self._input.write("go\n")
        self._input.flush()


@contextmanager
def client(**settings: Any) -> Iterator[Client]:
    """Start one, and wait until its ledger is open. It is killed at the end of the block, as a crash would."""
    command = [sys.executable, str(Path(__file__).resolve()), json.dumps(settings)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            one = Client(process)
            assert one.heard() == "ready"
            yield one
        finally:
            process.kill()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
