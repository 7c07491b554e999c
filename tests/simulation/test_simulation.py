"""The simulation finds no schedule that breaks a promise, reaches everything that it should, and repeats itself."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulation.chance import Made
from simulation.report import missing
from simulation.run import Total, whole
from simulation.shrink import from_text, shrink, to_text
from simulation.trial import stage

TESTS = Path(__file__).resolve().parents[1]
SEEDS = 2_000
MANY = 200_000
AGAIN = (3, 4, 5, 49)  # the last one lives on PostgreSQL


@pytest.fixture(scope="module")
def total() -> Total:
    """What came of the ordinary run."""
    return whole(range(SEEDS), jobs=2)


def test_no_schedule_breaks_a_promise(total: Total) -> None:
    """In 2,000 seeded schedules of faults, crashes, pauses, cancellations and cuts the checker finds no violation."""
    assert total.seeds == SEEDS
    assert total.failures == []


def test_every_fault_proof_and_step_is_reached(total: Total) -> None:
    """No fault, no proof, no step and no blow at a step has zero hits: the run above speaks of all of them."""
    assert missing(total.hits) == []


def test_one_seed_is_one_schedule() -> None:
    """The same seeds give the same histories, byte for byte: in this process, and in a new one whose hashes differ."""
    code = (
        "import hashlib; from simulation.trial import stage\nwith stage() as here:\n"
        f"    text = ''.join(here.run(seed).text for seed in {AGAIN!r})\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
    with stage() as here:
        texts = ["".join(here.run(seed).text for seed in AGAIN) for _ in range(2)]
    assert texts[0] == texts[1]
    library = os.pathsep.join(path for path in sys.path if path)
    elsewhere = subprocess.run(
        [sys.executable, "-c", code],
        cwd=TESTS, env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": library},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert elsewhere.stdout.strip() == hashlib.sha256(texts[0].encode()).hexdigest()


def test_a_failing_schedule_is_shrunk_to_what_it_needs() -> None:
    """Of the decisions of a schedule in which the provider breaks a grace, few are left that make it do so: with them
    alone it does, and lived again from their text it is the same to the last byte."""
    with stage() as here:

        def breaks(kept: frozenset[Made]) -> bool:
            return "broke grace" in here.run(seed, kept).hits

        seed, trial = next((seed, one) for seed in range(1000) if "broke grace" in (one := here.run(seed)).hits)
        kept = shrink(trial.made, breaks, most_runs=100)
        assert len(kept) < len(trial.made) / 4
        assert breaks(kept)
        assert here.run(seed, from_text(to_text(kept))).text == here.run(seed, kept).text


@pytest.mark.simulation_long
@pytest.mark.timeout(0)
def test_no_schedule_of_many_breaks_a_promise() -> None:
    """The same for 200,000 schedules, whose seeds no ordinary run has seen."""
    assert whole(range(SEEDS, SEEDS + MANY), jobs=os.cpu_count() or 1).failures == []
