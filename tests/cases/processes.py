"""Other processes of a case: a play is a function of a test module, run in a fresh interpreter.

Owns starting, talking to, and the ends of child processes. A play takes its arguments by name (JSON data) and returns
JSON data; it may `hear` a line from the test, and `say` one to it.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

TESTS: Final = Path(__file__).parent.parent
END_S: Final = 60.0
POLL_S: Final = 0.005


class Child:
    """A process that runs one play."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def tell(self, content: Any) -> None:
        """Send one line of JSON, which the play gets from `hear`."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(content) + "\n")
        self.process.stdin.flush()

    def hang_up(self) -> None:
        """Say that nothing more will be said: `hear` then answers None."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def heard(self) -> Any:
        """The next thing that the play said; what it returned comes last."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the play ended with {self.process.wait(END_S)} and said nothing")
        return json.loads(line)

    def heard_within(self, seconds: float) -> Any:
        """The next thing that the play says, or None when it says nothing for so long."""
        assert self.process.stdout is not None
        return self.heard() if select.select([self.process.stdout], [], [], seconds)[0] else None

    def result(self) -> Any:
        """What the play returned, after its process has ended well."""
        answer = self.heard()
        assert self.process.wait(END_S) == 0
        return answer

    def stopped(self) -> None:
        """Wait until its process stands still, as one does that got a SIGSTOP."""
        end = time.monotonic() + END_S
        while Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0] != "T":
            if time.monotonic() > end or self.process.poll() is not None:
                raise RuntimeError("the play did not come to a stop")
            time.sleep(POLL_S)

    def send_signal(self, number: signal.Signals) -> None:
        """Send its process a signal: SIGCONT has a stopped one go on, SIGKILL ends it, SIGINT is Ctrl-C."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """The exit code; a killed process has minus the number of its signal."""
        return self.process.wait(END_S)


@contextmanager
def playing(play: Callable[..., Any], env: Mapping[str, str] | None = None, **given: Any) -> Iterator[Child]:
    """Run `play(**given)` in a process of its own, which ends with the block at the latest."""
    file = Path(sys.modules[play.__module__].__file__ or "")
    command = [sys.executable, "-m", "cases.processes", f"{file.parent.name}.{file.stem}", play.__name__]
    path = os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))
    environment = os.environ | {"PYTHONPATH": path} | dict(env or {})
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        child = Child(process)
        child.tell(given)
        yield child
    finally:
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        process.wait(END_S)


def hear() -> Any:
    """In a play: the next line of the test; None when the test has nothing more to say."""
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def say(content: Any) -> None:
    """In a play: one line to the test."""
    print(json.dumps(content), flush=True)  # noqa: T201


def main(module: str, play: str) -> None:
    """In the child: run the play and say what it returned."""
    function = getattr(importlib.import_module(module), play)
    say(function(**hear()))


if __name__ == "__main__":
    main(*sys.argv[1:])
