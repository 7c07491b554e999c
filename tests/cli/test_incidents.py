"""`incidents` lists, `incidents close` closes: by name, with a reason, once."""

from __future__ import annotations

from typing import Any

import pytest

WORD = ("--by", "N. N.", "--why", "called the bank")


def test_a_person_closes_an_incident(run: Any, told: Any) -> None:
    """Name, reason and time are kept; it is listed with --closed alone; the effect is as unknown as before."""
    (seen,) = run("incidents", "--json", "--ledger", told.url).json
    ran = run("incidents", "close", seen["number"], *WORD, "--json", "--ledger", told.url)
    assert ran.code == 0
    closed = ran.json
    assert (closed["closed_by"], closed["closed_why"]) == ("N. N.", "called the bank")
    assert closed["closed_at"].endswith("+00:00")
    assert run("incidents", "--json", "--ledger", told.url).json == []
    assert run("incidents", "--closed", "--json", "--ledger", told.url).json == [closed]
    assert "closed because: called the bank" in run("incidents", "--closed", "--ledger", told.url).out
    assert run("show", told.doubt, "--json", "--ledger", told.url).json["verdict"] == "effect_unknown"


def test_closing_again_changes_nothing(run: Any, told: Any) -> None:
    """Whoever comes second is shown who was first; the ledger may be named before or after `close`."""
    first = run("incidents", "--ledger", told.url, "close", 1, *WORD)
    again = run("incidents", "--ledger", told.url, "--json", "close", 1, "--by", "M. M.", "--why", "me too")
    assert (first.code, again.code) == (0, 0)
    assert "by N. N." in first.out
    assert again.json["closed_by"] == "N. N."


@pytest.mark.parametrize(
    ("arguments", "told_to"),
    [
        ((1, "--by", "N. N."), "--why"),
        ((1, "--by", " ", "--why", "seen"), "by"),
        ((99, *WORD), "no incident has the number 99"),
        (("first", *WORD), "NUMBER"),
    ],
)
def test_half_a_word_closes_nothing(run: Any, told: Any, arguments: tuple[Any, ...], told_to: str) -> None:
    """Without a name, a reason and a number that exists: exit code 1, how to mend it, nothing written."""
    ran = run("incidents", "close", *arguments, "--ledger", told.url)
    assert (ran.code, ran.out) == (1, "")
    assert told_to in ran.err
    assert len(run("incidents", "--json", "--ledger", told.url).json) == 1
