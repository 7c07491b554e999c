"""The table of codes: what may be said in which case, and that the documentation says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.codes import CODES, Code, Retry, page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "codes.md"


def test_the_page_is_made_from_the_table() -> None:
    """`python -c "from counterfoil.codes import page; print(page())"` writes what the documentation shows."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    "row", [row for row in CODES.values() if row.verdict == "effect_unknown"], ids=lambda row: row.name
)
def test_no_text_of_an_unknown_effect_invites_a_retry(row: Code) -> None:
    """Unknown: the legal move is to check, never to call again, with another key or in another wording."""
    assert row.next_action.startswith("Do not call {tool}")
    assert "check_effect" in row.next_action or "Report" in row.next_action
    assert row.retry is Retry.CHECK
    assert not row.ok


@pytest.mark.parametrize("row", CODES.values(), ids=lambda row: row.name)
def test_every_row_has_a_reason_and_an_action(row: Code) -> None:
    """Both are sentences; what is ok never asks for another call."""
    assert row.reason.endswith(".")
    assert row.next_action.endswith(".")
    assert not row.ok or row.retry is Retry.NEVER
