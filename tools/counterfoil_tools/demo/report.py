"""What the demo prints: each scene while it is played, and the whole as one JSON object.

Owns the words for people and the shape of the JSON. It judges by the script's expectations and asks nobody anything.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TextIO

from counterfoil.effect import MICROSECONDS, Entry
from counterfoil_tools.demo.script import CHARGE, EXPECTED_BOOKINGS, EXPECTED_PAYMENTS, SCENES, Scene

_FAULTS: Final = {
    "lose_answer": "the proxy lets the request through and keeps the answer",
    "reset_after": "the proxy lets the request through, then resets the connection",
    "swallow": "the proxy swallows the request",
}
_DETAILS: Final = ("verdict", "permission", "evidence", "proof", "reason", "count")
WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class Played:
    """A scene after it was played: what the agent was told, and what the provider counts."""

    scene: Scene
    told: dict[str, Any]
    at_provider: int

    @property
    def seen(self) -> dict[str, Any]:
        """What was seen, in the terms of the script's expectation. A conflict began nothing, so it has no proof."""
        seen = {name: self.told[name] for name in ("verdict", "proof", "code", "attempts")}
        if seen["code"] == "key_conflict":
            seen["proof"] = None
        return {**seen, "at_provider": self.at_provider}

    @property
    def wrong(self) -> dict[str, Any]:
        """What is not as the script expects it: the expected values by name."""
        return {name: value for name, value in asdict(self.scene.expected).items() if self.seen[name] != value}

    def as_dict(self) -> dict[str, Any]:
        fields = {name: self.seen[name] for name in ("verdict", "proof", "attempts", "at_provider")}
        return {"name": self.scene.name, "tool": self.scene.tool, **fields}


@dataclass(frozen=True, slots=True)
class Sum:
    """The end of the play: the providers' counts and what they should be."""

    played: Sequence[Played]
    payments: int
    bookings: int
    duplicates: int
    ledger: str
    blindly: bool
    seconds: float

    @property
    def right(self) -> bool:
        counts = (self.payments, self.bookings, self.duplicates)
        complete = len(self.played) == len(SCENES) and not any(each.wrong for each in self.played)
        return complete and counts == (EXPECTED_PAYMENTS, EXPECTED_BOOKINGS, 0)

    def as_dict(self) -> dict[str, Any]:
        return {
            "scenes": [each.as_dict() for each in self.played],
            "at_provider": {"payments": self.payments, "bookings": self.bookings},
            "expected": {"payments": EXPECTED_PAYMENTS, "bookings": EXPECTED_BOOKINGS},
            "duplicates": self.duplicates,
            "observations": [each.told["text"] for each in self.played],
            "ledger": self.ledger,
        }


class Printer:
    """Writes for people to `out`; with `json_output` only the last object, and a line for each scene to `progress`."""

    def __init__(self, *, json_output: bool, out: TextIO | None = None, progress: TextIO | None = None) -> None:
        self._json = json_output
        self._out = out or sys.stdout
        self._progress = progress or sys.stderr
        self._bold = _bold if self._out.isatty() and not json_output else str

    def opening(self, ledger: str, *, blindly: bool) -> None:
        how = "with a plain retry, three tries, no Counterfoil" if blindly else f"through Counterfoil, ledger {ledger}"
        self._say(f"Starting a payment server and a calendar server on this machine. The agent calls {how}.")

    def scene(self, scene: Scene, arguments: Mapping[str, Any]) -> None:
        if self._json:
            self._progress.write(f"{scene.label} {scene.title}\n")
            self._progress.flush()
        self._say("", self._bold(f"{scene.label}  {scene.title}"))
        if scene.fault is not None:
            self._line("world", _FAULTS[scene.fault.kind])
        self._line("agent", f"{scene.tool} {json.dumps(arguments)}")

    def killed(self) -> None:
        self._line("world", "the provider has acted: SIGKILL to the agent's process")
        self._line("agent", "a new process makes the same call")

    def played(self, played: Played, news: Sequence[Entry], *, blindly: bool) -> None:
        self._line("reads", *_wrapped(played.told["text"]))
        if not blindly:
            self._line("ledger", *(_entry(entry, news[0]) for entry in news), *(() if news else ("nothing new",)))
        count, thing = played.at_provider, "payment" if played.scene.tool == CHARGE else "booking"
        counted = f"{count} {thing}{'' if count == 1 else 's'} for {played.scene.subject}"
        wrong = {"at_provider"} & played.wrong.keys() if blindly else played.wrong
        right = f", not {played.scene.expected.at_provider}" if "at_provider" in wrong else ", as it must be"
        self._line("provider", counted + right)
        if wrong and not blindly:
            self._line("WRONG", ", ".join(f"{name} {played.seen[name]}, not {played.wrong[name]}" for name in wrong))

    def closing(self, total: Sum) -> None:
        if self._json:
            self._out.write(json.dumps(total.as_dict(), indent=2, ensure_ascii=False) + "\n")
            self._out.flush()
            return
        counted = f"The providers count {total.payments} payments and {total.bookings} bookings"
        wanted = f"{EXPECTED_PAYMENTS} payments and {EXPECTED_BOOKINGS} bookings were asked for"
        end = f"{total.duplicates} doubled" if total.duplicates else "nothing was doubled"
        self._say("", self._bold(f"{counted}; {wanted}; {end}."), f"{total.seconds:.1f} s.")
        if not total.right:
            self._say("This is what blind retries do." if total.blindly else "This is not what should have happened.")

    def _line(self, label: str, *lines: str) -> None:
        for number, line in enumerate(lines):
            self._say(f"    {label if number == 0 else '':<8}  {line}")

    def _say(self, *lines: str) -> None:
        if not self._json:
            self._out.write("\n".join(lines) + "\n")
            self._out.flush()


def _entry(entry: Entry, first: Entry) -> str:
    seconds = f"+{(entry.at - first.at) / MICROSECONDS:.3f} s"
    attempt = f"attempt {entry.attempt}" if entry.attempt else "look"
    shown = [f"{name} {entry.detail[name]}" for name in _DETAILS if entry.detail.get(name) not in (None, "")]
    other = ["by the new process"] if entry.actor != first.actor else []
    return f"{seconds:>10}  {attempt:<9}  {entry.event:<8}  {', '.join(shown + other)}".rstrip()


def _wrapped(text: str) -> list[str]:
    wrapper = textwrap.TextWrapper(WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [part for line in text.splitlines() for part in wrapper.wrap(line)]


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m"
