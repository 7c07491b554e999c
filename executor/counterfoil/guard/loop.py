"""The loop guard: a call that fails again and again in a turn, however it is worded, is not tried once more.

Owns what is counted for one similarity (see `similar`) in one turn of a task, and the limits. A similarity counts its
own failures since its own success: other calls neither raise nor clear it, so cycles of any length are seen. One
counter for each tool ends what changes its arguments at every failure.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum

from counterfoil.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopGuard:
    """When a call is no longer tried. Everything is counted within one turn of one task.

    Args:
        wrong_input: so many failures that only other arguments can mend.
        passing_faults: so many failures of any kind that might pass by themselves.
        same_answers: so many equal answers in a row of a read-only tool to the same question.
        tool_failures: so many failures of one tool, whatever its arguments.

    Raises:
        UsageError: a number out of range; says how to mend it.

    Example:
        >>> LoopGuard(passing_faults=4).wrong_input
        2
    """

    wrong_input: int = 2
    passing_faults: int = 3
    same_answers: int = 6
    tool_failures: int = 10

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if type(value) is not int or value < 1:
                raise UsageError(f"LoopGuard({item.name}={value!r}): give a whole number, 1 or more")
        if self.passing_faults < self.wrong_input:
            raise UsageError(
                f"LoopGuard(passing_faults={self.passing_faults}) is below wrong_input={self.wrong_input}, so that "
                "wrong input would be tried more often than what may pass: raise it"
            )


class End(StrEnum):
    """How a call ended, as far as loops are concerned."""

    WRONG = "wrong"
    PASSING = "passing"
    DONE = "done"
    ANSWERED = "answered"
    POLLED = "polled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Repeats:
    """What was counted: failures by class, equal answers in a row and the digest of the last one, calls refused."""

    wrong: int = 0
    passing: int = 0
    same: int = 0
    answer: str | None = None
    blocked: int = 0

    @property
    def failures(self) -> int:
        """Failures of either class."""
        return self.wrong + self.passing


NONE = Repeats()
# A model that goes on after a refusal is stopped from its second one on.
STOPS_AT = 2


def limit_hit(mine: Repeats, of_tool: Repeats, limits: LoopGuard) -> tuple[str, int, int] | None:
    """The limit that stands in the way of one more attempt: its name, the limit, and what was counted.

    Example:
        >>> limit_hit(Repeats(wrong=2), NONE, LoopGuard())
        ('wrong_input', 2, 2)
    """
    seen = (
        ("wrong_input", limits.wrong_input, mine.wrong),
        ("passing_faults", limits.passing_faults, mine.failures),
        ("same_answers", limits.same_answers, mine.same),
        ("tool_failures", limits.tool_failures, of_tool.failures),
    )
    return next((one for one in seen if one[2] >= one[1]), None)


def counted(mine: Repeats, end: End, answer: str | None = None) -> Repeats:
    """What is counted after one more call of this similarity. A success clears its failures, another answer the equal
    ones.

    Example:
        >>> counted(Repeats(same=1, answer="x"), End.ANSWERED, "x").same
        2
    """
    match end:
        case End.WRONG:
            return replace(mine, wrong=mine.wrong + 1)
        case End.PASSING:
            return replace(mine, passing=mine.passing + 1)
        case End.UNKNOWN:
            return replace(mine, blocked=mine.blocked + 1)
        case End.DONE:
            return replace(mine, wrong=0, passing=0)
        case End.ANSWERED | End.POLLED:
            same = mine.same + 1 if answer == mine.answer else 1
            return Repeats(same=same, answer=answer, blocked=mine.blocked)


def polls_hit(mine: Repeats, answer: str, limits: LoopGuard) -> tuple[str, int, int] | None:
    """As `limit_hit`, for one more question about an effect, after which nothing had changed so far.

    Example:
        >>> polls_hit(Repeats(same=6, answer="x"), "x", LoopGuard()), polls_hit(Repeats(same=6), "y", LoopGuard())
        (('same_answers', 6, 6), None)
    """
    used = mine.same if mine.answer == answer else 0
    return ("same_answers", limits.same_answers, used) if used >= limits.same_answers else None


def refused(mine: Repeats, until: int | None, now: int) -> Repeats:
    """What is counted after one more refusal that asks to wait `until` an instant (None: for good). Who comes after
    the instant that he was told is counted anew.

    Example:
        >>> refused(refused(NONE, 60, 0), 60, 30).blocked, refused(refused(NONE, 60, 0), 120, 61).blocked
        (2, 1)
    """
    waited = mine.answer is not None and now >= int(mine.answer)
    return Repeats(answer=None if until is None else str(until), blocked=1 if waited else mine.blocked + 1)


def insists(mine: Repeats, of_tool: Repeats, limits: LoopGuard | None) -> bool:
    """Whether a model goes on after refusals: of this call, or of its tool in ever new words."""
    most = LoopGuard().tool_failures if limits is None else limits.tool_failures
    return mine.blocked >= STOPS_AT or of_tool.blocked >= most
