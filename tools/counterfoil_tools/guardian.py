"""Runs one server for as long as its starter lives: `python -m counterfoil_tools.guardian FOLDER COMMAND…`.

The starter holds the other end of standard input. When that closes, also because the starter was killed, the server's
whole process group is ended and its folder removed: nothing is left behind by a closed terminal.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

POLL_S = 0.2
STOP_S = 5.0


def main(arguments: list[str]) -> int:
    """Run the command; its exit code, or 1 when the starter is gone."""
    folder, *command = arguments
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - the starter's own command
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], POLL_S)
        if readable and not os.read(sys.stdin.fileno(), 1):
            _end(child)
            shutil.rmtree(folder, ignore_errors=True)
            return 1
    return child.returncode


def _end(child: subprocess.Popen[bytes]) -> None:
    """TERM to everybody in this process's group but itself, and KILL to the child if it does not obey."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with suppress(ProcessLookupError):
        os.killpg(os.getpgrp(), signal.SIGTERM)
    until = time.monotonic() + STOP_S
    while child.poll() is None and time.monotonic() < until:
        time.sleep(POLL_S)
    child.kill()
    child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
