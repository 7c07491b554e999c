"""What a person sees of `reconcile --watch`. Several of them at work are in tests/hosts."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
from typing import Any

import pytest

from counterfoil.cli.watching import _Lines
from counterfoil.reconcile import Reconciled
from counterfoil.runner.watch import Round

COMMAND = [sys.executable, "-m", "counterfoil.cli", "reconcile", "--watch", "--app", "shop:executor"]


class Screen(io.StringIO):
    """A terminal, or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def rounds() -> list[Round]:
    """Work, then twice nothing new, then trouble."""
    settled = Reconciled(looked=3, applied=1, no_effect=1, unknown=1, incidents=1)
    return [
        Round(number=1, done=settled, doubts=1, due_at=None, pause_s=10),
        Round(number=2, done=Reconciled(), doubts=1, due_at=None, pause_s=10),
        Round(number=3, done=Reconciled(), doubts=1, due_at=None, pause_s=10),
        Round(number=4, done=Reconciled(), doubts=None, due_at=None, pause_s=1.25, trouble="it does not answer"),
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_lines_tell_what_has_changed(shop: Any, ledger_url: str, terminal: bool, monkeypatch: Any) -> None:
    """In a log stands what has changed; a terminal sees each quiet round too, in the place of the one before."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", ledger_url)
    screen = Screen(terminal)
    with shop.executor() as executor:
        lines = _Lines(executor, screen)
        for one in rounds():
            lines.told(one)
        lines.end(Reconciled(looked=3, applied=1, no_effect=1))
    content = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00  ", "", screen.getvalue())
    quiet = "looked 0, settled 0, left 1, nothing due"
    again = f"{quiet}\r\x1b[2K{quiet}\r\x1b[2K" if terminal else ""
    assert content == (
        "looked 3, settled 2, left 1, nothing due; 1 raised: counterfoil incidents\n"
        f"{again}it does not answer; again in 1.2 s\n"
        "stopped: looked 3, settled 2\n"
    )


def test_ctrl_c_on_a_terminal_ends_it_cleanly(told: Any, shop: Any) -> None:
    """The rounds are seen as they come, Ctrl-C ends with 130 after a last line, and there is no trace."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"COUNTERFOIL_LEDGER": told.url, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [*COMMAND, "--interval", "1"], env=environment, stdout=theirs, stderr=subprocess.PIPE, text=True
    ) as process:
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                seen += os.read(ours, 4096)
            except OSError:  # the other end of the terminal is closed
                break
            if b"left 1" in seen and b"stopped" not in seen and process.poll() is None:
                process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        rest = process.stderr.read()
    os.close(ours)
    assert process.returncode == 130
    assert b"looked 1, settled 0, left 1, next due in " in seen
    assert b"stopped: looked" in seen
    assert "Traceback" not in rest


def test_a_time_that_is_none_is_said(run: Any, ledger_url: str) -> None:
    """Exit code 1 and what to give instead."""
    ran = run("reconcile", "--watch", "--app", "shop:executor", "--interval", "0", "--ledger", ledger_url)
    assert (ran.code, ran.out) == (1, "")
    assert "above 0" in ran.err
