"""Types that arguments may have, and the shortest ways to ask what becomes of one argument."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pydantic.dataclasses
from pydantic import (
    BaseModel,
    Field,
    RootModel,
    SecretStr,
)
from typing_extensions import TypedDict

from counterfoil.arguments import Arguments, Content, Invalid, Valid

WORD = "hunter2"
KEY = b"k" * 32
UID = UUID("6f1c2b1e-8c55-4d5e-9d0b-2f0f1f7a5a10")
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


class Colour(Enum):
    RED = 1
    BLUE = "blue"


class Leg(BaseModel):
    city: str
    price: Decimal = Decimal(1)
    leaves: datetime | None = None


class Renamed(BaseModel):
    leg: Leg = Field(alias="the leg")


@dataclasses.dataclass
class Room:
    number: int
    beds: tuple[int, ...] = ()


class Size(TypedDict, total=False):
    width: Decimal
    height: Decimal


class Point(NamedTuple):
    x: int
    y: Decimal


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: Decimal


class Dog(BaseModel):
    kind: Literal["dog"]
    legs: int


class Node(BaseModel):
    weight: Decimal
    below: list[Node] = []


class Part(BaseModel):
    title: str


class Legs(RootModel[list[Leg]]):
    pass


class Open(BaseModel, extra="allow"):
    city: str


@pydantic.dataclasses.dataclass
class Berth:
    deck: Annotated[int, Field(alias="on deck")]
    width: Decimal = Decimal("0.80")


@dataclasses.dataclass
class Sum:
    parts: list[Decimal]
    total: Decimal = dataclasses.field(init=False, default=Decimal(0))


class Login(BaseModel):
    user: str
    password: SecretStr


def one(annotation: Any, default: Any = ..., **options: Any) -> Arguments:
    """The arguments of a function with a single parameter `x` of the given type."""

    def function(x: Any = default) -> None: ...

    function.__defaults__ = None if default is ... else (default,)
    function.__annotations__["x"] = annotation
    return Arguments(function, **options)


def valid(arguments: Arguments, raw: str | bytes | Mapping[str, Any], **options: Any) -> Valid:
    found = arguments.validate(raw, **options)
    assert isinstance(found, Valid), found
    return found


def invalid(arguments: Arguments, raw: Any, **options: Any) -> list[str]:
    found = arguments.validate(raw, **options)
    assert isinstance(found, Invalid), found
    return [str(problem) for problem in found.problems]


def revived(arguments: Arguments, stored: str) -> dict[str, Any]:
    found = arguments.revive(stored)
    assert isinstance(found, dict), found
    return found


def pay(order: str, amount: Decimal, cents: int = 0, note: Annotated[str, Content] = "") -> None: ...


PAY = Arguments(pay, key=("order",))
BERTH = Berth(**{"on deck": 3, "width": Decimal("0.123456789012345678901")})  # type: ignore[arg-type]
