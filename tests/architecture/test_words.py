"""The words that the repository never uses, in code, text or documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {".git", ".venv", "__pycache__", "node_modules", "build", "dist", "_build"}
TEXTS = {".cfg", ".css", ".html", ".ini", ".json", ".md", ".py", ".rst", ".sh", ".toml", ".txt", ".yaml", ".yml", ""}
# A claim that nobody can keep; the promise is "at most one effect per key, unless …". Split here, so as not to be here.
FORBIDDEN = re.compile("exactly" + r"[\s>#*_\-\"']+" + "once", re.IGNORECASE)


def _files(root: Path) -> Iterator[Path]:
    for file in sorted(root.iterdir()):
        if file.name in SKIPPED or file.name.endswith(("_cache", ".egg-info")) or file.is_symlink():
            continue
        if file.is_dir():
            yield from _files(file)
        elif file.suffix in TEXTS:
            yield file


def test_the_promise_is_never_overstated() -> None:
    """Nowhere in the repository stand the two words that promise more than any system can."""
    files = [*_files(ROOT)]
    assert {ROOT / "README.md", ROOT / "executor/counterfoil/flow.py", Path(__file__).resolve()} <= set(files)
    found = [str(file.relative_to(ROOT)) for file in files if FORBIDDEN.search(file.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize("between", [" ", "-", "\n", "\n# ", "\n    > "])
def test_the_search_finds_the_words(between: str) -> None:
    """The two words are found however they are joined or broken: the test above can fail."""
    assert FORBIDDEN.search(f"it runs Exactly{between}once, they say")
