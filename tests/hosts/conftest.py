"""Starts real processes on one ledger and one provider."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hosts.processes import PATIENCE_S, Host, Start
from provider import Provider

TESTS = Path(__file__).parents[1]


@pytest.fixture
def hosts(provider: Provider) -> Iterator[Callable[[str], Start]]:
    """Starts processes on the ledger of that URL; none outlives the test."""
    with ExitStack() as stack:

        def on(url: str) -> Start:
            paths = [str(TESTS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
            environment = os.environ | {
                "COUNTERFOIL_LEDGER": url, "PROVIDER": provider.url, "PYTHONPATH": os.pathsep.join(paths),
            }  # fmt: skip

            def start(*arguments: str) -> Host:
                pipe = subprocess.PIPE
                process = subprocess.Popen(
                    [sys.executable, *arguments], cwd=TESTS, env=environment, stdin=pipe, stdout=pipe, text=True
                )
                stack.callback(_end, process)
                return Host(process)

            return start

        yield on


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE_S)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
