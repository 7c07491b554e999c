"""What a side is: whoever can make calls durable, as the benchmarks drive it.

Uses the standard library alone: it runs inside the environments of the peers too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks import crowd

# What is measured: the first call of an effect, the same call again, a call that meets an earlier one's lost answer.
KINDS = ("first", "replay", "settle")
# Replays and reads go around among so many effects.
AROUND = 256


class Side:
    """One side in its own process, on a database or server that is its own.

    Owns the numbers of effects: a round of first calls takes new ones, replays go around among the same few.
    """

    around_count = AROUND

    def __init__(self) -> None:
        self._next = 0
        self._around = range(0)
        self._firsts = 0

    def round(self, kind: str, callers: int, calls: int) -> dict[str, Any]:
        """Make ready what the calls need, then let the callers call; what `crowd` measured."""
        most = crowd.needed(callers, calls)
        if kind == "replay":
            numbers = self.around()
        else:
            numbers = self.taken(most)
            if kind == "settle":
                self.leave_doubts(numbers)
        found = self.calling(kind, numbers, callers, calls)
        self._firsts += found["made"] if kind == "first" else 0
        return found

    def firsts(self) -> int:
        """How many first calls it has made."""
        return self._firsts

    def around(self) -> range:
        """The numbers of effects that are there, made by first calls the first time."""
        if not self._around:
            numbers = self.taken(crowd.needed(8, self.around_count))
            self._firsts += self.calling("first", numbers, 8, self.around_count)["made"]
            self._around = numbers[: self.around_count]
        return self._around

    def adopt(self, first: int, count: int) -> None:
        """Let replays go around among effects that somebody else has written."""
        self._around = range(first, first + count)

    def taken(self, count: int) -> range:
        """Numbers that nobody has used."""
        self._next += count
        return range(self._next - count, self._next)

    def calling(self, kind: str, numbers: range, callers: int, calls: int) -> dict[str, Any]:
        """Let threads call. A side with tasks has its own."""
        one, most = self.ready(kind, numbers), len(numbers)
        return crowd.threads(callers, calls, lambda index: one(numbers[index % most]))

    def ready(self, kind: str, numbers: range) -> Callable[[int], str | None]:
        """The function that makes one call, for the number of its effect, and answers with the text of a refusal.

        All that needs no clock is done before.
        """
        raise NotImplementedError

    def leave_doubts(self, numbers: range) -> None:
        """Leave behind effects whose first answer was lost."""
        raise NotImplementedError

    def count(self) -> dict[str, int]:
        """How many rows it has written, by table."""
        raise NotImplementedError

    def versions(self) -> dict[str, str]:
        """What runs here, and how durable it is."""
        return {}

    def close(self) -> None:
        """Close its connections."""


def order(number: int) -> str:
    """The name of the thing that an effect is about; all of them are equally long."""
    return f"order-{number:010d}"


def task(number: int) -> str:
    """The piece of work that a call belongs to: eight calls each, as an agent might make."""
    return f"trip-{number // 8:010d}"


def arguments(number: int) -> dict[str, Any]:
    """What every side is called with."""
    return {"order": order(number), "amount_minor": 1250, "currency": "eur", "payment_method": "pm_card_visa"}


def receipt(number: int) -> dict[str, Any]:
    """What every side's tool returns."""
    return {"payment": f"pi_{number:024d}", "order": order(number), "amount_minor": 1250, "currency": "eur"}
