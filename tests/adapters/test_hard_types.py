"""Strict schemas of types that are hard to say, judged by the SDKs' own makers of strict schemas and by a validator."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import pytest
from agents.strict_schema import ensure_strict_json_schema
from anthropic import transform_schema
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field

from counterfoil import ALL_ARGUMENTS, Executor, UsageError, tool
from counterfoil.adapters import anthropic, openai
from counterfoil.adapters.strict_schema import ANTHROPIC, OPENAI, exact
from counterfoil.tool import AnyTool


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    ONE = 1
    B = "b"


class Inner(BaseModel):
    """A part."""

    a: int = 3
    b: str | None = None


class Nested(BaseModel):
    inner: Inner
    more: list[Inner] = []
    perhaps: Inner | None = None


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


class Branch(BaseModel):
    name: str
    below: list[Branch] = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


@dataclass
class Point:
    x: int
    y: int = 0


# Name: the type, the value as a model writes it for OpenAI, what the function gets.
TYPES: Final[dict[str, tuple[Any, Any, Any]]] = {
    "nested": (
        Nested,
        {"inner": {"a": None, "b": None}, "more": None, "perhaps": {"a": 4, "b": "q"}},
        Nested(inner=Inner(), perhaps=Inner(a=4, b="q")),
    ),
    "union": (int | str, "ten", "ten"),
    "models": (Cat | Dog, {"kind": "cat", "lives": None}, Cat(kind="cat")),
    "tagged": (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "dog"}, Dog(kind="dog")),
    "enum": (Colour, "blue", Colour.BLUE),
    "enum_of_numbers": (Level, 2, Level.HIGH),
    "enum_of_both": (Mixed, "b", Mixed.B),
    "literal": (Literal["a", 1, None], None, None),
    "one_literal": (Literal["a"], "a", "a"),
    "decimal": (Decimal, "1.50", Decimal("1.50")),
    "bounded_decimal": (Annotated[Decimal, Field(gt=0, decimal_places=2)], "1.50", Decimal("1.50")),
    "instant": (datetime, "2026-11-30T10:00:00Z", datetime(2026, 11, 30, 10, tzinfo=UTC)),
    "day": (date, "2026-11-30", date(2026, 11, 30)),
    "clock": (time, "10:30:00", time(10, 30)),
    "span": (timedelta, "PT90S", timedelta(seconds=90)),
    "uuid": (UUID, "12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
    "bounded": (Annotated[int, Field(ge=1, le=10, multiple_of=2)], 4, 4),
    "short": (Annotated[str, Field(min_length=2, max_length=5, pattern="^[a-z]+$")], "abc", "abc"),
    "few": (Annotated[list[int], Field(min_length=2, max_length=3)], [1, 2], [1, 2]),
    "set": (set[int], [1, 2], {1, 2}),
    "many": (tuple[int, ...], [1, 2], (1, 2)),
    "dataclass": (Point, {"x": 1, "y": None}, Point(1)),
    "maybe": (int | None, None, None),
    "flag": (bool, True, True),
}
RECURSIVE: Final = (Branch, {"name": "a", "below": [{"name": "b", "below": None}]})
# Name: the type, a value, what is said of it where strictness is demanded.
UNSAYABLE: Final[dict[str, tuple[Any, Any, str]]] = {
    "counts": (dict[str, int], {"a": 1}, "x takes members of any name"),
    "parts": (list[dict[str, Inner]], [{"a": {"a": 1}}], r"x\[\] takes members of any name"),
    "pair": (tuple[int, str], [1, "a"], "x is a tuple"),
    "anything": (Any, {"a": [1]}, "x can be anything"),
    "open": (Open, {"z": 1}, "Open takes members of any name"),
}


def told(x: Any) -> str:
    """What a value is, and of which type."""
    return f"{type(x).__name__} {x}"


def taking(name: str, annotation: Any) -> AnyTool:
    """A tool with one argument of that type, which says what it got."""

    def take(x: Any) -> str:
        """Take one thing."""
        return told(x)

    take.__annotations__["x"] = annotation
    made: AnyTool = tool(key=ALL_ARGUMENTS, name=name)(take)
    return made


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    ledger = tmp_path_factory.mktemp("types") / "ledger.db"
    hard = {**{name: one[0] for name, one in (TYPES | UNSAYABLE).items()}, "recursive": RECURSIVE[0]}
    with Executor(f"sqlite:///{ledger}", [taking(name, annotation) for name, annotation in hard.items()]) as made:
        yield made


def given(executor: Executor, name: str, value: Any) -> tuple[Any, Any]:
    """What the function got through each of the APIs, the nulls that only OpenAI's dialect makes left to it."""
    written = json.dumps({"x": value})
    call = {"type": "function_call", "call_id": "c", "name": name, "arguments": written}
    use = {"type": "tool_use", "id": "c", "name": name, "input": without_nulls(value)}
    use["input"] = {"x": use["input"]}
    return (
        openai.answer(executor, call, task="o").observations[0].value,
        anthropic.answer(executor, use, task="a").observations[0].value,
    )


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", TYPES)
def test_a_hard_type_is_strict_and_arrives(name: str, executor: Executor) -> None:
    """The makers of strict schemas of the two SDKs find nothing to change; the schema takes the value and nothing
    beside it; and the function gets what was meant."""
    _, value, got = TYPES[name]
    plain = executor.tools[name].arguments.schema()
    for_openai, for_anthropic = exact(plain, OPENAI), exact(plain, ANTHROPIC)
    assert ensure_strict_json_schema(copy.deepcopy(for_openai)) == for_openai
    assert untyped(transform_schema(copy.deepcopy(for_anthropic))) == untyped(for_anthropic)
    for schema, sent in ((for_openai, value), (for_anthropic, without_nulls(value))):
        Draft202012Validator.check_schema(schema)
        judge = Draft202012Validator(schema)
        assert judge.is_valid({"x": sent})
        assert not judge.is_valid({"x": sent, "y": 1})
        assert not judge.is_valid({})
        assert all("type" in node or "anyOf" in node or "$ref" in node for node in described(schema))
    assert given(executor, name, value) == (told(got), told(got))


def untyped(node: Any) -> Any:
    """Anthropic's own leaves the type out beside listed values; the API takes both."""
    if isinstance(node, list):
        return [untyped(one) for one in node]
    if not isinstance(node, dict):
        return node
    listed = "enum" in node or "const" in node
    return {word: untyped(one) for word, one in node.items() if not (listed and word == "type")}


def described(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node that describes a value."""
    yield schema
    members = (*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ()))
    for one in (*members, *([schema["items"]] if "items" in schema else [])):
        yield from described(one)


def test_a_type_that_contains_itself(executor: Executor, tmp_path: Path) -> None:
    """OpenAI takes it; for Anthropic it is sent as it is, or refused where strictness is demanded."""
    plain = executor.tools["recursive"].arguments.schema()
    assert Draft202012Validator(exact(plain, OPENAI)).is_valid({"x": RECURSIVE[1]})
    got = told(Branch(name="a", below=[Branch(name="b")]))
    assert given(executor, "recursive", RECURSIVE[1]) == (got, got)
    with Executor(f"sqlite:///{tmp_path}/ledger.db", [taking("recursive", Branch)]) as one:
        assert [shown.get("strict", False) for shown in anthropic.tools(one)] == [False, True]
        with pytest.raises(
            UsageError, match="recursive cannot have a strict schema: an argument contains itself; give"
        ):
            anthropic.tools(one, strict=True)


@pytest.mark.parametrize("name", UNSAYABLE)
def test_what_cannot_be_strict_is_sent_as_it_is_or_refused(name: str, executor: Executor, tmp_path: Path) -> None:
    """Without a demand its own schema goes out, not as strict, and calls arrive; with one the tool, the member and the
    way to mend it are named, before anything is sent."""
    annotation, value, says = UNSAYABLE[name]
    made = taking(name, annotation)
    with Executor(f"sqlite:///{tmp_path}/ledger.db", [made]) as one:
        for tools in (openai.tools, openai.chat_tools, anthropic.tools):
            with pytest.raises(UsageError, match=f"the tool {name} cannot have a strict schema: {says}.*strict="):
                tools(one, strict=True)
        assert openai.tools(one)[0] == {"type": "function", **made.schema(), "strict": False}
        assert anthropic.tools(one)[0]["input_schema"] == made.arguments.schema()
        assert "strict" not in anthropic.tools(one)[0]
        assert [shown["strict"] for shown in openai.tools(one, strict=False)] == [False, False]
    assert Draft202012Validator(made.arguments.schema()).is_valid({"x": value})
    first, second = given(executor, name, value)
    assert first == second


def test_a_request_to_anthropic_has_room_for_so_many(tmp_path: Path) -> None:
    """Beyond 20 strict tools, 24 optional arguments or 16 unions the API refuses the whole request: those without room
    are not strict, and where it is demanded the first of them is named."""

    def optional(a: int = 1, b: int = 2, c: int = 3, d: int = 4, e: int = 5) -> None:
        """Take what there is."""

    def union(a: int | str, b: int | str, c: int | str) -> None:
        """Take either."""

    crowds = (
        ([taking(f"one_{number}", int) for number in range(25)], 19),
        ([tool(key=ALL_ARGUMENTS, name=f"o_{number}")(optional) for number in range(8)], 4),
        ([tool(key=ALL_ARGUMENTS, name=f"u_{number}")(union) for number in range(8)], 5),
    )
    for number, (crowd, most) in enumerate(crowds):
        with Executor(f"sqlite:///{tmp_path / str(number)}.db", [*crowd]) as executor:
            shown = [one.get("strict", False) for one in anthropic.tools(executor)]
            assert shown[: len(crowd)] == [place < most + (number == 0) for place in range(len(crowd))]
            with pytest.raises(UsageError, match=f"the tool {crowd[most + (number == 0)].name} is one too many"):
                anthropic.tools(executor, strict=True)
            assert all(one["strict"] for one in openai.tools(executor))


def test_what_is_too_much_for_openai(tmp_path: Path) -> None:
    """Members, levels, listed values and the letters of all of them: each limit is said with its number."""
    deep: Any = int
    for level in range(10):
        deep = type(f"L{level}", (BaseModel,), {"__annotations__": {"inner": deep}})
    wide = type("Wide", (BaseModel,), {"__annotations__": {f"m{number}": int for number in range(5_000)}})
    long = type("Long", (BaseModel,), {"__annotations__": {"m" * 60_000 + str(number): int for number in range(2)}})
    for annotation, says in (
        (deep, "11 levels of objects; at most 10"),
        (wide, "5001 members; at most 5000"),
        (Literal[tuple(range(1_001))], "lists 1001 values; at most 1000"),
        (Literal[tuple("v" * 60 + str(number) for number in range(251))], "more than 250 values of together"),
        (long, "characters of names and values; at most 120000"),
    ):
        with Executor(f"sqlite:///{tmp_path}/{len(says)}.db", [taking("large", annotation)]) as executor:
            assert openai.tools(executor)[0]["strict"] is False
            with pytest.raises(UsageError, match=f"the tool large .*{says}"):
                openai.tools(executor, strict=True)


@pytest.mark.parametrize(
    ("annotation", "says"),
    [
        (Annotated[str, Field(pattern="^(?=a)")], "'x' cannot be read from JSON; .*look-around"),
        (Annotated[str, Field(pattern="(")], "'x' cannot be read from JSON; .*unclosed group"),
        (type, "'x' cannot be described to a model; use plain data"),
        (complex, None),
    ],
)
def test_a_type_that_no_model_can_write_is_refused_where_it_is_declared(annotation: Any, says: str | None) -> None:
    """At `@tool`, with the parameter, the reason in one line and what to use instead."""
    if says is None:
        assert taking("odd", annotation).arguments.schema()["properties"]["x"] == {"type": "string"}
        return
    with pytest.raises(UsageError, match=says) as refused:
        taking("odd", annotation)
    assert "\n" not in str(refused.value)
