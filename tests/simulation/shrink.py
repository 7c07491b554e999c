"""Make a failing schedule small: put back to their defaults all decisions that it does not need.

A schedule is a seed and the set of its decisions that may be other than their defaults. Removing one leaves the draws
of all others as they were: so all of one label are left out first, then halves, quarters and so on of the rest, as long
as what is left still fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from simulation.chance import Made

Fails = Callable[[frozenset[Made]], bool]


def shrink(made: Sequence[Made], fails: Fails, most_runs: int = 400) -> frozenset[Made]:
    """The least set found within so many runs that still fails; `made` as it is when it does not fail again."""
    kept = list(dict.fromkeys(made))
    if not fails(frozenset(kept)):
        return frozenset(kept)
    runs = 1
    numbers = Counter(label for label, _ in kept)
    for label, _ in numbers.most_common():  # most labels matter in no place at all
        rest = [one for one in kept if one[0] != label]
        runs += 1
        if fails(frozenset(rest)):
            kept = rest
    size = max(1, len(kept) // 2)
    while runs < most_runs:
        place, smaller = 0, False
        while place < len(kept) and runs < most_runs:
            rest = kept[:place] + kept[place + size :]
            runs += 1
            if fails(frozenset(rest)):
                kept, smaller = rest, True
            else:
                place += size
        if size == 1 and not smaller:
            break
        size = max(1, size // 2)
    return frozenset(kept)


def to_text(kept: frozenset[Made]) -> str:
    """A set of decisions as one word of a command line."""
    return ",".join(f"{label}#{number}" for label, number in sorted(kept))


def from_text(text: str) -> frozenset[Made]:
    """The decisions in one word.

    Example:
        >>> sorted(from_text("kind#1,turn#12"))
        [('kind', 1), ('turn', 12)]
    """
    pairs = (one.rsplit("#", 1) for one in text.split(",") if one)
    return frozenset((label, int(number)) for label, number in pairs)
