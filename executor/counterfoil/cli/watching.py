"""`reconcile --watch`: rounds until it is asked to stop, told line by line.

Owns the signals of that command and what it prints. A signal only notes the wish: the look under way is finished and
written. A second one ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, Final, TextIO

from counterfoil.cli.display import moment, plain
from counterfoil.cli.ending import Code
from counterfoil.cli.sealing import seal_content
from counterfoil.effect import MICROSECONDS
from counterfoil.ledger.audit import instant_text
from counterfoil.ledger.seals import EveryMinute
from counterfoil.reconcile import Reconciled
from counterfoil.runner.async_executor import AsyncExecutor
from counterfoil.runner.executor import Executor
from counterfoil.runner.watch import Round, Told

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_SAME_LINE: Final = "\r\x1b[2K"


def watch(
    executor: Executor | AsyncExecutor, out: TextIO, *, json_output: bool, seals: bool = True, **times: Any
) -> Code:
    """Watch until a signal asks to stop: 0 after SIGTERM, 130 after Ctrl-C. `times` as `Executor.watch` takes them.

    With `seals`, what is new is sealed once a minute, by whichever host comes first.
    """
    sealing = EveryMinute(executor._ledger, executor._secrets.newest) if seals else None
    lines = _Lines(executor, out, sealing)
    told: Told = _objects(executor, out, sealing) if json_output else lines.told
    if isinstance(executor, Executor):
        stop = threading.Event()
        with _asked_to_stop(stop.set) as caught:
            done = executor.watch(stop=stop, told=told, **times)
    else:
        with asyncio.Runner() as runner:
            wish, loop = asyncio.Event(), runner.get_loop()
            with _asked_to_stop(lambda: loop.call_soon_threadsafe(wish.set)) as caught:
                done = runner.run(executor.watch(stop=wish, told=told, **times))
    if not json_output:
        lines.end(done)
    return Code.INTERRUPTED if signal.SIGINT in caught else Code.OK


@contextlib.contextmanager
def _asked_to_stop(stop: Callable[[], object]) -> Iterator[list[int]]:
    """Within the block, the first SIGTERM or Ctrl-C has `stop` called; yields the signals that came.

    A handler runs between any two steps of the main thread, which may hold the very lock that `stop` needs. So it
    writes one byte, and a thread that waits for the byte calls `stop`.
    """
    caught: list[int] = []
    reader, writer = os.pipe()

    def wait() -> None:
        if os.read(reader, 1):
            stop()
        os.close(reader)

    def on_signal(number: int, _: object) -> None:
        caught.append(number)
        for one, handler in before.items():
            signal.signal(one, handler)
        os.write(writer, b"!")

    before = {one: signal.getsignal(one) or signal.SIG_DFL for one in _SIGNALS}
    waiting = threading.Thread(target=wait, name="counterfoil-signals", daemon=True)
    waiting.start()
    try:
        for one in _SIGNALS:
            signal.signal(one, on_signal)
        yield caught
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        os.close(writer)
        waiting.join()


def _objects(executor: Executor | AsyncExecutor, out: TextIO, sealing: EveryMinute | None) -> Told:
    """One JSON object for each round, on a line of its own."""

    def told(seen: Round) -> None:
        content = {"round": seen.number, "at": instant_text(executor._clock.wall_us()), **asdict(seen.done)}
        content |= {"left": seen.doubts, "next_due_at": instant_text(seen.due_at)}
        content |= {"pause_s": round(seen.pause_s, 3), "trouble": seen.trouble}
        made = None if sealing is None or seen.trouble is not None else sealing.after_round()
        content |= {"seal": None if made is None else seal_content(made)}
        out.write(json.dumps(content) + "\n")
        out.flush()

    return told


class _Lines:
    """Lines for a person: what has changed. A terminal sees quiet rounds too, each in the place of the one before."""

    def __init__(self, executor: Executor | AsyncExecutor, out: TextIO, sealing: EveryMinute | None = None) -> None:
        self._sealing = sealing
        self._clock = executor._clock
        self._out = out
        self._terminal = out.isatty()
        self._left: int | None = None
        self._open_line = False

    def told(self, seen: Round) -> None:
        quiet = seen.trouble is None and seen.done == Reconciled() and seen.doubts == self._left
        self._left = seen.doubts
        made = None if self._sealing is None or seen.trouble is not None else self._sealing.after_round()
        if made is not None:
            sealed = f"sealed {made.effects} effects and {made.entries} entries, root {made.text}"
            self._write(f"{self._line(seen)}\n{moment(self._clock.wall_us())}  {sealed}", False)
        elif self._terminal or not quiet:
            self._write(self._line(seen), quiet)

    def end(self, done: Reconciled) -> None:
        settled = done.applied + done.no_effect
        self._write(f"{moment(self._clock.wall_us())}  stopped: looked {done.looked}, settled {settled}", False)

    def _line(self, seen: Round) -> str:
        if seen.trouble is not None:
            told = f"{seen.trouble}; again in {seen.pause_s:.1f} s"
        else:
            settled = seen.done.applied + seen.done.no_effect
            told = f"looked {seen.done.looked}, settled {settled}, left {seen.doubts}, {self._ahead(seen)}"
            told += f"; {seen.done.incidents} raised: counterfoil incidents" if seen.done.incidents else ""
        return f"{moment(self._clock.wall_us())}  {plain(told)}"

    def _ahead(self, seen: Round) -> str:
        if seen.due_at is None:
            return "nothing due"
        seconds = max(0.0, (seen.due_at - self._clock.wall_us()) / MICROSECONDS)
        return f"next due in {seconds:.0f} s"

    def _write(self, line: str, stays_open: bool) -> None:
        self._out.write(f"{_SAME_LINE if self._open_line else ''}{line}{'' if stays_open else chr(10)}")
        self._open_line = stays_open
        self._out.flush()
