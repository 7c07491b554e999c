"""Each extra of an adapter at its floor: `python -m adapters.floors [NAME…]`, run in `tests` by hand, with `uv`.

Owns which extras are tried together and what is run for them. Makes an environment for each in a temporary folder, with
the lowest version of everything that `pyproject.toml` names for the library and the extra, and runs the adapter's own
tests there, on SQLite. Needs uv on the path; needs the network.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# What runs the tests, at any version: it is no floor of ours.
RUNNER: Final = ("pytest", "pytest-timeout", "psycopg[binary]", "opentelemetry-sdk")
# Without the plugin of anyio: an old one warns at a new pytest.
PYTEST: Final = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:anyio")
SUITE: Final = "tests/adapters/conformance/test_conformance.py"
# Name: the extras, what its tests need beside them, the words of pytest.
FLOORS: Final = {
    "apis": ("openai,anthropic", ("httpx2",), (SUITE, "tests/adapters/test_strict_schemas.py")),
    "mcp": ("mcp,cli", ("psutil",), (SUITE, "tests/adapters/test_mcp.py")),
    "pydantic-ai": ("pydantic-ai", (), (SUITE, "tests/adapters/test_pydantic_ai.py")),
    "langchain": ("langchain", ("langgraph-checkpoint-sqlite",), (SUITE, "tests/adapters/test_langchain.py")),
    "openai-agents": ("openai-agents", (), (SUITE, "tests/adapters/test_openai_agents.py")),
    "strands": ("strands", (), (SUITE, "tests/adapters/test_strands.py")),
    "telemetry": ("telemetry", (), ("tests/adapters/test_telemetry.py",)),
}
# The suite plays what is installed, and an extra may bring a framework along that is not its own.
PLAYS: Final = {
    "apis": "openai and not agents or anthropic",
    "mcp": "mcp",
    "pydantic-ai": "pydantic",
    "langchain": "langchain or langgraph",
    "openai-agents": "agents",
    "strands": "strands",
    "telemetry": "",
}


def tried(name: str, folder: Path) -> int:
    """Make the environment and run its tests; the exit code of the first step that fails, else 0."""
    extras, beside, paths = FLOORS[name]
    python = folder / "bin" / "python"
    select = f"not postgresql and not left_out and ({PLAYS[name]})" if PLAYS[name] else "not postgresql"
    marker = "needs_strands or not needs_strands" if name == "strands" else "not needs_strands"
    install = ["uv", "pip", "install", "--quiet", "--python", str(python)]
    lowest = ["--resolution", "lowest-direct", "-e", f"{ROOT}[{extras}]"]
    steps = (
        ["uv", "venv", "--quiet", "--python", sys.executable, str(folder)],
        [*install, *lowest],
        # Without a resolution of its own, so that what is there stays where the runner does not want another one.
        [*install, *RUNNER, *beside],
        ["uv", "pip", "list", "--quiet", "--python", str(python)],
        [str(python), *PYTEST, "-m", marker, "-k", select, *paths],
    )
    environment = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    for step in steps:
        print("$", *step, flush=True)  # noqa: T201
        code = subprocess.run(step, cwd=ROOT, env=environment, check=False).returncode
        if code != 0:
            return code
    return 0


def main(names: list[str]) -> int:
    """Try each of the names, all without any; 1 when one does not work."""
    unknown = [name for name in names if name not in FLOORS]
    if unknown:
        sys.exit(f"no such floor: {', '.join(unknown)}; there are {', '.join(FLOORS)}")
    failed = []
    for name in names or FLOORS:
        with tempfile.TemporaryDirectory(prefix="counterfoil-floor-") as folder:
            if tried(name, Path(folder) / "venv"):
                failed.append(name)
    print("does not work at its floor:", *failed or ["none"])  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
