"""What it costs to have it: the time of an import in a fresh interpreter, and the bytes of an installation.

The packages that an installation needs are found from what each says that it requires, extras aside. Compiled bytecode
is not counted.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import PEERS
from benchmarks.process import ROOTS, TESTS

OURS: Final = ("counterfoil", "counterfoil[postgres]")
IMPORTS: Final = {
    "counterfoil": "import counterfoil",
    "counterfoil[postgres]": "import counterfoil, psycopg",
    **{peer.name: peer.imports for peer in PEERS},
}
# What a peer's own installation is made of, for its use as it is measured here.
WANTED: Final = {
    "dbos": ["dbos"],
    "langgraph": ["langgraph", "langgraph-checkpoint-postgres"],
    "powertools": ["aws-lambda-powertools", "redis", "boto3"],
}
_TIMED: Final = "import time; begun = time.perf_counter(); {}; print(time.perf_counter() - begun)"
_SIZES: Final = """
import json, sys
from importlib.metadata import PackageNotFoundError, distribution
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

sizes, waiting = {}, [Requirement(one) for one in json.loads(sys.argv[1])]
while waiting:
    wanted = waiting.pop()
    name = canonicalize_name(wanted.name)
    if name in sizes and not wanted.extras:
        continue
    try:
        there = distribution(name)
    except PackageNotFoundError:
        continue
    sizes[name] = sum(
        file.locate().stat().st_size for file in there.files or () if file.suffix != ".pyc" and file.locate().exists()
    )
    for line in there.requires or ():
        needed = Requirement(line)
        if needed.marker is None or any(needed.marker.evaluate({"extra": one}) for one in ("", *wanted.extras)):
            waiting.append(needed)
print(json.dumps(sizes))
"""


def measure(interpreters: Mapping[str, Path], rounds: int) -> dict[str, dict[str, Any]]:
    """Import time (median, ms) and installed size (MiB) of Counterfoil, with and without a driver, and of the peers."""
    pythons = {**dict.fromkeys(OURS, Path(sys.executable)), **interpreters}
    times: dict[str, list[float]] = {name: [] for name in pythons}
    for number in range(rounds + 1):
        for name, python in pythons.items():
            took = float(_ran(python, _TIMED.format(IMPORTS[name]), ours=name in OURS))
            if number:
                times[name].append(took)
    found: dict[str, dict[str, Any]] = {}
    for name, python in pythons.items():
        sizes = json.loads(_ran(python, _SIZES, json.dumps(WANTED.get(name, [name]))))
        if name in OURS:
            sizes["counterfoil"] = _sources()
        found[name] = {
            "import_ms": round(statistics.median(times[name]) * 1000, 1),
            "installed_mib": round(sum(sizes.values()) / 2**20, 1),
            "packages": dict(sorted(sizes.items())),
        }
    return found


def _sources() -> int:
    """The bytes that a wheel of this tree would install: an editable installation lists none of them."""
    root = TESTS.parent
    files = (file for name in ROOTS for file in (root / name).rglob("*"))
    return sum(file.stat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts)


def _ran(python: Path, code: str, *arguments: str, ours: bool = False) -> str:
    path = ":".join(str(TESTS.parent / root) for root in ROOTS) if ours else ""
    ran = subprocess.run(
        [str(python), "-W", "ignore", "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "HOME": str(Path.home()), "LC_ALL": "C.UTF-8"},
    )
    return ran.stdout.strip().splitlines()[-1]
