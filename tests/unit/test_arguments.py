"""Arguments that are refused: in the operation's own words, whatever was sent, and nothing raised."""

from __future__ import annotations

import inspect
import json
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import (
    AfterValidator,
    Field,
    HttpUrl,
    PlainValidator,
    StringConstraints,
)
from pydantic_core import ErrorDetails
from unit.samples import (
    PAY,
    Cat,
    Colour,
    Dog,
    Leg,
    Room,
    Size,
    invalid,
    one,
    valid,
)

from counterfoil.arguments import Invalid, Valid
from counterfoil.errors import UsageError
from counterfoil.problems import worded

# ---------------------------------------------------------------- what is no set of arguments at all


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("", "the arguments are not valid JSON (line 1, column 1: Expecting value)"),
        ('{"order": "A",}', "the arguments are not valid JSON (line 1, column"),
        ("{'order': 'A'}", "the arguments are not valid JSON (line 1, column"),
        ('{"order": "A"} x', "the arguments are not valid JSON (line 1, column"),
        ('{"order": "a\nb"}', "the arguments are not valid JSON (line 1, column"),
        ('{"order": 01}', "the arguments are not valid JSON (line 1, column"),
        ('{"order": .5}', "the arguments are not valid JSON (line 1, column"),
        (b"\xff{}", "the arguments are not UTF-8 text"),
        ("[]", "the arguments must be a JSON object"),
        ("null", "the arguments must be a JSON object"),
        ('"text"', "the arguments must be a JSON object"),
        ([], "the arguments must be a JSON object"),
        (None, "the arguments must be a JSON object"),
        ({1: 2}, "the arguments must have names that are text"),
        ('{"order": NaN}', "the arguments hold NaN, which is no JSON number"),
        ('{"order": [-Infinity]}', "the arguments hold -Infinity, which is no JSON number"),
        ('{"order": 1, "order": 2}', "order is given twice"),
        ('{"order": [{"a": 1, "a": 1}]}', "a is given twice"),
        ('{"order": ' + "[" * 100_000 + "]" * 100_000 + "}", "the arguments are"),
    ],
)
def test_what_is_no_json_object_is_refused(raw: Any, problem: str) -> None:
    """Malformed text, doubled members at any depth, NaN and everything that is no object is invalid, never raised."""
    assert invalid(PAY, raw, max_bytes=1_000_000)[0].startswith(problem)


def test_nesting_too_deep_is_refused_with_its_argument() -> None:
    """A value nested beyond 100 levels is refused by name, in JSON text and in Python values that hold themselves."""
    arguments = one(Any)
    endless: list[Any] = []
    endless.append(endless)
    assert invalid(arguments, '{"x": ' + "[" * 150 + "]" * 150 + "}") == ["x is nested too deeply"]
    assert invalid(arguments, {"x": endless}) == ["x is nested too deeply"]
    assert valid(arguments, '{"x": ' + "[" * 90 + "]" * 90 + "}").stored


def test_arguments_that_are_too_large_are_refused_before_they_are_read() -> None:
    """The limit counts bytes of UTF-8, the same for text, bytes and objects; one byte more is refused (C33)."""
    text = json.dumps({"x": "é" * 50}, ensure_ascii=False, separators=(",", ":"))
    size = len(text.encode())
    for raw in (text, text.encode(), json.loads(text)):
        assert valid(one(str), raw, max_bytes=size).values["x"] == "é" * 50
        assert invalid(one(str), raw, max_bytes=size - 1) == [
            f"the arguments are too large: {size} bytes, and at most {size - 1} are taken"
        ]
    assert "at most 65536" in invalid(one(str), "{" * 65_537)[0]


# ---------------------------------------------------------------- wrong arguments, in the operation's words

ANYTHING = one(Any)
Price = Annotated[float, Field(gt=0, le=100)]
WRONG: list[tuple[Any, str, str]] = [
    (int, "true", "must be an integer, not true"),
    (int, '"1"', "must be an integer, not text"),
    (int, "1.5", "must be an integer, not 1.5"),
    (int, "null", "must be an integer, not null"),
    (int, "1e5000", "has too many digits"),
    (int, "9" * 5000, "has too many digits"),
    (int, "1e99999999999999999999", "must be a finite number"),
    (float, "false", "must be a number, not false"),
    (float, '"1"', "must be a number, not text"),
    (float, "1e400", "must be a finite number"),
    (Decimal, "true", "must be a number, not true"),
    (Decimal, '"one"', "must be a number, not text"),
    (Decimal, '"NaN"', "must be a finite number"),
    (Decimal, '"Infinity"', "must be a finite number"),
    (Annotated[Decimal, Field(max_digits=4)], "123.45", "must have at most 4 digits"),
    (Annotated[Decimal, Field(decimal_places=2)], "1.234", "must have at most 2 digits after the point"),
    (Price, "0", "must be greater than 0"),
    (Price, "101", "must be at most 100"),
    (Annotated[int, Field(ge=1, lt=9)], "0", "must be at least 1"),
    (Annotated[int, Field(ge=1, lt=9)], "9", "must be less than 9"),
    (Annotated[int, Field(multiple_of=5)], "7", "must be a multiple of 5"),
    (bool, "1", "must be true or false, not 1"),
    (bool, '"true"', "must be true or false, not text"),
    (str, "5", "must be text, not 5"),
    (str, "{}", "must be text, not an object"),
    (Annotated[str, StringConstraints(min_length=1)], '""', "must have at least 1 character"),
    (Annotated[str, StringConstraints(max_length=2)], '"abc"', "must have at most 2 characters"),
    (Annotated[str, StringConstraints(pattern="^[A-Z]+$")], '"a"', "must match the pattern ^[A-Z]+$"),
    (str, '"\\ud800"', "holds half of a surrogate pair, which is not a character; send whole characters"),
    (dict[str, int], '{"\\ud800": 1}',
     "holds half of a surrogate pair, which is not a character; send whole characters"),
    (datetime, '"2026-03-04T09:00:00"', "must be a date-time with a UTC offset, for example 2026-03-04T09:00:00+01:00"),
    (datetime, '"2026-03-04"', "must be a date-time with a UTC offset, for example 2026-03-04T09:00:00+01:00"),
    (datetime, '"1700000000"', "must be a date-time with a UTC offset, for example 2026-03-04T09:00:00+01:00"),
    (datetime, "1700000000", "must be a date-time with a UTC offset, for example 2026-03-04T09:00:00+01:00"),
    (datetime, '"soon"', "must be a date-time with a UTC offset, for example 2026-03-04T09:00:00+01:00"),
    (datetime | None, '"1700000000"', "must be a date-time with a UTC offset, for example 2026-03-04T09:00:00+01:00"),
    (date, '"1699920000"', "must be a date, for example 2026-03-04"),
    (date, "1699920000", "must be a date, for example 2026-03-04"),
    (date, '"04.03.2026"', "must be a date, for example 2026-03-04"),
    (time, "5", "must be a time of day, for example 09:30:00"),
    (timedelta, "5", "must be a duration, for example PT1H30M"),
    (UUID, '"x"', "must be a UUID, for example 6f1c2b1e-8c55-4d5e-9d0b-2f0f1f7a5a10"),
    (HttpUrl, '"x"', "must be a URL, for example https://example.com/page"),
    (bytes, '"?"', "must be bytes written as base64"),
    (list[int], "{}", "must be a list, not an object"),
    (set[int], "5", "must be a list, not 5"),
    (Annotated[list[int], Field(min_length=2)], "[1]", "must have at least 2 items"),
    (dict[str, int], "[]", "must be an object, not a list"),
    (Leg, "3", "must be an object, not 3"),
    (Room, "3", "must be an object, not 3"),
    (Size, "3", "must be an object, not 3"),
    (Colour, '"green"', "must be 1 or 'blue'"),
    (Colour, "true", "must be one of the listed values, not true"),
    (Literal[1, "a"], "true", "must be one of the listed values, not true"),
    (Literal["a", "b"], '"A"', "must be 'a' or 'b'"),
    (int | str, "1.5", "must be an integer or text, not 1.5"),
    (Annotated[str, StringConstraints(max_length=2)] | int, '"abc"',
     "must have at most 2 characters; or must be an integer, not text"),
    (Annotated[Any, PlainValidator(lambda sent: sent)], '[{"a": 0.12345678901234567890}]',
     "[0].a has more digits than a number can hold here; write it with at most 15 digits"),
    (Annotated[Any, PlainValidator(lambda sent: sent)], '{"a": [0.12345678901234567890]}',
     ".a[0] has more digits than a number can hold here; write it with at most 15 digits"),
    (Annotated[Any, PlainValidator(lambda sent: sent)], "0.12345678901234567890",
     "has more digits than a number can hold here; write it with at most 15 digits"),
    (int | list[int], '"a"', "must be an integer or a list, not text"),
    (Annotated[Cat | Dog, Field(discriminator="kind")], '{"kind": "cow"}', "must say one of 'cat', 'dog' as 'kind'"),
    (Annotated[Cat | Dog, Field(discriminator="kind")], "{}", "must say as 'kind' which kind it is"),
    (str | Decimal, "0.12345678901234567890",
     "has more digits than a number can hold here; write it with at most 15 digits"),
]  # fmt: skip


@pytest.mark.parametrize(("annotation", "sent", "problem"), WRONG)
def test_a_wrong_argument_is_named_in_the_words_of_the_operation(annotation: Any, sent: str, problem: str) -> None:
    """Each kind of wrong value is invalid with a text that says what would be right."""
    assert invalid(one(annotation), f'{{"x": {sent}}}') == [f"x {problem}".replace("x [", "x[").replace("x .", "x.")]


@pytest.mark.parametrize(("annotation", "sent", "problem"), WRONG)
def test_no_problem_speaks_of_the_library(annotation: Any, sent: str, problem: str) -> None:
    """No text shows a URL of the library, "Input should be", or the name of a class."""
    text = " ".join(invalid(one(annotation), f'{{"x": {sent}}}'))
    for word in ("pydantic", "Input", "errors.", "Leg", "Room", "Size", "Colour", "Cat", "Decimal", "type="):
        assert word not in text


def test_the_place_of_a_problem_is_written_like_code() -> None:
    """Problems inside lists, models and mappings say where; neither union members nor classes appear in the place."""
    assert invalid(one(list[Leg]), '{"x": [{"city": "a"}, {"price": "b"}, 3]}') == [
        "x[1].city is missing",
        "x[1].price must be a number, not text",
        "x[2] must be an object, not 3",
    ]
    assert invalid(one(dict[str, int] | None), '{"x": {"a": "b"}}') == ["x.a must be an integer, not text"]
    naive = '{"x": [{"city": "a", "leaves": "2026-03-04T09:00:00"}]}'
    assert invalid(one(list[Leg]), naive)[0].startswith("x[0].leaves must be a date-time with a UTC offset")


def test_missing_and_unknown_arguments_are_named() -> None:
    """What is missing and what nobody knows is told by name, at the top and inside."""
    assert invalid(PAY, '{"order": "A", "ammount": 1}') == ["amount is missing", "ammount is not a known argument"]


def test_five_problems_are_shown_and_the_rest_is_counted() -> None:
    """A model is told five problems at most, and how many more there are; names it made up are cut."""
    sent = json.dumps({"order": "A", "amount": 1, **{f"a{number}": 1 for number in range(7)}})
    problems = invalid(PAY, sent)
    assert problems == [*(f"a{number} is not a known argument" for number in range(5)), "and 2 more"]
    assert len(invalid(PAY, json.dumps({"order": "A", "amount": 1, "y" * 5000: 1}))[0]) < 120


def test_a_validators_own_words_reach_the_model_and_its_failure_reaches_the_developer() -> None:
    """ValueError is a problem of the argument; anything else that a validator raises is a UsageError."""

    def even(value: int) -> int:
        if value == 0:
            raise KeyError("oops")
        if value % 2:
            raise ValueError("must be even,\n because rooms have two beds")
        return value

    arguments = one(Annotated[int, AfterValidator(even)])
    assert valid(arguments, '{"x": 2}').values == {"x": 2}
    assert invalid(arguments, '{"x": 3}') == ["x must be even, because rooms have two beds"]
    with pytest.raises(UsageError, match=r"a validator of .* raised KeyError; let it raise ValueError"):
        arguments.validate('{"x": 0}')


# ---------------------------------------------------------------- the key (C26)


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ('{"amount": 1}', "order is missing"),
        ('{"amount": 1, "order": null}', "order must not be empty: it says which one is meant"),
        ('{"amount": 1, "order": ""}', "order must not be empty: it says which one is meant"),
        ('{"amount": 1, "order": " \\t\\u00a0"}', "order must not be empty: it says which one is meant"),
    ],
)
def test_an_argument_of_the_key_is_never_missing_or_empty(sent: str, problem: str) -> None:
    """A missing, null or blank key argument is invalid and named, so that no two calls share an empty key (C26)."""
    assert invalid(PAY, sent) == [problem]


def test_an_argument_of_the_key_is_needed_even_with_a_default() -> None:
    """A default is no name for an effect; what validators make empty is empty; empty lists name nothing either."""
    optional = one(str | None, None, key=("x",))
    assert invalid(optional, "{}") == ["x is missing"]
    assert optional.schema()["required"] == ["x"]
    dashes = one(Annotated[str, AfterValidator(lambda text: text.strip("-"))], key=("x",))
    assert invalid(dashes, '{"x": "--"}') == ["x must not be empty: it says which one is meant"]
    assert invalid(one(list[int], key=("x",)), '{"x": []}') == ["x must not be empty: it says which one is meant"]
    assert valid(one(int, key=("x",)), '{"x": 0}').values == {"x": 0}


def test_arguments_that_exhaust_the_stack_are_refused() -> None:
    """A caller deep inside its own recursion gets an answer, and no RecursionError out of the middle."""
    raw = '{"x": ' + "[" * 90 + "]" * 90 + "}"
    limit, here, found = sys.getrecursionlimit(), len(inspect.stack(0)), []
    for room in range(60, 500, 10):
        sys.setrecursionlimit(here + room)
        try:
            found.append(ANYTHING.validate(raw))
        finally:
            sys.setrecursionlimit(limit)
    assert isinstance(found[0], Invalid)
    assert isinstance(found[-1], Valid)
    for one_of_them in found:
        assert isinstance(one_of_them, Valid) or "nested too deeply" in str(one_of_them.problems[0])


def test_a_problem_that_the_library_leaves_half_told_is_still_a_sentence() -> None:
    """Should pydantic leave something out of an error, the wording stays whole; unknown kinds are not quoted."""
    half: list[ErrorDetails] = [
        {"type": "greater_than", "loc": ("x",), "msg": "Input should be greater", "input": 1},
        {"type": "callable_type", "loc": ("y",), "msg": "Input should be callable", "input": 1},
        {"type": "own_kind", "loc": ("z",), "msg": "must be a prime", "input": 1},
        {"type": "value_error", "loc": ("w",), "msg": "must be odd", "input": 1},
    ]
    assert [str(problem) for problem in worded(half, {"x": None, "y": None, "z": None, "w": None})] == [
        "x must be greater than what is allowed",
        "y is not valid",
        "z must be a prime",
        "w must be odd",
    ]
