"""The table of safety rules stays true to the code: each rule's text stands in its file, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations.rules import RULES, Rule

LIBRARY = Path(__file__).resolve().parents[2] / "executor" / "counterfoil"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name.replace(" ", "-"))
def test_the_text_of_a_rule_stands_in_the_code_once(rule: Rule) -> None:
    """A rule that was moved or reworded must be found again by the check that removes it."""
    text = (LIBRARY / rule.file).read_text(encoding="utf-8")
    assert text.count(rule.kept) == 1
    assert rule.removed not in rule.kept or rule.removed != rule.kept
