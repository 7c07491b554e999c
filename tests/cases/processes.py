"""Other processes of a case: a play is a function of a test module, run in a process of its own.

Owns starting, talking to, and the ends of child processes, which come from a nursery. A play takes its arguments by
name (JSON data) and returns JSON data; it may `hear` a line from the test, and `say` one to it.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TextIO

from crash.nursery import Born, Nursery

END_S: Final = 60.0
POLL_S: Final = 0.005
IMPORTED: Final = (
    "pytest",
    "httpx",
    "alembic.command",
    "cases.scene",
    "cases.messages",
    "cases.paying",
    "guards.failing",
)


@dataclass(frozen=True, slots=True)
class Part:
    """A play, and the two named pipes through which it hears and says. `out` is where it leaves why it failed."""

    module: str
    play: str
    env: Mapping[str, str]
    hears: str
    says: str
    out: str


class Child:
    """A process that runs one play."""

    def __init__(self, born: Born, tells: TextIO, says: TextIO, out: Path) -> None:
        self._born = born
        self._tells = tells
        self._says = says
        self._out = out

    def tell(self, content: Any) -> None:
        """Send one line of JSON, which the play gets from `hear`."""
        self._tells.write(json.dumps(content) + "\n")
        self._tells.flush()

    def hang_up(self) -> None:
        """Say that nothing more will be said: `hear` then answers None."""
        self._tells.close()

    def heard(self) -> Any:
        """The next thing that the play said; what it returned comes last."""
        line = self._says.readline()
        if not line:
            code, why = self.ended(), self._out.read_text("utf-8") if self._out.exists() else ""
            raise RuntimeError(f"the play ended with {code} and said nothing\n{why}")
        return json.loads(line)

    def heard_within(self, seconds: float) -> Any:
        """The next thing that the play says, or None when it says nothing for so long."""
        return self.heard() if select.select([self._says], [], [], seconds)[0] else None

    def result(self) -> Any:
        """What the play returned, after its process has ended well."""
        answer = self.heard()
        assert self.ended() == 0
        return answer

    def stopped(self) -> None:
        """Wait until its process stands still, as one does that got a SIGSTOP."""
        end = time.monotonic() + END_S
        while self._born.state() != "T":
            if time.monotonic() > end or self._born.ended.done():
                raise RuntimeError("the play did not come to a stop")
            time.sleep(POLL_S)

    def send_signal(self, number: signal.Signals) -> None:
        """Send its process a signal: SIGCONT has a stopped one go on, SIGKILL ends it, SIGINT is Ctrl-C."""
        os.kill(self._born.pid, number)

    def ended(self) -> int:
        """The exit code; a killed process has minus the number of its signal."""
        return self._born.ended.result(END_S)


@contextmanager
def playing(play: Callable[..., Any], env: Mapping[str, str] | None = None, **given: Any) -> Iterator[Child]:
    """Run `play(**given)` in a process of its own, which ends with the block at the latest."""
    file = Path(sys.modules[play.__module__].__file__ or "")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cf-play-")))
        hears, says, out = folder / "hears", folder / "says", folder / "out"
        os.mkfifo(hears)
        os.mkfifo(says)
        part = Part(f"{file.parent.name}.{file.stem}", play.__name__, dict(env or {}), str(hears), str(says), str(out))
        born = _nursery().begin(part)
        stack.callback(_end, born)
        child = Child(born, stack.enter_context(hears.open("w")), stack.enter_context(says.open()), out)
        child.tell(given)
        yield child


def _end(born: Born) -> None:
    if not born.ended.done():
        with suppress(ProcessLookupError):
            born.kill()
    born.ended.result(END_S)


@cache
def _nursery() -> Nursery:
    """Where the processes come from; it ends with this one."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(Nursery(__name__))


def hear() -> Any:
    """In a play: the next line of the test; None when the test has nothing more to say."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def say(content: Any) -> None:
    """In a play: one line to the test."""
    print(json.dumps(content), flush=True)  # noqa: T201


# ---------------------------------------------------------------- for the nursery


def live(part: Part) -> None:
    """In the child: run the play and say what it returned."""
    os.environ.update(part.env)
    time.tzset()
    os.dup2(os.open(part.hears, os.O_RDONLY), 0)
    os.dup2(os.open(part.says, os.O_WRONLY), 1)
    function = getattr(importlib.import_module(part.module), part.play)
    say(function(**hear()))


def from_json(line: str) -> Part:
    """The part in one line of JSON."""
    return Part(**json.loads(line))
