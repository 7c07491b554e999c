"""A host's own deadline is over as soon as one of its two clocks says so."""

from __future__ import annotations

import pytest

from counterfoil import ManualClock
from counterfoil.runner.worker import Deadline


class TwoClocks(ManualClock):
    """The wall clock and the time since boot, each moved by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.wall_s = 0.0
        self.boot_s = 0.0

    def wall_us(self) -> int:
        return super().wall_us() + round(self.wall_s * 1_000_000)

    def boot_us(self) -> int:
        return super().boot_us() + round(self.boot_s * 1_000_000)


@pytest.mark.parametrize(("wall_s", "boot_s"), [(11, 0), (0, 11), (11, 11), (11, -100), (-100, 11)])
def test_the_nearer_end_counts(wall_s: float, boot_s: float) -> None:
    """A wall clock that was set forward, a machine that slept while the wall stood, and both: the deadline of 10 s is
    over, however far the other clock is from it (F10)."""
    clock = TwoClocks()
    deadline = Deadline(clock, 10)
    assert deadline.remaining_s() == 10
    clock.wall_s, clock.boot_s = wall_s, boot_s
    assert deadline.remaining_s() <= 0


def test_before_its_end_both_clocks_agree() -> None:
    """After 4 s on both clocks 6 s are left; of two that differ, the smaller rest."""
    clock = TwoClocks()
    deadline = Deadline(clock, 10)
    clock.wall_s, clock.boot_s = 4, 4
    assert deadline.remaining_s() == 6
    clock.wall_s = 7
    assert deadline.remaining_s() == 3
