"""Processes that start in a few milliseconds: a server without threads that has imported everything, and forks.

Each life is a process of its own, with its own executor, connections and threads, and can be killed as any other. Only
the half second of imports is shared. `Nursery` is the client's side; the server is this file run as a module.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    AnyLife: TypeAlias = DataclassInstance

LIFE_S = 120.0
STOPPED_S = 30.0
POLL_S = 0.005
TESTS = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Born:
    """A process that lives. `ended` is its exit code, negative for the signal that ended it."""

    pid: int
    ended: Future[int]

    def kill(self) -> None:
        """End it from outside, as the kernel or an operator would."""
        os.kill(self.pid, signal.SIGKILL)

    def await_stopped(self, marker: Path) -> None:
        """Wait until it has come to its point, where it wrote `marker`, and stands still there (SIGSTOP)."""
        until = time.monotonic() + STOPPED_S
        while not (marker.exists() and self.state() == "T"):
            assert time.monotonic() < until, "the process did not come to its point"
            assert not self.ended.done()
            time.sleep(POLL_S)

    def state(self) -> str:
        """The kernel's letter for what it does: T when it is stopped."""
        return Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]

    def resume(self) -> None:
        """Let a paused process go on."""
        os.kill(self.pid, signal.SIGCONT)


class Nursery:
    """Starts processes. May be used from several threads at once.

    `lives` is the module that says what a life is: it has `from_json`, `live`, and lives with an `out`. It names in
    `IMPORTED` what its lives import besides, so that none of them has to.
    """

    def __init__(self, lives: str = "crash.life") -> None:
        # The processes see the library that this one sees, wherever it was found.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}
        command = [sys.executable, "-m", "crash.nursery", lives]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment
        )
        self._lock = threading.Lock()
        self._births: list[tuple[Future[int], Future[int]]] = []
        self._living: dict[int, Future[int]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def begin(self, life: AnyLife) -> Born:
        """Start a process that lives this life."""
        born: Future[int] = Future()
        ended: Future[int] = Future()
        assert self._server.stdin is not None
        with self._lock:
            self._births.append((born, ended))
            self._server.stdin.write(json.dumps(asdict(life)) + "\n")
        return Born(born.result(LIFE_S), ended)

    def live(self, life: AnyLife) -> int:
        """Start a process that lives this life, and wait for its end; its exit code."""
        return self.begin(life).ended.result(LIFE_S)

    def _read(self) -> None:
        """The server writes, in its order: `born PID`, and `ended PID CODE`."""
        assert self._server.stdout is not None
        for line in self._server.stdout:
            what, pid, *code = line.split()
            if what == "born":
                with self._lock:
                    born, ended = self._births.pop(0)
                self._living[int(pid)] = ended
                born.set_result(int(pid))
            else:
                self._living.pop(int(pid)).set_result(int(code[0]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(LIFE_S)
        self._reader.join(LIFE_S)
        self._server.stdout.close()


# ---------------------------------------------------------------- the server


def serve(lives: str) -> None:
    """Fork a process for each line, and tell of its birth and of its end, until the input ends."""
    for warm in (
        "psycopg",
        "sqlite3",
        "sqlalchemy.dialects.postgresql.psycopg",
        "sqlalchemy.dialects.sqlite.pysqlite",
    ):
        importlib.import_module(warm)
    module = importlib.import_module(lives)
    for part in module.IMPORTED:
        importlib.import_module(part)
    gc.freeze()
    living: dict[int, int] = {}  # pidfd -> pid
    waiting = b""
    while True:
        ready, _, _ = select.select([0, *living], [], [])
        for handle in ready:
            if handle != 0:
                pid = living.pop(handle)
                os.close(handle)
                _, status = os.waitpid(pid, 0)
                _say(f"ended {pid} {os.waitstatus_to_exitcode(status)}")
        if 0 in ready:
            more = os.read(0, 65_536)
            if not more:
                break
            *lines, waiting = (waiting + more).split(b"\n")
            for line in lines:
                pid = _fork(module, module.from_json(line.decode()))
                living[os.pidfd_open(pid)] = pid
                _say(f"born {pid}")
    for pid in living.values():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _fork(module: Any, life: Any) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        module.live(life)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the test that reads the record must see it
        Path(life.out).write_text(traceback.format_exc(), "utf-8")
    finally:
        os._exit(code)


def _say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    serve(*sys.argv[1:])
