"""The fault table of the documentation is what happens, and nothing in it breaks the promise."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash.nursery import Nursery
from crash.story import closed_port
from faults.cell import LIVES, Theatre, wrong
from faults.faults import CELLS, FAULTS
from faults.page import COMMAND, PAGE, counted, line, missing, row, section
from faults.table import run
from faults.tiers import TIERS, Tier
from postgres import PostgresServer

# Cheap ones, of all tiers, and of all kinds of faults.
SAMPLE = (
    "t0/declined",
    "t0/refused-anywhere",
    "t0/killed-after-landing",
    "t0/settle-reply-lost",
    "t1/answer-lost",
    "t1/late",
    "t1/at-once",
    "t2/429",
    "t2/request-lost",
    "t2/killed-before-sending",
    "t2/look-lags",
    "t2/begin-reply-lost",
    "t2/stopped-before-check",
    "t2/late-after-grace",
    "t3-key/answer-lost",
    "t3-key/late",
    "t3-key/stopped-after-check",
    "t3-key-look/look-alike",
    "t3-idempotent/500-after-acting",
    "t4/request-lost",
    "t4/late-after-grace",
    "t5/before-mark",
    "t5/killed-after-landing",
    "t5/settle-reply-lost",
)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_what_happens_is_what_the_page_says(
    database: str, sqlite_template: Path, postgres_template: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """Run again, by real processes, cells of each tier come to the very row that stands on the page."""
    cells = [cell for cell in CELLS if cell.name in SAMPLE]
    assert len(cells) == len(SAMPLE)
    said = PAGE.read_text("utf-8")
    with Nursery(LIVES) as nursery, closed_port() as port:
        at = Theatre(nursery, postgres_server, (sqlite_template, postgres_template), tmp_path, port)
        for cell, _, ending in run(cells, at, [database]):
            assert list(wrong(cell, ending)) == [], cell.name
            assert line(cell, ending) == row(said, cell), f"{cell.name}: see `{COMMAND}`"


@pytest.mark.parametrize("tier", TIERS, ids=lambda tier: tier.name)
def test_every_fault_is_on_the_page(tier: Tier) -> None:
    """Each tier has a row for each fault that can befall it, and says why the others cannot."""
    said = PAGE.read_text("utf-8")
    mine = [cell for cell in CELLS if cell.tier is tier]
    assert all(row(said, cell) is not None for cell in mine)
    part = section(said, tier)
    assert part.count("\n| ") == len(mine) + 1
    assert all(sentence in part for sentence in missing(tier))
    assert len(mine) + sum(fault.missing(tier) is not None for fault in FAULTS) == len(FAULTS)


def test_no_row_breaks_the_promise() -> None:
    """Nowhere on the page stand two effects, but where the provider breaks its word, and a verdict of no effect or of
    an applied one never stands beside a count that denies it."""
    said = PAGE.read_text("utf-8")
    doubled = set()
    for cell in CELLS:
        verdict, effects = counted(row(said, cell) or "")
        assert (verdict, effects > 0) not in {("no_effect", True), ("effect_applied", False)}, cell.name
        if effects > 1:
            doubled.add(cell.name)
            assert cell.fault.breaks_word, cell.name
            assert "`applied_more_than_once`" in (row(said, cell) or "")
    assert doubled == {"t2/late-after-grace"}  # an exception that nothing needs would hide what it was made for
