"""Every decision of an episode, drawn from its seed.

A decision has a label and a number (the how-manyeth of its label), takes one draw of its label's own stream, and has a
default, the plainest thing that can happen. So one seed is one schedule, leaving a decision at its default moves no
other draw, and a failing schedule is shrunk by putting back to their defaults all decisions that do not matter.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from random import Random
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Made: TypeAlias = tuple[str, int]


class Chance:
    """The decisions of one episode. `kept`: only these may be other than their defaults; None: all may."""

    def __init__(self, seed: int, kept: frozenset[Made] | None = None) -> None:
        self._seed = seed
        self._kept = kept
        self._streams: dict[str, Random] = {}
        self._numbers: dict[str, int] = {}
        self.made: list[Made] = []

    def _draw(self, label: str) -> float:
        stream = self._streams.get(label)
        if stream is None:
            stream = self._streams[label] = Random((self._seed << 32) | zlib.crc32(label.encode()))  # noqa: S311
            self._numbers[label] = 0
        self._numbers[label] += 1
        return stream.random()

    def _is_made(self, label: str) -> bool:
        made = (label, self._numbers[label])
        if self._kept is not None and made not in self._kept:
            return False
        self.made.append(made)
        return True

    def happens(self, label: str, probability: float) -> bool:
        """Whether something happens; by default it does not."""
        return self._draw(label) < probability and self._is_made(label)

    def below(self, label: str, count: int) -> int:
        """A number from 0 to count - 1; by default 0."""
        number = int(self._draw(label) * count)
        return number if number and self._is_made(label) else 0

    def between(self, label: str, low: float, high: float) -> float:
        """A number from low to high; by default low."""
        drawn = self._draw(label)
        return low + (high - low) * drawn if drawn > 0 and high > low and self._is_made(label) else low

    def one_of(self, label: str, choices: Sequence[T]) -> T:
        """One of the choices; by default the first."""
        return choices[self.below(label, len(choices))]
