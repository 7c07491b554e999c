"""A ledger with a history, and a way to run commands on it."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from counterfoil.cli.app import app
from counterfoil.clock import ManualClock, SystemClock

SECOND = 1_000_000


@dataclass(frozen=True)
class Ran:
    """What a command left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it wrote to stdout, which must be one JSON value and nothing else."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The application `shop`, in the current folder, with a world of its own."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", "")
    monkeypatch.setenv("SHOP_WORLD", str(tmp_path / "world.json"))
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(Path(__file__).parent)])
    monkeypatch.chdir(Path(__file__).parent)
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    yield importlib.import_module("shop")
    sys.modules.pop("shop", None)


@pytest.fixture
def run(shop: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of `counterfoil` in this process, 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")

    def ran(*arguments: object) -> Ran:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)

    return ran


@dataclass(frozen=True)
class Told:
    """A ledger with a history, begun two hours ago: the ids of an applied, a refused and a doubtful effect, and of one
    of the tenant north."""

    url: str
    applied: str
    refused: str
    doubt: str
    north: str


@pytest.fixture
def told(ledger_url: str, shop: Any, monkeypatch: pytest.MonkeyPatch) -> Told:
    """A paid order that was asked for twice, a declined one, a doubt with its incident, and one of another tenant."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", ledger_url)
    clock = ManualClock(SystemClock().wall_us() - 7200 * SECOND)
    with shop.executor(clock) as executor:
        applied = executor.call("charge", {"order": "A-1", "amount_minor": 1250, "note": "thanks"}, task="trip-42")
        executor.call("charge", {"order": "A-1", "amount_minor": 1250}, task="trip-42", turn=3, call_id="call_9x")
        clock.advance(60)
        refused = executor.call("charge", {"order": "declined-1", "amount_minor": 99}, task="trip-43")
        clock.advance(60)
        doubt = executor.call("charge", {"order": "lost-1", "amount_minor": 7}, task="trip-44")
        clock.advance(100)
        executor.reconcile()
    with shop.executor(clock, "north") as executor:
        north = executor.call("invite", {"guest": "Zoë"})
    monkeypatch.setenv("COUNTERFOIL_LEDGER", "")
    assert (applied.code, refused.code, doubt.code, north.code) == ("ok", "card_declined", "effect_unknown", "ok")
    return Told(ledger_url, applied.effect_id, refused.effect_id, doubt.effect_id, north.effect_id)
