"""The agent's process as the director sees it: started, asked, killed, replaced.

Owns the process and the lines that go to and fro. It knows no scene.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from threading import Timer
from types import TracebackType
from typing import IO, Any, Final

from counterfoil.errors import CounterfoilError
from counterfoil_tools.demo.agent import Settings

REPLY_S: Final = 40.0
END_S: Final = 1.0


class AgentFailed(CounterfoilError):
    """The agent's process ended, or did not answer in time. The text ends with the last lines that it wrote."""


class Agent:
    """A running agent; end it with `close`, or kill it."""

    def __init__(self, settings: Settings) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "counterfoil_tools.demo.agent"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self._write(settings.line())

    def ask(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Let the agent call a tool; `reply` waits for what it was told."""
        self._write(json.dumps({"tool": tool, "arguments": dict(arguments)}) + "\n")

    def reply(self) -> dict[str, Any]:
        """What the model would read, with the fields that belong to it.

        Raises:
            AgentFailed: no answer within 40 seconds, or the process ended.
        """
        assert self._process.stdout is not None
        overdue = Timer(REPLY_S, self._process.kill)
        overdue.start()
        try:
            line = self._process.stdout.readline()
        finally:
            overdue.cancel()
        if not line:
            raise AgentFailed(f"the agent's process gave no answer:\n{self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def kill(self) -> None:
        """SIGKILL: nothing of the process runs any more, and it could tidy up nothing."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process: by the end of its input, or by force."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            raise AgentFailed(f"the agent's process has ended:\n{self._last_words()}") from None

    def _last_words(self) -> str:
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-2000:]
