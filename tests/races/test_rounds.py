"""4 processes with 5 threads each call one key at one moment, again and again, each time in another trouble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from crash.nursery import Nursery
from crash.story import FAULTS, Stage, closed_port, effect_id
from crash.truth import Story
from postgres import PostgresServer, isolated_database
from provider import Provider
from races.rounds import await_file, order_of

from counterfoil import Verdict

PROCESSES, CALLERS, ROUNDS = 4, 5, 50
ONCE_EACH = 10  # rounds: each trouble is had
EVERYBODY = PROCESSES * CALLERS
# What happens to the first request of a round; a look follows it, or the whole of grace.
TROUBLES = (
    "none",
    "ack_lost",
    "none",
    "refused",
    "none",
    "reset_after",
    "none",
    "status_after",
    "none",
    "request_lost",
)
LEVELS = ("read committed", "serializable")
LEDGERS = ("sqlite", "repeatable read")


@pytest.fixture(params=[*LEDGERS, *(pytest.param(level, marks=pytest.mark.long_races) for level in LEVELS)])
def rounds(request: pytest.FixtureRequest, provider: Provider, nursery: Nursery, tmp_path: Path) -> Iterator[Stage]:
    """A stage on SQLite, and one on a PostgreSQL database of each isolation level."""
    with closed_port() as port:
        if request.param == "sqlite":
            (tmp_path / "ledger.db").write_bytes(request.getfixturevalue("sqlite_template").read_bytes())
            stage = Stage(f"sqlite:///{tmp_path / 'ledger.db'}", provider, nursery, tmp_path, port)
            yield stage
            stage.close()
            return
        server: PostgresServer = request.getfixturevalue("postgres_server")
        with isolated_database(server, request.getfixturevalue("postgres_template"), request.param) as url:
            stage = Stage(url, provider, nursery, tmp_path, port)
            yield stage
            stage.close()


@pytest.mark.parametrize("number_of_rounds", [ONCE_EACH, pytest.param(ROUNDS, marks=pytest.mark.long_races)])
def test_rounds_of_twenty_callers_on_one_key(rounds: Stage, tmp_path: Path, number_of_rounds: int) -> None:
    """In every round one effect at most comes of 20 calls, on every database and at every isolation level: whoever is
    told that it is applied can see it, nobody is told of a trouble of the database, and the ledger ends as the provider
    has it."""
    life = replace(
        rounds.life(Story("T2", "none", None)), callers=CALLERS, part="races.rounds",
        detail={"rounds": number_of_rounds, "folder": str(tmp_path)},
    )  # fmt: skip
    lives = [replace(life, out=f"{life.out}-{n}", ready=str(tmp_path / f"ready{n}")) for n in range(PROCESSES)]
    born = [rounds.nursery.begin(one) for one in lives]
    for number in range(number_of_rounds):
        for one in lives:
            await_file(Path(f"{one.ready}-{number}"))
        _arm(rounds, effect_id(life, order_of(number)), TROUBLES[number % len(TROUBLES)])
        (tmp_path / f"go-{number}").touch()
    assert [one.ended.result(60) for one in born] == [0] * PROCESSES
    rounds.provider.quiesce()
    told = [rounds.record(one)["told"] for one in lives]
    counted = Counter(one["reference"] for one in rounds.provider.effects())
    rows = {row.id: row for row in rounds.rows(life)}
    assert len(rows) == number_of_rounds
    for number in range(number_of_rounds):
        trouble = TROUBLES[number % len(TROUBLES)]
        effect = effect_id(life, order_of(number))
        seen = [one for process in told for one in process[number]]
        row, codes = rows[effect], Counter(one["code"] for one in seen)
        assert (len(seen), {one["id"] for one in seen}) == (EVERYBODY, {effect})
        assert counted[effect] == (1 if row.verdict is Verdict.EFFECT_APPLIED else 0), (trouble, codes)
        assert {one["count"] for one in seen if one["verdict"] == "effect_applied"} <= {1}, (trouble, seen)
        assert row.verdict is (Verdict.NO_EFFECT if trouble == "refused" else row.verdict), (trouble, codes)
        assert row.verdict is not Verdict.EFFECT_UNKNOWN, (trouble, codes)
        assert "ledger_unavailable" not in codes, (trouble, codes)
        assert [*rounds.lies(row), *rounds.alarms(row)] == [], (trouble, codes)
        assert codes["ok"] <= 1, (trouble, codes)


def _arm(stage: Stage, effect: str, trouble: str) -> None:
    fault = FAULTS[trouble]
    if fault is not None:
        times = None if trouble == "refused" else 1
        stage.provider.arm(fault.kind, times=times, reference=effect, status=fault.status, acts=fault.acts)
