"""`counterfoil prune` says what it did and what it left, and why."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


def test_what_is_over_goes_and_the_rest_is_counted(run: Any, told: Any, tmp_path: Path) -> None:
    """Three settled effects go to the file; the doubt stays, and the command says so."""
    file = tmp_path / "archive.jsonl"
    ran = run("prune", "--older-than", "90m", "--export", file, "--json", "--ledger", told.url)
    assert (ran.code, ran.json) == (0, {"pruned": 3, "kept": {"unknown": 1}, "export": str(file)})
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["id"] for line in lines} == {told.applied, told.refused, told.north}
    shown = run("show", told.applied, "--json", "--ledger", told.url).json
    assert (shown["arguments"], shown["value"], shown["history"][0]["event"]) == ({}, None, "pruned")
    assert shown["pruned_at"] is not None
    assert run("doubts", "--json", "--ledger", told.url).json[0]["effect_id"] == told.doubt


def test_a_person_reads_it_in_lines(run: Any, told: Any) -> None:
    """Without a file, and for one tenant: a line for what went, one for each reason."""
    ran = run("prune", "--older-than", "90m", "--tenant", "north", "--ledger", told.url)
    assert (ran.code, ran.out) == (0, "pruned 1 effect\n")
    ran = run("prune", "--older-than", "90m", "--ledger", told.url)
    assert ran.out == "pruned 2 effects\n  kept 1 that are unknown\n"
    assert "pruned" in run("show", told.applied, "--ledger", told.url).out


@pytest.mark.parametrize("text", ["", "90", "-1d", "1.5h", "d", "1y"])
def test_an_age_without_a_unit_is_refused(run: Any, text: str) -> None:
    """What is meant must be said: nothing is pruned on a guess."""
    ran = run("prune", f"--older-than={text}", "--ledger", "sqlite:///no-such-file.db")
    assert (ran.code, ran.out) == (1, "")
    assert "90d, 12h, 30m or 60s" in ran.err


def test_an_age_must_be_given(run: Any) -> None:
    """There is no default for what goes."""
    ran = run("prune", "--ledger", "sqlite:///no-such-file.db")
    assert (ran.code, "--older-than" in ran.err) == (1, True)


def test_a_terminal_shows_the_progress(told: Any, tmp_path: Path) -> None:
    """On a terminal the sums stand in a line of their own while it works; stdout has the result alone."""
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "counterfoil.cli", "prune", "--older-than", "90m", "--ledger", told.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, env=os.environ | {"TERM": "xterm"}) as child:
        out, _ = child.communicate()
    os.close(writer)
    shown = b""
    while select.select([reader], [], [], 0.2)[0]:
        try:
            shown += os.read(reader, 4096)
        except OSError:
            break
    os.close(reader)
    assert out.startswith(b"pruned 3 effects")
    assert b"pruning" in shown
