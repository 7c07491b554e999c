"""What a number means to the parameter that it is for: the step between exact JSON and pydantic.

pydantic reads JSON numbers through a binary float and knows no 1.0 for an integer. So the tree is walked beside
pydantic's own core schema, and each number is written the way its place wants it: 1.0 for an integer becomes 1, one for
a Decimal becomes text with every digit. It only reads the schema. Where it cannot tell, it leaves things as they are or
finds a flaw; it never changes a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeAlias

from counterfoil.exact_json import MAX_DIGITS, NOT_FINITE, TOO_MANY_DIGITS, Json, Number
from counterfoil.identity import DATE_TIME_PROBLEM, Path

Schema: TypeAlias = Mapping[str, Any]

_INSIDE: Final = {
    "custom-error": "schema",
    "dataclass": "schema",
    "default": "schema",
    "definitions": "schema",
    "function-after": "schema",
    "function-before": "schema",
    "function-wrap": "schema",
    "json-or-python": "json_schema",
    "lax-or-strict": "strict_schema",
    "model": "schema",
    "nullable": "schema",
}
_OBJECTS: Final = ("model-fields", "typed-dict", "dataclass-args", "dict")
_LISTS: Final = ("list", "set", "frozenset", "deque", "generator", "tuple", "named-tuple")
_SIMPLE: Final = (
    *("any", "bool", "bytes", "date", "datetime", "decimal", "definition-ref", "enum", "float", "int", "literal"),
    *("none", "str", "tagged-union", "time", "timedelta", "union", "uuid"),
)
_STEADY: Final = frozenset((*_INSIDE, *_OBJECTS, *_LISTS, *_SIMPLE)) - {
    "function-after",
    "function-before",
    "function-wrap",
}
_SECONDS: Final = re.compile(r"\s*[-+]?[0-9.]+\s*")
_DATE_PROBLEM: Final = "must be a date, for example 2026-03-04"


@dataclass(frozen=True, slots=True)
class Fitting:
    """Fits trees to one core schema. `steady` is False where reading a value again may change it (validators)."""

    schema: Schema
    definitions: Mapping[str, Schema] = field(init=False)
    steady: bool = field(init=False)

    def __post_init__(self) -> None:
        nodes = tuple(_nodes(self.schema))
        object.__setattr__(self, "definitions", {node["ref"]: node for node in nodes if "ref" in node})
        aliases = [part.get("validation_alias") for node in nodes for part in _members(node)]
        steady = all(node["type"] in _STEADY for node in nodes) and not any(isinstance(told, list) for told in aliases)
        object.__setattr__(self, "steady", steady)

    def fit(self, tree: Json) -> tuple[Json, list[tuple[Path, str]]]:
        """The tree as pydantic should read it, and what pydantic would not see: flaws by place."""
        work = _Work(self.definitions)
        return work.fit(self.schema, tree, ()), work.flaws


@dataclass(slots=True)
class _Work:
    definitions: Mapping[str, Schema]
    flaws: list[tuple[Path, str]] = field(default_factory=list)

    def fit(self, schema: Schema, tree: Json, path: Path) -> Json:
        match tree:
            case Number():
                return self._number(schema, tree, path)
            case bool() | str():
                self._scalar(schema, tree, path)
                return tree
            case dict():
                return self._object(schema, tree, path)
            case list():
                return self._list(schema, tree, path)
            case None:
                return None

    def _number(self, schema: Schema, number: Number, path: Path) -> Json:
        kinds = {leaf["type"] for leaf in self._leaves(schema)}
        exact = number.exact
        if exact is None:
            self.flaws.append((path, NOT_FINITE))
            return number
        if kinds & {"int", "literal", "enum"} and exact == exact.to_integral_value():
            if exact.adjusted() > MAX_DIGITS:
                self.flaws.append((path, TOO_MANY_DIGITS))
                return number
            return Number(str(int(exact)))
        if "decimal" not in kinds:
            return number
        if not kinds & {"str", "any"} and not self._has_before(schema):
            return number.text
        # A text would be taken as text here, and a number goes through a float: refuse what a float cannot hold.
        if Decimal(repr(float(exact))) != exact:
            self.flaws.append((path, "has more digits than a number can hold here; write it with at most 15 digits"))
        return number

    def _scalar(self, schema: Schema, value: bool | str, path: Path) -> None:
        leaves = list(self._leaves(schema))
        kinds = {leaf["type"] for leaf in leaves}
        if isinstance(value, bool):
            if kinds and kinds <= {"literal", "enum", "none"} and not any(_holds_bool(leaf) for leaf in leaves):
                self.flaws.append((path, f"must be one of the listed values, not {str(value).lower()}"))
        elif _SECONDS.fullmatch(value) and kinds <= {"datetime", "date", "none"}:
            if "datetime" in kinds:
                self.flaws.append((path, DATE_TIME_PROBLEM))
            elif "date" in kinds:
                self.flaws.append((path, _DATE_PROBLEM))

    def _object(self, schema: Schema, tree: dict[str, Json], path: Path) -> Json:
        leaf = self._fitting_object(schema, tree)
        if leaf is None:
            return tree
        if leaf["type"] == "dict":
            values = leaf.get("values_schema")
            return {name: self.fit(values, item, (*path, name)) if values else item for name, item in tree.items()}
        known = _by_name(leaf)
        extras = leaf.get("extras_schema")
        fitted: dict[str, Json] = {}
        for name, item in tree.items():
            inside = known.get(name, extras)
            fitted[name] = item if inside is None else self.fit(inside, item, (*path, name))
        return fitted

    def _list(self, schema: Schema, tree: list[Json], path: Path) -> Json:
        leaves = [leaf for leaf in self._leaves(schema) if leaf["type"] in _LISTS]
        if not leaves:
            return tree
        leaf = next((leaf for leaf in leaves if _takes_length(leaf, len(tree))), leaves[0])
        fitted = []
        for place, item in enumerate(tree):
            inside = _at(leaf, place)
            fitted.append(item if inside is None else self.fit(inside, item, (*path, place)))
        return fitted

    def _leaves(self, schema: Schema) -> Iterator[Schema]:
        """What a place may hold, with wrappers and unions opened."""
        kind = schema["type"]
        if kind == "nullable":
            yield {"type": "none"}
        if kind in _INSIDE:
            yield from self._leaves(schema[_INSIDE[kind]])
        elif kind == "definition-ref":
            yield from self._leaves(self.definitions[schema["schema_ref"]])
        elif kind in ("union", "tagged-union"):
            for choice in _choices(schema):
                yield from self._leaves(choice)
        else:
            yield schema

    def _fitting_object(self, schema: Schema, tree: dict[str, Json]) -> Schema | None:
        tagged = self._tagged(schema, tree)
        leaves = [leaf for leaf in self._leaves(tagged or schema) if leaf["type"] in _OBJECTS]
        for leaf in leaves:
            if leaf["type"] == "dict" or _takes_names(leaf, set(tree)):
                return leaf
        return leaves[0] if leaves else None

    def _tagged(self, schema: Schema, tree: dict[str, Json]) -> Schema | None:
        kind = schema["type"]
        if kind in _INSIDE:
            return self._tagged(schema[_INSIDE[kind]], tree)
        if kind == "definition-ref":
            return self._tagged(self.definitions[schema["schema_ref"]], tree)
        if kind != "tagged-union" or not isinstance(schema["discriminator"], str):
            return None
        tag = tree.get(schema["discriminator"])
        told = tag.exact if isinstance(tag, Number) else tag if isinstance(tag, str | bool) else None
        choice: Schema | None = schema["choices"].get(told)
        return choice

    def _has_before(self, schema: Schema) -> bool:
        """True where somebody's own function sees the number first and expects a number."""
        kind = schema["type"]
        if kind in ("function-before", "function-wrap"):
            return True
        return kind in _INSIDE and self._has_before(schema[_INSIDE[kind]])


# ---------------------------------------------------------------- reading core schemas


def _nodes(schema: Any) -> Iterator[Schema]:
    """Every node of a core schema that a value can meet; `serialization` and metadata are none."""
    if not isinstance(schema, Mapping) or "type" not in schema:
        return
    yield schema
    for name in ("schema", "json_schema", "strict_schema", "keys_schema", "values_schema", "extras_schema"):
        if not (name == "strict_schema" and schema["type"] != "lax-or-strict"):
            yield from _nodes(schema.get(name))
    inside = schema.get("items_schema")
    for item in inside if isinstance(inside, list) else [inside]:
        yield from _nodes(item)
    for definition in schema.get("definitions", ()):
        yield from _nodes(definition)
    if schema["type"] in ("union", "tagged-union"):
        for choice in _choices(schema):
            yield from _nodes(choice)
    for member in _members(schema):
        yield from _nodes(member["schema"])


def _choices(schema: Schema) -> Iterator[Schema]:
    choices = schema["choices"]
    for choice in choices.values() if isinstance(choices, Mapping) else choices:
        yield choice[0] if isinstance(choice, tuple) else choice


def _members(schema: Schema) -> Iterator[Mapping[str, Any]]:
    fields = schema.get("fields") if schema["type"] in (*_OBJECTS, "named-tuple") else None
    if isinstance(fields, Mapping):
        for name, described in fields.items():
            yield {"name": name, **described}
    else:
        yield from fields or ()


def _by_name(schema: Schema) -> dict[str, Schema]:
    known: dict[str, Schema] = {}
    for member in _members(schema):
        alias = member.get("validation_alias", member["name"])
        paths = alias if isinstance(alias, list) else [[alias]]
        names = [path[0] for path in paths if isinstance(path, list) and len(path) == 1]
        known |= dict.fromkeys([member["name"], *names], member["schema"])
    return known


def _takes_names(schema: Schema, names: set[str]) -> bool:
    needed = {
        member.get("validation_alias", member["name"])
        for member in _members(schema)
        if member["schema"]["type"] != "default"
        and member.get("required", True)
        and not isinstance(member.get("validation_alias"), list)
    }
    return names <= set(_by_name(schema)) and needed <= names


def _takes_length(schema: Schema, length: int) -> bool:
    if schema["type"] == "tuple" and schema.get("variadic_item_index") is None:
        return len(schema["items_schema"]) == length
    return schema["type"] != "named-tuple" or len(schema["fields"]) == length


def _at(schema: Schema, place: int) -> Schema | None:
    inside = schema.get("items_schema")
    if schema["type"] == "named-tuple":
        inside = [member["schema"] for member in _members(schema)]
    if not isinstance(inside, list):
        return inside
    many = schema.get("variadic_item_index")
    place = place if many is None else min(place, many)
    return inside[place] if place < len(inside) else None


def _holds_bool(schema: Schema) -> bool:
    expected = schema.get("expected") or [member.value for member in schema.get("members", ())]
    return any(isinstance(value, bool) for value in expected)
