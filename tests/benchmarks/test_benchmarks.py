"""The benchmarks at toy size: every side writes what it says, and the run makes its tables, page and charts.

No time is asserted: what these measure here means nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
import sqlalchemy as sa
from benchmarks import crowd, flush, growth, matrix, page, peers, places, report, run
from benchmarks.process import Process, SideFailed
from benchmarks.shape import captured, named
from benchmarks.sides.measures import Memory, OwnPython
from benchmarks.sides.ours import Tasks, Threads
from benchmarks.sides.raw import SameRows, Tiny

from counterfoil import Executor
from counterfoil.ledger.schema import effects, entries

CALLERS, CALLS = 3, 6


@pytest.mark.parametrize("side_class", [Threads, Tasks])
def test_our_sides_write_what_they_say(ledger_url: str, side_class: type[Threads | Tasks]) -> None:
    """Each first call leaves an effect with two entries, a replay leaves none, and a doubt that is settled gets one."""
    with closing(side_class(ledger_url)) as side:
        side.around_count = 4
        made = side.round("first", CALLERS, CALLS)
        assert (made["refused"], made["made"] >= CALLERS + CALLS) == (0, True)
        assert side.count() == {"effects": made["made"], "entries": 2 * made["made"]}
        replayed = side.round("replay", CALLERS, CALLS)
        after = side.count()
        assert replayed["refused"] == 0
        side.leave_doubts(side.taken(1))
        (effects_of_shape, entries_of_doubt) = (2, len(side.shape.doubt.entries))
        assert side.count() == {
            "effects": after["effects"] + effects_of_shape + 1,
            "entries": after["entries"] + 2 + 2 * entries_of_doubt,
        }
        before = side.count()
        settled = side.round("settle", CALLERS, CALLS)
        left = crowd.needed(CALLERS, CALLS)
        assert (settled["refused"], settled["made"] >= CALLERS + CALLS) == (0, True)
        assert side.count() == {
            "effects": before["effects"] + left,
            "entries": before["entries"] + left * entries_of_doubt + settled["made"],
        }


def test_the_raw_driver_writes_the_same_rows(ledger_url: str) -> None:
    """Each of its first calls leaves an effect with two entries, which the product takes for a call of its own: asked
    again it replays the result, and the history tells of a begin and a return."""
    with closing(SameRows(ledger_url)) as side:
        made = side.round("first", CALLERS, CALLS)
        assert side.count() == {"effects": made["made"], "entries": 2 * made["made"]}
    with closing(Threads(ledger_url)) as ours:
        assert ours.ready("replay", range(1))(0) is None
    with Executor(ledger_url) as executor:
        assert [entry.event for entry in executor.audit.history(named(0).id)] == ["begun", "returned"]


def test_the_raw_driver_settles_doubts_as_the_product_does(ledger_url: str) -> None:
    """A doubt that it settles is applied, with one entry more."""
    with closing(SameRows(ledger_url)) as side:
        left = crowd.needed(CALLERS, CALLS)
        settled = side.round("settle", CALLERS, CALLS)
        assert side.count() == {
            "effects": left,
            "entries": left * len(side.shape.doubt.entries) + settled["made"],
        }
    engine = sa.create_engine(ledger_url)
    with engine.connect() as connection:
        applied = sa.select(sa.func.count()).where(effects.c.verdict == "effect_applied")
        assert connection.execute(applied).scalar_one() == settled["made"] + 1  # and one of the captured two
    engine.dispose()


def test_two_tiny_autocommits_leave_a_row(empty_url: str) -> None:
    """Each call of the smallest side leaves one row."""
    with closing(Tiny(empty_url)) as side:
        made = side.round("first", CALLERS, CALLS)
        assert side.count() == {"tiny": made["made"]}


def test_a_ledger_is_filled_in_the_shape_of_real_rows(ledger_url: str) -> None:
    """So many effects as were asked for, each with the entries of a real one; those with names are replayed."""
    applied = captured(ledger_url).applied
    growth.known(ledger_url, applied, count=10)
    growth.grow(ledger_url, applied, 70, 20)
    engine = sa.create_engine(ledger_url)
    with engine.connect() as connection:
        of_shape = sa.select(sa.func.count()).where(effects.c.verdict == "effect_applied")
        assert connection.execute(of_shape).scalar_one() == 1 + 10 + 50
        returned = sa.select(sa.func.count()).where(entries.c.event == "returned")
        assert connection.execute(returned).scalar_one() == 1 + 10 + 50
    engine.dispose()
    with closing(Threads(ledger_url)) as side:
        assert side.ready("replay", range(1))(growth.KNOWN_FIRST + 9) is None


def test_our_own_time_is_apart_from_the_drivers(ledger_url: str) -> None:
    """The parts of a call's time are there and add up, whatever they are."""
    with closing(OwnPython(ledger_url)) as side:
        found = side.profile(20)
    assert min(found.values()) > 0
    assert found["driver_us"] < found["wall_us"]
    assert found["without_ledger_us"] < found["wall_us"]


def test_memory_is_measured_while_calls_are_under_way(ledger_url: str) -> None:
    """All the calls are inside their tool at the same moment, and later ones are counted one by one."""
    with closing(Memory(ledger_url)) as side:
        assert side.concurrent(20).keys() == {"held_mib", "left_mib"}
        lasting = side.lasting(10, 2, 60)
        assert lasting["calls"] >= 10
        assert lasting["calls"] == lasting["series"][-1][0]


def test_the_rate_counts_while_everybody_is_busy() -> None:
    """From the completion that fills the crowd to the last that counts; what starts and drains is left out."""
    ends = [(second * 10**9, 1000) for second in (10, 11, 12, 13, 14, 20)]
    found = crowd.measured(2, 3, ends, [], 0)
    assert (found["made"], found["rate"]) == (6, 1.0)
    assert crowd.measured(2, 3, [], ["busy: no room"], 0) == {
        "made": 0, "refused": 1, "why": "busy: no room", "rate": 0.0, "cpu_us": 0.0, "us": [],
    }  # fmt: skip


def test_a_side_that_fails_says_why(tmp_path: Path) -> None:
    """What went wrong in the side's process is told where the run is, not lost with it."""
    with pytest.raises(SideFailed, match="its folder is missing"):
        Process("ours", "Threads", f"sqlite:///{tmp_path}/missing/ledger.db", errors=tmp_path)


def test_a_run_makes_tables_page_and_charts(tmp_path: Path) -> None:
    """A small run writes its results, a second one goes on with them, and the page is made from all of them."""
    file = tmp_path / "results.json"
    small = ["--quick", "--ledger", "sqlite", "--callers", "1", "--no-peers", "--json", str(file)]
    assert run.main([*small, "--side", "threads", "--only", "first-call", "--only", "replay"]) == 0
    assert run.main([*small, "--side", "same_rows", "--only", "first-call"]) == 0
    results = json.loads(file.read_text("utf-8"))
    assert report.at(results, "sqlite", "replay", 1).keys() == {"threads"}
    cell = report.at(results, "sqlite", "first", 1)
    assert cell.keys() == {"threads", "same_rows"}
    assert all(one["refused"] == 0 and one["rate"] > 0 for one in cell.values())
    assert run.main(["--render", "--json", str(file), "--write", "--write-to", str(tmp_path)]) == 0
    written = (tmp_path / f"{page.NAME}.md").read_text("utf-8")
    assert ("what stands here is noise" in written) == report.is_busy(results)
    assert "| first call against (a), 1 caller | SQLite | ≥ 0.6 |" in written
    assert "| first call against (a), 1 caller | PostgreSQL | ≥ 0.8 | not measured | – |" in written
    drawing = ElementTree.parse(tmp_path / f"{page.NAME}-first-sqlite.svg").getroot()  # noqa: S314 - our own
    assert [one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text")][2] == "Counterfoil, threads"


@pytest.mark.needs_compiler
def test_a_flush_takes_longer_for_who_is_started_inside(tmp_path: Path) -> None:
    """A process that is started with the library has its flushes take that much longer at least, and its commits with
    them; afterwards nobody has it."""
    asked = "import sys, pathlib; from benchmarks import flush; print(flush.flush_us(pathlib.Path(sys.argv[1]), 5))"

    def took() -> float:
        command = [sys.executable, "-c", asked, str(tmp_path / "file")]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        return float(subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout)

    with flush.slower(300_000):
        assert took() >= 300_000
    assert "LD_PRELOAD" not in os.environ
    assert took() < 300_000


@pytest.mark.needs_compiler
def test_the_slower_disk_stands_on_the_page(tmp_path: Path) -> None:
    """Calls on the slower disk are measured apart: they meet no target, and their table says how slow it is."""
    file = tmp_path / "results.json"
    small = ["--quick", "--ledger", "sqlite", "--callers", "1", "--side", "same_rows", "--json", str(file)]
    assert run.main([*small, "--only", "slow-disk", "--write", "--write-to", str(tmp_path)]) == 0
    results = json.loads(file.read_text("utf-8"))
    assert 0 < report.at(results, "sqlite", "first", 1, "slow_cells")["same_rows"]["rate"] < 250
    written = (tmp_path / f"{page.NAME}.md").read_text("utf-8")
    assert "takes 2 ms longer" in written
    assert "| first call against (a), 1 caller | SQLite | ≥ 0.6 | not measured | – |" in written


def test_targets_are_met_or_not() -> None:
    """The better of the two executors counts, on both sides of a target."""
    rates = {"threads": {"rate": 50.0, "p99_us": 9.0}, "tasks": {"rate": 90.0, "p99_us": 3.0}}
    cell = {"1": {**rates, "same_rows": {"rate": 100.0, "p99_us": 3.0}}, "32": {**rates, "dbos": {"rate": 9.0}}}
    found = {(one.name, one.ledger): one for one in report.targets({"cells": {"postgresql": {"first": cell}}})}
    first = found["first call against (a), 1 caller", "postgresql"]
    assert (first.measured, first.met) == (0.9, True)
    dbos = found["first call against DBOS, 32 callers", "postgresql"]
    assert (dbos.measured, dbos.met) == (10.0, False)
    assert found["first call against (a), 256 callers", "postgresql"].met is None


# ---------------------------------------------------------------- the peers


@pytest.mark.needs_peers
@pytest.mark.parametrize("key", ["dbos", "langgraph"])
@pytest.mark.timeout(600)
def test_a_peer_writes_what_it_says(empty_url: str, tmp_path: Path, key: str) -> None:
    """Each first call leaves one workflow or thread, and a replay none."""
    counted = _peer(key, empty_url, tmp_path)
    assert next(iter(counted.values())) == counted["made"]


@pytest.mark.needs_redis
@pytest.mark.timeout(600)
def test_powertools_writes_what_it_says(tmp_path: Path) -> None:
    """Each first call leaves one record, and a replay none."""
    with places.opened() as opened:
        counted = _peer("powertools", opened.redis(), tmp_path)
    assert counted["records"] == counted["made"]


def _peer(key: str, place: str, folder: Path) -> dict[str, int]:
    """What a peer's side counts after first calls and replays, and how many first calls it made."""
    (spec,) = (spec for spec in matrix.SIDES if spec.key == key)
    (peer,) = (peer for peer in peers.PEERS if peer.name == spec.peer)
    with Process(spec.module, spec.name, place, errors=folder, python=peers.interpreter(peer)) as side:
        made = side.ask("round", kind="first", callers=CALLERS, calls=CALLS)["made"]
        replayed = side.ask("round", kind="replay", callers=CALLERS, calls=CALLS)
        assert replayed["refused"] == 0
        counted: dict[str, int] = side.ask("count")
        around = side.ask("firsts") - made
    return {**counted, "made": made + around}
