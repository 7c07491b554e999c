"""Smallness: a file that has to be read is short, and so is a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOTS = ("executor", "tools", "migrations")
FILES = sorted(file for root in ROOTS for file in (ROOT / root).rglob("*.py"))
FILE_LINES = 350
FUNCTION_LINES = 50


def test_each_root_is_measured() -> None:
    """The three roots of the product have files, so that the measures below speak of something."""
    assert {file.relative_to(ROOT).parts[0] for file in FILES} == set(ROOTS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_and_functions_are_short(file: Path) -> None:
    """No file has more than 350 lines, no function more than 50, its docstring aside."""
    text = file.read_text("utf-8")
    assert len(text.splitlines()) <= FILE_LINES
    assert [(name, lines) for name, lines in _functions(ast.parse(text)) if lines > FUNCTION_LINES] == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_each_module_says_what_it_owns(file: Path) -> None:
    """Every module begins with a docstring."""
    assert ast.get_docstring(ast.parse(file.read_text("utf-8")))


def _functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1 - _docstring_lines(node)


def _docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    first = node.body[0]
    if ast.get_docstring(node) is None or first.end_lineno is None:
        return 0
    return first.end_lineno - first.lineno + 1


def test_the_measure_measures() -> None:
    """A function of 51 lines is seen as one: the test above can fail."""
    text = "def long() -> None:\n" + "    pass\n" * 50
    assert [*_functions(ast.parse(text))] == [("long", 51)]
