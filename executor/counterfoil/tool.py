"""What a tool is: a function that changes the world (or only reads it), with its declaration, checked.

Owns `@tool` and every refusal of a declaration that contradicts itself. It runs nothing and knows no ledger. There is
no registry: an executor is given its tools.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import (
    Any,
    Concatenate,
    Final,
    Generic,
    Literal,
    NoReturn,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    overload,
)

from counterfoil.arguments import Arguments
from counterfoil.attempt import Effect
from counterfoil.declaration import Declaration, Key
from counterfoil.effect import Absent, Found, Sends, Unclear
from counterfoil.errors import UsageError
from counterfoil.identity import ALL_ARGUMENTS, AllArguments
from counterfoil.policy import Policy
from counterfoil.signature import resolved_annotations

__all__ = ["ALL_ARGUMENTS", "AllArguments", "AnyTool", "Policy", "Tier", "Tool", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

Tier: TypeAlias = Literal["T0", "T1", "T2", "T3", "T5"]

_POLICY: Final = Policy()


class Tool(Generic[P, R]):
    """A declared tool. Made by `@tool`; called only through an executor.

    Attributes:
        function: the function itself, for its own tests.
        description: its docstring, for the model.
        is_async: it is a coroutine function.
        takes_effect: its first parameter is the `Effect`.
        key: the names of the arguments that name an effect, `ALL_ARGUMENTS`, or None for a read-only tool.
        key_names: the names alone, () for the other two.
        arguments: what it takes.
        postcondition_function: how to look, or None.
    """

    def __init__(self, function: Callable[..., Any], declared: Declaration) -> None:
        _check_function(function)
        self.function = function
        self.name = declared.name or function.__name__
        self.description = inspect.getdoc(function) or ""
        self.is_async = inspect.iscoroutinefunction(function)
        self.takes_effect = _takes_effect(function)
        self.key = declared.key
        self.read_only = declared.read_only
        self.repeatable = declared.repeatable
        self.idempotent = declared.idempotent
        self.same_transaction = declared.same_transaction
        self.sends: Sends = declared.sends
        self.rejects = declared.rejects
        self.policy = declared.policy
        self.key_names = declared.key_names
        self.postcondition_function: Callable[[Effect], Any] | None = None
        self.postcondition_is_async = False
        declared.check(self.name, self.description, takes_effect=self.takes_effect, is_async=self.is_async)
        self.arguments = Arguments(
            function,
            key=self.key_names,
            skip=1 if self.takes_effect else 0,
            repeatable=self.repeatable,
        )
        _check_key(self)

    @property
    def tier(self) -> Tier:
        """What an executor can do after a lost answer: T0 stop, T1 find it, T2 prove its absence too, T3 send again.
        T5: no answer can be lost, because the effect and its record are one transaction."""
        if self.same_transaction:
            return "T5"
        if self.policy.key_policy is not None or self.idempotent:
            return "T3"
        if self.postcondition_function is None:
            return "T0"
        return "T1" if self.policy.grace_s is None else "T2"

    def schema(self) -> dict[str, Any]:
        """Name, description and parameters (a JSON schema), as a model is shown them."""
        return {"name": self.name, "description": self.description, "parameters": self.arguments.schema()}

    @overload
    def postcondition(
        self, function: Callable[[Effect], Coroutine[Any, Any, Found[R] | Absent | Unclear]], /
    ) -> Callable[[Effect], Coroutine[Any, Any, Found[R] | Absent | Unclear]]: ...
    @overload
    def postcondition(
        self, function: Callable[[Effect], Found[R] | Absent | Unclear], /
    ) -> Callable[[Effect], Found[R] | Absent | Unclear]: ...
    def postcondition(self, function: Callable[[Effect], Any], /) -> Callable[[Effect], Any]:
        """Declare how to look whether the effect is there. Returns the function unchanged.

        It gets the `Effect` alone (`effect.id`, `effect.arguments`, `effect.provider_keys`), also in another process,
        and answers `Found`, `Absent` or `Unclear`. It must not change the world.

        Raises:
            UsageError: on a tool that only reads or is in one transaction with the ledger, a second time, or
                for a function that does not take just the effect.

        Example:
            >>> @tool(key=("order",))
            ... def charge(order: str) -> str:
            ...     '''Charge the card once for one order.'''
            ...     return order
            >>> @charge.postcondition
            ... def charged(effect: Effect) -> Found[str] | Absent | Unclear:
            ...     return Absent()
            >>> charge.tier
            'T1'
        """
        if self.read_only:
            raise UsageError(f"{self.name} only reads, so there is no effect to look for: drop its postcondition")
        if self.same_transaction:
            raise UsageError(f"{self.name} commits with the ledger, so there is no doubt to look into: drop the look")
        if self.postcondition_function is not None:
            raise UsageError(f"{self.name} has a postcondition already: make one function of the two")
        _check_look(self.name, function)
        self.postcondition_function = function
        self.postcondition_is_async = inspect.iscoroutinefunction(function)
        return function

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Refuse: nothing would be written to the ledger.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"{self.name} is a tool: call it through an executor, executor.call({self.name!r}, arguments, task=…); "
            f"in its own tests use {self.name}.function(…)"
        )

    def __repr__(self) -> str:
        return f"<Tool {self.name} {'read-only' if self.read_only else self.tier}>"


AnyTool: TypeAlias = Tool[..., Any]


class Decorator(Protocol):
    """What `tool(...)` returns: it takes the function, with or without an `Effect` first, blocking or a coroutine."""

    @overload
    def __call__(self, function: Callable[Concatenate[Effect, P], Coroutine[Any, Any, R]], /) -> Tool[P, R]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Effect, P], R], /) -> Tool[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Tool[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]: ...


def tool(
    *,
    key: Key | None = None,
    name: str | None = None,
    read_only: bool = False,
    repeatable: bool = False,
    idempotent: bool = False,
    same_transaction: bool = False,
    sends: Sends = "anywhere",
    rejects: tuple[type[Exception], ...] = (),
    policy: Policy = _POLICY,
) -> Decorator:
    """Declare a function as a tool.

    Args:
        key: the names of the arguments that say which effect is meant, across tasks, for example ("order",);
            `ALL_ARGUMENTS` takes all of them, within the task. Every tool that is not `read_only` needs it.
        name: what a model calls it, 1 to 64 of `[a-zA-Z0-9_-]`; the function's own name when left out.
        read_only: it changes nothing in the world: no ledger, no key, no postcondition.
        repeatable: a model may ask for the same thing once more, with an argument `occurrence`.
        idempotent: sending it again does no harm within `policy.idempotent_window_s`.
        same_transaction: its whole effect is rows in the ledger's own database, written through `effect.connection`:
            they are committed together with the record, or not at all. The function must not be a coroutine.
        sends: "anywhere": no exception proves that nothing was sent. "once": at most one request in all, reads
            included, by a client that neither resends nor follows redirects, so that a failure to connect is the
            failure of this one. "marked": at most one request that changes the world, by such a client, and only
            inside `effect.sending()`; before the block the function may read what it likes.
        rejects: exceptions that surely mean that the provider refused.
        policy: how long and how often.

    Raises:
        UsageError: a declaration that contradicts itself; the text says how to mend it.

    Example:
        >>> @tool(key=("order",), sends="marked", policy=Policy(timeout_s=10, grace_s=60))
        ... def charge(effect: Effect, order: str, cents: int) -> str:
        ...     '''Charge the customer's card once for one order.'''
        ...     with effect.sending():
        ...         return f"paid {cents}"
        >>> charge
        <Tool charge T0>
        >>> sorted(charge.schema()["parameters"]["properties"])
        ['cents', 'order']
    """
    declared = Declaration(
        key=key,
        name=name,
        read_only=read_only,
        repeatable=repeatable,
        idempotent=idempotent,
        same_transaction=same_transaction,
        sends=sends,
        rejects=rejects,
        policy=policy,
    )

    def decorate(function: Callable[..., Any], /) -> Tool[..., Any]:
        return Tool(function, declared)

    return cast("Decorator", decorate)


# ---------------------------------------------------------------- refusals


def _check_function(function: Callable[..., Any]) -> None:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise UsageError(f"@tool takes a function, not {type(function).__name__}: write a function that calls it")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"{function.__qualname__} is a generator function, whose body does not run when it is called: "
            "collect its items and return them"
        )


def _takes_effect(function: Callable[..., Any]) -> bool:
    hints = resolved_annotations(function)
    takes = False
    for place, one in enumerate(inspect.signature(function).parameters.values()):
        hint = hints.get(one.name)
        if hint is not Effect and Effect not in get_args(hint):
            continue
        if hint is not Effect or place > 0 or one.kind is one.KEYWORD_ONLY:
            raise UsageError(
                f"{function.__qualname__}: the effect is handed in as the first argument by position; "
                f"make {one.name}: Effect the first parameter"
            )
        takes = True
    return takes


def _check_key(made: AnyTool) -> None:
    names = made.arguments.names
    for one in made.key_names:
        if one not in names:
            known = ", ".join(names) or "none"
            raise UsageError(
                f"the tool {made.name}: key names {one!r}, which is no argument of it (these are: {known})"
            )
        if one in made.arguments.never_identity:
            raise UsageError(
                f"the tool {made.name}: key names {one!r}, which is Content or Secret and identifies nothing"
            )
    if len(set(made.key_names)) < len(made.key_names):
        raise UsageError(f"the tool {made.name}: key names an argument twice; name it once")


def _check_look(name: str, function: Any) -> None:
    if not callable(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{name}: a postcondition is a function that returns Found, Absent or Unclear")
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise UsageError(
            f"{name}: a postcondition takes the effect alone; read effect.arguments, effect.id and effect.context in it"
        ) from None
