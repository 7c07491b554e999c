"""Values of every kind that has a canonical form."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from ipaddress import ip_address
from pathlib import PurePosixPath
from typing import Any, TypedDict
from uuid import UUID

from pydantic import AnyUrl, BaseModel, Field, RootModel


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Word(StrEnum):
    YES = "yes"


class Stop(BaseModel):
    city: str
    nights: int = 1
    tags: list[str] = Field(default_factory=list)


class Stops(RootModel[list[Stop]]):
    pass


class Open(BaseModel, extra="allow"):
    city: str


@dataclasses.dataclass
class Leg:
    city: str
    nights: int = 1
    tags: list[str] = dataclasses.field(default_factory=list)


class Place(TypedDict):
    city: str


HOUR = timezone(timedelta(hours=1))
VALUES: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "false": False,
    "zero": 0,
    "minus zero": -0.0,
    "one": 1,
    "one as a float": 1.0,
    "one as a decimal with a tail": Decimal("1.00"),
    "one half": 0.5,
    "a tenth": 0.1,
    "a tenth as a decimal": Decimal("0.1"),
    "a tenth and two": 0.1 + 0.2,
    "three tenths": 0.3,
    "a negative amount": Decimal("-12.340"),
    "2^53": 9007199254740992,
    "2^53 + 1": 9007199254740993,
    "2^60 as a float": 2.0**60,
    "2^60": 2**60,
    "10^30 + 1": 10**30 + 1,
    "a number of 5000 digits": 10**4999 + 7,
    "a huge exponent": Decimal("1e1000000"),
    "a tiny float": 5e-324,
    "empty text": "",
    "text": "Zoë",
    "text, decomposed": "Zoe\u0308",
    "text with spaces and capitals": "  Main Street ",
    "text with controls": 'a\x00\n"\\b',
    "text that looks like an instant": "2026-03-04T09:00:00Z",
    "text that looks like a number": "1",
    "an emoji": "\N{GRINNING FACE}",
    "half of a surrogate pair": "\ud83d",
    "an instant": datetime(2026, 3, 4, 9, tzinfo=UTC),
    "the same instant elsewhere": datetime(2026, 3, 4, 10, tzinfo=HOUR),
    "an instant with microseconds": datetime(2026, 3, 4, 9, 0, 0, 1, tzinfo=UTC),
    "the first instant": datetime.min.replace(tzinfo=timezone(timedelta(hours=14))),
    "the last instant": datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))),
    "a date": date(2026, 3, 4),
    "a time": time(9, 30),
    "a time with an offset": time(9, 30, tzinfo=HOUR),
    "a duration": timedelta(days=-1, microseconds=5),
    "a UUID": UUID("6f1c2b1e-8c55-4d5e-9d0b-2f0f1f7a5a10"),
    "bytes": b"\x00\xff",
    "no bytes": b"",
    "an enum": Colour.RED,
    "an enum of integers": Level.HIGH,
    "an enum of texts": Word.YES,
    "an empty list": [],
    "a list": [1, "1", None],
    "a tuple": (1, "1", None),
    "a list, the other way round": [None, "1", 1],
    "a nested list": [[1], [2, []]],
    "a set": {3, 1, 2},
    "an empty set": set(),
    "an empty mapping": {},
    "a mapping": {"b": 1, "a": {"d": [1.0], "c": "x"}},
    "a mapping with a key beyond the basic plane": {"\ufb33": 1, "\U0001f600": 2},
    "a mapping with numbers as keys": {2: "b", 10: "a"},
    "a mapping with mixed keys": {"a": 1, 1: "a"},
    "a model": Stop(city="Oslo", nights=2),
    "a model with its defaults": Stop(city="Oslo", nights=1),
    "a dataclass": Leg(city="Oslo", nights=2),
    "a typed dict": Place(city="Oslo"),
    "an open model": Open.model_validate({"city": "Oslo", "more": 1}),
    "a root model": Stops([Stop(city="Oslo")]),
    "a URL": AnyUrl("https://example.com/a?b=c"),
    "an address": ip_address("::1"),
    "a path": PurePosixPath("a/b"),
}
