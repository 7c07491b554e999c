"""Odd input: canonical and the same after a round trip through either database, or refused with a reason. Never two
names for one value, or one name for two."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from outside import Make, World

from counterfoil import ALL_ARGUMENTS, Effect, Found, Policy, Tool, UsageError, tool
from counterfoil.arguments import ARGUMENTS_MAX_BYTES

DEEP = "[" * 1000 + "]" * 1000


def deep_list(depth: int) -> list[Any]:
    """A list in a list in a list."""
    made: list[Any] = []
    for _ in range(depth - 1):
        made = [made]
    return made


def shown(value: Any) -> str:
    """A value as text: every digit of it, but not which class its time zone has."""
    return value.isoformat() if isinstance(value, datetime) else repr(value)


def keep_tool(world: World, annotation: Any) -> Tool[..., Any]:
    """A tool that keeps one argument of a type, and whose look reads it from the ledger."""

    def keep(effect: Effect, x: Any) -> str:
        """Keep one thing. Use it when it is to be kept."""
        world.act(effect)
        return "kept"

    keep.__annotations__["x"] = annotation
    made = tool(key=ALL_ARGUMENTS, policy=Policy(timeout_s=5, grace_s=0, patience_s=0.1))(keep)

    @made.postcondition
    def kept(effect: Effect) -> Found[Any]:
        return Found(shown(effect.arguments["x"]), reference=None)

    return made


ROUND: dict[str, tuple[Any, str, Any]] = {
    "NUL": (str, '{"x": "a\\u0000b"}', "a\x00b"),
    "controls": (str, '{"x": "\\u0001\\u001f\\u007f\\u2028"}', "\x01\x1f\x7f\u2028"),
    "beyond the basic plane": (str, '{"x": "\\ud83d\\ude00"}', "\U0001f600"),
    "a text of 10 kB": (str, json.dumps({"x": "k" * 10_240}), "k" * 10_240),
    "a key of 10 kB": (dict[str, int], json.dumps({"x": {"k" * 10_240: 1}}), {"k" * 10_240: 1}),
    "a key with NUL": (dict[str, int], '{"x": {"a\\u0000": 1}}', {"a\x00": 1}),
    "an empty key": (dict[str, int], '{"x": {"": 1}}', {"": 1}),
    "10^30": (int, f'{{"x": {10**30}}}', 10**30),
    "-10^30 - 1": (int, f'{{"x": {-(10**30) - 1}}}', -(10**30) - 1),
    "10^30 as a decimal": (Decimal, '{"x": 1e30}', Decimal("1e30")),
    "a tiny decimal": (Decimal, '{"x": 1e-400}', Decimal("1e-400")),
    "the year 1": (datetime, '{"x": "0001-01-01T00:00:00+14:00"}', datetime.fromisoformat("0001-01-01T00:00:00+14:00")),
    "the year 9999": (datetime, '{"x": "9999-12-31T23:59:59.999999-12:00"}',
                      datetime.fromisoformat("9999-12-31T23:59:59.999999-12:00")),
    "a depth of 90": (Any, '{"x": ' + "[" * 90 + "]" * 90 + "}", deep_list(90)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUND)
def test_what_is_taken_comes_back_the_same(world: World, executor_of: Make, name: str) -> None:
    """After a lost answer the look, by what the ledger kept, sees the same value; the same call again is the same
    effect, and nothing is sent twice."""
    annotation, text, value = ROUND[name]
    executor = executor_of(keep_tool(world, annotation))
    world.next = ["ack_lost"]
    seen = executor.call("keep", text, task="t")
    assert (seen.code, seen.value) == ("verified", shown(value))
    again = executor.call("keep", {"x": value}, task="t")
    assert (again.code, again.effect_id) == ("replayed", seen.effect_id)
    assert len(world.requests) == len(executor.audit.effects()) == 1


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "bytes that are no UTF-8": (str, b'{"x": "\xff\xfe"}', "not UTF-8"),
    "overlong UTF-8": (str, b'{"x": "\xc0\xaf"}', "not UTF-8"),
    "UTF-16": (str, '{"x": "a"}'.encode("utf-16"), "not UTF-8"),
    "half a surrogate pair": (str, '{"x": "\\ud800"}', "surrogate"),
    "half a surrogate pair, as text": (str, {"x": "\ud800"}, "surrogate"),
    "half a surrogate pair in a key": (dict[str, int], '{"x": {"\\udfff": 1}}', "surrogate"),
    "a depth of 1000": (Any, f'{{"x": {DEEP}}}', "nested too deeply"),
    "a depth of 1000, as a value": (Any, {"x": deep_list(1000)}, "nested too deeply"),
    "a member twice": (Any, '{"x": 1, "x": 1}', "given twice"),
    "a member twice, deep inside": (Any, '{"x": [{"a": 1, "b": {"c": 1, "c": 2}}]}', "given twice"),
    "a member twice, in two escapes": (Any, '{"x": {"a": 1, "\\u0061": 2}}', "given twice"),
    "a member twice, in two Unicode forms": (Any, '{"x": {"\\u00e9": 1, "e\\u0301": 2}}', "one key twice"),
    "5000 digits": (int, '{"x": 1' + "0" * 5000 + "}", "too many digits"),
    "an exponent beyond all bounds": (Decimal, '{"x": 1e999999999999999999999}', "finite"),
    "the year 0": (datetime, '{"x": "0000-01-01T00:00:00Z"}', "must be a date-time"),
    "the year 10000": (datetime, '{"x": "10000-01-01T00:00:00Z"}', "must be a date-time"),
    "no offset": (datetime, '{"x": "2026-03-04T09:00:00"}', "2026-03-04T09:00:00+01:00"),
    "NaN": (float, '{"x": NaN}', "NaN"),
    "too large": (str, json.dumps({"x": "k" * ARGUMENTS_MAX_BYTES}), "too large"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_why(world: World, executor_of: Make, name: str) -> None:
    """Nothing is sent and nothing kept; the answer names the reason and stays short."""
    annotation, raw, reason = REFUSED[name]
    executor = executor_of(keep_tool(world, annotation))
    seen = executor.call("keep", raw, task="t")
    assert (seen.code, reason in seen.text) == ("invalid_arguments", True), seen.text
    assert len(seen.text) < 800
    assert (world.requests, executor.audit.effects()) == ([], [])


ODD_WORDS = ("a\x00b", "a\ud800", "k" * 10_240, "é", "e\u0301", 'a","b', "a:b", " ", "😀", "a\nb")


@pytest.mark.parametrize("place", ["key", "task", "occurrence", "call_id"])
def test_odd_words_of_the_caller_name_what_they_say(world: World, executor_of: Make, place: str) -> None:
    """Keys, tasks, occurrences and call ids with NUL, half a pair, 10 kB and separators: kept as far as a database
    keeps them, refused where they are empty, and different words are different effects, but for one text in two
    Unicode forms."""
    executor = executor_of(keep_tool(world, int))
    ids: list[str | None] = []
    for word in ODD_WORDS:
        given: dict[str, Any] = {"task": "t"} | {place: word}
        if place == "key" and not word.strip():
            with pytest.raises(UsageError, match="key= is empty"):
                executor.call("keep", {"x": 1}, **given)
            continue
        first = executor.call("keep", {"x": 1}, **given)
        assert first.code in ("ok", "replayed"), first.text
        assert executor.call("keep", {"x": 1}, **given).effect_id == first.effect_id
        ids.append(first.effect_id)
    words = 1 if place == "call_id" else len(ODD_WORDS) - 1 - (place == "key")
    assert len(set(ids)) == len(executor.audit.effects()) == len(world.requests) == words
