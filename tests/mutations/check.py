"""Take each safety rule out in turn and show which test goes red: `PYTHONPATH=tests python -m mutations.check [WORDS]`.

With WORDS, only the rules whose name contains them. Exit 0 only if every removal was noticed. The asked tests run on
SQLite; the rules themselves are the same code for both databases.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from mutations.rules import RULES, Rule

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "executor"


def removed(rule: Rule, library: Path) -> None:
    """Write the library's file without the rule.

    Raises:
        ValueError: the text of the rule does not stand there once.
    """
    file = library / "counterfoil" / rule.file
    text = file.read_text(encoding="utf-8")
    if text.count(rule.kept) != 1:
        raise ValueError(f"{rule.name}: its text stands {text.count(rule.kept)} times in {rule.file}")
    file.write_text(text.replace(rule.kept, rule.removed), encoding="utf-8")


def noticed(rule: Rule) -> str | None:
    """The name of a test that goes red without the rule; None when all stay green."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "executor"
        shutil.copytree(LIBRARY, library)
        removed(rule, library)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-k",
            "not postgresql",
            *rule.tests,
        ]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(library)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    red = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return red.group(1) if red is not None else None


def main(words: list[str]) -> int:
    """Check the rules and print a table."""
    survivors = 0
    for rule in RULES:
        if not all(word in rule.name for word in words):
            continue
        red = noticed(rule)
        survivors += red is None
        print(f"{'caught  ' if red else 'SURVIVED'}  {rule.name:<58} {red or ''}", flush=True)  # noqa: T201
    print(f"{survivors} of {len(RULES)} rules could be removed unnoticed")  # noqa: T201
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
