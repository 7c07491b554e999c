"""The tool schemas that the model APIs are given, and the way back from what a strict schema made the model write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from anthropic.types import ToolParam
from openai.types.responses import FunctionToolParam
from pydantic import BaseModel, Field, TypeAdapter

from counterfoil import ALL_ARGUMENTS, Executor, tool
from counterfoil.adapters import anthropic, openai
from counterfoil.adapters.strict_schema import ANTHROPIC, OPENAI, exact, without_added_nulls


class Line(BaseModel):
    """One line of an order."""

    item: str
    count: Annotated[int, Field(gt=0)] = 1


class Node(BaseModel):
    name: str
    below: list[Node] = []


@tool(key=ALL_ARGUMENTS)
def order(
    to: Annotated[str, Field(description="who gets it", max_length=40)],
    lines: list[Line],
    price: Decimal = Decimal("1.50"),
    speed: Literal["slow", "fast"] = "slow",
    gift: bool | None = None,
) -> str:
    """Order goods for a customer."""
    return f"{to} {[(line.item, line.count) for line in lines]} {price} {speed} {gift}"


@tool(key=ALL_ARGUMENTS)
def label(tags: dict[str, str]) -> list[str]:
    """Put labels on the order."""
    return sorted(tags)


@tool(key=ALL_ARGUMENTS)
def plant(tree: Node) -> str:
    """Plant a tree."""
    return tree.name


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[Executor]:
    with Executor(f"sqlite:///{tmp_path / 'ledger.db'}", [order, label, plant]) as made:
        yield made


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every node of a schema that describes a value."""
    if isinstance(schema, dict):
        if schema.keys() & {"type", "anyOf", "$ref", "enum", "const"} and not isinstance(schema.get("type"), dict):
            yield schema
        for inside in schema.values():
            yield from nodes(inside)
    elif isinstance(schema, list):
        for inside in schema:
            yield from nodes(inside)


def test_the_tools_have_the_form_of_each_sdk(executor: Executor) -> None:
    """The SDKs' own types accept them."""
    TypeAdapter(list[FunctionToolParam]).validate_python(openai.tools(executor))
    TypeAdapter(list[ToolParam]).validate_python(anthropic.tools(executor))
    assert [one["function"] for one in openai.chat_tools(executor)] == [
        {word: content for word, content in one.items() if word != "type"} for one in openai.tools(executor)
    ]


def test_what_is_strict(executor: Executor) -> None:
    """All but a dict of free names is strict for OpenAI; for Anthropic a type that contains itself is not either."""
    assert {one["name"]: one["strict"] for one in openai.tools(executor)} == {
        "order": True, "label": False, "plant": True, "check_effect": True,
    }  # fmt: skip
    assert {one["name"]: one.get("strict", False) for one in anthropic.tools(executor)} == {
        "order": True, "label": False, "plant": False, "check_effect": True,
    }  # fmt: skip
    (loose,) = (one for one in openai.tools(executor) if one["name"] == "label")
    assert loose["parameters"] == label.arguments.schema()


def test_openai_requires_every_member_and_takes_null_for_what_may_be_left_out() -> None:
    """Nothing is open, everything is required, no default remains; what cannot be said strictly is said in words."""
    schema = exact(order.arguments.schema(), OPENAI)
    for node in nodes(schema):
        assert "default" not in node
        assert "maxLength" not in node
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
    members = schema["properties"]
    assert members["to"] == {"type": "string", "description": "who gets it (maxLength: 40)"}
    assert {"type": "null"} in members["speed"]["anyOf"]
    assert members["speed"]["description"] == "(default: slow) Null leaves it out."
    assert members["gift"]["anyOf"] == [{"type": "boolean"}, {"type": "null"}]


def test_anthropic_leaves_optional_members_optional() -> None:
    """Nothing is open, what has a default is not required, and constraints become words."""
    schema = exact(order.arguments.schema(), ANTHROPIC)
    assert schema["required"] == ["to", "lines"]
    assert all(node["additionalProperties"] is False for node in nodes(schema) if node.get("type") == "object")
    assert "exclusiveMinimum" not in json.dumps(
        {name: one for name, one in schema.items() if name != "description"}
    ) or (schema["$defs"]["Line"]["properties"]["count"]["description"] == "(default: 1, exclusiveMinimum: 0)")


def test_a_null_that_only_the_strict_schema_made_possible_is_no_argument(executor: Executor) -> None:
    """The defaults hold, at any depth; a null that the tool takes itself stays; and it is the same effect."""
    written = {"to": "Ada", "lines": [{"item": "pen", "count": None}], "price": None, "speed": None, "gift": None}
    call = {"type": "function_call", "call_id": "c1", "name": "order", "arguments": json.dumps(written)}
    seen = openai.answer(executor, {"output": [call]}, task="t").observations[0]
    assert seen.value == "Ada [('pen', 1)] 1.50 slow None"
    plain = executor.call("order", {"to": "Ada", "lines": [{"item": "pen"}]}, task="t")
    assert (plain.code, plain.effect_id) == ("replayed", seen.effect_id)


def test_numbers_keep_their_digits_on_the_way_back() -> None:
    """Taking nulls out rounds nothing, and what is no JSON is left to the executor."""
    schema = order.arguments.schema()
    assert without_added_nulls('{"price": 0.10000000000000000001, "speed": null}', schema) == (
        '{"price":0.10000000000000000001}'
    )
    assert without_added_nulls('{"price": ', schema) == '{"price": '
