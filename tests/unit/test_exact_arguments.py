"""Arguments that are taken: exactly, digit by digit, and read back the same from what was stored."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import (
    AfterValidator,
    AliasPath,
    BaseModel,
    BeforeValidator,
    Field,
    HttpUrl,
    Json,
    JsonValue,
    SecretStr,
)
from unit.samples import (
    BERTH,
    NOON,
    PAY,
    UID,
    Berth,
    Cat,
    Colour,
    Dog,
    Leg,
    Legs,
    Node,
    Open,
    Point,
    Renamed,
    Room,
    Size,
    Sum,
    invalid,
    one,
    revived,
    valid,
)

from counterfoil.arguments import Arguments, Invalid
from counterfoil.errors import UsageError
from counterfoil.identity import canonical

# ---------------------------------------------------------------- what is taken, and exactly


@pytest.mark.parametrize(
    ("annotation", "sent", "value"),
    [
        (int, "1.0", 1),
        (int, "1e3", 1000),
        (int, "-0.0", 0),
        (int, "12345678901234567890123456789012345678901234567890", 12345678901234567890123456789012345678901234567890),
        (int, "9007199254740993.0", 9007199254740993),
        (float, "1", 1.0),
        (float, "0.1", 0.1),
        (Decimal, "0.1000000000000000055511151231257827021181583404541015625",
         Decimal("0.1000000000000000055511151231257827021181583404541015625")),
        (Decimal, "12.340", Decimal("12.340")),
        (Decimal, '"12.340"', Decimal("12.340")),
        (Decimal, "12345678901234567890.123456789012345678901234567890",
         Decimal("12345678901234567890.123456789012345678901234567890")),
        (Decimal, "1E+2", Decimal("1E+2")),
        (Decimal | None, "1.10", Decimal("1.10")),
        (int | Decimal, "1.10", Decimal("1.10")),
        (int | Decimal, "2.0", 2),
        (int | str, "2.0", 2),
        (float | int, "2.5", 2.5),
        (str | Decimal, "1.5", Decimal("1.5")),
        (list[Decimal], "[0.123456789012345678901]", [Decimal("0.123456789012345678901")]),
        (dict[str, Decimal], '{"a": 0.123456789012345678901}', {"a": Decimal("0.123456789012345678901")}),
        (dict[int, str], '{"1": "a"}', {1: "a"}),
        (OrderedDict[str, int], '{"a": 1.0}', OrderedDict(a=1)),
        (tuple[int, Decimal], "[1.0, 1.10]", (1, Decimal("1.10"))),
        (tuple[Decimal, ...], "[1.10, 2.20]", (Decimal("1.10"), Decimal("2.20"))),
        (set[int], "[1, 2.0, 2]", {1, 2}),
        (Leg, '{"city": "Oslo", "price": 0.123456789012345678901}',
         Leg(city="Oslo", price=Decimal("0.123456789012345678901"))),
        (list[Leg] | None, '[{"city": "Oslo", "price": 1.10}]', [Leg(city="Oslo", price=Decimal("1.10"))]),
        (Renamed, '{"the leg": {"city": "Oslo", "price": 1.10}}',
         Renamed.model_validate({"the leg": {"city": "Oslo", "price": Decimal("1.10")}})),
        (Room, '{"number": 5.0, "beds": [1, 2.0]}', Room(5, (1, 2))),
        (Size, '{"width": 0.123456789012345678901}', {"width": Decimal("0.123456789012345678901")}),
        (Legs, '[{"city": "Oslo", "price": 1.10}]', Legs([Leg(city="Oslo", price=Decimal("1.10"))])),
        (Open, '{"city": "Oslo", "more": [1.0, {}]}', Open.model_validate({"city": "Oslo", "more": [1.0, {}]})),
        (Berth, '{"on deck": 3.0, "width": 0.123456789012345678901}', BERTH),
        (Sum, '{"parts": [0.123456789012345678901]}', Sum([Decimal("0.123456789012345678901")])),
        (Annotated[Decimal, BeforeValidator(lambda value: value)], "1.5", Decimal("1.5")),
        (Point, "[1.0, 0.123456789012345678901]", Point(1, Decimal("0.123456789012345678901"))),
        (Cat | Dog, '{"kind": "cat", "lives": 9.000000000000000000001}',
         Cat(kind="cat", lives=Decimal("9.000000000000000000001"))),
        (Annotated[Cat | Dog, Field(discriminator="kind")], '{"kind": "dog", "legs": 4.0}', Dog(kind="dog", legs=4)),
        (Node, '{"weight": 1.10, "below": [{"weight": 0.123456789012345678901}]}',
         Node(weight=Decimal("1.10"), below=[Node(weight=Decimal("0.123456789012345678901"))])),
        (datetime, '"2026-03-04T13:00:00+01:00"', NOON.astimezone(timezone(timedelta(hours=1)))),
        (date, '"2026-03-04"', date(2026, 3, 4)),
        (time, '"09:30:00"', time(9, 30)),
        (timedelta, '"PT1H30M"', timedelta(minutes=90)),
        (UUID, f'"{UID}"', UID),
        (bytes, '"AP8="', b"\x00\xff"),
        (Colour, "1.0", Colour.RED),
        (Literal[1, "a"], "1.0", 1),
        (Any, '{"a": [1.0, true, null, "x"]}', {"a": [1.0, True, None, "x"]}),
        (JsonValue, "[1, 2.5]", [1, 2.5]),
        (str, '"\\u0000 \\ud83d\\ude00"', "\x00 \N{GRINNING FACE}"),
        (str, '"2026-03-04T09:00:00"', "2026-03-04T09:00:00"),
    ],
)  # fmt: skip
def test_json_is_taken_exactly_and_strictly(annotation: Any, sent: str, value: Any) -> None:
    """1.0 is the integer 1, decimals keep every digit, integers have any size, at every depth; all of it revives."""
    arguments = one(annotation)
    found = valid(arguments, f'{{"x": {sent}}}')
    assert (found.values["x"], type(found.values["x"])) == (value, type(value))
    assert str(found.values["x"]) == str(value)
    again = revived(arguments, found.stored)["x"]
    assert (again, type(again)) == (value, type(value))
    assert str(again) == str(value)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Decimal, Decimal("12.340")),
        (Decimal, 3),
        (float, 1.5),
        (int, 10**100),
        (datetime, NOON),
        (datetime, NOON.astimezone(timezone(timedelta(hours=-7)))),
        (date, date(2026, 3, 4)),
        (time, time(9, 30, 0, 5)),
        (timedelta, timedelta(days=-3, microseconds=7)),
        (UUID, UID),
        (bytes, bytes(range(256))),
        (Colour, Colour.BLUE),
        (Colour, Colour.RED),
        (set[int], {3, 1, 2}),
        (frozenset[Decimal], frozenset({Decimal("1.10")})),
        (tuple[int, str], (1, "a")),
        (Leg, Leg(city="Oslo", price=Decimal("1.10"), leaves=NOON)),
        (list[Leg], [Leg(city="Oslo")]),
        (Renamed, Renamed.model_validate({"the leg": Leg(city="Oslo")})),
        (Room, Room(5, (1, 2))),
        (Legs, Legs([Leg(city="Oslo")])),
        (Open, Open.model_validate({"city": "Oslo", "more": 1})),
        (Berth, BERTH),
        (Sum, Sum([Decimal("1.10")])),
        (Size, {"width": Decimal("1.10")}),
        (dict[UUID, Decimal], {UID: Decimal("1.10")}),
        (dict[int, Any], {1: [None, True, "a"]}),
        (HttpUrl, HttpUrl("https://example.com/a")),
        (int | str, "1"),
    ],
)
def test_values_of_python_callers_are_taken_as_they_are(annotation: Any, value: Any) -> None:
    """Decimals, instants, enums, sets, models and dataclasses go in as Python values and revive as the same."""
    arguments = one(annotation)
    found = valid(arguments, {"x": value})
    assert found.values == {"x": value}
    assert revived(arguments, found.stored) == {"x": value}
    assert canonical(found.identity) == canonical({"x": value})


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (math.nan, "x must be a finite number"),
        (Decimal("sNaN"), "x must be a finite number"),
        ([math.inf], "x[0] must be a finite number"),
        pytest.param(10**5000, "x has too many digits", id="5000 digits"),
        (object(), "x is of the type object, which JSON cannot hold"),
        (Leg, "x is a class, not a value"),
        (Room, "x is a class, not a value"),
        ({None: 1}, "x has a key that is neither text nor a number"),
        ({1: 1, "1": 2}, "x has two keys that are both written '1'"),
        (SecretStr("hunter2"), "x is a secret, and the parameter is not declared as one"),
        ("\ud800", "x holds half of a surrogate pair, which is not a character; send whole characters"),
        (datetime(2026, 3, 4, 9), "x must be a date-time with a UTC offset"),  # noqa: DTZ001 - it is what is refused
    ],
)
def test_python_values_that_json_cannot_hold_are_refused(value: object, problem: str) -> None:
    """What cannot be stored exactly is invalid before anything begins, and no secret is shown in saying so."""
    annotation = datetime if isinstance(value, datetime) else Any
    (found,) = invalid(one(annotation), {"x": value})
    assert found.startswith(problem)
    assert "hunter2" not in found


json_numbers = st.from_regex(r"\A-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?\Z")
DECIMAL, INTEGER, FLOAT = one(Decimal), one(int), one(float)


@given(json_numbers)
@example("1.0")
@example("100E-2")
@example("0.30000000000000004")
def test_every_json_number_is_read_without_loss(text: str) -> None:
    """For any number of JSON: a Decimal has its digits, an int is taken when it is whole, a float is the nearest."""
    exact, sent = Decimal(text), f'{{"x": {text}}}'
    found = valid(DECIMAL, sent)
    assert str(found.values["x"]) == str(exact)
    assert found.echo == f'{{"x":{text}}}'
    assert str(revived(DECIMAL, found.stored)["x"]) == str(exact)
    assert valid(FLOAT, sent).values["x"] == float(text)
    if exact == exact.to_integral_value():
        assert valid(INTEGER, sent).values["x"] == int(exact)
    else:
        assert invalid(INTEGER, sent)[0].startswith("x must be an integer, not ")


plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inside: st.lists(inside, max_size=3)
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), inside, max_size=3),
    max_leaves=10,
)  # fmt: skip
ANYTHING = one(Any)


@given(plain_values)
@example("\x00\u2028")
@example({"CVC": 0})
def test_stored_and_echo_are_ascii_and_hold_the_same_values(value: Any) -> None:
    """Whatever is sent: `stored` and `echo` are pure ASCII without control characters, and read back equal."""
    found = ANYTHING.validate({"x": value})
    if isinstance(found, Invalid):  # two keys that NFC makes one are refused, names of secrets, and nothing else
        said = str(found.problems[0])
        assert "two Unicode forms" in said or "has the name of a secret" in said
        return
    assert revived(ANYTHING, found.stored) == {"x": value}
    for text in (found.stored, found.echo):
        assert text.isascii()
        assert all(character >= " " for character in text)
        assert json.loads(text) == {"x": value}


# ---------------------------------------------------------------- stored, echo, identity


def test_the_echo_is_what_was_sent_and_the_store_what_was_understood() -> None:
    """1.0 stays 1.0 in the echo and every digit is in both; `stored` is as validated, defaults included (C28, C31)."""
    found = valid(PAY, '{ "cents": 7.0, "order":"A", "amount": 1.00000000000000000001 }')
    assert found.echo == '{"cents":7.0,"order":"A","amount":1.00000000000000000001}'
    assert found.stored == '{"order":"A","amount":1.00000000000000000001,"cents":7,"note":""}'


def test_the_identity_leaves_out_defaults_and_content() -> None:
    """Arguments equal to their default, and content, are not part of the identity (C21, C24)."""
    base = valid(PAY, '{"order": "A", "amount": 1}').identity
    assert dict(base) == {"order": "A", "amount": Decimal(1)}
    assert valid(PAY, '{"amount": 1.00, "note": "as agreed", "cents": 0.0, "order": "A"}').identity == base
    assert valid(PAY, '{"order": "A", "amount": 1, "cents": 5}').identity != base
    assert PAY.never_identity == {"note"}


# ---------------------------------------------------------------- reviving


def test_stored_arguments_that_no_longer_fit_are_invalid() -> None:
    """After a change of the signature, stored arguments are refused with the reason, never bent to fit."""
    stored = valid(PAY, '{"order": "A", "amount": 1, "cents": 5}').stored

    def renamed(order: str, amount: Decimal, minor: int, note: str = "") -> None: ...
    def widened(order: str, amount: Decimal, cents: float = 0, note: str = "", more: bool = False) -> None: ...

    found = Arguments(renamed).revive(stored)
    assert isinstance(found, Invalid)
    assert [str(problem) for problem in found.problems] == ["minor is missing", "cents is not a known argument"]
    assert revived(Arguments(widened), stored) == {
        "order": "A", "amount": Decimal(1), "cents": 5.0, "note": "", "more": False}  # fmt: skip
    for broken in ("", "[]", '{"order": NaN}'):
        assert isinstance(PAY.revive(broken), Invalid)


def test_a_value_that_changes_when_it_is_read_back_is_the_developers_mistake() -> None:
    """A validator that converts (euros to cents) would convert twice in a resend: refused before anything begins."""
    cents = one(Annotated[int, AfterValidator(lambda euros: euros * 100)])
    assert valid(cents, '{"x": 0}').values == {"x": 0}
    for annotation in (Annotated[int, AfterValidator(lambda euros: euros * 100)], Json[list[int]]):
        raw = '{"x": 5}' if annotation is not Json[list[int]] else {"x": "[1]"}
        with pytest.raises(UsageError, match="not the same once stored and read back"):
            one(annotation).validate(raw)
    trimmed = one(Annotated[str, BeforeValidator(lambda text: text.strip())])
    assert revived(trimmed, valid(trimmed, '{"x": " a "}').stored) == {"x": "a"}


def test_a_model_that_cannot_be_read_from_its_own_fields_is_the_developers_mistake() -> None:
    """A model that only reads another shape than it has would not revive: refused before anything begins."""

    class Deep(BaseModel):
        city: str = Field(validation_alias=AliasPath("place", "city"))

    with pytest.raises(UsageError, match="not the same once stored and read back"):
        one(Deep).validate('{"x": {"place": {"city": "Oslo"}}}')


def test_a_type_without_canonical_form_is_the_developers_mistake() -> None:
    """A type that can be validated but not identified is refused before anything begins."""
    with pytest.raises(UsageError, match="no canonical form"):
        one(complex).validate('{"x": "1+2j"}')


def test_a_default_that_cannot_be_stored_is_left_out() -> None:
    """A default may be any object: it is neither stored nor identity, and the function gets it again."""
    nothing = object()
    arguments = one(int | Any, nothing)
    found = valid(arguments, "{}")
    assert found.values == {"x": nothing}
    assert (found.stored, found.identity) == ("{}", {})
    assert revived(arguments, "{}") == {"x": nothing}
