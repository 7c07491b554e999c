"""How much of strict schemas a model's API takes: in one schema, and in one request.

Owns the numbers, as the two APIs document them, and the counting. A schema beyond them is refused by the API, with the
whole request; so it is not sent as a strict one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

Schema = dict[str, Any]

OPENAI_MEMBERS: Final = 5_000
OPENAI_LEVELS: Final = 10
OPENAI_VALUES: Final = 1_000
OPENAI_CHARACTERS: Final = 120_000
OPENAI_LONG_ENUM: Final = 250
OPENAI_LONG_ENUM_CHARACTERS: Final = 15_000

ANTHROPIC_TOOLS: Final = 20
ANTHROPIC_OPTIONAL: Final = 24
ANTHROPIC_UNIONS: Final = 16
_NODES: Final = 10_000


def beyond_openai(schema: Schema) -> str | None:
    """What is too much in a strict schema for OpenAI, None where nothing is.

    Example:
        >>> beyond_openai({"type": "object", "properties": {"n": {"type": "integer"}}}) is None
        True
        >>> beyond_openai({"type": "string", "enum": [str(number) for number in range(1001)]})
        'lists 1001 values; at most 1000 can be listed'
    """
    members, values, characters = 0, 0, 0
    for node in _written(schema):
        names = [*node.get("properties", ()), *node.get("$defs", ())]
        listed = [str(one) for one in (*node.get("enum", ()), *((node["const"],) if "const" in node else ()))]
        members += len(node.get("properties", ()))
        values += len(listed)
        characters += sum(map(len, names + listed))
        if len(listed) > OPENAI_LONG_ENUM and sum(map(len, listed)) > OPENAI_LONG_ENUM_CHARACTERS:
            return f"lists more than {OPENAI_LONG_ENUM} values of together {sum(map(len, listed))} characters"
    levels = _levels(schema, schema, frozenset())
    for count, most, says in (
        (members, OPENAI_MEMBERS, "has {} members; at most {} can be described"),
        (values, OPENAI_VALUES, "lists {} values; at most {} can be listed"),
        (characters, OPENAI_CHARACTERS, "has {} characters of names and values; at most {} are taken"),
        (levels, OPENAI_LEVELS, "has {} levels of objects; at most {} are taken"),
    ):
        if count > most:
            return says.format(count, most)
    return None


@dataclass
class Room:
    """What is left in one request to Anthropic."""

    tools: int = ANTHROPIC_TOOLS
    optional: int = ANTHROPIC_OPTIONAL
    unions: int = ANTHROPIC_UNIONS

    def takes(self, schema: Schema) -> bool:
        """Take the room of a strict schema, where there is room.

        Example:
            >>> room = Room(tools=1)
            >>> room.takes({"type": "object", "properties": {}}), room.takes({"type": "object", "properties": {}})
            (True, False)
        """
        nodes = list(islice(_expanded(schema, schema), _NODES))
        optional = sum(len(one.get("properties", {}).keys() - set(one.get("required", ()))) for one in nodes)
        unions = sum(len(one.get("anyOf", ())) > 1 for one in nodes)
        if len(nodes) == _NODES or self.tools < 1 or optional > self.optional or unions > self.unions:
            return False
        self.tools, self.optional, self.unions = self.tools - 1, self.optional - optional, self.unions - unions
        return True


# ---------------------------------------------------------------- details


def _inside(node: Schema) -> Iterator[Schema]:
    yield from node.get("properties", {}).values()
    yield from node.get("anyOf", ())
    if "items" in node:
        yield node["items"]


def _written(node: Schema) -> Iterator[Schema]:
    """Every node, once."""
    yield node
    for one in (*_inside(node), *node.get("$defs", {}).values()):
        yield from _written(one)


def _expanded(node: Schema, root: Schema) -> Iterator[Schema]:
    """Every node, as often as it is meant. For schemas that do not contain themselves."""
    if "$ref" in node:
        yield from _expanded(_target(node, root), root)
        return
    yield node
    for one in _inside(node):
        yield from _expanded(one, root)


def _levels(node: Schema, root: Schema, seen: frozenset[str]) -> int:
    """How deep objects stand in each other; a type that contains itself counts once."""
    if "$ref" in node:
        name = str(node["$ref"])
        return 0 if name in seen else _levels(_target(node, root), root, seen | {name})
    deepest = max((_levels(one, root, seen) for one in _inside(node)), default=0)
    return deepest + (node.get("type") == "object")


def _target(node: Schema, root: Schema) -> Schema:
    found: Schema = root.get("$defs", {}).get(str(node["$ref"]).rpartition("/")[2], {})
    return found
