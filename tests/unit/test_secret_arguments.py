"""Secret arguments reach the function and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, NewType

import pydantic
import pytest
from pydantic import (
    AfterValidator,
    Field,
    SecretBytes,
    SecretStr,
)
from typing_extensions import TypeAliasType
from unit.samples import (
    KEY,
    WORD,
    Leg,
    Login,
    Node,
    invalid,
    one,
    revived,
    valid,
)

from counterfoil.arguments import Arguments, Content, Invalid, Problem, Secret
from counterfoil.errors import UsageError

# ---------------------------------------------------------------- secrets


Pin = NewType("Pin", SecretStr)
Pins = TypeAliasType("Pins", list[Pin])


def connect(
    host: str, token: Annotated[str, Secret], pin: SecretStr | None = None, login: Login | None = None
) -> None: ...


CONNECT = Arguments(connect, key=("host",))
SENT: Mapping[str, Any] = {
    "host": "h",
    "token": WORD,
    "pin": "hunter3",
    "login": {"user": "u", "password": "hunter4"},
}


@pytest.mark.parametrize("raw", [json.dumps(SENT), SENT, {**SENT, "pin": SecretStr("hunter3")}])
def test_a_secret_reaches_the_function_and_nothing_else(raw: Any) -> None:
    """Secrets are in the values for the call, and nowhere in `stored`, `echo` or the identity (C58)."""
    found = valid(CONNECT, raw, secret=KEY)
    assert found.values["token"] == WORD
    assert found.values["pin"].get_secret_value() == "hunter3"
    assert found.values["login"].password.get_secret_value() == "hunter4"
    assert found.stored == '{"host":"h"}'
    assert json.loads(found.echo) == {"host": "h", "token": "***", "pin": "***", "login": "***"}
    assert "hunter" not in repr((found.stored, found.echo, found.identity))
    assert revived(CONNECT, found.stored) == {"host": "h"}


def test_a_secret_identifies_by_its_hmac_alone() -> None:
    """Another secret, or another executor's secret, is another identity; a default such as None is left out."""

    def identity(token: str, secret: bytes = KEY) -> Mapping[str, Any]:
        return valid(CONNECT, {"host": "h", "token": token}, secret=secret).identity

    assert identity("a") == identity("a") != identity("b")
    assert identity("a") != identity("a", b"other")
    assert len(identity("a")["token"]) == 64
    assert set(identity("a")) == {"host", "token"}


def test_problems_and_echoes_of_refused_arguments_hide_secrets() -> None:
    """A refused secret is masked, its problem does not quote it, and a misspelt name is masked as well."""

    def no(value: str) -> str:
        raise ValueError(f"{value} is wrong")

    arguments = one(Annotated[str, AfterValidator(no), Secret])
    sent = {"x": "hunter2", "X": "hunter3"}
    found = arguments.validate(sent, secret=KEY)
    assert isinstance(found, Invalid)
    assert found.problems == (Problem("x", "is not valid"), Problem("X", "is not a known argument"))
    assert json.loads(found.echo) == {"x": "***", "X": "***"}
    assert invalid(one(SecretStr), '{"x": 12345}', secret=KEY) == ["x must be text, not a number"]


def test_a_secret_needs_the_executors_secret() -> None:
    """Without a key for the HMAC a tool with secrets cannot be used: said to the developer."""
    for missing in (None, b""):
        with pytest.raises(UsageError, match="give the executor secret="):
            CONNECT.validate(SENT, secret=missing)


def test_a_failing_validator_of_a_tool_with_secrets_chains_nothing() -> None:
    """An exception of a validator may quote a secret, so it is not attached to the UsageError."""

    def no(value: str) -> str:
        raise RuntimeError(value)

    arguments = one(Annotated[str, AfterValidator(no), Secret])
    with pytest.raises(UsageError, match="RuntimeError") as caught:
        arguments.validate({"x": "hunter2"}, secret=KEY)
    assert caught.value.__cause__ is None
    assert "hunter2" not in str(caught.value)


def test_markers_are_known_as_classes_and_as_instances_and_inside_optional() -> None:
    """`Annotated[str, Content]`, `Content()` and `Annotated[…] | None` all mark; so do the ones of Secret."""
    for mark in (Content, Content()):
        for annotation in (
            Annotated[str, mark],
            Annotated[str | None, Field(max_length=9), mark],
            Annotated[str, mark] | None,
        ):
            assert one(annotation).never_identity == {"x"}
            assert not one(annotation).has_secrets
    secrets: list[Any] = [
        *(Annotated[str, Secret], Annotated[int, Secret()] | None, SecretStr, SecretBytes | None, list[SecretStr]),
        *(pydantic.Secret[int], Login, dict[str, Login], Pin, Pins),
    ]
    for secret in secrets:
        assert one(secret).has_secrets
        assert one(secret).never_identity == {"x"}
    assert not one(Leg).has_secrets
    assert not one(Node).has_secrets
