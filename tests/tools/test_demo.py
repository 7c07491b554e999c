"""The demo as a user runs it: a program of its own, on each database, through to its end or interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from counterfoil_tools.demo.report import Played, Sum
from counterfoil_tools.demo.script import SCENES

LIMIT_S = 60
MARK = "COUNTERFOIL_DEMO_TEST"


@dataclass(frozen=True)
class Run:
    """A run of the demo: its end, what it printed, and what it left behind."""

    code: int
    out: str
    err: str
    left: tuple[str, ...]

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Stage:
    """A place to run the demo in: its temporary folder and a mark on every process that it starts."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.process: subprocess.Popen[str] | None = None

    def start(self, *options: str) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "counterfoil_tools.demo", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(self.folder), MARK: self.mark},
        )
        return self.process

    def end(self) -> Run:
        assert self.process is not None
        out, err = self.process.communicate(timeout=LIMIT_S)
        return Run(self.process.returncode, out, err, self.left())

    def run(self, *options: str) -> Run:
        self.start(*options)
        return self.end()

    def left(self) -> tuple[str, ...]:
        """Files in the temporary folder, and processes that carry the mark."""
        return (*(str(path) for path in self.folder.iterdir()), *self._marked())

    def _marked(self) -> Iterator[str]:
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    yield " ".join(process.cmdline())
            except psutil.Error:
                continue


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "stage")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, postgres_server: Any) -> dict[str, Run]:
    """Whole runs are mostly waiting: all of them at once. The kept ledger is played on twice, one after the other."""
    folder = tmp_path_factory.mktemp("demo")
    kept = ("--ledger", f"sqlite:///{folder / 'kept.db'}")
    server = ("--json", "--ledger", postgres_server.url(postgres_server.create()))
    options = {"sqlite": ("--json",), "postgresql": server, "blind": ("--json", "--retry-blindly"), "text": kept}
    with ThreadPoolExecutor(len(options)) as pool:
        started = {name: pool.submit(Stage(folder / name).run, *given) for name, given in options.items()}
        runs = {name: each.result() for name, each in started.items()}
    return {**runs, "again": Stage(folder / "again").run("--json", *kept)}


@pytest.mark.parametrize("name", ["sqlite", "postgresql", "again"])
def test_one_payment_and_one_booking_each_on_every_ledger(runs: dict[str, Run], name: str) -> None:
    """On a new SQLite file, on an empty PostgreSQL and on a ledger that was used before: as the script expects it."""
    run = runs[name]
    assert (run.code, run.err.count("Traceback")) == (0, 0), run.err
    told = run.told
    assert told["at_provider"] == told["expected"] == {"payments": 3, "bookings": 2}
    assert told["duplicates"] == 0
    expected = {scene.name: scene.expected for scene in SCENES}
    assert [scene["name"] for scene in told["scenes"]] == list(expected)
    for scene in told["scenes"]:
        wanted = expected[scene["name"]]
        assert scene["verdict"] == wanted.verdict
        assert (scene["proof"], scene["attempts"]) == (wanted.proof, wanted.attempts)
        assert scene["at_provider"] == wanted.at_provider


@pytest.mark.parametrize("name", ["sqlite", "postgresql", "blind", "text", "again"])
def test_nothing_is_left(runs: dict[str, Run], name: str) -> None:
    """After each run neither a process nor a file of it is left."""
    assert runs[name].left == ()


def test_what_the_model_reads(runs: dict[str, Run]) -> None:
    """One text for each scene: the code, one next action, no host, no upstream class or text."""
    observations = runs["sqlite"].told["observations"]
    assert len(observations) == len(SCENES)
    for scene, text in zip(SCENES, observations, strict=True):
        assert f"(code: {scene.expected.code})" in text
        assert text.count("Next action: ") == 1
        assert not [word for word in ("127.0.0.1", "http", "stripe", "Traceback") if word in text]
    assert "another card" in observations[4]
    assert "2026-03-04T09:30:00+00:00" in observations[5]


def test_retrying_blindly_doubles(runs: dict[str, Run]) -> None:
    """The same agent with a plain retry charges and books more than once, and the exit code says that it is wrong."""
    run = runs["blind"]
    told = run.told
    assert run.code == 1
    assert told["at_provider"]["payments"] > told["expected"]["payments"]
    assert told["at_provider"]["bookings"] > told["expected"]["bookings"]
    assert told["duplicates"] > 1
    assert told["scenes"][0]["at_provider"] == 2


def test_the_text_tells_the_same_story(runs: dict[str, Run]) -> None:
    """For people: every scene with what was read, the ledger's lines and the provider's count, then the sum."""
    run = runs["text"]
    assert run.code == 0, run.out
    assert run.err == ""
    for scene in SCENES:
        assert f"\n{scene.label}  {scene.title}\n" in run.out
    assert run.out.count("as it must be") == len(SCENES)
    assert "permission absent_after_grace" in run.out
    assert "by the new process" in run.out
    assert "The providers count 3 payments and 2 bookings" in run.out
    assert "\x1b" not in run.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_cleans_up(stage: Stage, number: signal.Signals) -> None:
    """Ctrl-C or TERM in the middle of a scene: exit code 130, and neither a process nor a file is left."""
    process = stage.start()
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("1  "):
            break
    assert len(stage.left()) > 4
    process.send_signal(number)
    run = stage.end()
    assert (run.code, run.left) == (130, ())
    assert "Traceback" not in run.err


@pytest.mark.parametrize(
    ("ledger", "told"),
    [
        ("mysql://user:hidden@127.0.0.1/x", "SQLite or PostgreSQL"),
        ("nonsense", "not a URL"),
        ("postgresql+psycopg://user:hidden@127.0.0.1:1/x", "cannot be reached"),
    ],
)
def test_an_impossible_ledger_is_told_in_one_line(stage: Stage, ledger: str, told: str) -> None:
    """A ledger that cannot be used: exit code 2, one line that says why, no password, nothing left."""
    run = stage.run("--json", "--ledger", ledger)
    assert (run.code, run.out, run.left) == (2, "", ())
    assert told in run.err
    assert run.err.count("\n") == 1
    assert "hidden" not in run.err


def _right() -> Sum:
    played = []
    for scene in SCENES:
        wanted = scene.expected
        told = {"verdict": wanted.verdict, "proof": wanted.proof, "code": wanted.code, "attempts": wanted.attempts}
        played.append(Played(scene, told, wanted.at_provider))
    return Sum(played, payments=3, bookings=2, duplicates=0, ledger="", blindly=False, seconds=0.0)


def test_the_end_is_right_only_if_everything_is() -> None:
    """One payment too many, one scene not played, one wrong verdict, proof, code, count of attempts: each is wrong."""
    right = _right()
    assert right.right
    first = right.played[0]
    assert not replace(right, payments=4).right
    assert not replace(right, bookings=1).right
    assert not replace(right, duplicates=1).right
    assert not replace(right, played=right.played[1:]).right
    assert not replace(right, played=[replace(first, at_provider=2), *right.played[1:]]).right
    for name, wrong in (("verdict", "effect_unknown"), ("proof", "returned"), ("code", "ok"), ("attempts", 2)):
        other = replace(first, told={**first.told, name: wrong})
        assert not replace(right, played=[other, *right.played[1:]]).right
