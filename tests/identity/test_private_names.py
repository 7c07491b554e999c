"""Arguments and values whose names say that they are secret; and the fields of a value that a policy keeps."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from outside import Make, World
from pydantic import BaseModel
from typing_extensions import TypedDict
from unit.samples import KEY, invalid, one, valid

from counterfoil import Effect, Found, NotSecret, Policy, Tool, UsageError, tool
from counterfoil.arguments import Arguments
from counterfoil.private import is_private

WORD = "marked-7f3a"


class Account(BaseModel):
    user: str
    password: str = ""


class Card(TypedDict):
    holder: str
    cvc: str


@dataclass
class Login:
    user: str
    apiKey: str  # noqa: N815 - as some write it


def login(user: str, password: str) -> None: ...


@pytest.mark.parametrize("annotation", [Account, Card, Login, list[Account], dict[str, Card] | None])
def test_a_type_with_a_private_member_is_a_secret(annotation: Any) -> None:
    """A member with such a name makes the whole argument a secret, as `SecretStr` in it would."""
    assert one(annotation).secret_names == {"x"}


def test_an_argument_with_a_private_name_is_a_secret() -> None:
    """It reaches the function and is neither stored nor shown; it needs a secret, and identifies by its HMAC."""
    arguments = Arguments(login)
    with pytest.raises(UsageError, match="secret="):
        arguments.validate({"user": "u", "password": WORD})
    found = valid(arguments, {"user": "u", "password": WORD}, secret=KEY)
    assert found.values["password"] == WORD
    assert WORD not in found.stored + found.echo + repr(found.identity) + repr(found)
    other = valid(arguments, {"user": "u", "password": "another"}, secret=KEY)
    assert other.identity != found.identity


def test_what_is_no_secret_may_be_said_to_be_none() -> None:
    """`NotSecret` on an argument, or on a member, takes it back; a flag or nothing is none by itself."""

    class Page(BaseModel):
        token: Annotated[str, NotSecret]

    def read(token: Annotated[str, NotSecret]) -> None: ...

    assert not Arguments(read).has_secrets
    assert valid(one(Page), {"x": {"token": "p2"}}).stored == '{"x":{"token":"p2"}}'
    assert valid(Arguments(read), {"token": "p2"}).echo == '{"token":"p2"}'

    def flags(otp: bool, pin: None = None) -> None: ...

    assert not Arguments(flags).has_secrets


@pytest.mark.parametrize(
    "sent",
    [
        {"order": "A", "meta": {"password": WORD}},
        {"order": "A", "meta": {"a": [{"X-Api-Key": WORD}]}},
        {"order": "A", "meta": {"a": {"b": {"clientSecret": {"value": WORD}}}}},
    ],
)
def test_a_secret_in_a_free_mapping_is_refused_and_not_shown(sent: Any) -> None:
    """What would be stored with the arguments is refused by its name; neither refusal nor echo shows it."""

    def send(order: str, meta: dict[str, Any]) -> None: ...

    found = Arguments(send).validate(json.dumps(sent))
    assert "has the name of a secret" in str(found)
    assert WORD not in repr(found)
    assert "***" in repr(found)


def test_an_unknown_argument_with_a_private_name_is_masked() -> None:
    """A misspelt or invented argument is refused; what stood in it is not shown."""
    arguments = one(str)
    assert invalid(arguments, {"x": "a", "password": WORD}) == ["password is not a known argument"]
    assert WORD not in repr(arguments.validate({"x": "a", "password": WORD}))


@pytest.mark.parametrize("name", ["page_token", "keyword", "author", "monkey", "order_key", "tokens_used", "pinned"])
def test_ordinary_names_are_no_secrets(name: str) -> None:
    """A name that only resembles one of the list is an ordinary one."""
    assert not is_private(name)


def sell_tool(world: World, value: Any, **policy: Any) -> Tool[..., Any]:
    @tool(key=("order",), policy=Policy(timeout_s=5, **policy))
    def sell(effect: Effect, order: str) -> Any:
        """Sell one order. Use it when the customer has confirmed."""
        world.act(effect)
        return value

    @sell.postcondition
    def sold(effect: Effect) -> Found[Any]:
        return Found(value, reference=None)

    return sell


VALUE = {"payment": "pi_1", "client_secret": WORD, "receipt": {"email": "a@b.example", "token": WORD}, "status": "paid"}


@pytest.mark.parametrize("lost", [False, True], ids=["returned", "found"])
def test_a_value_loses_what_stands_under_a_private_name(world: World, executor_of: Make, lost: bool) -> None:
    """Returned or found: it is masked in what is told and in the ledger, and all else is whole."""
    world.next = ["ack_lost"] if lost else []
    executor = executor_of(sell_tool(world, VALUE))
    for code in ("verified" if lost else "ok", "replayed"):
        seen = executor.call("sell", {"order": "A"})
        assert seen.code == code
        assert seen.value == {
            "payment": "pi_1", "client_secret": "***", "receipt": {"email": "a@b.example", "token": "***"},
            "status": "paid",
        }  # fmt: skip
        assert WORD not in repr(executor.audit.effects())


@pytest.mark.parametrize("lost", [False, True], ids=["returned", "found"])
@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (VALUE, {"payment": "pi_1", "status": "paid"}),
        ([VALUE, {"other": 1}], [{"payment": "pi_1", "status": "paid"}, {}]),
        ("a text", None),
        ({"other": 1}, {}),
    ],
)
def test_a_policy_keeps_only_chosen_fields(world: World, executor_of: Make, value: Any, kept: Any, lost: bool) -> None:
    """`store_value` keeps the named fields of an object, or of each object of a list, and nothing else."""
    world.next = ["ack_lost"] if lost else []
    executor = executor_of(sell_tool(world, value, store_value=("payment", "status")))
    for _ in range(2):
        assert executor.call("sell", {"order": "A"}).value == kept
    (row,) = executor.audit.effects()
    assert json.loads(str(row.value)) == kept


@pytest.mark.parametrize("names", ["payment", ["payment"], ("",), (7,)])
def test_chosen_fields_are_names(names: Any) -> None:
    """Anything else than a tuple of names is said to the developer."""
    with pytest.raises(UsageError, match="store_value"):
        Policy(store_value=names)
