"""The rows that a tool adds to the table of codes: what is refused when they are declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from counterfoil import ErrorSpec, Executor, Tool, UsageError, tool
from counterfoil.codes import CODES


class CardError(Exception):
    """A refusal of the provider."""


class ExpiredCard(CardError):
    """A closer one."""


def declared(*specs: Any, read_only: bool = False, name: str = "search") -> Tool[..., Any]:
    """A tool with these rows."""

    def search(origin: str, max_price: int = 0) -> str:
        """Search flights below a price, in euros. Use it when the user names a limit."""
        return origin

    key = None if read_only else ("origin",)
    rejects = () if read_only else (CardError,)
    return tool(key=key, read_only=read_only, name=name, rejects=rejects, errors=specs)(search)


GOOD = {"origin": "SFO", "max_price": 400}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (ErrorSpec("invalid_arguments", "It must fit."), "this code is built in"),
        (ErrorSpec("paused", "It is paused."), "this code is built in"),
        (ErrorSpec("Too Late", "It must be early."), "a code is 1 to 64 of a-z"),
        (ErrorSpec("", "It must be early."), "a code is 1 to 64 of a-z"),
        (ErrorSpec("late", "  "), "constraint= is empty"),
        (ErrorSpec("late", "w " * 200), "at most 40 fit into a message"),
        (ErrorSpec("late", "Early.", hint="h " * 200), "at most 50 fit into a message"),
        (ErrorSpec("late", "Early.", example={"origin": "S" * 300}), "the next action is about"),
        (ErrorSpec("late", "See https://shop.example/rules"), "constraint holds a line break, markup, an address"),
        (ErrorSpec("late", "Early.", hint="Do\nthis."), "hint holds a line break, markup, an address"),
        (ErrorSpec("late", "Early.", hint="<b>Do</b> this."), "hint holds a line break, markup, an address"),
        (ErrorSpec("late", "Early.", example={"origin": "SFO", "max_price": "cheap"}), "must be an integer"),
        (ErrorSpec("late", "Early.", example={"max_price": 3}), "its example is no working call: origin is missing"),
        (ErrorSpec("late", "Early.", example={"origin": "SFO", "to": "JFK"}), "to is not a known argument"),
        (ErrorSpec("late", "Early.", example="SFO"), "example= takes the arguments of a working call"),  # type: ignore[arg-type]
        (
            ErrorSpec("late", "Early.", field="price"),
            "field='price' is no argument of it (these are: origin, max_price)",
        ),
        (ErrorSpec("late", "Early.", alternative="search"), "its alternative is the tool itself"),
        (ErrorSpec("late", "Early.", example=GOOD, alternative="other"), "two next actions"),
        (ErrorSpec("late", "Early.", follows="effect_unknown"), "follows='effect_unknown' is none of rejected"),
        (ErrorSpec("late", "Early.", follows="rate_limited"), "follows='rate_limited' is none of"),
        (ErrorSpec("late", "Early.", follows="forbidden", hint="Go on."), "stops the run"),
        (ErrorSpec("late", "Early.", exceptions=(ValueError,)), "ValueError, which is not among rejects="),
    ],
    ids=lambda one: one if isinstance(one, str) else one.code,
)
def test_a_row_that_contradicts_itself_is_refused(spec: ErrorSpec, said: str) -> None:
    """The text says what is wrong and names tool and code, before any call is made."""
    with pytest.raises(UsageError) as caught:
        declared(spec)
    assert said in str(caught.value)
    assert "search" in str(caught.value)


@pytest.mark.parametrize("errors", [ErrorSpec("late", "Early."), [ErrorSpec("late", "Early.")], ("late",)])
def test_what_is_no_tuple_of_rows_is_refused(errors: Any) -> None:
    """A missing comma is found at once."""
    with pytest.raises(UsageError, match="takes a tuple of ErrorSpec"):
        tool(read_only=True, name="search", errors=errors)(lambda: None)


def test_two_rows_for_one_code_are_refused() -> None:
    """One code means one thing."""
    with pytest.raises(UsageError, match="two ErrorSpecs for 'late'"):
        declared(ErrorSpec("late", "Early."), ErrorSpec("late", "In time."))


def test_an_alternative_must_be_registered(tmp_path: Path) -> None:
    """A model is never sent to a tool that is not there; with the tool there, the executor is made."""
    spec = ErrorSpec("too_dear", "No flight is below the price.", alternative="search_any")
    ledger = f"sqlite:///{tmp_path / 'ledger.db'}"
    with pytest.raises(UsageError, match="alternative='search_any' is no tool of this executor"):
        Executor(ledger, [declared(spec)])
    assert not (tmp_path / "ledger.db").exists()
    Executor(ledger, [declared(spec), declared(name="search_any")]).close()


@pytest.mark.parametrize(
    ("spec", "action"),
    [
        (ErrorSpec("late", "Early."), ""),
        (ErrorSpec("late", "Early.", hint="Take a later day."), "Take a later day."),
        (ErrorSpec("late", "Early.", example={"origin": "SFO"}), 'Call search again. For example: {"origin": "SFO"}.'),
        (
            ErrorSpec("late", "Early.", hint="Name a price above 0.", example=GOOD),
            'Name a price above 0. For example: {"origin": "SFO", "max_price": 400}.',
        ),
        (ErrorSpec("late", "Early.", alternative="other"), "Call other instead."),
        (
            ErrorSpec("late", "Early.", alternative="other", hint="it has no limit."),
            "Call other instead: it has no limit.",
        ),
    ],
)
def test_there_is_one_next_action(spec: ErrorSpec, action: str) -> None:
    """Hint and example are one sentence after the other, or another tool is named."""
    assert declared(spec).errors == (spec,)
    assert spec.next_action("search") == action


def test_a_closer_class_may_have_a_row() -> None:
    """A class below one that is listed among the refusals is one itself."""
    spec = ErrorSpec("card_expired", "The card has expired.", exceptions=(ExpiredCard,))
    assert declared(spec).errors[0].row is CODES["rejected"]


def test_a_tool_that_reads_has_rows_too() -> None:
    """Not found is told of reading as of changing."""
    assert declared(ErrorSpec("no_flight", "No flight fits.", follows="no_results"), read_only=True).errors
