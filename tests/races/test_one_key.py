"""Many callers of one effect, at once, in several processes: one of them sends, and all of them are told the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from crash.life import Body, Told
from crash.nursery import Nursery
from crash.story import SETTLE_S, Stage, closed_port, effect_id, prepare
from crash.truth import Story
from postgres import PostgresServer, isolated_database
from provider import Provider
from races.gate import race

from counterfoil import Verdict

PROCESSES = 4
CALLERS = 5
EVERYBODY = PROCESSES * CALLERS
LEVELS = ("read committed", "repeatable read", "serializable")
# What goes wrong with the first requests, in their order: each is a world of its own.
WORLDS: dict[str, tuple[str, ...]] = {
    "none": ("none",),
    "refused": ("refused",),
    "ack_lost": ("ack_lost",),
    "request_lost": ("request_lost",),
    "late": ("late",),
    "connect_refused": ("connect_refused",),
    "mixed": ("connect_refused", "reset_before", "status_after"),
}


def test_the_one_that_sends(stage: Stage) -> None:
    """When the answer comes, 20 callers in 4 processes make one request, and every one of them is told that it is
    done: one by its own answer, the others by the record."""
    life = stage.life(Story("T2", "none", None))
    told = race(stage, [replace(life, callers=CALLERS)] * PROCESSES)
    stage.provider.quiesce()
    assert Counter(seen["code"] for seen in told) == {"ok": 1, "replayed": EVERYBODY - 1}
    assert len(stage.provider.requests()) == stage.provider.count(effect_id(life)) == 1


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("body", ["blocking", "coroutine"])
def test_twenty_callers_of_one_key(stage: Stage, world: str, body: Body) -> None:
    """Whatever happens to the first requests, there is one effect at most, and what each caller is told holds."""
    first, *others = WORLDS[world]
    life = stage.life(Story("T2", first, None, body=body))
    for fault in others:
        stage.arm(life, fault)
    told = race(stage, [replace(life, callers=CALLERS)] * PROCESSES)
    stage.provider.quiesce()
    assert len(told) == EVERYBODY
    row = stage.row(life)
    assert row is not None
    assert _told_too_early(told) == []
    assert [*stage.lies(row)] == []
    effects = stage.provider.count(row.id)
    assert effects == (1 if row.verdict is Verdict.EFFECT_APPLIED else 0)
    assert row.verdict is not Verdict.EFFECT_UNKNOWN
    assert stage.alarms(row) == []
    if "refused" in WORLDS[world]:
        assert "card_declined" in {seen["code"] for seen in told}
        assert {seen["verdict"] for seen in told} == {"no_effect"}
    else:
        later = stage.survive(replace(life, calls=2, settle_s=SETTLE_S["T2"]))["told"]
        assert later[-1]["verdict"] == "effect_applied"
        stage.provider.quiesce()
        assert stage.provider.count(row.id) == 1


def test_twenty_callers_of_a_keyed_provider(stage: Stage) -> None:
    """Where the provider de-duplicates, a lost answer is cleared up by sending again under the same key: one effect,
    one key, and nobody is told that there was none."""
    prepare(stage.provider, "T3")
    life = stage.life(Story("T3", "ack_lost", None))
    told = race(stage, [replace(life, callers=CALLERS)] * PROCESSES)
    stage.provider.quiesce()
    assert "no_effect" not in {seen["verdict"] for seen in told}
    assert stage.provider.count(effect_id(life)) == 1
    assert len({one["key"] for one in stage.provider.requests()}) == 1
    row = stage.row(life)
    assert row is not None
    assert row.verdict is Verdict.EFFECT_APPLIED
    assert stage.alarms(row) == []


# ---------------------------------------------------------------- the isolation of the database


@pytest.fixture(params=LEVELS)
def isolated(
    request: pytest.FixtureRequest,
    postgres_server: PostgresServer,
    postgres_template: str,
    provider: Provider,
    nursery: Nursery,
    tmp_path: Path,
) -> Iterator[Stage]:
    """A stage on a PostgreSQL database whose transactions have another isolation unless they say otherwise."""
    with isolated_database(postgres_server, postgres_template, request.param) as url, closed_port() as port:
        stage = Stage(url, provider, nursery, tmp_path, port)
        yield stage
        stage.close()


def test_begins_that_race_for_a_new_key(isolated: Stage) -> None:
    """At every isolation level one of 20 begins inserts the row, and the others see it: one request."""
    life = isolated.life(Story("T2", "none", None))
    told = race(isolated, [replace(life, callers=CALLERS)] * PROCESSES)
    isolated.provider.quiesce()
    assert {seen["verdict"] for seen in told} == {"effect_applied"}
    assert len(isolated.provider.requests()) == isolated.provider.count(effect_id(life)) == 1


def test_begins_that_race_for_a_key_without_effect(isolated: Stage) -> None:
    """At every isolation level one of 20 begins takes a row that says no effect: one more attempt, one request."""
    life = isolated.life(Story("T2", "refused", None))
    assert isolated.survive(life)["told"][0]["code"] == "card_declined"
    isolated.provider.disarm()
    told = race(isolated, [replace(life, callers=CALLERS)] * PROCESSES)
    isolated.provider.quiesce()
    assert {seen["verdict"] for seen in told} == {"effect_applied"}
    assert len(isolated.provider.requests()) == 2
    assert isolated.provider.count(effect_id(life)) == 1
    row = isolated.row(life)
    assert row is not None
    assert row.attempts == 2


def test_lost_answers_race_at_every_isolation_level(isolated: Stage) -> None:
    """Looks, settlings and begins of 20 callers interleave after a lost request: one effect, and only truths told."""
    life = isolated.life(Story("T2", "request_lost", None))
    told = race(isolated, [replace(life, callers=CALLERS)] * PROCESSES)
    isolated.provider.quiesce()
    row = isolated.row(life)
    assert row is not None
    assert _told_too_early(told) == []
    assert [*isolated.lies(row)] == []
    assert isolated.provider.count(effect_id(life)) == 1


def _told_too_early(told: list[Told]) -> list[Told]:
    """What was told to be done while the provider had nothing. (A "no effect" that one caller is told may be overtaken
    by another's next attempt before it can be checked: the ledger's own history is held against the provider.)"""
    return [seen for seen in told if seen["verdict"] == "effect_applied" and not seen["count"]]
