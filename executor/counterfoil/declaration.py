"""What stands in `@tool(...)`, and every way in which it can contradict itself.

Owns the refusals that need no look at the arguments. Each text says how to mend it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, get_args

from counterfoil.effect import Sends
from counterfoil.errors import UsageError
from counterfoil.identity import AllArguments
from counterfoil.policy import Policy
from counterfoil.spec import ErrorSpec

Cost: TypeAlias = Callable[[Mapping[str, Any]], tuple[str, int]]
Key: TypeAlias = tuple[str, ...] | AllArguments

RESERVED: Final = frozenset({"check_effect"})
"""Names of tools that are built in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The arguments of `@tool(...)`, as they were given."""

    key: Key | None
    name: str | None
    read_only: bool
    repeatable: bool
    idempotent: bool
    same_transaction: bool
    sends: Sends
    rejects: tuple[type[Exception], ...]
    policy: Policy
    errors: tuple[ErrorSpec, ...] = ()
    cost: Cost | None = None

    @property
    def key_names(self) -> tuple[str, ...]:
        """The names in the key; () where it is `ALL_ARGUMENTS` or left out."""
        return self.key if isinstance(self.key, tuple) else ()

    def check(self, name: str, description: str, *, takes_effect: bool, is_async: bool) -> None:
        """Refuse what contradicts itself.

        Raises:
            UsageError: the first contradiction.
        """
        for problem in self._contradictions(name, description, takes_effect):
            raise UsageError(f"the tool {name}: {problem}")
        for problem in self._about_same_transaction(takes_effect, is_async):
            raise UsageError(f"the tool {name}: {problem}")

    def check_names(self, name: str, names: tuple[str, ...], never_identity: frozenset[str]) -> None:
        """Refuse a key that names what is no argument, or what identifies nothing.

        Raises:
            UsageError: the first such name.
        """
        for one in self.key_names:
            if one not in names:
                known = ", ".join(names) or "none"
                raise UsageError(f"the tool {name}: key names {one!r}, which is no argument of it (these are: {known})")
            if one in never_identity:
                raise UsageError(
                    f"the tool {name}: key names {one!r}, which is Content or Secret and identifies nothing"
                )
        if len(set(self.key_names)) < len(self.key_names):
            raise UsageError(f"the tool {name}: key names an argument twice; name it once")

    def _contradictions(self, name: str, description: str, takes_effect: bool) -> Iterator[str]:
        if not _NAME.fullmatch(name):
            yield f"its name {name!r} is not 1 to 64 of a-z, A-Z, 0-9, _ and -; give name=..."
        if name in RESERVED:
            yield "this name is built in; give another one with name=..."
        if _is_other(self.policy, Policy):
            yield "policy= takes a Policy, for example Policy(timeout_s=10, grace_s=60)"
        if self.sends not in get_args(Sends):
            yield f'sends={self.sends!r} is none of "anywhere", "once", "marked"'
        yield from _about_rejects(self.rejects)
        if self.cost is not None and not _is_plain(self.cost):
            yield 'cost= takes a plain function of the arguments, for example lambda a: ("eur", a["amount_minor"])'
        if self.read_only:
            yield from self._about_reading()
            return
        if not description:
            yield "it has no docstring, and a model would not know when to use it; say what it does in the world"
        yield from self._about_key()
        if self.policy.key_policy is not None and not takes_effect:
            yield "a key policy needs effect.provider_key; make effect: Effect the first parameter and send the key"
        if self.idempotent and self.policy.idempotent_window_s is None:
            yield (
                "idempotent=True needs Policy(idempotent_window_s=...): an old request that is sent again must not "
                "overwrite a newer one"
            )

    def _about_same_transaction(self, takes_effect: bool, is_async: bool) -> Iterator[str]:
        if not self.same_transaction:
            return
        if not takes_effect:
            yield "same_transaction=True needs effect.connection to write with; make effect: Effect the first parameter"
        if is_async:
            yield (
                "same_transaction=True lends a blocking connection, which would hold up the event loop; "
                "write it as a plain function: an AsyncExecutor runs it in a thread"
            )
        needless = {
            "sends": self.sends != "anywhere",
            "idempotent": self.idempotent,
            "policy.key_policy": self.policy.key_policy is not None,
        }
        for word, given in needless.items():
            if given:
                yield (
                    f"same_transaction=True leaves no doubt to end, so {word} has no meaning; drop it, or drop "
                    "same_transaction if the effect is not in the ledger's own database alone"
                )

    def _about_key(self) -> Iterator[str]:
        if self.key is None or self.key == ():
            yield (
                "it changes the world and has no key=; name the arguments that say which effect is meant, "
                'for example key=("order",), or take ALL_ARGUMENTS; if it only reads, say read_only=True'
            )
        elif _is_other(self.key, tuple | AllArguments) or any(_is_other(one, str) for one in self.key_names):
            yield f'key={self.key!r} is no tuple of names; write key=("order",) with the comma, or ALL_ARGUMENTS'

    def _about_reading(self) -> Iterator[str]:
        useless = {
            "key": self.key is not None,
            "sends": self.sends != "anywhere",
            "repeatable": self.repeatable,
            "idempotent": self.idempotent,
            "same_transaction": self.same_transaction,
            "policy.key_policy": self.policy.key_policy is not None,
            "cost": self.cost is not None,
        }
        for word, given in useless.items():
            if given:
                yield f"it is read_only, so {word} has no meaning; drop it, or drop read_only if it changes the world"


# ---------------------------------------------------------------- details

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LOST: Final = re.compile(r"timeout|timedout|^APIConnectionError$", re.IGNORECASE)


def _is_other(value: Any, wanted: Any) -> bool:
    """True where the declared type was not obeyed: who does not check types finds out here."""
    return not isinstance(value, wanted)


def _is_plain(function: Any) -> bool:
    return callable(function) and not inspect.iscoroutinefunction(function)


def _about_rejects(rejects: Any) -> Iterator[str]:
    if not isinstance(rejects, tuple):
        yield f"rejects={rejects!r} is no tuple; write rejects=(CardError,) with the comma"
        rejects = ()
    for one in rejects:
        if not (isinstance(one, type) and issubclass(one, Exception)) or one is Exception:
            yield f"rejects names {one!r}; list exception classes that mean a refusal, none as wide as Exception"
        elif lost := _lost_answer(one):
            yield (
                f"rejects names {one.__name__}, and so {lost}: after a lost answer nobody knows what was done; "
                "list the classes that mean a refusal one by one"
            )


def _lost_answer(listed: type[Exception]) -> str | None:
    """The name of a class that means a lost answer and that `listed` is, or covers within its own library."""
    for owner in listed.__mro__:
        if _LOST.search(owner.__name__):
            return owner.__name__
    library = listed.__module__.partition(".")[0]
    waiting = list(listed.__subclasses__())
    while waiting:
        below = waiting.pop()
        if below.__module__.partition(".")[0] == library and _LOST.search(below.__name__):
            return below.__name__
        waiting.extend(below.__subclasses__())
    return None


def check_function(function: Callable[..., Any]) -> None:
    """Refuse what is no function whose call does the work.

    Raises:
        UsageError: a class, an instance, a generator function.
    """
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise UsageError(f"@tool takes a function, not {type(function).__name__}: write a function that calls it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{function.__qualname__} is a generator function, whose body does not run when it is called: "
            "collect its items and return them"
        )


def check_look(name: str, function: Any, what: str = "postcondition") -> None:
    """Refuse what cannot be called with the effect alone.

    Raises:
        UsageError: a generator function, another signature.
    """
    if not callable(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{name}: a {what} is a function, and no generator")
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise UsageError(
            f"{name}: a {what} takes the effect alone; read effect.arguments, effect.id and effect.context in it"
        ) from None
