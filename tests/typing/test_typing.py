"""The types of the public interface: what type checkers accept, infer and refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MARK = re.compile(r"  # type: ignore\[([a-z-]+)\]$")
ERROR = re.compile(r"(\w+)\.py:(\d+): error: .*\[([a-z-]+)\]$")


def test_type_checkers_accept_good_declarations_and_refuse_exactly_the_marked_ones(tmp_path: Path) -> None:
    """mypy --strict infers the types of good.py, and without its marks every marked line of bad.py fails, no other."""
    expected: set[tuple[str, int, str]] = set()
    for name in ("good", "bad"):
        bare = []
        for number, line in enumerate((HERE / f"{name}.py").read_text().splitlines(), start=1):
            mark = MARK.search(line)
            if mark:
                expected.add((name, number, mark[1]))
            bare.append(MARK.sub("", line))
        (tmp_path / f"{name}.py").write_text("\n".join(bare) + "\n")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml",
         "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "good.py"), str(tmp_path / "bad.py")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = {(match[1], int(match[2]), match[3]) for match in map(ERROR.search, ran.stdout.splitlines()) if match}
    assert found == expected, ran.stdout + ran.stderr
    assert len(expected) >= 20
