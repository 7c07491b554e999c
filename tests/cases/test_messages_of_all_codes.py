"""What every message must keep, whichever case it ends: read from the one table of codes that all texts come from."""

from __future__ import annotations

import re

import pytest

from counterfoil.codes import CODES, Category, Code, Retry

EVERY = [pytest.param(code, id=name) for name, code in CODES.items()]
# A conflict is about the call that was refused: nothing of it was sent, whatever is known of the effect.
DOUBTFUL = {name: code for name, code in CODES.items() if not code.ok and name != "key_conflict"}
UNKNOWN = [pytest.param(code, id=name) for name, code in DOUBTFUL.items() if code.verdict != "no_effect"]
NOTHING = re.compile(r"nothing (happened|was sent)|had no effect", re.IGNORECASE)
# An order, at the beginning of a clause. "Do not …" and "only if …" limit an action and are none.
ORDER = re.compile(
    r"(?:^|[.;,] |, or |\bor |\band )(call|change|correct|use|keep|report|stop|wait|check|go on|ask)\b", re.IGNORECASE
)


def without_limits(action: str) -> str:
    """The action without what it forbids and without its conditions."""
    return re.sub(r"[Dd]o not call \{tool\}[^.;]*[.;]?|Only if [^,]*,[^.]*\.?", "", action)


@pytest.mark.parametrize("code", EVERY)
def test_there_is_one_next_action(code: Code) -> None:
    """A model that reads two ways picks the worse one: no alternative stands in the next action."""
    assert not re.search(r"\bor\b", without_limits(code.next_action)), code.next_action
    assert ORDER.search(without_limits(code.next_action).strip()), code.next_action


@pytest.mark.parametrize("code", EVERY)
def test_nothing_happened_is_said_of_no_effect_alone(code: Code) -> None:
    """Rule 3 of the cases: the words "nothing happened" stand only where that is proven."""
    assert not NOTHING.search(code.reason + code.next_action) or code.verdict == "no_effect" or code.name in (
        "replayed",  # it says that nothing was sent AGAIN, of what is done
        "key_conflict",  # it says so of the call that was refused, not of the effect
    )  # fmt: skip


@pytest.mark.parametrize("code", UNKNOWN)
def test_what_may_have_happened_is_not_retried(code: Code) -> None:
    """Where the verdict may be unknown, or applied and wrong, no field and no word permits the same call again."""
    assert code.category is Category.TERMINAL
    assert code.retry in (Retry.CHECK, Retry.NEVER), code.retry
    assert re.search(r"do not call \{tool\}", code.next_action, re.IGNORECASE), code.next_action
