"""Module, configurations, page and code speak of the same things. Needs no Java."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from spec.checker import MODULE
from spec.configurations import CONDITIONS, DEFAULTS, ENDS, INVARIANTS, REMOVALS, RULES, SEARCHES, STEPS

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "executor" / "counterfoil"
TEXT = MODULE.read_text(encoding="utf-8")
PAGE = (MODULE.parent / "index.md").read_text(encoding="utf-8")
CODE = re.sub(r"\\\*[^\n]*|\(\*.*?\*\)", "", TEXT)  # without comments
CITED = sorted(
    {
        (file.strip(), name.strip())
        for cited in re.findall(r"@code ((?:[\w/]+\.py: [\w, ]+;? ?)+)", TEXT)
        for file, _, names in (one.partition(":") for one in cited.split(";"))
        for name in names.split(",")
    }
)


def rows(page: str, columns: int) -> list[tuple[str, ...]]:
    """The rows of all tables of so many columns, without their heads."""
    lines = [line for line in page.splitlines() if line.startswith("|")]
    cut = [tuple(cell.strip().strip("`") for cell in line[1:-1].split("|")) for line in lines]
    return [cells for cells in cut if len(cells) == columns]


def test_the_module_has_the_constants_that_are_configured() -> None:
    """Each constant of the module gets a value, and no other one does."""
    declared = re.search(r"^CONSTANTS\n(.*?)^VARIABLES", CODE, re.DOTALL | re.MULTILINE)
    assert declared is not None
    assert sorted(re.findall(r"\w+", declared.group(1))) == sorted(DEFAULTS)


@pytest.mark.parametrize("switch", [*RULES, *CONDITIONS])
def test_each_rule_and_condition_is_a_switch_with_one_removal(switch: str) -> None:
    """It does something in the module besides being declared, and one search is made without it."""
    assert len(re.findall(rf"\b{switch}\b", CODE)) >= 2
    assert [one.violates for one in REMOVALS if one.without == switch] != []
    assert len([one for one in REMOVALS if one.without == switch]) == 1


def test_nothing_else_is_removed() -> None:
    """What is removed is a rule or a condition, and each fails a property that holds with it."""
    assert {one.without for one in REMOVALS} == {*RULES, *CONDITIONS}
    assert {one.violates for one in REMOVALS} <= {*INVARIANTS, *STEPS, ENDS}


@pytest.mark.parametrize("name", [*INVARIANTS, *STEPS, ENDS])
def test_each_property_is_defined_searched_and_explained(name: str) -> None:
    """It stands in the module and on the page, and some search must find that it holds."""
    assert re.search(rf"^{name} *==", CODE, re.MULTILINE)
    assert any(name in one.properties for one in SEARCHES)
    assert [meaning for property_, meaning in rows(PAGE, 2) if property_ == name] != []


def test_the_page_lists_what_is_searched() -> None:
    """With the states and the depth that the search must find."""
    listed = {name: states for name, states, _ in rows(PAGE, 3) if name != "search" and set(name) != {"-"}}
    assert listed == {one.name: f"{one.states:,}" for one in SEARCHES}


def test_the_page_lists_what_happens_without_each_rule() -> None:
    """With the property that fails, the steps, and a story."""
    listed = {without: (fails, steps) for without, fails, steps, story in rows(PAGE, 4) if len(story) > len("---")}
    del listed["without"]
    assert listed == {one.without: (one.violates, str(one.steps or "for ever")) for one in REMOVALS}


def test_the_page_explains_each_condition() -> None:
    """What is assumed stands there in plain words."""
    assert {name for name, _ in rows(PAGE, 2)} >= set(CONDITIONS)


@pytest.mark.parametrize(("file", "name"), CITED, ids=lambda text: text)
def test_what_the_module_cites_exists(file: str, name: str) -> None:
    """The function or class that an action models is in that file of the code."""
    tree = ast.parse((LIBRARY / file).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_every_transition_is_cited() -> None:
    """Each module of the state table that decides something is modelled."""
    modules = {f"transition/{file.name}" for file in (LIBRARY / "transition").glob("*.py")}
    beside = {"transition/__init__.py", "transition/clocks.py", "transition/decision.py", "transition/schedule.py"}
    beside |= {"transition/keeping.py"}  # pruning: the page names it among what the model leaves out
    assert {file for file, _ in CITED} >= modules - beside
