"""A tool is what its declaration says; a declaration that contradicts itself is refused, and says how to mend it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Annotated, Any, ClassVar

import pytest
from pydantic import SecretStr

from counterfoil.arguments import Content, Secret
from counterfoil.attempt import Effect
from counterfoil.effect import Absent, Found, Unclear
from counterfoil.errors import UsageError
from counterfoil.key_policy import KeyPolicy
from counterfoil.policy import Policy
from counterfoil.tool import ALL_ARGUMENTS, AnyTool, Tool, tool

JOINT = {"same_transaction": True}
WINDOW = Policy(timeout_s=10, grace_s=60, idempotent_window_s=86_400)
KEYED = Policy(timeout_s=10, grace_s=60, key_policy=KeyPolicy(retention_s=86_400))


class CardError(Exception):
    """A refusal of some provider."""


def charge(effect: Effect, order: str, cents: int = 100, note: Annotated[str, Content] = "") -> str:
    """Charge the customer's card once for one order.

    Use it after the customer has confirmed the total.
    """
    return f"{effect.id}-{order}-{cents}{note}"


async def fetch(effect: Effect, order: str) -> str:
    """Fetch the parcel of one order."""
    return effect.id + order


def mail(to: str, subject: str) -> None:
    """Send a mail."""


def look(effect: Effect) -> Found[str] | Absent | Unclear:
    return Found("paid", reference=effect.id)


async def look_later(effect: Effect) -> Found[str] | Absent | Unclear:
    return Unclear(effect.id)


def declare(function: Callable[..., Any] = charge, **declared: Any) -> AnyTool:
    """`function` as a tool, keyed by the order where the declaration does not say otherwise."""
    made: AnyTool = tool(**({"key": ("order",)} | declared))(function)
    return made


# ---------------------------------------------------------------- what a tool is


def test_a_tool_is_what_its_declaration_says() -> None:
    """Every word of the declaration stands on the tool, and the rest has the documented defaults."""
    made = declare(sends="marked", rejects=(CardError,), policy=KEYED, repeatable=True)
    assert (made.name, made.key, made.key_names) == ("charge", ("order",), ("order",))
    assert (made.sends, made.rejects, made.policy, made.repeatable) == ("marked", (CardError,), KEYED, True)
    assert (made.function, made.is_async, made.takes_effect) == (charge, False, True)
    assert made.arguments.names == ("order", "cents", "note")
    plain = declare(mail, key=ALL_ARGUMENTS)
    assert (plain.key, plain.key_names, plain.takes_effect, plain.sends) == (ALL_ARGUMENTS, (), False, "anywhere")
    assert (plain.read_only, plain.repeatable, plain.idempotent, plain.rejects) == (False, False, False, ())
    assert plain.policy == Policy()
    assert declare(fetch).is_async


def test_a_model_is_shown_name_docstring_and_parameters_without_the_effect() -> None:
    """The schema speaks of what the model may choose; the key is required, the effect is not to be seen."""
    schema = declare(name="charge_card").schema()
    assert schema["name"] == "charge_card"
    assert schema["description"] == (
        "Charge the customer's card once for one order.\n\nUse it after the customer has confirmed the total."
    )
    assert list(schema["parameters"]["properties"]) == ["order", "cents", "note"]
    assert schema["parameters"]["required"] == ["order"]
    assert "occurrence" in declare(repeatable=True).schema()["parameters"]["properties"]


def test_calling_a_tool_is_refused_and_names_the_two_ways() -> None:
    """A direct call would leave no trace in the ledger: UsageError, with `.function` for the tool's own tests."""
    made = declare(mail, key=("to",))
    with pytest.raises(UsageError, match=r"executor\.call\('mail'.*mail\.function"):
        made("a@example.com", subject="x")
    assert made.function("a@example.com", "x") is None


def test_a_method_of_an_object_can_be_a_tool() -> None:
    """A bound method is a function like others; its `self` is no argument."""

    class Shop:
        def buy(self, item: str) -> str:
            """Buy one item."""
            return item

    assert declare(Shop().buy, key=("item",)).arguments.names == ("item",)


def test_annotations_written_as_text_and_as_objects_are_the_same() -> None:
    """This module postpones its annotations; a function with real ones is read alike."""

    def direct(effect, order):  # type: ignore[no-untyped-def]
        """Do it."""

    direct.__annotations__ = {"effect": Effect, "order": Annotated[str, "words"]}
    assert declare(direct).takes_effect
    assert declare(direct).arguments.names == ("order",)


# ---------------------------------------------------------------- the tier


@pytest.mark.parametrize(
    ("declared", "looks", "tier"),
    [
        ({}, False, "T0"),
        ({"policy": Policy(grace_s=60)}, False, "T0"),
        ({}, True, "T1"),
        ({"policy": Policy(grace_s=0)}, True, "T2"),
        ({"policy": KEYED}, False, "T3"),
        ({"policy": KEYED}, True, "T3"),
        ({"idempotent": True, "policy": Policy(idempotent_window_s=60, grace_s=5)}, False, "T3"),
    ],
)
def test_the_tier_follows_from_the_declaration(declared: dict[str, Any], looks: bool, tier: str) -> None:
    """T0 nothing, T1 a postcondition, T2 with a grace, T3 a key policy or idempotence: nobody can claim more."""
    made = declare(**declared)
    if looks:
        made.postcondition(look)
    assert made.tier == tier
    assert tier in repr(made)


# ---------------------------------------------------------------- the postcondition


def test_a_postcondition_is_kept_and_given_back() -> None:
    """The decorated function stays itself; the tool knows it and whether it is a coroutine function."""
    made, later = declare(), declare(fetch)
    assert (made.postcondition_function, made.postcondition_is_async) == (None, False)
    assert made.postcondition(look) is look
    assert (made.postcondition_function, made.postcondition_is_async) == (look, False)
    assert later.postcondition(look_later) is look_later
    assert later.postcondition_is_async


def test_a_second_postcondition_is_refused() -> None:
    """Two ways of looking could answer differently: there is one."""
    made = declare()
    made.postcondition(look)
    with pytest.raises(UsageError, match="has a postcondition already"):
        made.postcondition(look)


def test_a_read_only_tool_has_nothing_to_look_for() -> None:
    """A postcondition on a read-only tool is refused."""
    with pytest.raises(UsageError, match="only reads"):
        declare(mail, key=None, read_only=True).postcondition(look)


def test_a_tool_in_one_transaction_has_no_doubt_to_look_into() -> None:
    """It is of tier T5, and a postcondition or a revoke on it is refused."""
    made = declare(same_transaction=True)
    assert made.tier == "T5"
    with pytest.raises(UsageError, match="no doubt to look into"):
        made.postcondition(look)
    with pytest.raises(UsageError, match="no doubt to take back"):
        made.revoke()(look)


def test_a_tool_in_one_transaction_can_be_compensated() -> None:
    """What it committed can be made up for by an effect of its own, which is in no transaction of the ledger."""
    made = declare(same_transaction=True)

    def refund(effect: Effect) -> str:
        """Pay it back."""
        return effect.id

    undo = made.compensation()(refund)
    assert (made.tier, undo.same_transaction, undo.undo_kind) == ("T5", False, "compensation")


def test_what_cannot_look_is_no_postcondition() -> None:
    """A postcondition takes the effect alone and returns evidence: generators and other signatures are refused."""

    def many(effect: Effect) -> Iterator[Absent]:
        yield Absent()

    async def more(effect: Effect) -> AsyncIterator[Absent]:
        yield Absent()

    def two(effect: Effect, order: str) -> Absent:
        return Absent()

    wrong: list[Any] = [many, more, two, lambda: Absent(), "look", None]
    for function in wrong:
        with pytest.raises(UsageError, match="a postcondition"):
            declare().postcondition(function)


# ---------------------------------------------------------------- refusals


def unexplained(order: str) -> None: ...


def unannotated(order) -> None:  # type: ignore[no-untyped-def]
    """Do it."""


def late(order: str, effect: Effect) -> None:
    """Do it."""


def by_name(*, effect: Effect, order: str) -> None:
    """Do it."""


def perhaps(effect: Effect | None, order: str) -> None:
    """Do it."""


def many(order: str, *more: str) -> None:
    """Do it."""


def generator(order: str) -> Iterator[str]:
    """Do it."""
    yield order


async def async_generator(order: str) -> AsyncIterator[str]:
    """Do it."""
    yield order


def again(occurrence: int) -> None:
    """Do it."""


def secretly(order: SecretStr, card: Annotated[str, Secret]) -> None:
    """Do it."""


class Callable_:  # noqa: N801 - what matters is that it is no function
    __name__: ClassVar[str] = "callable"

    def __call__(self, order: str) -> None:
        """Do it."""


REFUSED: list[tuple[str, Callable[..., Any], dict[str, Any], str]] = [
    ("no docstring", unexplained, {}, "say what it does in the world"),
    ("no annotation", unannotated, {}, "needs an annotation"),
    ("any number of arguments", many, {}, "every argument by its name"),
    ("a generator", generator, {}, "collect its items and return them"),
    ("an async generator", async_generator, {}, "collect its items and return them"),
    ("an object", Callable_(), {}, "write a function that calls it"),
    ("a class", CardError, {}, "write a function that calls it"),
    ("a partial", partial(mail, "x"), {}, "write a function that calls it"),
    ("the effect not first", late, {}, "make effect: Effect the first parameter"),
    ("the effect by name", by_name, {}, "make effect: Effect the first parameter"),
    ("the effect perhaps", perhaps, {}, "make effect: Effect the first parameter"),
    ("no key", charge, {"key": None}, r"name the arguments that say which effect is meant"),
    ("an empty key", charge, {"key": ()}, r"name the arguments that say which effect is meant"),
    ("a key without comma", charge, {"key": "order"}, r"write key=\(\"order\",\) with the comma"),
    ("a key of another kind", charge, {"key": ["order"]}, r"write key=\(\"order\",\) with the comma"),
    ("a key of numbers", charge, {"key": (1,)}, r"write key=\(\"order\",\) with the comma"),
    ("an unknown key", charge, {"key": ("ordre",)}, r"'ordre', which is no argument of it \(these are: order, cents"),
    ("the effect as key", charge, {"key": ("effect",)}, "which is no argument of it"),
    ("a key twice", charge, {"key": ("order", "order")}, "name it once"),
    ("content as key", charge, {"key": ("note",)}, "Content or Secret and identifies nothing"),
    ("a secret as key", secretly, {"key": ("order",)}, "Content or Secret and identifies nothing"),
    ("a marked secret as key", secretly, {"key": ("card",)}, "Content or Secret and identifies nothing"),
    ("a key on a reading tool", mail, {"read_only": True, "key": ("to",)}, "read_only, so key has no meaning"),
    ("sends on a reading tool", mail, {"read_only": True, "key": None, "sends": "once"}, "so sends has no meaning"),
    ("a key policy on a reading tool", mail, {"read_only": True, "key": None, "policy": KEYED}, "key_policy has no"),
    ("a repeatable reading tool", mail, {"read_only": True, "key": None, "repeatable": True}, "repeatable has no"),
    ("an idempotent reading tool", mail, {"read_only": True, "key": None, "idempotent": True}, "idempotent has no"),
    ("a key policy without effect", mail, {"key": ("to",), "policy": KEYED}, "make effect: Effect the first parameter"),
    ("idempotent without window", charge, {"idempotent": True}, r"needs Policy\(idempotent_window_s="),
    ("one transaction without effect", mail, {"key": ("to",), **JOINT}, "make effect: Effect the first parameter"),
    ("one transaction in a coroutine", fetch, JOINT, "write it as a plain function"),
    ("one transaction that sends", charge, {**JOINT, "sends": "marked"}, "so sends has no meaning"),
    ("one transaction with a key policy", charge, {**JOINT, "policy": KEYED}, "so policy.key_policy has no meaning"),
    ("one transaction again", charge, {**JOINT, "idempotent": True, "policy": WINDOW}, "so idempotent has no meaning"),
    ("one transaction that reads", mail, {"read_only": True, "key": None, **JOINT}, "same_transaction has no meaning"),
    ("an unknown way of sending", charge, {"sends": "twice"}, '"anywhere", "once", "marked"'),
    ("no policy", charge, {"policy": {"timeout_s": 3}}, r"for example Policy\(timeout_s=10"),
    ("an empty name", charge, {"name": "a b"}, "give name="),
    ("a long name", charge, {"name": "a" * 65}, "give name="),
    ("a foreign name", charge, {"name": "größe"}, "give name="),
    ("a name with an end of line", charge, {"name": "charge\n"}, "give name="),
    ("a lambda", lambda order: None, {}, "give name="),
    ("a name that is built in", charge, {"name": "check_effect"}, "built in"),
    ("an occurrence twice", again, {"key": ("occurrence",), "repeatable": True}, "rename the parameter"),
]


@pytest.mark.parametrize(
    ("function", "declared", "mend"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_a_declaration_that_contradicts_itself_is_refused(
    function: Callable[..., Any], declared: dict[str, Any], mend: str
) -> None:
    """Each contradiction is a UsageError when the tool is declared, and its text says how to mend it."""
    with pytest.raises(UsageError, match=mend):
        declare(function, **declared)


# ---------------------------------------------------------------- what it brings along


def test_declaring_a_tool_needs_no_optional_package() -> None:
    """`counterfoil.tool` imports no driver, and no web, payment or command-line package."""
    script = (
        "import sys, counterfoil.tool\n"
        "heavy = {'psycopg', 'stripe', 'httpx', 'typer', 'rich', 'requests', 'starlette', 'mcp'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    path = [place for place in sys.path if place]
    ran = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:0] = {path!r}\n{script}"],
                         capture_output=True, text=True, check=True)  # fmt: skip
    assert ran.stdout.strip() == "[]"


def test_a_tool_is_generic_in_parameters_and_result() -> None:
    """`Tool[..., Any]` can be written for collections of tools."""
    made: list[Tool[..., Any]] = [declare(), declare(mail, key=("to",))]
    assert [one.name for one in made] == ["charge", "mail"]
