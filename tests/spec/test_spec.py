"""The model is searched: what must hold holds in every reachable state, and without any rule something fails."""

from __future__ import annotations

import pytest
from spec.checker import check
from spec.configurations import REMOVALS, SEARCHES, Removal, Search

pytestmark = pytest.mark.needs_java


@pytest.mark.parametrize("search", SEARCHES, ids=lambda one: one.name.replace(" ", "-").replace(",", ""))
def test_every_property_holds_in_every_state(search: Search) -> None:
    """No schedule breaks a property, and the states are as many as the page says: the search left nothing out."""
    verdict = check(search)
    assert verdict.violated is None, verdict.output[-5000:]
    assert verdict.distinct == search.states


@pytest.mark.parametrize("removal", REMOVALS, ids=lambda one: one.without)
def test_without_a_rule_there_is_a_counter_example(removal: Removal) -> None:
    """The rule, or the condition, is needed: without it the property fails, in as many steps as the page says."""
    verdict = check(removal.search, workers=1)
    assert verdict.violated == removal.violates
    assert removal.steps in (None, len(verdict.story))
