"""Tool schemas in the strict form that a model's API demands, and the way back from it.

Owns the dialects: what each API takes in a strict schema, what has to become words of the description, and what cannot
be said strictly at all. Nothing is lost by it: whatever the API lets through is validated again by the executor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from counterfoil.adapters.strict_limits import beyond_openai
from counterfoil.errors import UsageError
from counterfoil.exact_json import Json, NotJson, read, write

Schema = dict[str, Any]

_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_STRUCTURE: Final = frozenset(
    ("type", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "allOf", "$ref", "$defs")
)
_SILENT: Final = frozenset({"title", "discriminator", "description"})


LESS: Final = "or leave strict= out"
_KINDS: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_ANYTHING: Final = "can be anything; give it a type"
_NO_SCALAR: Final = "lists values that are neither text nor numbers; use a model"


class Unsayable(Exception):
    """A schema that a dialect cannot say strictly. `place` is the member, "" for all of it; `why` says how to mend."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(f"{place} {why}" if place else f"an argument {why}")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What one API takes.

    Attributes:
        requires_all: every member is required, so that one with a default is left out by null.
        recursion: a schema may contain itself.
        keeps: the constraints that it takes beside the structure.
        formats: the formats of text that it takes.
        items_min: the values of `minItems` that it takes; None: all.
        beyond: what is too much in a schema, None where nothing is.
    """

    requires_all: bool
    recursion: bool
    keeps: frozenset[str]
    formats: frozenset[str]
    items_min: frozenset[int] | None = None
    beyond: Callable[[Schema], str | None] = lambda _: None


OPENAI: Final = Dialect(
    requires_all=True,
    recursion=True,
    keeps=frozenset(
        ("enum", "const", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
         "minItems", "maxItems")
    ),
    formats=_FORMATS,
    beyond=beyond_openai,
)  # fmt: skip
ANTHROPIC: Final = Dialect(
    requires_all=False,
    recursion=False,
    keeps=frozenset({"enum", "const", "minItems"}),
    formats=_FORMATS | {"uri"},
    items_min=frozenset({0, 1}),
)


def exact_or_none(tool: Mapping[str, Any], dialect: Dialect, *, demanded: bool = False) -> Schema | None:
    """The strict schema of a tool's parameters, None where it cannot be said.

    Args:
        tool: name and parameters, as `executor.schemas()` has them.
        demanded: it has to be strict.

    Raises:
        UsageError: it is demanded, and cannot be said.

    Example:
        >>> of_dict = {"type": "object", "properties": {"tags": {"type": "object", "additionalProperties": True}}}
        >>> exact_or_none({"name": "label", "parameters": of_dict}, OPENAI) is None
        True
    """
    try:
        return exact(tool["parameters"], dialect)
    except Unsayable as problem:
        if demanded:
            raise UsageError(f"the tool {tool['name']} cannot have a strict schema: {problem}; {LESS}") from None
        return None


def exact(schema: Schema, dialect: Dialect) -> Schema:
    """The schema in the strict form.

    Raises:
        Unsayable: it cannot be said so, as a dict with free names, `Any` or a tuple; says where, and what to do.

    Example:
        >>> exact({"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}, OPENAI)["required"]
        ['n']
    """
    if not dialect.recursion and _is_recursive(schema):
        raise Unsayable("", "contains itself; give the depth that is meant types of their own")
    made = _strict(schema, dialect, schema, "")
    beyond = dialect.beyond(made)
    if beyond is not None:
        raise Unsayable("", beyond)
    return made


def without_added_nulls(arguments: str | bytes | Mapping[str, Any], schema: Schema) -> str | bytes | Mapping[str, Any]:
    """The arguments without the nulls by which a model leaves a member out that `exact` had to make required.

    A null that the schema itself permits stays. JSON text comes back as text with every number as it was written; what
    is no JSON comes back as it is, for the executor to say so.

    Example:
        >>> without_added_nulls('{"n": null}', {"properties": {"n": {"type": "integer", "default": 1}}})
        '{}'
    """
    if not isinstance(arguments, str):
        return arguments
    try:
        tree = read(arguments)
        return write(_pruned(tree, schema, schema))
    except (NotJson, RecursionError):
        return arguments


# ---------------------------------------------------------------- to the API


def _strict(schema: Any, dialect: Dialect, root: Schema, place: str) -> Schema:
    if not isinstance(schema, dict):
        raise Unsayable(place, _ANYTHING)
    if schema.get("prefixItems"):
        raise Unsayable(place, "is a tuple; use a model with a name for each part")
    made = _shape(schema, dialect, root, place)
    notes = []
    for word, content in schema.items():
        if word in ("enum", "const") and "type" not in schema:
            continue  # stands in the shape already
        if _is_kept(word, content, dialect, place):
            made[word] = content
        elif word not in _STRUCTURE | _SILENT:
            notes.append(f"{word}: {content}")
    said = " ".join(filter(None, (schema.get("description"), f"({', '.join(notes)})" if notes else "")))
    if said:
        made["description"] = said
    if "$defs" in schema:
        made["$defs"] = {name: _strict(inside, dialect, root, name) for name, inside in schema["$defs"].items()}
    return made


def _shape(schema: Schema, dialect: Dialect, root: Schema, place: str) -> Schema:
    """The structure of one node, without its constraints and words."""
    choices = schema.get("anyOf", schema.get("oneOf"))
    together = schema.get("allOf")
    if "$ref" in schema:
        return {"anyOf": [{"$ref": schema["$ref"]}]} if len(schema) > 1 else {"$ref": schema["$ref"]}
    if choices is not None:
        return {"anyOf": [_strict(one, dialect, root, place) for one in choices]}
    if together is not None:
        if len(together) != 1:
            raise Unsayable(place, "has to fit several schemas at once; use one model")
        return {"anyOf": [_strict(together[0], dialect, root, place)]}
    match schema.get("type"):
        case "object":
            return _object(schema, dialect, root, place)
        case "array":
            return {"type": "array", "items": _strict(schema.get("items"), dialect, root, f"{place}[]")}
        case str() as kind:
            return {"type": kind}
        case list() as kinds:
            return {"anyOf": [_strict({**schema, "type": kind}, dialect, root, place) for kind in kinds]}
        case _ if "enum" in schema or "const" in schema:
            return _listed(schema, place)
    raise Unsayable(place, _ANYTHING)


def _listed(schema: Schema, place: str) -> Schema:
    """Values that are listed, without a type: each kind of them gets its own, because an API wants one everywhere."""
    kinds: dict[str, list[Any]] = {}
    for value in schema.get("enum", [schema.get("const")]):
        kind = _KINDS.get(type(value))
        if kind is None:
            raise Unsayable(place, _NO_SCALAR)
        kinds.setdefault(kind, []).append(value)
    made = [{"type": kind} if kind == "null" else {"type": kind, "enum": values} for kind, values in kinds.items()]
    return made[0] if len(made) == 1 else {"anyOf": made}


def _object(schema: Schema, dialect: Dialect, root: Schema, place: str) -> Schema:
    members = schema.get("properties")
    free = schema.get("additionalProperties") not in (None, False) or schema.get("patternProperties")
    if free or (members is None and "properties" not in schema):
        raise Unsayable(place, "takes members of any name; use a model, or a list of models with a name and a value")
    required = list(schema.get("required", ()))
    made: Schema = {"type": "object", "properties": {}, "additionalProperties": False}
    for name, inside in (members or {}).items():
        shown = _strict(inside, dialect, root, f"{place}.{name}" if place else name)
        if dialect.requires_all and name not in required and not _takes_null(inside, root):
            shown = _or_null(shown)
        made["properties"][name] = shown
    if dialect.requires_all:
        made["required"] = list(made["properties"])
    elif required:
        made["required"] = required
    return made


def _or_null(shown: Schema) -> Schema:
    words = shown.pop("description", "")
    note = "Null leaves it out."
    return {"anyOf": [shown, {"type": "null"}], "description": f"{words} {note}".strip()}


def _is_kept(word: str, content: Any, dialect: Dialect, place: str) -> bool:
    if word == "format":
        return content in dialect.formats
    if word not in dialect.keeps:
        return False
    if word == "minItems":
        return dialect.items_min is None or content in dialect.items_min
    if word in ("enum", "const"):
        values = content if word == "enum" else [content]
        if any(isinstance(value, dict | list) for value in values):
            raise Unsayable(place, _NO_SCALAR)
    return not (word == "pattern" and "(?" in str(content))


def _is_recursive(schema: Schema) -> bool:
    definitions = schema.get("$defs", {})
    return any(_reaches(name, inside, definitions, frozenset()) for name, inside in definitions.items())


def _reaches(name: str, node: Any, definitions: Schema, seen: frozenset[str]) -> bool:
    if isinstance(node, list):
        return any(_reaches(name, one, definitions, seen) for one in node)
    if not isinstance(node, dict):
        return False
    target = str(node.get("$ref", "")).rpartition("/")[2]
    if target == name:
        return True
    if target and target not in seen:
        return _reaches(name, definitions.get(target), definitions, seen | {target})
    return any(_reaches(name, one, definitions, seen) for one in node.values())


# ---------------------------------------------------------------- and back


def _resolved(schema: Any, root: Schema) -> Schema:
    seen = 0
    while isinstance(schema, dict) and "$ref" in schema and seen < 100:
        schema, seen = root.get("$defs", {}).get(str(schema["$ref"]).rpartition("/")[2], {}), seen + 1
    return schema if isinstance(schema, dict) else {}


def _choices(schema: Any, root: Schema) -> list[Schema]:
    """The node's alternatives, itself where it has none."""
    node = _resolved(schema, root)
    inside = node.get("anyOf") or node.get("oneOf") or node.get("allOf")
    return [node] if not inside else [leaf for one in inside for leaf in _choices(one, root)]


def _takes_null(schema: Any, root: Schema) -> bool:
    for one in _choices(schema, root):
        kinds = one.get("type", [])
        if "null" in ([kinds] if isinstance(kinds, str) else kinds) or None in one.get("enum", ()):
            return True
        if ("const" in one and one["const"] is None) or not one.keys() - {"default", "description"}:
            return True
    return False


def _pruned(tree: Json, schema: Any, root: Schema) -> Json:
    shapes = _choices(schema, root)
    if isinstance(tree, list):
        items: Schema = next((one["items"] for one in shapes if isinstance(one.get("items"), dict)), {})
        return [_pruned(item, items, root) for item in tree]
    if not isinstance(tree, dict):
        return tree
    objects = [one for one in shapes if "properties" in one]
    fitting = [one for one in objects if tree.keys() <= one["properties"].keys()] or objects
    if not fitting:
        return tree
    shape = fitting[0]
    kept: dict[str, Json] = {}
    for name, value in tree.items():
        inside = shape["properties"].get(name)
        added = inside is not None and name not in shape.get("required", ()) and not _takes_null(inside, root)
        if value is not None or not added:
            kept[name] = value if inside is None else _pruned(value, inside, root)
    return kept
