"""From a function's signature to a pydantic model of its arguments, and to the JSON schema that a model is shown.

Owns the markers `Content` and `Secret` and the rules for what a parameter may be. The model has field names of its own
(f0, f1, …) with the parameters as aliases, so that a parameter may be called `json`, `schema`, `copy` or `model_x`.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Union

import pydantic
import typing_extensions
from pydantic import BaseModel, ConfigDict, Field, SecretBytes, SecretStr, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import SchemaError

from counterfoil.attempt import Effect
from counterfoil.errors import UsageError
from counterfoil.guard import Alike
from counterfoil.private import is_private


class Content:
    """Marks an argument that describes the effect but does not identify it: a note, the wording of a message.

    Example:
        >>> Annotated[str, Content].__metadata__ == (Content,)
        True
    """


class Secret:
    """Marks an argument that is never stored, shown or logged. `SecretStr` and `SecretBytes` need no mark.

    Example:
        >>> Annotated[str, Secret].__metadata__ == (Secret,)
        True
    """


class NotSecret:
    """Marks an argument that may be stored and shown although its name is one that secrets have.

    Example:
        >>> Annotated[str, NotSecret].__metadata__ == (NotSecret,)
        True
    """


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument. `field` is its name inside the model; `default` is `inspect.Parameter.empty` where it has none."""

    name: str
    field: str
    annotation: Any
    default: Any
    content: bool
    secret: bool
    alike: Alike | None = None
    open: bool = False


def resolved_annotations(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function as objects, also where they were written as text.

    Raises:
        UsageError: a name in them is not known where the function was defined.
    """
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise UsageError(
            f"{function.__qualname__}: its annotations cannot be resolved ({error}); import their types at run time, "
            "at the top of the module, and not under TYPE_CHECKING"
        ) from error


def parameters(function: Callable[..., Any], skip: int) -> tuple[Parameter, ...]:
    """The arguments of a function, without the first `skip` parameters.

    Raises:
        UsageError: a parameter without annotation, *args, **kwargs, a positional-only one, `Field(...)` as a default.
    """
    hints = resolved_annotations(function)
    found = []
    for place, one in enumerate([*inspect.signature(function).parameters.values()][skip:]):
        where = f"{function.__qualname__}: the parameter {one.name!r}"
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise UsageError(f"{where} takes any number of arguments; a model must see every argument by its name")
        if one.kind is one.POSITIONAL_ONLY:
            raise UsageError(f"{where} is positional-only, and arguments are passed by name; drop the '/'")
        if one.name not in hints:
            raise UsageError(f"{where} needs an annotation, for example {one.name}: str")
        if isinstance(one.default, FieldInfo):
            raise UsageError(f"{where} has Field(...) as its default; write {one.name}: Annotated[…, Field(…)] = …")
        annotation = hints[one.name]
        content = any(_is(mark, Content) for mark in _marks(annotation))
        alike = next((mark for mark in _marks(annotation) if isinstance(mark, Alike)), None)
        secret = _is_secret(annotation, named=one.name)
        found.append(
            Parameter(one.name, f"f{place}", annotation, one.default, content, secret, alike, _holds_open(annotation))
        )
    return tuple(found)


def model_of(function: str, described: Sequence[Parameter]) -> type[BaseModel]:
    """The pydantic model of arguments: unknown ones refused, input never shown in its errors.

    Raises:
        UsageError: a type that cannot be read from JSON, a pattern that cannot be compiled; names the parameter.
    """
    try:
        return _model(described)
    except _UNREADABLE as error:
        raise UsageError(
            f"{function}: the type of the parameter {_those(described, _model)} cannot be read from JSON; use plain "
            f"data or a pydantic model ({_reason(error)})"
        ) from error


def json_schema(
    function: str,
    described: Sequence[Parameter],
    model: type[BaseModel],
    *,
    required: Sequence[str],
    secrets: Collection[str],
) -> dict[str, Any]:
    """The JSON schema of a model of arguments, by the names of the parameters and without titles.

    Raises:
        UsageError: a type that JSON schema cannot describe; names the parameter.
    """
    try:
        schema = _described(model)
    except PydanticUserError as error:
        names = _those(described, lambda one: _described(_model(one)))
        raise UsageError(
            f"{function}: the type of the parameter {names} cannot be described to a model; use plain data or a "
            f"pydantic model ({error.message})"
        ) from error
    bare: dict[str, Any] = _without_titles(schema)
    members = bare.setdefault("properties", {})
    for name in secrets:
        members[name].pop("default", None)
    needed = [*bare.get("required", ()), *(name for name in required if name not in bare.get("required", ()))]
    if needed:
        bare["required"] = needed
    return bare


# ---------------------------------------------------------------- details

_CONFIG: Final = ConfigDict(
    extra="forbid", hide_input_in_errors=True, allow_inf_nan=False, val_json_bytes="base64", protected_namespaces=()
)  # fmt: skip
_UNREADABLE: Final = (PydanticUserError, SchemaError, NameError, TypeError)
_SECRET_TYPES: Final = (SecretStr, SecretBytes, pydantic.Secret)


def _model(described: Sequence[Parameter]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for one in described:
        said: dict[str, Any] = {"alias": one.name, "validation_alias": one.name, "serialization_alias": one.name}
        if one.default is not inspect.Parameter.empty:
            said["default"] = one.default
        fields[one.field] = (one.annotation, Field(**said))
    model: type[BaseModel] = create_model("Arguments", __config__=_CONFIG, **fields)
    if not model.__pydantic_complete__:
        model.model_rebuild()
    return model


def _described(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True, schema_generator=_Schema)


def _those(described: Sequence[Parameter], made: Callable[[Sequence[Parameter]], Any]) -> str:
    """The parameters that cannot be made so."""
    refused = []
    for one in described:
        try:
            made([one])
        except _UNREADABLE:
            refused.append(repr(one.name))
    return ", ".join(refused)


def _reason(error: Exception) -> str:
    """What is wrong, in one line: the last one that says something, where a schema's errors stand in each other."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1 if isinstance(error, SchemaError) else 0].removeprefix("error: ") if lines else "no reason given"


def _is(mark: Any, marker: type) -> bool:
    return mark is marker or isinstance(mark, marker)


def _marks(annotation: Any) -> Iterator[Any]:
    """What stands in `Annotated`, also inside `… | None`."""
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        yield from annotation.__metadata__
        yield from _marks(annotation.__origin__)
    elif origin in (Union, types.UnionType):
        for choice in typing.get_args(annotation):
            yield from _marks(choice)


def _is_secret(annotation: Any, seen: tuple[Any, ...] = (), *, named: str = "") -> bool:
    """True where a secret is anywhere inside, by its type or by its name: then the whole argument is one."""
    # A flag tells no secret, however it is called.
    if is_private(named) and annotation not in (bool, None, type(None)) and not _is_open(annotation):
        return True
    if any(annotation is one for one in seen):
        return False
    seen = (*seen, annotation)
    if typing.get_origin(annotation) is Annotated:
        marked = any(_is(mark, Secret) for mark in annotation.__metadata__)
        return marked or _is_secret(annotation.__origin__, seen)
    if hasattr(annotation, "__supertype__"):
        return _is_secret(annotation.__supertype__, seen)
    if isinstance(annotation, typing_extensions.TypeAliasType):
        return _is_secret(annotation.__value__, seen)
    owner = typing.get_origin(annotation) or annotation
    if isinstance(owner, type) and issubclass(owner, _SECRET_TYPES):
        return True
    if any(_is_secret(inside, seen, named=name) for name, inside in _member_types(owner).items()):
        return True
    return any(_is_secret(inside, seen) for inside in typing.get_args(annotation))


def _is_open(annotation: Any) -> bool:
    """True where it is said that this is no secret, whatever its name."""
    return any(_is(mark, NotSecret) for mark in _marks(annotation))


def _holds_open(annotation: Any, seen: tuple[Any, ...] = ()) -> bool:
    """True where `NotSecret` is said of the argument, or of a part of it."""
    if any(annotation is one for one in seen):
        return False
    seen = (*seen, annotation)
    if _is_open(annotation):
        return True
    owner = typing.get_origin(annotation) or annotation
    inside = (*typing.get_args(annotation), *_member_types(owner).values())
    return any(_holds_open(one, seen) for one in inside)


def _member_types(owner: Any) -> dict[str, Any]:
    if not isinstance(owner, type):
        return {}
    if not (issubclass(owner, BaseModel) or dataclasses.is_dataclass(owner) or typing_extensions.is_typeddict(owner)):
        return {}
    try:
        return dict(typing.get_type_hints(owner, include_extras=True))
    except (NameError, TypeError):
        described: dict[str, FieldInfo] = getattr(owner, "__pydantic_fields__", {})
        return {name: Annotated[(info.annotation, *info.metadata, None)] for name, info in described.items()}


class _Schema(GenerateJsonSchema):
    # A default that JSON cannot hold is left out of the schema without a warning.
    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _without_titles(schema: Any) -> Any:
    """The schema without titles; what users wrote (names, defaults, examples) stays."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {}
    for word, content in schema.items():
        if word in ("properties", "$defs", "patternProperties"):
            bare[word] = {name: _without_titles(inside) for name, inside in content.items()}
        elif word in ("default", "const", "enum", "examples"):
            bare[word] = content
        elif word != "title":
            bare[word] = _without_titles(content)
    return bare


def takes_effect(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is the `Effect`.

    Raises:
        UsageError: another one is.
    """
    hints = resolved_annotations(function)
    takes = False
    for place, one in enumerate(inspect.signature(function).parameters.values()):
        hint = hints.get(one.name)
        if hint is not Effect and Effect not in typing.get_args(hint):
            continue
        if hint is not Effect or place > 0 or one.kind is one.KEYWORD_ONLY:
            raise UsageError(
                f"{function.__qualname__}: the effect is handed in as the first argument by position; "
                f"make {one.name}: Effect the first parameter"
            )
        takes = True
    return takes
