"""A ledger with a settable clock, on each database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from counterfoil.clock import ManualClock
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger


@pytest.fixture
def clock() -> ManualClock:
    """The clock that the ledger takes its time from."""
    return ManualClock()


@pytest.fixture
def ledger(ledger_url: str, clock: ManualClock) -> Iterator[Ledger]:
    """A fresh ledger with a clock margin of 2 s."""
    engine = open_engine(ledger_url)
    yield Ledger(engine, clock=clock, clock_margin_s=2.0)
    engine.dispose()
