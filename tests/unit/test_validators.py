"""Functions of the developer that see a value first: they may bend what they get, and strictness stays elsewhere."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, SecretStr, WrapValidator, field_validator, model_validator
from unit.samples import KEY, invalid, one, revived, valid

NINE = datetime(2026, 3, 4, 9, tzinfo=UTC)


class Checked(BaseModel):
    """A model whose own function sees the whole of it first."""

    count: int = 0
    price: Decimal = Decimal(0)
    weight: float = 0
    name: str = ""
    sure: bool = False
    starts: datetime | None = None
    stops: set[Decimal] = set()
    token: SecretStr | None = None

    @model_validator(mode="before")
    @classmethod
    def renamed(cls, sent: Any) -> Any:
        return {"name" if name == "title" else name: value for name, value in sent.items()}


class Priced(BaseModel):
    """A model with a field that its own function parses."""

    price: Decimal
    starts: datetime = NINE

    @field_validator("price", mode="before")
    @classmethod
    def parsed(cls, sent: Any) -> Any:
        return sent.removesuffix(" EUR") if isinstance(sent, str) else sent


class Loose(Checked):
    """The same without a secret."""

    token: None = None


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ('{"count": 2.0}', Loose(count=2)),
        ('{"price": 1.10}', Loose(price=Decimal("1.1"))),
        ('{"price": 0.123456789012345678901}', Loose(price=Decimal("0.123456789012345678901"))),
        ('{"weight": 1}', Loose(weight=1.0)),
        ('{"title": "x"}', Loose(name="x")),
        ('{"starts": "2026-03-04T10:00:00+01:00"}', Loose(starts=NINE)),
        ('{"stops": [1.5, 2]}', Loose(stops={Decimal("1.5"), Decimal(2)})),
    ],
)
def test_a_model_whose_own_function_sees_it_first_is_still_read_exactly(sent: str, value: Loose) -> None:
    """Date-times, sets and decimals inside such a model are taken from JSON as everywhere, and revive the same."""
    arguments = one(Loose)
    found = valid(arguments, f'{{"x": {sent}}}')
    assert found.values == {"x": value}
    assert revived(arguments, found.stored) == {"x": value}


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ('{"count": "1"}', "x.count must be an integer, not text"),
        ('{"count": true}', "x.count must be an integer, not true"),
        ('{"count": 1.5}', "x.count "),
        ('{"price": true}', "x.price must be a number, not true"),
        ('{"weight": "1"}', "x.weight must be a number, not text"),
        ('{"name": 5}', "x.name must be text, not 5"),
        ('{"sure": 1}', "x.sure must be true or false, not 1"),
        ('{"sure": "yes"}', "x.sure must be true or false, not text"),
        ('{"starts": 1700000000}', "x.starts must be a date-time with a UTC offset"),
        ('{"starts": "1700000000"}', "x.starts must be a date-time with a UTC offset"),
        ('{"starts": "2026-03-04T09:00:00"}', "x.starts must be a date-time with a UTC offset"),
    ],
)
def test_such_a_model_is_as_strict_as_any_other(sent: str, problem: str) -> None:
    """What is of another kind is refused although pydantic's own strict mode cannot be used there."""
    (found,) = invalid(one(Loose), f'{{"x": {sent}}}')
    assert found.startswith(problem)


def test_all_problems_of_such_arguments_are_told_together() -> None:
    """What pydantic finds and what the fitting finds come in one answer, one problem for each place."""

    assert invalid(one(Loose, repeatable=True), '{"x": {"count": "1", "stops": 3}, "y": 1}') == [
        "x.count must be an integer, not text",
        "x.stops must be a list, not 3",
        "y is not a known argument",
    ]


def test_a_secret_inside_such_a_model_is_not_shown() -> None:
    """A problem of a secret argument says its kind alone, here too."""
    assert invalid(one(Checked), '{"x": {"count": true, "token": 12345}}', secret=KEY) == [
        "x.count must be an integer, not true or false",
        "x.token must be text, not a number",
    ]


def test_a_function_may_parse_the_field_that_it_stands_on() -> None:
    """The function of a field gets what was sent, of any kind; beside it everything stays strict."""
    arguments = one(Priced)
    assert str(valid(arguments, '{"x": {"price": 0.123456789012345678901}}').values["x"].price).endswith("901")
    for sent, price in (('"12.50 EUR"', "12.50"), ("12.5", "12.5"), ('"12.50"', "12.50"), ("3", "3")):
        found = valid(arguments, f'{{"x": {{"price": {sent}}}}}')
        assert str(found.values["x"].price) == price
        assert revived(arguments, found.stored) == found.values
    assert invalid(arguments, '{"x": {"price": "12 EUR", "starts": 5}}')[0].startswith("x.starts must be a date-time")
    assert invalid(arguments, '{"x": {"price": "much"}}') == ["x.price must be a number, not text"]


@pytest.mark.parametrize(
    ("annotation", "sent", "value"),
    [
        (Annotated[datetime, WrapValidator(lambda sent, take: take(sent))], '"2026-03-04T09:00:00Z"', NINE),
        (Annotated[tuple[Decimal, ...], BeforeValidator(list)], "[1.5, 2]", (Decimal("1.5"), Decimal(2))),
        (Annotated[int, BeforeValidator(lambda sent: sent)], "2.0", 2),
        (Annotated[list[int] | None, BeforeValidator(lambda sent: sent)], "[2.0]", [2]),
    ],
)
def test_a_function_may_stand_on_an_argument(annotation: Any, sent: str, value: Any) -> None:
    """Before and wrap validators of an argument work for every type, as from Python."""
    arguments = one(annotation)
    found = valid(arguments, f'{{"x": {sent}}}')
    assert found.values == {"x": value}
    assert revived(arguments, found.stored) == {"x": value}
