"""What a tool's function holds in its hand while it runs: the `Effect`, and the gate that it sends through.

Owns the handle and its one lock. It decides nothing about verdicts and touches no ledger: the runner makes it, passes
it in, and reads off it afterwards whether anything may have left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Any

from counterfoil.effect import reference_name
from counterfoil.errors import DeadlinePassed, UsageError

if TYPE_CHECKING:
    import sqlalchemy as sa


class GateState(Enum):
    """Where an attempt stands with its sending."""

    UNTOUCHED = "untouched"
    SENDING = "sending"
    SENT = "sent"
    SHUT = "shut"


class Gate:
    """The one lock of an attempt (protocol N3): once `never_sent` is recorded, nothing can pass any more.

    `remaining` answers the seconds until the deadline; zero or less means that it is over.
    """

    def __init__(self, remaining: Callable[[], float]) -> None:
        self._lock = threading.Lock()
        self._remaining = remaining
        self.state = GateState.UNTOUCHED
        self.key_read = False
        self.refused = False
        self.left_by: BaseException | None = None

    @property
    def remaining_s(self) -> float:
        return self._remaining()

    def enter(self) -> None:
        with self._lock:
            if self.state is GateState.SHUT:
                self.refused = True
                raise DeadlinePassed("this attempt is over: nothing may be sent any more")
            if self._remaining() <= 0:
                self.refused = True
                raise DeadlinePassed("the deadline of this attempt is over: nothing may be sent any more")
            # A second block is a second request: from then on no failure proves that nothing was sent.
            self.state = GateState.SENDING if self.state is GateState.UNTOUCHED else GateState.SENT

    def leave(self) -> None:
        """The block ended well. When an error leaves it, the state stays SENDING: the failure may then prove."""
        with self._lock:
            self.state = GateState.SENT

    def shut(self) -> bool:
        """Close the gate for good; True when nothing had passed it."""
        with self._lock:
            if self.state in (GateState.UNTOUCHED, GateState.SHUT):
                self.state = GateState.SHUT
                return True
            return False


class Effect:
    """The effect that a tool's function, or its postcondition, works for.

    Example:
        >>> effect = Effect(id="cf-abc", provider_key="cf-abc-k0")
        >>> effect.id
        'cf-abc'
    """

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - the field's public name
        provider_key: str = "",
        provider_keys: tuple[str, ...] = (),
        arguments: Mapping[str, Any] | Callable[[], Mapping[str, Any]] | None = None,
        context: Any = None,
        attempt: int = 0,
        gate: Gate | None = None,
        connection: sa.Connection | None = None,
        original: Effect | None = None,
        value: Any = None,
        references: tuple[str, ...] = (),
    ) -> None:
        self._id = id
        self._provider_key = provider_key
        self._provider_keys = provider_keys or ((provider_key,) if provider_key else ())
        self._arguments = arguments if callable(arguments) else dict(arguments or {})
        self._context = context
        self._attempt = attempt
        self._gate = gate
        self._connection = connection
        self._reference: str | None = None
        self._original = original
        self._value = value
        self._references = references

    @property
    def id(self) -> str:
        """The public name of the effect: stable for ever, at most 64 characters of `[a-z0-9-]`, no personal data.

        Plant it where the postcondition can search for it: metadata, UID, Message-ID, resource name.
        """
        return self._id

    @property
    def provider_key(self) -> str:
        """For a de-duplication header only. It may be renewed after a refusal; search for `id` instead."""
        if self._gate is not None:
            self._gate.key_read = True
        return self._provider_key

    @property
    def provider_keys(self) -> tuple[str, ...]:
        """Every provider key that was ever used for this effect, oldest first."""
        if self._gate is not None:
            self._gate.key_read = True
        return self._provider_keys

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The validated arguments by name, as the ledger keeps them. Secrets are never among them."""
        if callable(self._arguments):  # few functions ask, and reading them back is not for nothing
            self._arguments = dict(self._arguments())
        return self._arguments

    @property
    def context(self) -> Any:
        """What the caller gave as `context=`: tokens, sessions. Never stored. None when looking in another process."""
        return self._context

    @property
    def original(self) -> Effect:
        """In a revoke or a compensation: the effect that is to be taken back.

        Raises:
            UsageError: this effect takes nothing back.
        """
        if self._original is None:
            raise UsageError("effect.original is there in a revoke or a compensation only")
        return self._original

    @property
    def value(self) -> Any:
        """Of `effect.original`: what its tool returned, as JSON data; None where nothing was kept."""
        return self._value

    @property
    def references(self) -> tuple[str, ...]:
        """Of `effect.original`: the provider's names for it, as far as they are known."""
        return self._references

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; 0 in a postcondition."""
        return self._attempt

    @property
    def remaining_s(self) -> float:
        """Seconds until the deadline, never below 0. Feed it to the client's timeout.

        Raises:
            UsageError: outside an attempt or a look.
        """
        return max(0.0, self._the_gate().remaining_s)

    @property
    def connection(self) -> sa.Connection:
        """The ledger's own transaction, for a tool that is declared `same_transaction=True`: a SQLAlchemy connection.

        What is written through it and the record of it are committed together, or neither is. It is the ledger that
        commits: do not commit, roll back or close it; savepoints (`begin_nested()`) are yours.

        Raises:
            DeadlinePassed: the attempt was given up, or has ended.
            UsageError: the tool is not declared so.
        """
        if self._connection is None:
            raise UsageError("effect.connection belongs to tools that are declared @tool(..., same_transaction=True)")
        if self._the_gate().state is GateState.SHUT:
            raise DeadlinePassed("this attempt is over: nothing of it will be committed")
        return self._connection

    @contextmanager
    def sending(self) -> Iterator[None]:
        """Mark the block that sends. With `sends="marked"` everything that fails before it is proven `never_sent`.

        Raises:
            DeadlinePassed: the deadline is over, or the attempt was given up.
            UsageError: in a postcondition: a look never sends.
        """
        gate = self._the_gate()
        if self._attempt == 0:
            raise UsageError("a postcondition only looks: effect.sending() belongs into the tool's function")
        gate.enter()
        try:
            yield
        except BaseException as problem:
            gate.left_by = problem
            raise
        gate.leave()

    @property
    def reference(self) -> str | None:
        """The provider's name for what this attempt made, as the function noted it; None when it noted none."""
        return self._reference

    @reference.setter
    def reference(self, name: object) -> None:
        # It is set after the send: raising here would turn a success into a doubt.
        self._reference = None if name is None or name == "" else reference_name(name)

    def _the_gate(self) -> Gate:
        if self._gate is None:
            raise UsageError("this effect is not being attempted; it is only a description")
        return self._gate

    def __repr__(self) -> str:
        return f"Effect(id={self._id!r}, attempt={self._attempt})"


_current: ContextVar[Effect | None] = ContextVar("counterfoil_effect", default=None)


def current_effect() -> Effect:
    """The effect of the attempt or look that runs here, for code that cannot take a parameter.

    Raises:
        UsageError: nothing of Counterfoil is running here.
    """
    effect = _current.get()
    if effect is None:
        raise UsageError("no effect is running here: current_effect() works inside a tool's function or postcondition")
    return effect


@contextmanager
def running(effect: Effect) -> Iterator[None]:
    """Make `effect` the current one for the block. For the runner."""
    token = _current.set(effect)
    try:
        yield
    finally:
        _current.reset(token)
