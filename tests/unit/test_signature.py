"""What a function may take, what a model is shown of it, and repeats on purpose."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import (
    BaseModel,
    Field,
)
from unit.samples import (
    PAY,
    WORD,
    Part,
    invalid,
    one,
    revived,
    valid,
)

from counterfoil.arguments import Arguments, Secret
from counterfoil.errors import UsageError

# ---------------------------------------------------------------- repeats on purpose


@pytest.mark.parametrize(
    ("sent", "occurrence"),
    [("", ""), ("null", ""), ('""', ""), ('"two"', "two"), ("2", "2"), ("2.0", "2"), ("2e1", "20"), ("-1", "-1")],
)
def test_a_repeatable_tool_takes_an_occurrence_that_is_no_argument(sent: str, occurrence: str) -> None:
    """The occurrence is shown in the schema, handed out as text, and neither stored nor given to the function."""
    arguments = one(int, repeatable=True)
    found = valid(arguments, f'{{"x": 1, "occurrence": {sent}}}' if sent else '{"x": 1}')
    assert (found.occurrence, found.values, found.stored) == (occurrence, {"x": 1}, '{"x":1}')
    assert arguments.schema()["properties"]["occurrence"]["type"] == "string"
    for wrong in ("true", "1.5", "[]"):
        assert invalid(arguments, f'{{"x": 1, "occurrence": {wrong}}}') == ["occurrence must be text or an integer"]


def test_an_occurrence_is_unknown_to_a_tool_that_is_not_repeatable() -> None:
    """Without repeatable=True an occurrence is an unknown argument, and a parameter may have that name."""
    assert invalid(one(int), '{"x": 1, "occurrence": 2}') == ["occurrence is not a known argument"]

    def lesson(occurrence: int) -> None: ...

    assert valid(Arguments(lesson), '{"occurrence": 2}').values == {"occurrence": 2}
    with pytest.raises(UsageError, match="rename the parameter"):
        Arguments(lesson, repeatable=True)


# ---------------------------------------------------------------- signatures and schemas


def test_parameters_may_be_called_what_pydantic_would_not_allow() -> None:
    """Names like json, schema, copy, model_x and f0 are just names, in values, schema and problems."""

    def awkward(json: str, schema: int, copy: bool, model_x: str, model_config: str, f0: int, self: int) -> None: ...

    arguments = Arguments(awkward)
    sent = {"json": "a", "schema": 1, "copy": True, "model_x": "b", "model_config": "c", "f0": 2, "self": 3}
    assert valid(arguments, sent).values == sent
    assert list(arguments.schema()["properties"]) == list(sent)
    assert invalid(arguments, {**sent, "f0": "x"}) == ["f0 must be an integer, not text"]
    assert invalid(arguments, {**sent, "f1": 1}) == ["f1 is not a known argument"]


def test_the_schema_says_what_a_model_needs_and_nothing_else() -> None:
    """Types, descriptions, defaults and what is required, by parameter name; no titles, no secret default."""

    def order(
        title: Annotated[str, Field(description="what the parcel is called", max_length=9)],
        part: Part,
        amount: Annotated[int, Field(gt=0)] = 1,
        token: Annotated[str, Secret] = WORD,
        nothing: Any = object(),  # noqa: B008 - a default that JSON cannot hold
    ) -> None: ...

    assert Arguments(order).schema() == {
        "$defs": {"Part": {"properties": {"title": {"type": "string"}}, "required": ["title"], "type": "object"}},
        "additionalProperties": False,
        "properties": {
            "title": {"description": "what the parcel is called", "maxLength": 9, "type": "string"},
            "part": {"$ref": "#/$defs/Part"},
            "amount": {"default": 1, "exclusiveMinimum": 0, "type": "integer"},
            "token": {"type": "string"},
            "nothing": {},
        },
        "required": ["title", "part"],
        "type": "object",
    }


def test_a_schema_that_is_changed_changes_nobody_elses() -> None:
    """Each caller gets a schema of its own."""
    PAY.schema()["properties"].clear()
    assert list(PAY.schema()["properties"]) == ["order", "amount", "cents", "note"]


class Undefined(BaseModel):
    """A model whose own annotation names nothing."""

    inside: Nowhere  # type: ignore[name-defined]  # noqa: F821


def unannotated(x) -> None: ...  # type: ignore[no-untyped-def]
def many(*x: int) -> None: ...
def keywords(**x: int) -> None: ...
def positional(x: int, /) -> None: ...
def field_default(x: int = Field(gt=0)) -> None: ...
def unresolved(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def unreadable(y: int, x: Callable[[], int] | Arguments) -> None: ...
def undefined(y: int, x: Undefined) -> None: ...
def undescribable(x: Callable[[], int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "mend"),
    [
        (unannotated, "the parameter 'x' needs an annotation, for example x: str"),
        (many, "a model must see every argument by its name"),
        (keywords, "a model must see every argument by its name"),
        (positional, "drop the '/'"),
        (field_default, "write x: Annotated"),
        (unresolved, "import their types at run time"),
        (unreadable, "the type of the parameter 'x' cannot be read from JSON"),
        (undefined, "the type of the parameter 'x' cannot be read from JSON"),
        (undescribable, "cannot be described to a model"),
    ],
)
def test_a_signature_that_no_model_could_call_is_refused(function: Callable[..., Any], mend: str) -> None:
    """Each parameter that cannot be an argument is refused when the tool is declared, with the way to mend it."""
    with pytest.raises(UsageError, match=mend.replace("(", r"\(")):
        Arguments(function)


def test_bytes_inside_a_model_follow_its_own_settings() -> None:
    """Bytes are base64 at the top; a model that holds bytes keeps its own encoding, and is refused what that lacks."""

    class Plain(BaseModel):
        data: bytes

    class Encoded(BaseModel, val_json_bytes="base64"):
        data: bytes

    class Hexadecimal(BaseModel, val_json_bytes="hex"):
        data: bytes

    for owner, data in ((Plain, b"abc"), (Encoded, b"\xff"), (Hexadecimal, b"\xff")):
        arguments = one(owner)
        found = valid(arguments, {"x": owner(data=data)})
        assert revived(arguments, found.stored) == {"x": owner(data=data)}
    assert json.loads(valid(one(bytes), {"x": b"\xff"}).stored) == {"x": base64.urlsafe_b64encode(b"\xff").decode()}
    assert invalid(one(Plain), {"x": Plain(data=b"\xff")}) == ["x.data holds bytes that are not UTF-8 text"]
