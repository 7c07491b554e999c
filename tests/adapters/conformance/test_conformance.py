"""Every scenario through every adapter, with a scripted model: what reaches the model, and what happens outside."""

from __future__ import annotations

import pytest
from adapters.conformance.driver import Driver
from adapters.conformance.drivers import ELSEWHERE, NAMES, driver, installed
from adapters.conformance.playing import play
from adapters.conformance.scenarios import SCENARIOS, Scenario
from provider import Provider

DATABASES = ("sqlite", "postgresql")

# In turn on each database, so that every scenario and every driver meets both.
PLAYED = [
    pytest.param(
        scenario,
        one,
        database,
        id=f"{scenario.name}-{one.name}-{database}",
        marks=[pytest.mark.needs_strands] if one.name in ELSEWHERE else [],
    )
    for column, one in enumerate(map(driver, installed()))
    for row, scenario in enumerate(SCENARIOS)
    for database in (DATABASES[(row + column) % 2],)
    if one.cancellable or scenario.interrupted != "cancelled"
]


def test_no_adapter_is_left_out() -> None:
    """Every driver runs here, but for those that need an environment of their own."""
    assert set(installed()) >= NAMES - ELSEWHERE


@pytest.mark.parametrize(("scenario", "through", "ledger_url"), PLAYED, indirect=["ledger_url"])
def test_scenario(scenario: Scenario, through: Driver, ledger_url: str, provider: Provider) -> None:
    """The model reads exactly these texts, errors flagged where the framework has a flag; the provider has exactly so
    many effects and was sent exactly so many requests, whatever the framework repeats by itself."""
    played = play(scenario, through, ledger_url, provider)
    heard = [sorted(told) for told in played.heard]
    if scenario.or_heard is None or heard != [sorted(told) for told in scenario.or_heard]:
        assert heard == [sorted(told) for told in scenario.heard]
    assert played.ended is not None
    assert played.ended.stop == scenario.stop
    assert (played.effects, played.sends) == (scenario.effects, scenario.sends)
    for told, flags in zip(played.heard, played.flags, strict=True):
        failed = [" succeeded (" not in text for text in told]
        assert list(flags) == (failed if through.flags_errors else [None] * len(told))
