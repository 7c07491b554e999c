"""What a payment engineer checks of every message that a model is told.

Owns the reading of `Observation.text` and of its fields; nothing here knows a provider or a ledger.
"""

from __future__ import annotations

import re
from typing import Final

from counterfoil import Observation, Verdict

CHARACTERS_PER_TOKEN: Final = 4
TOKENS_MAX: Final = 100

_DENIALS: Final = re.compile(
    r"nothing (has )?happened|had no effect|was not (done|sent|carried out)|no payment", re.IGNORECASE
)
_FAILURE: Final = re.compile(r"\bfail(ed|ure)?\b|\berror\b|\bdid not (work|succeed|happen)\b", re.IGNORECASE)
_AGAIN: Final = re.compile(
    r"\bagain\b|\bretry\b|\bre-?try\b|\bresend\b|\brepeat\b|\b(ask for|use|try|with) another\b|\bonce more\b"
    r"|\bother (arguments|wording)\b|\bdifferent\b",
    re.IGNORECASE,
)
_FORBIDDANCE: Final = re.compile(r"do not call \w+( for this)? again(, in any wording)?", re.IGNORECASE)


def assert_well_formed(seen: Observation) -> None:
    """The parts stand in their order, the code is in the text, there is one next action, and all of it is short."""
    lines = seen.text.split("\n")
    assert f"(code: {seen.code})" in lines[0], seen.text
    assert lines[1].startswith("Reason: "), seen.text
    actions = [line for line in lines if line.startswith("Next action: ")]
    assert actions == [lines[-1]] == [f"Next action: {seen.next_action}"], seen.text
    bare = "\n".join(line for line in lines if not line.startswith(("Result: ", "Rejected arguments: ")))
    assert len(bare) <= TOKENS_MAX * CHARACTERS_PER_TOKEN, f"{len(bare)} characters: {bare}"


def assert_unknown(seen: Observation, *, code: str = "effect_unknown") -> None:
    """Unknown is said to be unknown: no denial, no failure, no invitation to do it again; one action, which is safe."""
    assert (seen.verdict, seen.code, seen.ok) == (Verdict.EFFECT_UNKNOWN, code, False), seen.text
    assert_well_formed(seen)
    assert seen.retry in ("check", "never"), seen.retry
    assert seen.proof is None
    assert seen.value is None
    assert not _DENIALS.search(seen.text), seen.text
    assert not _FAILURE.search(seen.text), seen.text
    assert _FORBIDDANCE.search(seen.next_action), seen.next_action
    assert not _AGAIN.search(_FORBIDDANCE.sub("", seen.text)), seen.text


def assert_applied(seen: Observation, *, code: str) -> None:
    """Done is said to be done, and not to be done again."""
    assert (seen.verdict, seen.code) == (Verdict.EFFECT_APPLIED, code), seen.text
    assert_well_formed(seen)
    assert seen.retry == "never"
    assert not _DENIALS.search(seen.text), seen.text
    assert not _FAILURE.search(seen.text), seen.text


def assert_none(seen: Observation, *, code: str) -> None:
    """Nothing happened, and only then is it said."""
    assert (seen.verdict, seen.code, seen.ok) == (Verdict.NO_EFFECT, code, False), seen.text
    assert_well_formed(seen)
