"""The canonical form: equal values are one, different values never are."""

from __future__ import annotations

import dataclasses
import json
import math
import unicodedata
from collections import deque
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretBytes, SecretStr
from unit.canonical_samples import Colour, Leg, Level, Place, Stop, Stops, Word

from counterfoil.identity import (
    ForeignType,
    NotCanonical,
    canonical,
    path_text,
)

# ---------------------------------------------------------------- numbers


def test_one_number_has_one_form_in_every_spelling() -> None:
    """1, 1.0, 1e0 and Decimal("1.00") are one number, alone and inside lists and mappings; 1.5 is another (C28)."""
    spellings = [1, 1.0, 1e0, Decimal(1), Decimal("1.00"), Decimal("100e-2")]
    assert len({canonical(one) for one in spellings}) == 1
    assert len({canonical([{"amount": one}]) for one in spellings}) == 1
    assert canonical(1.5) == canonical(Decimal("1.50")) != canonical(1)


def test_neighbouring_numbers_stay_apart() -> None:
    """Integers beyond 2^53, 10^30 and its neighbour, and 0.1 + 0.2 against 0.3 are different; -0.0 is 0 (C31)."""
    for one, other in [(2**53, 2**53 + 1), (10**30, 10**30 + 1), (0.1 + 0.2, 0.3), (1, True), (0, False), (1, "1")]:
        assert canonical(one) != canonical(other)
    assert canonical(-0.0) == canonical(0) == canonical(Decimal("-0.000"))


@given(st.integers(), st.integers())
@example(2**53, 2**53 + 1)
def test_integers_are_equal_exactly_when_their_forms_are(one: int, other: int) -> None:
    """For integers of any size: the same bytes if and only if the same number."""
    assert (canonical(one) == canonical(other)) == (one == other)
    assert canonical(one) == canonical(Decimal(one))


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
@example(0.0, -0.0)
@example(1e23, 9.999999999999999e22)
@example(2.0**53, 2.0**53 + 2)
def test_floats_are_equal_exactly_when_their_forms_are(one: float, other: float) -> None:
    """For floats: the same bytes if and only if the same number; and one with the decimal that JSON text shows."""
    assert (canonical(one) == canonical(other)) == (one == other)
    shown = Decimal(int(one)) if one.is_integer() else Decimal(json.dumps(one))
    assert canonical(one) == canonical(shown)


decimals = st.decimals(allow_nan=False, allow_infinity=False)


@given(decimals, decimals, st.integers(0, 20))
def test_decimals_are_equal_exactly_when_their_forms_are(one: Decimal, other: Decimal, zeros: int) -> None:
    """For decimals: the same bytes if and only if the same number, with any number of zeros behind it."""
    assert (canonical(one) == canonical(other)) == (one == other)
    sign, digits, exponent = one.as_tuple()
    assert isinstance(exponent, int)
    assert canonical(Decimal((sign, (*digits, *[0] * zeros), exponent - zeros))) == canonical(one)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")])
def test_what_is_no_number_is_refused(value: object) -> None:
    """NaN and the infinities have no form; the refusal says where they stand."""
    with pytest.raises(NotCanonical) as caught:
        canonical({"stops": [{"price": value}]})
    assert (caught.value.path, caught.value.problem) == ("stops[0].price", "must be a finite number")
    assert str(caught.value) == "stops[0].price must be a finite number"


# ---------------------------------------------------------------- text


@given(st.text(), st.text())
@example("e\u0301", "\u00e9")
@example("A", "a")
@example("a ", "a")
@example("\ud800", "d800")
def test_texts_are_equal_exactly_when_they_are_the_same_characters(one: str, other: str) -> None:
    """Texts are one only in the sense of Unicode's NFC: nothing is lower-cased, trimmed or folded."""
    same = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
    assert (canonical(one) == canonical(other)) == same
    assert canonical({one: 1}) == canonical({unicodedata.normalize("NFD", one): 1})


@given(st.text(st.characters(categories=["Cs"]), min_size=1), st.text(st.characters(categories=["Cs", "Lu"])))
def test_text_that_is_not_unicode_has_a_form_of_its_own(one: str, other: str) -> None:
    """Half of a surrogate pair is told apart from every other text, as a value and as a key, and never raises."""
    assert (canonical(one) == canonical(other)) == (one == other)
    assert (canonical({one: 1}) == canonical({other: 1})) == (one == other)
    assert canonical({one: 1}) != canonical({one: 2})


def test_two_keys_that_become_one_are_refused() -> None:
    """A mapping whose keys differ only in their Unicode form would lose a value: refused, with its place."""
    with pytest.raises(NotCanonical, match=r"^meta has one key twice"):
        canonical({"meta": {"\u00e9": 1, "e\u0301": 2}})
    with pytest.raises(NotCanonical, match="one item twice"):
        canonical({"\u00e9", "e\u0301"})


def test_text_is_never_taken_for_something_else() -> None:
    """Text that looks like an instant, a UUID, a number or true stays text (C32)."""
    uuid = UUID("6f1c2b1e-8c55-4d5e-9d0b-2f0f1f7a5a10")
    for one, text in [(datetime(2026, 3, 4, tzinfo=UTC), "2026-03-04T00:00:00Z"), (uuid, str(uuid)), (True, "true")]:
        assert canonical(one) != canonical(text)
    assert canonical("2026-03-04T09:00:00Z") != canonical("2026-03-04T09:00:00+00:00")


# ---------------------------------------------------------------- instants

offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
instants = st.datetimes(timezones=offsets)


@given(instants, instants)
def test_instants_are_equal_exactly_when_their_forms_are(one: datetime, other: datetime) -> None:
    """Aware date-times are one if and only if they are the same microsecond, in whatever zone they are written."""
    assert (canonical(one) == canonical(other)) == (one == other)


@given(instants.filter(lambda one: 1 < one.year < 9999), offsets)
def test_an_instant_moved_to_another_zone_is_the_same(one: datetime, zone: timezone) -> None:
    """The zone in which an instant is written does not enter a key (C32)."""
    assert canonical(one) == canonical(one.astimezone(zone))


@given(st.times(timezones=st.none() | offsets), st.times(timezones=st.none() | offsets))
def test_times_of_day_are_equal_exactly_when_their_forms_are(one: time, other: time) -> None:
    """Times of day are one if and only if Python holds them equal; with and without an offset never are."""
    assert (canonical(one) == canonical(other)) == (one == other)


@given(st.dates(), st.dates(), st.timedeltas(), st.timedeltas())
def test_dates_and_durations_keep_apart(one: date, other: date, short: timedelta, long: timedelta) -> None:
    """Dates and durations are one if and only if they are equal, and neither is the other."""
    assert (canonical(one) == canonical(other)) == (one == other)
    assert (canonical(short) == canonical(long)) == (short == long)
    assert canonical(one) != canonical(short)


def test_a_date_time_without_offset_is_refused_with_an_example() -> None:
    """A naive date-time names no instant: the refusal shows what to write (C32)."""
    with pytest.raises(NotCanonical, match=r"^when must be a date-time with a UTC offset, for example 2026-03-04T09"):
        canonical({"when": datetime(2026, 3, 4, 9)})  # noqa: DTZ001 - it is what is refused


# ---------------------------------------------------------------- compound values

scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=3) | st.dates()
trees = st.recursive(
    scalars,
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text("ab\ud800", max_size=2), inside, max_size=3),
    max_leaves=8,
)


def exact(value: Any) -> Any:
    """Python's equality, but for its 1 == True and its lists that equal no tuples: what the form should tell apart."""
    match value:
        case list():
            return ("list", *(exact(item) for item in value))
        case dict():
            return ("mapping", frozenset((key, exact(item)) for key, item in value.items()))
        case _:
            return (type(value), value)


@given(trees, trees)
@example([["a"], "b"], [["a", "b"]])
@example({"a": None}, {})
@example(["l"], [])
@example([["n", "1"]], [1])
@example({"1": 1}, {1: 1})
def test_trees_are_equal_exactly_when_their_forms_are(one: Any, other: Any) -> None:
    """Nested values have the same bytes if and only if they are the same; no list can forge the envelope of a kind."""
    assert (canonical(one) == canonical(other)) == (exact(one) == exact(other))


@given(st.dictionaries(st.integers() | st.text("ab", max_size=2) | st.tuples(st.integers()), scalars, max_size=4))
def test_the_order_of_members_is_no_meaning(members: dict[Any, Any]) -> None:
    """A mapping written in another order is the same, whatever its keys are (C29)."""
    backwards = dict(reversed(members.items()))
    assert canonical(backwards) == canonical(members)
    assert canonical({"inside": backwards}) == canonical({"inside": members})


@given(st.dictionaries(st.integers(0, 3), st.integers(0, 3)), st.dictionaries(st.integers(0, 3), st.integers(0, 3)))
def test_mappings_with_other_keys_are_equal_exactly_when_their_forms_are(
    one: dict[int, int], other: dict[int, int]
) -> None:
    """Mappings whose keys are numbers are told apart by keys and by values, also where a key equals its value."""
    assert (canonical(one) == canonical(other)) == (one == other)
    assert canonical({(1, 2): 3}) != canonical({(1, 3): 2})


@given(st.lists(st.integers(0, 5), max_size=5))
def test_lists_keep_their_order_and_sets_have_none(items: list[int]) -> None:
    """Order is meaning in a list and none in a set (C30); a tuple and a deque are lists."""
    assert canonical(set(items)) == canonical(frozenset(reversed(items)))
    assert (canonical(items) == canonical(items[::-1])) == (items == items[::-1])
    assert canonical(items) == canonical(tuple(items)) == canonical(deque(items))
    assert canonical(items) != canonical(set(items))


def test_models_dataclasses_and_mappings_are_one_kind_and_leave_out_defaults() -> None:
    """A field that equals its default is left out, so that adding an optional field changes no key."""
    assert canonical(Stop(city="Oslo", nights=1, tags=[])) == canonical({"city": "Oslo"})
    assert canonical(Leg(city="Oslo")) == canonical(Place(city="Oslo")) == canonical(Stop(city="Oslo"))
    assert canonical(Stop(city="Oslo", nights=2)) == canonical({"nights": 2.0, "city": "Oslo"})
    assert canonical(Stop(city="Oslo", tags=["x"])) != canonical(Stop(city="Oslo"))
    assert canonical(Stops([Stop(city="Oslo")])) == canonical([{"city": "Oslo"}])


def test_a_default_that_cannot_be_known_is_told() -> None:
    """A factory that may answer differently each time is not asked: its field always enters the key."""

    def asked() -> str:
        raise AssertionError("the factory must not be called")

    @dataclasses.dataclass
    class Made:
        name: str = dataclasses.field(default_factory=asked)

    assert canonical(Made(name="x")) == canonical({"name": "x"})


def test_an_enum_is_its_value() -> None:
    """Enums of every kind are taken by their values: renaming a member changes no key."""
    assert [canonical(one) for one in (Colour.RED, Level.HIGH, Word.YES)] == [
        canonical(one) for one in ("red", 3, "yes")
    ]


@pytest.mark.parametrize("value", [object(), 1j, range(3), len, Stop, Leg, {"a": object()}, {1, object}])
def test_a_foreign_type_is_refused(value: object) -> None:
    """Nothing is hashed by its repr: a type without a canonical form is refused."""
    with pytest.raises(ForeignType, match="plain data"):
        canonical(value)


def test_a_secret_is_refused_unless_it_is_asked_for() -> None:
    """A pydantic secret enters no identity as it is; for an HMAC it is taken by its content."""
    for one in (SecretStr("hunter2"), SecretBytes(b"hunter2"), {"inside": [SecretStr("hunter2")]}):
        with pytest.raises(NotCanonical, match="is a secret") as caught:
            canonical(one)
        assert "hunter2" not in str(caught.value)
    assert canonical(SecretStr("hunter2"), reveal=True) == canonical("hunter2")


def test_endless_nesting_is_refused() -> None:
    """A value that contains itself, or is nested beyond all measure, is refused instead of crashing."""
    endless: list[Any] = []
    endless.append(endless)
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for one in (endless, deep):
        with pytest.raises(NotCanonical, match="nested too deeply"):
            canonical(one)


def test_a_place_is_written_as_one_writes_it() -> None:
    """Paths read like code."""
    assert [path_text(path) for path in ((), ("a",), ("a", 0, "b"), (0,))] == ["", "a", "a[0].b", "[0]"]
