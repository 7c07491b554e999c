"""Plays the script: starts the world and the agent, lets things go wrong at the right moment, counts afterwards.

Owns the order of the play and its complete end, also after Ctrl-C or TERM. It decides nothing about effects.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import sqlalchemy.exc
from sqlalchemy.engine import make_url

from counterfoil import Executor
from counterfoil.effect import Entry
from counterfoil.errors import CounterfoilError, UsageError
from counterfoil.ledger.upgrade import upgrade
from counterfoil_tools.demo.agent import Settings
from counterfoil_tools.demo.report import Played, Printer, Sum
from counterfoil_tools.demo.script import CHARGE, OFFERED, SCENES, Scene
from counterfoil_tools.demo.staff import Agent, AgentFailed
from counterfoil_tools.demo.world import World

ACTED_S: Final = 20.0

RIGHT: Final = 0
WRONG: Final = 1
IMPOSSIBLE: Final = 2
INTERRUPTED: Final = 130


def run_demo(*, json_output: bool, retry_blindly: bool, ledger: str | None) -> int:
    """Play the demo and print it.

    Args:
        json_output: print one JSON object in place of the text.
        retry_blindly: play the same agent with a plain retry in place of Counterfoil.
        ledger: `sqlite:///FILE` or `postgresql+psycopg://…`; None: a SQLite file that is removed afterwards.

    Returns:
        The exit code: 0 when every count and verdict is right, 1 when one is not, 2 when the demo cannot run here,
        130 after an interruption.
    """
    printer = Printer(json_output=json_output)
    try:
        with _interruptible(), ExitStack() as ends, _undisturbed(ends):
            total = _Play(ends, printer, retry_blindly, ledger).run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted; everything that was started has been ended.\n")
        return INTERRUPTED
    except CounterfoilError as error:
        sys.stderr.write(f"The demo cannot run: {error}\n")
        return IMPOSSIBLE
    printer.closing(total)
    return RIGHT if total.right else WRONG


def main(argv: Sequence[str]) -> int:
    """The demo's own command line, for `python -m counterfoil_tools.demo`."""
    about = "An agent pays and books while answers get lost; then the providers count."
    parser = argparse.ArgumentParser(prog="counterfoil demo", description=about)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--retry-blindly", action="store_true", help="the same agent with a plain retry: see it double")
    parser.add_argument("--ledger", help="sqlite:///FILE or postgresql+psycopg://…; else a file that is removed")
    given = parser.parse_args(argv)
    return run_demo(json_output=given.json, retry_blindly=given.retry_blindly, ledger=given.ledger)


class _Play:
    def __init__(self, ends: ExitStack, printer: Printer, blindly: bool, ledger: str | None) -> None:
        self._printer = printer
        self._blindly = blindly
        self._began = time.monotonic()
        if ledger is None:
            folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="counterfoil-demo-"))
            ledger = f"sqlite:///{Path(folder) / 'ledger.db'}"
        self._shown = _shown(ledger)
        printer.opening(self._shown, blindly=blindly)
        tenant = f"demo-{uuid.uuid4().hex[:12]}"  # a ledger that is kept may hold an earlier demo's orders
        self._executor: Executor | None = None
        if not blindly:
            _prepare(ledger)
            self._executor = ends.enter_context(Executor(ledger, tenant=tenant))
        self._world = ends.enter_context(World())
        self._settings = Settings(
            stripe_url=self._world.stripe_url,
            calendar_url=self._world.calendar_url,
            ledger=ledger,
            tenant=tenant,
            blindly=blindly,
        )
        self._shown_entries: dict[str, int] = {}
        self._agent = Agent(self._settings)
        ends.callback(lambda: self._agent.close())

    def run(self) -> Sum:
        played: list[Played] = []
        for scene in SCENES:
            offered = played[-1].told["candidates"] if played else []
            if scene.takes_offer and not offered:
                continue
            arguments = {name: offered[0] if value == OFFERED else value for name, value in scene.arguments.items()}
            played.append(self._play(scene, arguments))
            self._printer.played(played[-1], self._news(played[-1].told), blindly=self._blindly)
        return Sum(
            played=played,
            payments=self._world.paid().total(),
            bookings=self._world.booked().total(),
            duplicates=self._world.duplicates(),
            ledger="none" if self._blindly else self._shown,
            blindly=self._blindly,
            seconds=time.monotonic() - self._began,
        )

    def _play(self, scene: Scene, arguments: Mapping[str, Any]) -> Played:
        self._printer.scene(scene, arguments)
        proxy = self._world.payments if scene.tool == CHARGE else self._world.bookings
        before = proxy.counts().fired.get(scene.fault.kind, 0) if scene.fault is not None else 0
        if scene.fault is not None:
            proxy.arm(scene.fault)
        self._agent.ask(scene.tool, arguments)
        if scene.kill and scene.fault is not None:
            kind = scene.fault.kind
            if not proxy.wait(lambda counts: counts.fired.get(kind, 0) > before, timeout_s=ACTED_S):
                raise AgentFailed("the agent sent nothing to be killed at")
            self._agent.kill()
            self._printer.killed()
            self._agent.close()
            self._agent = Agent(self._settings)
            self._agent.ask(scene.tool, arguments)
        told = self._agent.reply()
        proxy.disarm()
        counts = self._world.paid() if scene.tool == CHARGE else self._world.booked()
        return Played(scene, told, counts[scene.subject])

    def _news(self, told: Mapping[str, Any]) -> Sequence[Entry]:
        """What the ledger has written about the effect since it was last shown."""
        if self._executor is None or told.get("effect_id") is None:
            return ()
        history = self._executor.audit.history(told["effect_id"])
        shown = self._shown_entries.get(told["effect_id"], 0)
        self._shown_entries[told["effect_id"]] = len(history)
        return history[shown:]


def _shown(ledger: str) -> str:
    try:
        return make_url(ledger).render_as_string(hide_password=True)
    except sqlalchemy.exc.ArgumentError:
        raise UsageError("the ledger is not a URL: give sqlite:///FILE or postgresql+psycopg://…") from None


def _prepare(ledger: str) -> None:
    """The demo alone makes the tables on a server by itself; elsewhere an operator does. A new file needs nothing."""
    if make_url(ledger).get_backend_name() != "sqlite":
        upgrade(ledger)


@contextmanager
def _interruptible() -> Iterator[None]:
    """TERM, and a terminal that is closed, end the demo as Ctrl-C does: with its cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _undisturbed(ends: ExitStack) -> Iterator[None]:
    """End everything with both signals ignored: an impatient second Ctrl-C must not leave processes behind."""
    try:
        yield
    finally:
        main_thread = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if main_thread else ()
        before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
        try:
            ends.close()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
