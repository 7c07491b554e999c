"""A tool that each framework has already, guarded: what is declared beside it does what a declaration does."""

from __future__ import annotations

import pytest
from adapters.conformance.driver import Driver
from adapters.conformance.drivers import ELSEWHERE, driver, installed
from adapters.conformance.playing import play
from adapters.conformance.scenarios import SCENARIOS
from provider import Provider

LOST = next(one for one in SCENARIOS if one.name == "lost-answer")
RAW = ("openai", "openai-chat", "anthropic", "anthropic-blocking")  # have no tools of their own: see test_guard.py
GUARDED = [
    pytest.param(
        driver(name),
        awaited,
        id=f"{name}-{'awaited' if awaited else 'plain'}",
        marks=[pytest.mark.needs_strands] if name in ELSEWHERE else [],
    )
    for name in installed()
    if name not in RAW
    for awaited in ((False, True) if driver(name).cancellable else (False,))
]


@pytest.mark.parametrize(("through", "awaited"), GUARDED)
@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_a_tool_of_the_framework_is_guarded(
    through: Driver, awaited: bool, ledger_url: str, provider: Provider
) -> None:
    """Its name, description and schema are kept; it plants the id from `current_effect()`, so a lost answer is found
    and a second call replayed: the model reads the very texts of a declared tool, and one payment is made."""
    played = play(LOST, through, ledger_url, provider, guarded="awaited" if awaited else "plain")
    assert played.heard == LOST.heard
    assert (played.effects, played.sends) == (LOST.effects, LOST.sends)
