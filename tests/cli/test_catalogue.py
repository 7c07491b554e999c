"""`tools --markdown`, the catalogue of what models can be told, and `tools --check`, the lint of descriptions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from cli.conftest import Run
from pydantic import Field

from counterfoil import ALL_ARGUMENTS, Effect, ErrorSpec, Policy, Revoked, Tool, tool
from counterfoil.catalogue import RULES, catalogue, flaws
from counterfoil.codes import CODES

APP = "shop:executor"


def test_the_catalogue_has_a_row_for_each_tool_and_code(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Markdown table, one row for each tool and code, that is the same as --json; the ledger is not opened."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", f"sqlite:///{tmp_path / 'none.db'}")
    page = run("tools", "--app", APP, "--markdown")
    data = run("tools", "--app", APP, "--markdown", "--json").json
    assert page.code == 0
    rows = [line.split(" | ") for line in page.out.splitlines() if line.startswith("| `")]
    told = [(one[0].removeprefix("| ").strip("`"), one[1].strip("`")) for one in rows]
    assert told == [(one["tool"], one["code"]) for one in data]
    assert len(told) == len(set(told))
    assert ("charge", "effect_unknown") in told
    assert ("price", "effect_unknown") not in told
    assert {len(row) for row in rows} == {7}
    assert not (tmp_path / "none.db").exists()


def test_the_check_says_what_is_left_unsaid(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code 5 with a line for each flaw; as JSON the same, and the same code."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", f"sqlite:///{tmp_path / 'none.db'}")
    said = run("tools", "--app", APP, "--check")
    data = run("tools", "--app", APP, "--check", "--json")
    assert (said.code, data.code) == (5, 5)
    assert {(one["tool"], one["rule"]) for one in data.json} == {
        ("charge", "when"), ("invite", "when"), ("refund", "when"), ("price", "when"),
    }  # fmt: skip
    assert 'charge: its description does not say when to use it: add "Use it when …" (when)' in " ".join(
        said.out.split()
    )


def test_the_two_are_asked_for_apart(run: Run) -> None:
    """Both at once is a mistake of whoever asks."""
    both = run("tools", "--app", APP, "--check", "--markdown")
    assert both.code == 1


def test_good_descriptions_pass(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing left unsaid ends with code 0."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", f"sqlite:///{tmp_path / 'none.db'}")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "well_told.py").write_text(
        "import os\nfrom counterfoil import Executor, tool\n\n\n@tool(key=('order',))\n"
        "def charge(order: str, amount_minor: int) -> None:\n"
        "    '''Charge the card for one order. Use it when the user has confirmed the total.'''\n\n\n"
        "def executor() -> Executor:\n    return Executor(os.environ['COUNTERFOIL_LEDGER'], [charge])\n"
    )
    done = run("tools", "--app", "well_told:executor", "--check")
    assert (done.code, done.out) == (0, "1 tools, nothing left unsaid\n")
    assert run("tools", "--app", "well_told:executor", "--check", "--json").json == []


# ---------------------------------------------------------------- the rows


def described(text: str, **arguments: Any) -> Tool[..., Any]:
    """A tool with this description, and arguments by name and annotation."""

    def act(**_: Any) -> None: ...

    names = ", ".join(arguments)
    scope: dict[str, Any] = {}
    exec(f"def act({names}): ...", scope)  # noqa: S102 - a function with these very parameters
    function = scope["act"]
    function.__annotations__ = {**arguments, "return": None}
    function.__doc__ = text
    return tool(read_only=True)(function)


WHEN = "Use it when the user asks."


@pytest.mark.parametrize(
    ("text", "arguments", "rules"),
    [
        (f"Tell the price of an order. {WHEN}", {}, []),
        ("", {}, ["what", "when"]),
        (f"Price. {WHEN}", {}, ["what"]),
        ("Tell the price of an order once.", {}, ["when"]),
        ("Tell the price of an order before it is confirmed.", {}, []),
        (f"Charge a card. {WHEN}", {"amount": int}, ["units"]),
        (f"Charge a card. {WHEN}", {"amount": int | None}, ["units"]),
        (f"Charge a card. {WHEN}", {"max_price": float}, ["units"]),
        (f"Charge a card. {WHEN}", {"minPrice": float}, ["units"]),
        (f"Charge a card. {WHEN}", {"amount": str}, []),
        (f"Charge a card. {WHEN}", {"amount_minor": int}, []),
        (f"Charge a card. {WHEN}", {"timeout_s": float}, []),
        (f"Charge a card. {WHEN}", {"amount": Annotated[int, Field(description="in cents")]}, []),
        (f"Charge an amount in euros to a card. {WHEN}", {"amount": int}, []),
        (f"Book a room. {WHEN}", {"guests": int, "page": int}, []),
    ],
)
def test_what_a_description_leaves_unsaid(text: str, arguments: dict[str, Any], rules: list[str]) -> None:
    """What it does, when to use it, the unit of each quantity: each is missed where it is missing, and only there."""
    found = flaws([described(text, **arguments)])
    assert [flaw.rule for flaw in found] == rules
    assert [flaw.argument for flaw in found if flaw.rule == "units"] == [name for name in arguments if "units" in rules]
    assert set(rules) <= set(RULES)


def test_two_tools_in_the_same_words() -> None:
    """A model cannot choose between them: the second one is named."""
    one, other = described(f"Tell the price. {WHEN}"), described(f"Tell the  price! {WHEN}")
    other.name = "other"
    assert [(flaw.tool, flaw.rule) for flaw in flaws([one, other])] == [("other", "alike")]


def test_rows_of_every_kind_of_tool() -> None:
    """What a tool declares decides what it can tell; its own rows come with their constraint and action; no template is
    left unfilled, and no sign breaks the table."""

    @tool(key=ALL_ARGUMENTS, errors=(ErrorSpec("full", "It is a|b full."),))
    def book(effect: Effect, slot: str) -> None:
        """Book a slot. Use it when it is free."""

    @book.revoke()
    def withdraw(effect: Effect) -> Revoked:
        """Withdraw."""
        return Revoked()

    @book.compensation()
    def cancel(effect: Effect) -> None:
        """Cancel."""

    @tool(key=("seat",), same_transaction=True, policy=Policy(timeout_s=1))
    def reserve(effect: Effect, seat: str) -> None:
        """Reserve a seat. Use it when it is free."""

    rows = catalogue([book, reserve])
    of = {name: {row.code for row in rows if row.tool == name} for name in ("book", "reserve")}
    assert {"revoked", "revoking", "ended", "full", "effect_unknown"} <= of["book"]
    assert not {"verified", "look_forbidden"} & of["book"], "without a look none of these"
    assert not {"effect_unknown", "applied_more_than_once"} & of["reserve"], "in one transaction there is no doubt"
    assert of["book"] | of["reserve"] <= {*CODES, "full"}
    for row in rows:
        assert not re.search(r"[{}]", row.reason + row.next_action)
    (full,) = [row for row in rows if row.code == "full"]
    assert (full.verdict, full.category, full.reason) == ("no_effect", "recoverable", "It is a|b full.")
