"""A side in a process of its own, as the run sees it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

TESTS: Final = Path(__file__).resolve().parents[1]
ROOTS: Final = ("executor", "tools", "migrations")
ANSWER_S: Final = 600.0


class SideFailed(Exception):
    """A side ended or did not answer; the text is what it left behind."""


class Process:
    """One side. Ask it `round`, `count` or another of its methods by name.

    Args:
        module: its module in `benchmarks.sides`.
        name: its class there.
        place: what the class is opened on.
        python: whose interpreter; a peer's has the tests on its path and nothing of the product.
        errors: the folder that gets what it says besides.

    Raises:
        SideFailed: it could not be opened.
    """

    def __init__(self, module: str, name: str, place: str, *, errors: Path, python: Path | None = None) -> None:
        paths = [str(TESTS)]
        if python is None:
            paths = [str(TESTS.parent / root) for root in ROOTS] + paths
        self._errors = (errors / f"{module}-{name}-{os.urandom(3).hex()}.txt").open("w+")
        self._process = subprocess.Popen(
            [str(python or sys.executable), "-m", "benchmarks.child", module, name, place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            bufsize=1,
            cwd=errors,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        self.title = f"{module}.{name}"
        try:
            self._heard()
        except SideFailed:
            self.close()
            raise

    def ask(self, do: str, **arguments: Any) -> Any:
        """Have it do something, and wait for what it says.

        Raises:
            SideFailed: it did not.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        except OSError:
            raise SideFailed(self._left()) from None
        return self._heard()

    def close(self) -> None:
        """End it."""
        if self._process.poll() is None:
            try:
                self.ask("close")
                self._process.wait(timeout=10)
            except (SideFailed, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait(timeout=10)
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.close()

    def _heard(self) -> Any:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], ANSWER_S)
        line = self._process.stdout.readline() if ready else ""
        answer = json.loads(line) if line else {"trouble": self._left()}
        if "trouble" in answer:
            raise SideFailed(f"{self.title}: {answer['trouble']}")
        return answer["said"]

    def _left(self) -> str:
        self._errors.flush()
        self._errors.seek(0)
        return self._errors.read()[-3000:] or "it ended or did not answer"
