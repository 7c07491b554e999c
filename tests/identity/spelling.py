"""Values of every type, each in several spellings of JSON, with what says whether two of them are one.

Owns the generators. A sample is a JSON text and a reference: two samples of a kind are equal values exactly when their
references are equal. The references are made by Python's own types, not by the library.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel

# 150 samples make 11,175 pairs.
SAMPLES = 150
_PIECES = (
    "é",
    "e\u0301",
    "Å",
    "\u212b",
    "ﬁ",
    "fi",
    "a",
    "A",
    " ",
    "\x00",
    '"',
    "\\",
    "😀",
    "1",
    ",",
    ":",
    "[",
    "\x1f",
    "ß",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stop(BaseModel):
    """A model with defaults."""

    city: str
    nights: int = 1
    paid: bool = False


class Sample(NamedTuple):
    """One spelling of a value."""

    text: str
    reference: Any


def _integer(random: Random) -> Sample:
    near = random.choice((0, 1, 10, 2**31, 2**53, 2**63, 2**64, 10**17, 10**30, 10**100))
    value = random.choice((1, -1)) * (near + random.randrange(3))
    spelt = (str(value), f"{value}.0", f"{value}.000", f"{value}e0", f"{value * 10}e-1", f"{value}E+0")
    return Sample(random.choice(spelt), value)


def _decimal(random: Random) -> Sample:
    digits = random.choice(("1", "10", "1.5", "0.1", "0.3", "0.30000000000000004", "123456789.123456789012345678901"))
    value = Decimal(digits) * random.choice((1, -1)) + random.choice((0, Decimal("1e-25")))
    plain = f"{value:f}"
    spelt = (plain, json.dumps(plain), f"{value:.40f}", f"{value:E}", json.dumps(f"{value:.35f}"))
    return Sample(random.choice(spelt), value)


def _float(random: Random) -> Sample:
    value = random.choice((0.0, -0.0, 0.1, 0.2, 0.1 + 0.2, 0.3, 1.0, 1e22, 5e-324, 1.7976931348623157e308, 2.5, 1 / 3))
    value *= random.choice((1, 1, -1, 3))
    if value in (float("inf"), float("-inf")):
        value = 7.0
    return Sample(random.choice((repr(value), format(value, ".17e"), format(value, ".25e"))), value)


def _text(random: Random) -> Sample:
    value = "".join(random.choice(_PIECES) for _ in range(random.randrange(3)))
    text = json.dumps(value, ensure_ascii=random.random() < 0.5)
    return Sample(text, unicodedata.normalize("NFC", value))


def _instant(random: Random) -> Sample:
    moment = datetime(random.choice((2, 1969, 2026, 2100, 9998)), 3, 4, 9, tzinfo=UTC)
    moment += timedelta(microseconds=random.choice((0, 1, 500_000, 999_999)), hours=random.randrange(4))
    zone = timezone(timedelta(minutes=random.choice((0, 60, -90, 345, 840))))
    text = moment.astimezone(zone).isoformat(timespec=random.choice(("auto", "microseconds")))
    return Sample(json.dumps(text.replace("+00:00", random.choice(("Z", "+00:00")))), moment)


def _date(random: Random) -> Sample:
    some = date(2026, 1, 1 + random.randrange(28))
    value = random.choice((date(1, 1, 1), date(2024, 2, 29), date(9999, 12, 31), some))
    return Sample(json.dumps(value.isoformat()), value)


def _time(random: Random) -> Sample:
    value = time(random.randrange(24), random.choice((0, 30)), 0, random.choice((0, 1)))
    text = value.isoformat(timespec=random.choice(("auto", "microseconds")))
    if random.random() < 0.5:
        return Sample(json.dumps(text), ("naive", value))
    minutes = random.choice((0, 60, -60))
    moment = datetime.combine(_EPOCH, value.replace(tzinfo=timezone(timedelta(minutes=minutes))))
    offset = {0: "Z", 60: "+01:00", -60: "-01:00"}[minutes]
    return Sample(json.dumps(text + offset), ("offset", moment))


def _duration(random: Random) -> Sample:
    seconds = random.choice((0, 60, 90, 3600, 86_400, 90_000))
    spelt = [f"PT{seconds}S", f"P0DT{seconds}S", f"PT{seconds}.000000S"]
    if seconds % 3600 == 0:
        spelt.append(f"PT{seconds // 3600}H")
    sign = random.choice(("", "-"))
    return Sample(json.dumps(sign + random.choice(spelt)), (-1 if sign else 1) * seconds)


def _uuid(random: Random) -> Sample:
    value = UUID(int=random.randrange(40) * 2**100 + 7)
    return Sample(json.dumps(random.choice((str(value), str(value).upper(), value.hex, value.urn))), value)


def _bytes(random: Random) -> Sample:
    value = bytes(random.choice((0, 255, 65, 128)) for _ in range(random.randrange(4)))
    return Sample(json.dumps(base64.b64encode(value).decode("ascii")), value)


def _flag(random: Random) -> Sample:
    value = random.choice((True, False, None))
    return Sample(json.dumps(value), (value,))


def _list(random: Random) -> Sample:
    items = [_integer(random) for _ in range(random.randrange(4))]
    items = [random.choice((Sample("1", 1), Sample("1.0", 1), Sample("2.0", 2), Sample("2", 2), one)) for one in items]
    return Sample(f"[{','.join(one.text for one in items)}]", tuple(one.reference for one in items))


def _set(random: Random) -> Sample:
    values = [random.randrange(5) for _ in range(random.randrange(5))]
    return Sample(json.dumps(values), frozenset(values))


def _mapping(random: Random) -> Sample:
    names = random.sample(("a", "é", "1", "", "a.b"), random.randrange(3))
    members = [(name, random.randrange(3)) for name in names]
    text = ", ".join(f"{json.dumps(name)}: {value}{random.choice(('', '.0'))}" for name, value in members)
    return Sample("{" + text + "}", frozenset(members))


_DEFAULTS = (("nights", 1), ("paid", False))


def _model(random: Random) -> Sample:
    whole: dict[str, Any] = {"city": random.choice(("Oslo", "oslo", "Rome"))}
    whole |= {"nights": random.choice((1, 2, 3)), "paid": random.random() < 0.5}
    left_out = random.random() < 0.5
    told = {name: one for name, one in whole.items() if not (left_out and (name, one) in _DEFAULTS)}
    members = list(told.items())
    random.shuffle(members)
    return Sample(json.dumps(dict(members)), tuple(whole.values()))


def _anything(random: Random, depth: int = 0) -> Sample:
    kind = random.randrange(6 if depth < 2 else 4)
    if kind < 4:
        word = random.choice(("1", "true", "null", "", "[]"))
        number = random.choice(("1", "1.0", "1e0"))
        plain = (("text", word), ("number", 1), ("flag", True), ("nothing",))
        return Sample((json.dumps(word), number, "true", "null")[kind], plain[kind])
    inside = [_anything(random, depth + 1) for _ in range(random.randrange(3))]
    if kind == 4:
        return Sample(f"[{','.join(one.text for one in inside)}]", ("list", *(one.reference for one in inside)))
    members = list(zip("ab", inside, strict=False))
    reference = ("object", frozenset((name, one.reference) for name, one in members))
    random.shuffle(members)
    return Sample("{" + ",".join(f'"{name}":{one.text}' for name, one in members) + "}", reference)


KINDS: Mapping[str, tuple[Any, Callable[[Random], Sample]]] = {
    "integer": (int, _integer),
    "decimal": (Decimal, _decimal),
    "float": (float, _float),
    "text": (str, _text),
    "instant": (datetime, _instant),
    "date": (date, _date),
    "time": (time, _time),
    "duration": (timedelta, _duration),
    "uuid": (UUID, _uuid),
    "bytes": (bytes, _bytes),
    "flag": (bool | None, _flag),
    "list": (list[int], _list),
    "set": (set[int], _set),
    "mapping": (dict[str, int], _mapping),
    "model": (Stop, _model),
    "anything": (Any, _anything),
}


def samples(kind: str, seed: int = 6) -> list[Sample]:
    """`SAMPLES` samples of one kind; the same for the same seed."""
    random = Random(f"{kind}-{seed}")  # noqa: S311 - it is to be the same each time
    return [KINDS[kind][1](random) for _ in range(SAMPLES)]
