"""`counterfoil stats` counts what the ledger knows, and leaves it as it was."""

from __future__ import annotations

from typing import Any


def test_by_tool_counts_effects_attempts_looks_and_answers(run: Any, told: Any) -> None:
    """One group for each tool: what became of its effects, how often it was tried, looked at and answered again."""
    ran = run("stats", "--json", "--ledger", told.url)
    assert ran.code == 0
    charge, invite = ran.json
    age_s = charge.pop("oldest_unknown_s")
    assert charge == {
        "group": "charge",
        "effects": 3,
        "applied": 1,
        "no_effect": 1,
        "unknown": 1,
        "recovered": 0,
        "attempts": 3,
        "looks": charge["looks"],
        "replayed": charge["replayed"],
        "incidents": charge["incidents"],
    }
    assert charge["looks"] >= 1
    assert charge["replayed"] >= 1
    assert 6900 < age_s < 7300  # two hours ago, less the two minutes between the first call and the doubt
    assert (invite["group"], invite["applied"], invite["oldest_unknown_s"]) == ("invite", 1, None)


def test_by_day_adds_up_to_the_same(run: Any, told: Any) -> None:
    """The days in UTC, oldest first; their sums are those of the tools."""
    days = run("stats", "--by", "day", "--json", "--ledger", told.url).json
    tools = run("stats", "--by", "tool", "--json", "--ledger", told.url).json
    assert [one["group"] for one in days] == sorted(one["group"] for one in days)
    assert all(len(one["group"]) == len("2026-03-04") for one in days)
    for name in ("effects", "applied", "no_effect", "unknown", "attempts", "looks", "replayed", "incidents"):
        assert sum(one[name] for one in days) == sum(one[name] for one in tools), name


def test_by_code_counts_what_was_told(run: Any, told: Any) -> None:
    """Each tool and code: how often it stands at an end, and how often it was told again."""
    codes = {
        (one["tool"], one["code"]): one for one in run("stats", "--by", "code", "--json", "--ledger", told.url).json
    }
    assert codes["charge", "card_declined"]["entries"] == 1
    assert codes["charge", "ok"]["entries"] == 1
    assert codes["charge", "replayed"]["replayed"] == 1
    assert codes["invite", "ok"]["entries"] == 1


def test_a_person_reads_it_at_80_columns(run: Any, told: Any) -> None:
    """The same in words, none wider than the terminal."""
    for by in ("tool", "day", "code"):
        ran = run("stats", "--by", by, "--ledger", told.url)
        assert ran.code == 0
        assert all(len(line) <= 80 for line in ran.out.splitlines())
    assert "3: 1 applied, 1 none, 1 unknown (the oldest for" in run("stats", "--ledger", told.url).out


def test_an_empty_ledger_says_so(run: Any, ledger_url: str) -> None:
    """No group, exit 0."""
    assert run("stats", "--json", "--ledger", ledger_url).json == []
    assert run("stats", "--ledger", ledger_url).out == "nothing in the ledger yet\n"


def test_another_grouping_is_refused(run: Any, told: Any) -> None:
    """A wrong `--by` is a mistake of the person, with what it takes."""
    ran = run("stats", "--by", "colour", "--ledger", told.url)
    assert ran.code == 1
    assert "--by" in ran.err
