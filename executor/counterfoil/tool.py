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
    overload,
)

from counterfoil.arguments import Arguments
from counterfoil.attempt import Effect
from counterfoil.changes import UndoKind
from counterfoil.declaration import Cost, Declaration, Key, check_function, check_look
from counterfoil.effect import Absent, Found, Sends, Unclear
from counterfoil.errors import UsageError
from counterfoil.identity import ALL_ARGUMENTS, AllArguments
from counterfoil.policy import Policy
from counterfoil.signature import takes_effect
from counterfoil.spec import ErrorSpec, check_specs

__all__ = ["ALL_ARGUMENTS", "AllArguments", "AnyTool", "Policy", "Tier", "Tool", "tool"]

P = ParamSpec("P")
R = TypeVar("R")

Tier: TypeAlias = Literal["T0", "T1", "T2", "T3", "T4", "T5"]

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
        errors: its own rows of the table of codes.
        postcondition_function: how to look, or None.
    """

    def __init__(self, function: Callable[..., Any], declared: Declaration) -> None:
        check_function(function)
        self.function = function
        self.name = declared.name or function.__name__
        self.description = inspect.getdoc(function) or ""
        self.is_async = inspect.iscoroutinefunction(function)
        self.takes_effect = takes_effect(function)
        self.key = declared.key
        self.read_only = declared.read_only
        self.repeatable = declared.repeatable
        self.idempotent = declared.idempotent
        self.same_transaction = declared.same_transaction
        self.sends: Sends = declared.sends
        self.rejects = declared.rejects
        self.policy = declared.policy
        self.cost = declared.cost
        self.key_names = declared.key_names
        self.postcondition_function: Callable[[Effect], Any] | None = None
        self.postcondition_is_async = False
        self.undoes: AnyTool | None = None
        self.undo_kind: UndoKind | None = None
        self.revoke_tool: AnyTool | None = None
        self.compensation_tool: AnyTool | None = None
        declared.check(self.name, self.description, takes_effect=self.takes_effect, is_async=self.is_async)
        self.arguments = Arguments(
            function,
            key=self.key_names,
            skip=1 if self.takes_effect else 0,
            repeatable=self.repeatable,
        )
        declared.check_names(self.name, self.arguments.names, self.arguments.never_identity)
        check_specs(
            self.name,
            declared.errors,
            names=self.arguments.names,
            rejects=self.rejects,
            problems_of=self.arguments.problems_of,
        )
        self.errors = declared.errors

    def revoke(
        self, *, sends: Sends = "anywhere", rejects: tuple[type[Exception], ...] = (), policy: Policy = _POLICY
    ) -> Callable[[Callable[[Effect], Any]], AnyTool]:
        """Declare how to take an unknown effect back (P3): `executor.revoke(effect_id)` runs it.

        The function reads `effect.original` (id, arguments, provider_keys). It returns `Revoked()` when the provider
        has acknowledged and keeps a stone, so that it refuses the original from now on, also one that arrives late, or
        `Found(…)` when the original is there already. It must be idempotent: it is sent again while it is unknown.

        Raises:
            UsageError: on a read-only tool, a second time, or a function that does not take just the effect.

        Example:
            >>> from counterfoil.effect import Revoked
            >>> @tool(key=("slot",))
            ... def book(slot: str) -> None:
            ...     '''Book one slot.'''
            >>> @book.revoke()
            ... def withdraw(effect: Effect) -> Revoked:
            ...     '''Withdraw the booking of one slot.'''
            >>> (book.tier, withdraw.name)
            ('T4', 'book-revoke')
        """

        def decorate(function: Callable[[Effect], Any], /) -> AnyTool:
            self.revoke_tool = self._undo("revoke", self.revoke_tool, function, sends, rejects, policy)
            return self.revoke_tool

        return decorate

    def compensation(
        self, *, sends: Sends = "anywhere", rejects: tuple[type[Exception], ...] = (), policy: Policy = _POLICY
    ) -> Callable[[Callable[[Effect], Any]], AnyTool]:
        """Declare how to make up for an applied effect, for example a refund: `executor.compensate(effect_id)` runs it.

        It is an effect of its own, one for each original, with its own policy; register a postcondition on what this
        returns. The function reads `effect.original` (arguments, value, references).

        Raises:
            UsageError: as for `revoke`.
        """

        def decorate(function: Callable[[Effect], Any], /) -> AnyTool:
            made = self._undo("compensation", self.compensation_tool, function, sends, rejects, policy)
            self.compensation_tool = made
            return made

        return decorate

    def _undo(
        self,
        kind: UndoKind,
        there: AnyTool | None,
        function: Callable[[Effect], Any],
        sends: Sends,
        rejects: tuple[type[Exception], ...],
        policy: Policy,
    ) -> AnyTool:
        if self.read_only or self.undoes is not None:
            raise UsageError(f"{self.name} changes nothing that could be taken back: drop its {kind}")
        if self.same_transaction and kind == "revoke":
            raise UsageError(f"{self.name} commits with the ledger, so there is no doubt to take back: drop its revoke")
        if there is not None:
            raise UsageError(f"{self.name} has a {kind} already: make one function of the two")
        check_look(self.name, function, kind)
        name = f"{self.name}-{kind}"
        declared = Declaration(
            key=ALL_ARGUMENTS,
            name=name,
            read_only=False,
            repeatable=False,
            idempotent=False,
            same_transaction=False,
            sends=sends,
            rejects=rejects,
            policy=policy,
        )
        made: AnyTool = Tool(function, declared)
        if not made.takes_effect or made.arguments.names:
            raise UsageError(f"{name}: the function takes the effect alone; read effect.original in it")
        made.undoes, made.undo_kind = self, kind
        return made

    @property
    def tier(self) -> Tier:
        """What an executor can do after a lost answer: T0 stop, T1 find it, T2 prove its absence too, T3 send again,
        T4 force an end by a revoke. T5: no answer can be lost, because effect and record are one transaction."""
        if self.same_transaction:
            return "T5"
        if self.revoke_tool is not None:
            return "T4"
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
        check_look(self.name, function)
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
    errors: tuple[ErrorSpec, ...] = (),
    cost: Cost | None = None,
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
        errors: the tool's own refusals, each with what a model is told of it.
        cost: what it costs, from its arguments by name: a unit and whole minor units, for example
            `lambda a: ("eur", a["amount_minor"])`. It counts against the budget of the task.
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
        cost=cost,
        policy=policy,
        errors=errors,
    )

    def decorate(function: Callable[..., Any], /) -> Tool[..., Any]:
        return Tool(function, declared)

    return cast("Decorator", decorate)
