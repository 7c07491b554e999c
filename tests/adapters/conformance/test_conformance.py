"""Every scenario through every adapter, with a scripted model: what reaches the model, and what happens outside."""

from __future__ import annotations

import pytest
from adapters.conformance.driver import Driver
from adapters.conformance.drivers import ELSEWHERE, NAMES, driver, installed
from adapters.conformance.house import TASK
from adapters.conformance.playing import play
from adapters.conformance.scenarios import SCENARIOS, Scenario
from provider import Provider

from counterfoil import Executor

DATABASES = ("sqlite", "postgresql")

REPEATED = next(one for one in SCENARIOS if one.name == "repeated-and-reworded")


def marks(name: str) -> list[pytest.MarkDecorator]:
    """What a driver's tests are marked with."""
    return [pytest.mark.needs_strands] if name in ELSEWHERE else []


# In turn on each database, so that every scenario and every driver meets both.
PLAYED = [
    pytest.param(
        scenario,
        one,
        database,
        id=f"{scenario.name}-{one.name}-{database}",
        marks=marks(one.name),
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
    for told in played.told:
        for one in told:
            assert one.error is (" succeeded (" not in one.text if through.flags_errors else None)
    if scenario.interrupted is None:
        for calls, told in zip(played.called, played.told, strict=True):
            assert sorted(one.id for one in told) == sorted(call.id for call in calls)
            for call in calls:
                (text,) = (one.text for one in told if one.id == call.id)
                assert "Rejected" not in text or f'"order":"{call.arguments["order"]}"' in text


@pytest.mark.parametrize("name", [pytest.param(one, marks=marks(one)) for one in installed()])
@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_where_a_call_belongs(name: str, ledger_url: str, provider: Provider) -> None:
    """The framework's id of the conversation is the task, its round the turn. The id of a call is recorded, and a later
    call is the same effect under another id. Over MCP the host's round and ids are not told; a request has one."""
    played = play(REPEATED, driver(name), ledger_url, provider)
    assert len({call.id for calls in played.called for call in calls}) == len(REPEATED.turns)
    with Executor(ledger_url) as executor:
        (row,) = executor.audit.effects()
        begun = executor.audit.history(row.id)[0].detail
    assert row.task == TASK
    if name == "mcp":
        assert begun.get("turn") is None
        assert begun["call_id"].isdecimal()
    else:
        assert (begun["turn"], begun["call_id"]) == (1, "call_1_0")
