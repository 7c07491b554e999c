"""What the page says of the frameworks is what they do."""

from __future__ import annotations

from pathlib import Path

import pytest
from adapters.conformance.drivers import NAMES, driver, installed
from adapters.conformance.playing import play
from adapters.conformance.scenarios import SCENARIOS
from adapters.table import PAGE, counted, kept, page, written
from provider import Provider

LOST = next(one for one in SCENARIOS if one.name == "lost-answer")


def test_the_page_has_every_scenario_through_every_adapter() -> None:
    """No row and no column is missing, none is invented, and the words are the generator's."""
    columns = written()
    assert columns.keys() == NAMES
    assert all(list(cells) == [one.says for one in SCENARIOS] for cells in columns.values())
    assert PAGE.read_text("utf-8") == page(columns)


def test_the_page_says_of_counterfoil_what_the_suite_proves() -> None:
    """Each cell's second number is what the conformance suite counts."""
    assert all(kept(cells) for cells in written().values())


@pytest.mark.parametrize("name", installed())
def test_a_lost_answer_doubles_without_counterfoil(name: str, tmp_path: Path, provider: Provider) -> None:
    """One cell of each column, counted again: the first number is the framework's own."""
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    assert play(LOST, driver(name), ledger, provider, stock=True).effects == 2
    assert written()[name][LOST.says] == "2 → 1"
    assert not Path(tmp_path / "ledger.db").exists()


def test_the_generator_counts_with_counterfoil() -> None:
    """The other number, as the generator makes it."""
    assert counted(LOST, driver("mcp"), stock=False) == LOST.effects
