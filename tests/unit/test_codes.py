"""The table of codes: what may be said in which case."""

from __future__ import annotations

import pytest

from counterfoil.codes import CODES, REFUSALS, Code, Retry
from counterfoil.explanations import EXPLANATIONS


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


def test_the_issue_of_every_code_is_there() -> None:
    """Every end that a call can have has its row, the guards' among them."""
    named = """
    ok verified replayed in_progress effect_unknown invalid_arguments unknown_tool not_found no_results
    ambiguous rejected conflict key_conflict possible_duplicate rate_limited unavailable forbidden expired ended
    repeated_call budget_exhausted breaker_open paused ledger_unavailable incomplete applied_more_than_once
    value_not_stored"""
    assert set(named.split()) <= set(CODES)


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_of_a_tool_speaks_by_rows_where_nothing_happened(name: str) -> None:
    """Whatever word a tool raises, it cannot claim an effect, a guard's or a person's decision."""
    row = CODES[name]
    assert (row.verdict, row.ok) == ("no_effect", False)


def test_every_code_is_explained() -> None:
    """Whoever follows `more` finds more than the message had."""
    assert list(EXPLANATIONS) == list(CODES)
    assert all(len(text) > 60 and text.endswith(".") for text in EXPLANATIONS.values())
