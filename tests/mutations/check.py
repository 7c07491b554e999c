"""Take each safety rule out in turn and show which test goes red: `PYTHONPATH=tests python -m mutations.check [WORDS]`.

With WORDS, only the rules whose name contains them. `--write` makes the page of the documentation, of all rules. Exit 0
only if every removal was noticed. Two rules are checked at a time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from mutations.conditions import ALL_RULES
from mutations.rules import Rule

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "executor"
PAGE: Final = ROOT / "docs" / "explanation" / "safety-rules.md"
JOBS: Final = 2
_ROW: Final = re.compile(r"^\| ([^|]+) \| `([^|`]+)` \| `([^|`]+)` \|$", re.MULTILINE)
_HEAD: Final = """# The safety rules, one by one

Each row is a rule that the promise rests on. A program takes the rule out of a copy of the library and runs tests: the
one named here goes red without it. None could be removed unnoticed when this page was made, by
`PYTHONPATH=tests python -m mutations.check --write`.

| rule | stands in | without it this test fails |
|---|---|---|
"""


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
        which = [] if rule.server else ["-k", "not postgresql"]
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--timeout",
            "60",
            "-p",
            "no:cacheprovider",
            *which,
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
    if red is None and done.returncode not in (0, 5):
        raise RuntimeError(f"{rule.name}: pytest ended with {done.returncode} and named no test\n{done.stdout[-2000:]}")
    return None if red is None else red.group(1)


def page(caught: Iterable[tuple[Rule, str]]) -> str:
    """The table as a page of the documentation."""
    return _HEAD + "".join(f"| {rule.name} | `{rule.file}` | `{test.split('[')[0]}` |\n" for rule, test in caught)


def rows(text: str) -> list[tuple[str, str, str]]:
    """The rule, its file and the test of each row of the page."""
    return _ROW.findall(text)


def main(words: list[str]) -> int:
    """Check the rules and print a table."""
    write = "--write" in words
    wanted = [word for word in words if word != "--write"]
    rules = [rule for rule in ALL_RULES if all(word in rule.name for word in wanted)]
    with ThreadPoolExecutor(JOBS) as threads:
        found = []
        for number, (rule, red) in enumerate(zip(rules, threads.map(noticed, rules), strict=True), 1):
            found.append((rule, red))
            told = f"{'caught  ' if red else 'SURVIVED'}  {rule.name:<58} {red or ''}"
            print(f"{number:>3}/{len(rules)}  {told}", flush=True)  # noqa: T201
    survivors = [rule for rule, red in found if red is None]
    print(f"{len(survivors)} of {len(rules)} rules could be removed unnoticed")  # noqa: T201
    if write and not survivors and not wanted:
        PAGE.write_text(page((rule, red) for rule, red in found if red is not None), encoding="utf-8")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
