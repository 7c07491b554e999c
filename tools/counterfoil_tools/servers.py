"""The two real servers of the tests and the demo, as child processes: a Stripe server and a CalDAV server.

Owns their start, their readiness and their complete end: process group, temporary folder, port. It never imports them
(both are under the GPL): they run as programs of their own, and all that we say to them goes over HTTP.
"""

from __future__ import annotations

import http.client
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from counterfoil.errors import CounterfoilError, UsageError

LOOPBACK: Final = "127.0.0.1"
START_S: Final = 20.0
STOP_S: Final = 3.0
STARTS_MAX: Final = 3
POLL_S: Final = 0.05
CALENDAR_PATH: Final = "/desk/slots/"

# The server keeps its objects in memory and also writes them to one fixed file, which would be another user's or would
# stay behind. Its own process is told to write that file nowhere.
_GUNICORN: Final = """
import builtins
import os

control_socket_disable = True
graceful_timeout = 1
_open = builtins.open

def _open_but_for_the_store(file, *args, **kwargs):
    return _open(os.devnull if file == "/tmp/localstripe.pickle" else file, *args, **kwargs)

builtins.open = _open_but_for_the_store
"""

_RADICALE: Final = """
[server]
hosts = {host}:{port}
[auth]
type = none
[storage]
filesystem_folder = {folder}/collections
[logging]
level = warning
"""


class ServerFailed(CounterfoilError):
    """A server did not start or did not answer as it must. The text ends with the last lines of its log."""


class Server:
    """A child process with a folder, a log and a port of its own; end it with `stop` or use it in a `with` block.

    Example:
        >>> with radicale() as server:
        ...     server.ask("PROPFIND", CALENDAR_PATH, {"Depth": "0"})
        207
    """

    def __init__(self, name: str, modules: tuple[str, ...]) -> None:
        _require(name, modules)
        self.name = name
        self.host = LOOPBACK
        self.port = 0
        self.folder = Path()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def pid(self) -> int | None:
        """The process (it leads its own group), None when it does not run."""
        return self._process.pid if self._process is not None else None

    def command(self) -> list[str]:
        """The command line for `self.port`; writes the configuration that it names."""
        raise NotImplementedError

    def prepare(self) -> None:
        """What the server needs before its first use. Called once it answers."""

    def start(self) -> Server:
        """Start and wait until it answers, at most 20 seconds.

        Raises:
            ServerFailed: it ended or never answered; nothing is left behind.
        """
        self.folder = Path(tempfile.mkdtemp(prefix=f"counterfoil-{self.name}-"))
        try:
            for _ in range(STARTS_MAX):
                if self._started_once():
                    self.prepare()
                    return self
            raise ServerFailed(f"{self.name} ended while starting:\n{self._log_end()}")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the whole process group (TERM, then KILL) and remove the folder. A second call does nothing."""
        process, self._process = self._process, None
        folder, self.folder = self.folder, Path()
        if process is not None:
            _end_group(process)
        if folder != Path():
            shutil.rmtree(folder, ignore_errors=True)

    def __enter__(self) -> Server:
        return self if self._process is not None else self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _started_once(self) -> bool:
        """False when it ended at once: another process may have taken the port between our choice and its bind."""
        self.port = _free_port()
        environment = {**os.environ, "HOME": str(self.folder), "TMPDIR": str(self.folder), "PYTHONUNBUFFERED": "1"}
        with (self.folder / "log").open("ab") as log:
            self._process = process = subprocess.Popen(  # noqa: S603 - the command is ours, word for word
                [sys.executable, "-m", "counterfoil_tools.guardian", str(self.folder), *self.command()],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env=environment,
                start_new_session=True,
            )
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if process.poll() is not None:
                _end_group(process)
                return False
            if self._answers():
                return True
            time.sleep(POLL_S)
        raise ServerFailed(f"{self.name} did not answer within {START_S:.0f} s:\n{self._log_end()}")

    def _answers(self) -> bool:
        with suppress(OSError, http.client.HTTPException):
            self.ask("GET", "/")
            return True
        return False

    def ask(self, method: str, path: str, headers: dict[str, str] | None = None) -> int:
        """One plain request straight to the server; the status of the answer."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=START_S)
        try:
            connection.request(method, path, headers=headers or {})
            return connection.getresponse().status
        finally:
            connection.close()

    def _log_end(self) -> str:
        with suppress(OSError):
            return (self.folder / "log").read_text(errors="replace")[-2000:]
        return ""


class _Localstripe(Server):
    def __init__(self) -> None:
        super().__init__("localstripe", ("localstripe", "gunicorn", "aiohttp"))

    def command(self) -> list[str]:
        configuration = self.folder / "gunicorn.conf.py"
        configuration.write_text(_GUNICORN)
        worker = ["--worker-class", "aiohttp.GunicornWebWorker"]
        bind = ["--bind", f"{self.host}:{self.port}", "--config", str(configuration)]
        return [sys.executable, "-m", "gunicorn", "localstripe.server:app", *worker, *bind]


class _Radicale(Server):
    def __init__(self) -> None:
        super().__init__("radicale", ("radicale",))

    def command(self) -> list[str]:
        configuration = self.folder / "radicale.ini"
        configuration.write_text(_RADICALE.format(host=self.host, port=self.port, folder=self.folder))
        return [sys.executable, "-m", "radicale", "--config", str(configuration)]

    def prepare(self) -> None:
        owner = "/" + CALENDAR_PATH.strip("/").split("/")[0] + "/"
        for method, path in (("MKCOL", owner), ("MKCALENDAR", CALENDAR_PATH)):
            status = self.ask(method, path)
            if status != 201:
                raise ServerFailed(f"radicale answered {status} to {method} {path}:\n{self._log_end()}")


def localstripe() -> Server:
    """A Stripe server (localstripe) that listens on the loopback only. It keeps everything in memory.

    Raises:
        UsageError: its packages are not installed.
    """
    return _Localstripe()


def radicale() -> Server:
    """A CalDAV server (Radicale) with one empty calendar at `CALENDAR_PATH`, open to everybody on this machine.

    Raises:
        UsageError: its package is not installed.
    """
    return _Radicale()


def _require(name: str, modules: tuple[str, ...]) -> None:
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise UsageError(
            f"{name} cannot be started: {', '.join(missing)} is not installed here. "
            "Install the servers of the demo: pip install 'counterfoil[demo]'"
        )


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """TERM to the leader's whole group, KILL to what is left of it, and the leader is waited for."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.stdin is not None:
        process.stdin.close()
    process.wait()
    until = time.monotonic() + STOP_S
    with suppress(ProcessLookupError):
        while time.monotonic() < until:  # the leader is gone; whoever takes care of orphans reaps the others
            os.killpg(process.pid, 0)
            time.sleep(POLL_S)
