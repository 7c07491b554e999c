"""What a number means to the parameter that it is for: the step between exact JSON and pydantic.

pydantic reads JSON numbers through a binary float and knows no 1.0 for an integer. So the tree is walked beside
pydantic's own core schema, and each number is written the way its place wants it: 1.0 for an integer becomes 1, one for
a Decimal becomes text with every digit. It only reads the schema. Where it cannot tell, it leaves things as they are or
finds a flaw; it never changes a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from counterfoil.exact_json import MAX_DIGITS, NOT_FINITE, TOO_MANY_DIGITS, TOO_PRECISE, Json, Number
from counterfoil.identity import Path
from counterfoil.problems import of_kinds

Schema: TypeAlias = Mapping[str, Any]

_INSIDE: Final = {
    "call": "arguments_schema",
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
_MAPPINGS: Final = ("dict", "ordered-dict", "frozen-dict", "counter")
_OBJECTS: Final = ("model-fields", "typed-dict", "dataclass-args", *_MAPPINGS)
_LISTS: Final = ("list", "set", "frozenset", "deque", "generator", "tuple", "named-tuple", "arguments")
_SIMPLE: Final = (
    *("any", "bool", "bytes", "date", "datetime", "decimal", "definition-ref", "enum", "float", "int", "literal"),
    *("none", "str", "tagged-union", "time", "timedelta", "union", "uuid"),
)
_KNOWN: Final = frozenset((*_OBJECTS, *_LISTS, *_SIMPLE))
_BEFORE: Final = frozenset(("function-before", "function-wrap"))
_STEADY: Final = frozenset((*_INSIDE, *_OBJECTS, *_LISTS, *_SIMPLE)) - _BEFORE - {"function-after", "call"}
_WHOLE: Final = frozenset(("int", "literal", "enum"))
_NO_TEXT: Final = frozenset(("int", "float", "bool", "none"))
_NO_NUMBER: Final = frozenset(
    ("bool", "str", "bytes", "none", "uuid", "date", "datetime", "time", "timedelta", "url", "multi-host-url")
)
_DATES: Final = frozenset(("date", "datetime", "none"))
_NO_BOOL: Final = frozenset((*_NO_NUMBER, "int", "float", "decimal")) - {"bool"}
_SECONDS: Final = re.compile(r"\s*[-+]?[0-9.]+\s*")


@dataclass(frozen=True, slots=True)
class Fitting:
    """Fits trees to one core schema.

    `steady` is False where reading a value again may change it (validators). `strict` is False where somebody's own
    function sees a value first: what it returns is then a Python value, which pydantic's strict mode would not take
    for a date-time or a list. There the fitting itself refuses values of another kind. `secrets` are never shown.
    """

    schema: Schema
    secrets: Collection[str] = ()
    definitions: Mapping[str, Schema] = field(init=False)
    members: Mapping[int, Mapping[str, Schema]] = field(init=False)
    needed: Mapping[int, frozenset[str]] = field(init=False)
    steady: bool = field(init=False)
    strict: bool = field(init=False)

    def __post_init__(self) -> None:
        nodes = tuple(_nodes(self.schema))
        object.__setattr__(self, "definitions", {node["ref"]: node for node in nodes if "ref" in node})
        objects = [node for node in nodes if node["type"] in _OBJECTS]
        object.__setattr__(self, "members", {id(node): _by_name(node) for node in objects})
        object.__setattr__(self, "needed", {id(node): _needed(node) for node in objects})
        aliases = [part.get("validation_alias") for node in nodes for part in _members(node)]
        steady = all(node["type"] in _STEADY for node in nodes) and not any(isinstance(told, list) for told in aliases)
        object.__setattr__(self, "steady", steady)
        object.__setattr__(self, "strict", all(node["type"] not in _BEFORE for node in nodes))

    def fit(self, tree: Json) -> tuple[Json, list[tuple[Path, str]]]:
        """The tree as pydantic should read it, and the flaws that pydantic would not see, by place."""
        work = _Work(self)
        return work.fit(self.schema, tree, ()), work.flaws


@dataclass(slots=True)
class _Work:
    whole: Fitting
    flaws: list[tuple[Path, str]] = field(default_factory=list)

    def fit(self, schema: Schema, tree: Json, path: Path, *, under: bool = False) -> Json:
        """`under` is True inside a model whose own function sees the whole of it first."""
        match tree:
            case Number():
                return self._number(schema, tree, path, under)
            case bool() | str():
                self._scalar(schema, tree, path)
                return tree
            case dict():
                return self._object(schema, tree, path, under)
            case list():
                return self._list(schema, tree, path, under)
            case None:
                return None

    def _number(self, schema: Schema, number: Number, path: Path, under: bool) -> Json:
        kinds, seen_first = self._kinds(schema)
        exact = number.exact
        if exact is None or (exact.adjusted() > MAX_DIGITS and kinds & _WHOLE):
            self.flaws.append((path, NOT_FINITE if exact is None else TOO_MANY_DIGITS))
            return number
        if not self.whole.strict and not seen_first and kinds <= _NO_NUMBER:
            self._refuse(kinds, number, path)
        if kinds & _WHOLE and exact == exact.to_integral_value():
            return Number(str(int(exact)))
        if "decimal" not in kinds:
            if kinds - _KNOWN:
                self._unseen(number, path)
            # Some releases of pydantic take no integer beyond 64 bits for a float.
            nearest = float(exact)
            return Number(repr(nearest)) if kinds <= {"float", "none"} and math.isfinite(nearest) else number
        if kinds & {"str", "any"}:
            # A text would be taken as text here, and a number goes through a float: refuse what that cannot hold.
            self._unseen(number, path)
            return number
        # Somebody's own function expects the number of JSON, as long as that is the same number.
        return number if (seen_first or under) and number.lossless else number.text

    def _unseen(self, tree: Json, path: Path) -> None:
        """Refuse what would lose digits on its way through pydantic."""
        match tree:
            case Number() if not tree.lossless:
                self.flaws.append((path, TOO_PRECISE))
            case list():
                for place, item in enumerate(tree):
                    self._unseen(item, (*path, place))
            case dict():
                for name, item in tree.items():
                    self._unseen(item, (*path, name))
            case _:
                return

    def _scalar(self, schema: Schema, value: bool | str, path: Path) -> None:
        kinds, seen_first = self._kinds(schema)
        if seen_first:
            return
        if isinstance(value, bool):
            if not self.whole.strict and kinds <= _NO_BOOL:
                self._refuse(kinds, value, path)
            elif kinds <= {"literal", "enum", "none"} and not self._lists_bool(schema):
                self.flaws.append((path, f"must be one of the listed values, not {str(value).lower()}"))
        elif (not self.whole.strict and kinds <= _NO_TEXT) or (kinds <= _DATES and _SECONDS.fullmatch(value)):
            self._refuse(kinds, value, path)

    def _refuse(self, kinds: set[str], value: Json, path: Path) -> None:
        hidden = bool(path) and path[0] in self.whole.secrets
        self.flaws.append((path, of_kinds(sorted(kinds), value, hidden=hidden)))

    def _kinds(self, schema: Schema) -> tuple[set[str], bool]:
        """The core types that a value may have here, and whether somebody's own function sees it first."""
        leaves = list(self._leaves(schema))
        return {leaf["type"] for leaf, _ in leaves}, any(seen_first for _, seen_first in leaves)

    def _lists_bool(self, schema: Schema) -> bool:
        return any(_holds_bool(leaf) for leaf, _ in self._leaves(schema))

    def _object(self, schema: Schema, tree: dict[str, Json], path: Path, under: bool) -> Json:
        leaf, seen_first = self._object_leaf(schema, tree)
        if leaf is None:
            if self._kinds(schema)[0] - _KNOWN:
                self._unseen(tree, path)
            return tree
        known = self.whole.members[id(leaf)]
        others = leaf.get("values_schema" if leaf["type"] in _MAPPINGS else "extras_schema")
        under = under or seen_first
        fitted: dict[str, Json] = {}
        for name, item in tree.items():
            inside = known.get(name, others)
            fitted[name] = item if inside is None else self.fit(inside, item, (*path, name), under=under)
        return fitted

    def _list(self, schema: Schema, tree: list[Json], path: Path, under: bool) -> Json:
        leaves = [(leaf, seen_first) for leaf, seen_first in self._leaves(schema) if leaf["type"] in _LISTS]
        if not leaves:
            if self._kinds(schema)[0] - _KNOWN:
                self._unseen(tree, path)
            return tree
        leaf, seen_first = next((one for one in leaves if _takes_length(one[0], len(tree))), leaves[0])
        fitted = []
        for place, item in enumerate(tree):
            inside = _at(leaf, place)
            told = item if inside is None else self.fit(inside, item, (*path, place), under=under or seen_first)
            fitted.append(told)
        return fitted

    def _leaves(self, schema: Schema, seen_first: bool = False) -> Iterator[tuple[Schema, bool]]:
        """What a place may hold, wrappers and unions opened; True for what somebody's own function sees first."""
        kind = schema["type"]
        if kind == "nullable":
            yield {"type": "none"}, seen_first
        if kind in _INSIDE:
            yield from self._leaves(schema[_INSIDE[kind]], seen_first or kind in _BEFORE)
        elif kind == "definition-ref":
            yield from self._leaves(self.whole.definitions[schema["schema_ref"]], seen_first)
        elif kind in ("union", "tagged-union"):
            for choice in _choices(schema):
                yield from self._leaves(choice, seen_first)
        else:
            yield schema, seen_first

    def _object_leaf(self, schema: Schema, tree: dict[str, Json]) -> tuple[Schema | None, bool]:
        tagged = self._tagged(schema, tree)
        leaves = [one for one in self._leaves(tagged or schema) if one[0]["type"] in _OBJECTS]
        for leaf, seen_first in leaves:
            if leaf["type"] in _MAPPINGS or self._takes_names(leaf, tree):
                return leaf, seen_first
        return leaves[0] if leaves else (None, False)

    def _takes_names(self, leaf: Schema, tree: dict[str, Json]) -> bool:
        known = self.whole.members[id(leaf)]
        return all(name in known for name in tree) and all(name in tree for name in self.whole.needed[id(leaf)])

    def _tagged(self, schema: Schema, tree: dict[str, Json]) -> Schema | None:
        kind = schema["type"]
        if kind in _INSIDE:
            return self._tagged(schema[_INSIDE[kind]], tree)
        if kind == "definition-ref":
            return self._tagged(self.whole.definitions[schema["schema_ref"]], tree)
        if kind != "tagged-union" or not isinstance(schema["discriminator"], str):
            return None
        tag = tree.get(schema["discriminator"])
        told = tag.exact if isinstance(tag, Number) else tag if isinstance(tag, str | bool) else None
        choice: Schema | None = schema["choices"].get(told)
        return choice


# ---------------------------------------------------------------- reading core schemas


def _nodes(schema: Any) -> Iterator[Schema]:
    """Every node of a core schema that a value can meet; `serialization` and metadata are none."""
    if not isinstance(schema, Mapping) or "type" not in schema:
        return
    yield schema
    if schema["type"] == "call":
        yield from _nodes(schema["arguments_schema"])
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
    if schema["type"] == "arguments":
        fields = schema["arguments_schema"]
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


def _needed(schema: Schema) -> frozenset[str]:
    return frozenset(
        member.get("validation_alias", member["name"])
        for member in _members(schema)
        if member["schema"]["type"] != "default"
        and member.get("required", True)
        and not isinstance(member.get("validation_alias"), list)
    )


def _takes_length(schema: Schema, length: int) -> bool:
    if schema["type"] == "tuple" and schema.get("variadic_item_index") is None:
        return len(schema["items_schema"]) == length
    members = len(list(_members(schema)))
    return schema["type"] not in ("named-tuple", "arguments") or members == length


def _at(schema: Schema, place: int) -> Schema | None:
    inside = schema.get("items_schema")
    if schema["type"] in ("named-tuple", "arguments"):
        inside = [member["schema"] for member in _members(schema)]
    if not isinstance(inside, list):
        return inside
    many = schema.get("variadic_item_index")
    place = place if many is None else min(place, many)
    return inside[place] if place < len(inside) else None


def _holds_bool(schema: Schema) -> bool:
    expected = schema.get("expected") or [member.value for member in schema.get("members", ())]
    return any(isinstance(value, bool) for value in expected)
