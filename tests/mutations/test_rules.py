"""The table of safety rules stays true to the code: each rule's text stands in its file, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations.check import PAGE, rows
from mutations.conditions import ALL_RULES
from mutations.rules import Rule

LIBRARY = Path(__file__).resolve().parents[2] / "executor" / "counterfoil"


@pytest.mark.parametrize("rule", ALL_RULES, ids=lambda rule: rule.name.replace(" ", "-"))
def test_the_text_of_a_rule_stands_in_the_code_once(rule: Rule) -> None:
    """A rule that was moved or reworded must be found again by the check that removes it."""
    text = (LIBRARY / rule.file).read_text(encoding="utf-8")
    assert text.count(rule.kept) == 1
    assert rule.removed not in rule.kept or rule.removed != rule.kept


def test_the_page_names_each_rule_and_a_test_that_there_is() -> None:
    """The table in the documentation was made from these rules: none is missing, none survived, each test exists."""
    told = rows(PAGE.read_text(encoding="utf-8"))
    assert [name for name, _, _ in told] == [rule.name for rule in ALL_RULES]
    for name, file, test in told:
        assert file == next(rule.file for rule in ALL_RULES if rule.name == name)
        path, _, function = test.partition("::")
        assert f"def {function}(" in (LIBRARY.parents[1] / path).read_text(encoding="utf-8") or not function, test
