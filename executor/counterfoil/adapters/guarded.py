"""`guard`: a function or a framework's tool that is there already becomes a tool of Counterfoil.

Owns finding the function inside the frameworks' tool objects, by the names of their attributes: no framework is
imported. What the key, the policy and the postcondition mean stands with `counterfoil.tool`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final

from counterfoil.attempt import Effect
from counterfoil.declaration import Key
from counterfoil.effect import Sends
from counterfoil.errors import UsageError
from counterfoil.policy import Policy
from counterfoil.signature import resolved_annotations
from counterfoil.tool import AnyTool, tool

# Where frameworks keep the function of a tool: LangChain (the coroutine first, where there are both), Pydantic AI,
# the MCP server's, Strands.
_HOLDERS: Final = ("coroutine", "func", "function", "fn", "_tool_func")


def guard(
    existing: Any,
    *,
    key: Key,
    policy: Policy | None = None,
    postcondition: Callable[[Effect], Any] | None = None,
    name: str | None = None,
    description: str | None = None,
    context: str | None = None,
    sends: Sends = "anywhere",
    rejects: tuple[type[Exception], ...] = (),
    repeatable: bool = False,
    idempotent: bool = False,
) -> AnyTool:
    """Make a tool of a function, or of a framework's tool object that holds one.

    The function stays as it is; where it sends, it reaches its effect through `current_effect()`, to plant
    `current_effect().id` and to send `current_effect().provider_key`. Give the tool to an executor, and expose that to
    the framework: the unguarded one must not stay beside it.

    Args:
        existing: the function or the tool. What it raises is a lost answer, unless `rejects` says otherwise: list there
            a framework's own "tell the model to try again" only if the function raises it before it sends anything.
        key: what says which effect is meant; see `tool`.
        postcondition: how to look whether the effect is there.
        name: None: the tool's own.
        description: None: the tool's own, or the docstring.
        context: the parameter that the framework fills with its own context; it gets `effect.context`. None: the first
            one, where the tool says that it takes one.

    Raises:
        UsageError: no function is in it; a declaration that contradicts itself.

    Example:
        >>> from counterfoil import current_effect
        >>> def charge(order: str, cents: int) -> str:
        ...     '''Charge the card once for one order.'''
        ...     return f"{cents} under {current_effect().id}"
        >>> guard(charge, key=("order",), policy=Policy(timeout_s=10))
        <Tool charge T0>
    """
    function = _function_of(existing)
    if context is None and getattr(existing, "takes_ctx", False):
        context = next(iter(inspect.signature(function).parameters))
    made: AnyTool = tool(
        key=key,
        name=name or _text(existing, "name"),
        sends=sends,
        rejects=rejects,
        repeatable=repeatable,
        idempotent=idempotent,
        policy=policy or Policy(),
    )(_standing_for(function, description or _text(existing, "description"), context))
    if postcondition is not None:
        made.postcondition(postcondition)
    return made


# ---------------------------------------------------------------- details


def _function_of(existing: Any) -> Callable[..., Any]:
    if inspect.isroutine(existing):
        return existing
    for holder in _HOLDERS:
        found = getattr(existing, holder, None)
        if inspect.isroutine(found):
            return found
    raise UsageError(
        f"guard() finds no function in a {type(existing).__name__}: give it the function that the tool was made from"
    )


def _text(existing: Any, name: str) -> str | None:
    found = None if inspect.isroutine(existing) else getattr(existing, name, None)
    return found if isinstance(found, str) and found else None


def _standing_for(function: Callable[..., Any], description: str | None, context: str | None) -> Callable[..., Any]:
    """A function that takes the effect, so that every policy is open to it, and what `function` takes beside that."""
    hints = resolved_annotations(function)
    if Effect in hints.values():
        raise UsageError(f"{function.__qualname__} takes the effect already: decorate it with @tool(…)")
    parameters = inspect.signature(function).parameters
    if context is not None and context not in parameters:
        raise UsageError(f"{function.__qualname__} has no parameter {context!r} to give the framework's context to")

    def whole(effect: Effect, values: dict[str, Any]) -> dict[str, Any]:
        return values if context is None else {context: effect.context, **values}

    if inspect.iscoroutinefunction(function):

        async def stand_in_async(effect: Effect, **values: Any) -> Any:
            return await function(**whole(effect, values))

        made: Callable[..., Any] = stand_in_async
    else:

        def stand_in(effect: Effect, **values: Any) -> Any:
            return function(**whole(effect, values))

        made = stand_in
    first = inspect.Parameter("effect", inspect.Parameter.POSITIONAL_ONLY, annotation=Effect)
    kept = [
        one.replace(kind=one.KEYWORD_ONLY) if one.kind is one.POSITIONAL_OR_KEYWORD else one
        for one in parameters.values()
        if one.name != context
    ]
    vars(made)["__signature__"] = inspect.Signature([first, *kept])
    made.__annotations__ = {"effect": Effect} | {name: hint for name, hint in hints.items() if name != context}
    made.__name__, made.__qualname__, made.__module__ = function.__name__, function.__qualname__, function.__module__
    made.__doc__ = description or function.__doc__
    return made
