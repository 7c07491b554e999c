"""The checker itself: honest histories pass, each lie is caught by its own rule, and no spoiled history passes."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from simulation.checker import corruptions_told, unexcused
from simulation.checker.check import check
from simulation.checker.corruptions import CORRUPTIONS, Corruption
from simulation.checker.dishonest import DISHONEST
from simulation.checker.honest import HONEST
from simulation.checker.stories import Story

HERE = Path(__file__).parent
# What the checker itself is made of; the rest of this folder tests it.
PARTS = ("check", "reading", "excuses", "truth", "beginning", "sending", "telling", "book", "ending")


def _rules(problems: list[str]) -> set[str]:
    return {one.partition(":")[0] for one in problems}


@pytest.mark.parametrize("quiet", [False, True], ids=["going on", "quiet"])
@pytest.mark.parametrize("name", HONEST)
def test_an_honest_history_passes(name: str, quiet: bool) -> None:
    """What an honest ledger does is no violation, however badly the world behaves, if it says so."""
    assert check(HONEST[name]().history(quiet=quiet)) == []


@pytest.mark.parametrize("name", DISHONEST)
def test_a_lie_is_caught_by_its_rule(name: str) -> None:
    """A ledger that breaks a rule is caught by that rule and by no other."""
    rules, make = DISHONEST[name]
    problems = check(make().history(quiet=True))
    assert _rules(problems) == rules, problems


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_spoiled_history_is_caught(name: str) -> None:
    """Whatever is spoiled in an honest history, wherever there is something to spoil, is a violation."""
    spoil: Corruption = CORRUPTIONS[name]
    spoiled = [(title, one) for title, make in HONEST.items() for one in spoil(make().history(quiet=True))]
    assert spoiled, "nothing to spoil"
    assert [title for title, one in spoiled if not check(one)] == []


def test_a_sentence_names_the_effect_and_the_events() -> None:
    """Who reads a violation finds the effect and the events that it is about."""
    story = Story("T0").begin().send().land().closed("never_sent", 1)
    assert check(story.history()) == [
        "no_effect: effect e: attempt 1 was closed as never_sent (event 3) and has an effect (event 2)"
    ]


def test_rows_of_either_database_are_read() -> None:
    """JSON columns as text and keys as they are printed by the one or the other database mean the same."""
    history = HONEST["grace_too_short"]().history(quiet=True)
    for row in history["tables"]["effects"]:
        row["references"], row["key"] = json.dumps(row["references"]), "\\x" + row["key"].upper()
    for entry in history["tables"]["entries"]:
        entry["detail"] = json.dumps(entry["detail"])
    assert check(history) == []


def test_a_history_is_json() -> None:
    """A history may come from a file."""
    history = HONEST["taken_back"]().history(quiet=True)
    assert check(json.loads(json.dumps(history))) == []


@pytest.mark.parametrize(
    ("condition", "make"),
    [
        ("grace", HONEST["absent"]),
        ("pause", HONEST["absent"]),
        ("clock", HONEST["absent"]),
    ],
)
def test_absence_rests_on_these_conditions(condition: str, make: Callable[[], Story]) -> None:
    """A second effect after absence is excused by what P4 rests on."""
    assert _rules(check(make().land(1).history())) == {"no_effect", "twice"}
    assert check(make().land(1).broke(condition).history()) == []


@pytest.mark.parametrize("condition", ["retention", "key", "stone", "acted_on_refusal", "client_resent", "operator"])
def test_absence_does_not_rest_on_these(condition: str) -> None:
    """The breaking of a condition that P4 does not rest on excuses nothing there."""
    problems = check(HONEST["absent"]().land(1).broke(condition).history())
    assert _rules(problems) == {"no_effect", "twice"}


@pytest.mark.parametrize("part", PARTS)
def test_the_checker_shares_no_code(part: str) -> None:
    """No part of the checker imports anything but the standard library and the other parts."""
    allowed = {f"simulation.checker.{one}" for one in PARTS} | {"simulation.checker"}
    for node in ast.walk(ast.parse((HERE / f"{part}.py").read_text("utf-8"))):
        modules: list[str] = []
        match node:
            case ast.Import():
                modules = [one.name for one in node.names]
            case ast.ImportFrom():
                assert node.level == 0
                modules = [str(node.module)]
            case ast.Call(func=ast.Name(id="__import__" | "exec" | "eval")):
                pytest.fail(f"{part} imports in a way that cannot be read")
        assert [one for one in modules if one not in allowed and one.split(".")[0] not in sys.stdlib_module_names] == []
        assert "importlib" not in modules


def test_every_part_is_walked() -> None:
    """The list of parts is the folder, but for what tests it."""
    testing = {"test_checker", "stories", "honest", "dishonest", "unexcused", "corruptions", "corruptions_told"}
    assert {corruptions_told.__name__, unexcused.__name__} <= set(sys.modules)
    assert {file.stem for file in HERE.glob("*.py")} - testing == set(PARTS)
