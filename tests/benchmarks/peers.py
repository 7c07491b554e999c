"""Those that Counterfoil is measured against, and the environment that each of them gets.

Owns the table of versions. An environment is made once, and again when its row of the table changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True)
class Peer:
    """A peer: what is installed, how it is imported where it is used as here, and its licence."""

    name: str
    title: str
    licence: str
    requirements: tuple[str, ...]
    imports: str


PEERS: Final = (
    Peer("dbos", "DBOS", "MIT", ("dbos==3.4.0", "psycopg[binary]==3.3.9"), "import dbos"),
    Peer(
        "langgraph",
        "LangGraph checkpointer",
        "MIT",
        (
            "langgraph==1.2.24",
            "langgraph-checkpoint-postgres==3.2.0",
            "langgraph-checkpoint-sqlite==3.1.2",
            "psycopg[binary]==3.3.9",
        ),
        "import langgraph.graph, langgraph.checkpoint.postgres",
    ),
    Peer(
        "powertools",
        "Powertools idempotency",
        "MIT-0",
        ("aws-lambda-powertools==3.37.0", "boto3==1.44.8", "redis==8.1.0"),
        "import aws_lambda_powertools.utilities.idempotency.persistence.redis",
    ),
)


def folder() -> Path:
    """Where the environments are kept: BENCHMARK_PEERS, or the user's cache."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("BENCHMARK_PEERS") or cache / "counterfoil-benchmarks")


def interpreter(peer: Peer) -> Path:
    """The peer's interpreter; its environment is made where it is not there as the table wants it.

    Raises:
        subprocess.CalledProcessError: it cannot be installed here; what pip said is in the error.
    """
    home = folder() / peer.name
    wanted = "\n".join((sys.version, *peer.requirements))
    note, python = home / "made-of.txt", home / "bin" / "python"
    if python.exists() and note.exists() and note.read_text() == wanted:
        return python
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True, text=True)
    subprocess.run(
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.requirements],
        check=True,
        capture_output=True,
        text=True,
    )
    note.write_text(wanted)
    return python
