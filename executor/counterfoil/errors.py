"""What is raised.

Owns every exception of the public interface. `UsageError` is for the developer and says how to mend it;
`LedgerError` is for the operator of the database. `Rejected`, `Throttled` and `Forbidden` are raised BY tools, to say
that the provider answered no. What the model or the world does wrong is an observation, never an exception.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class CounterfoilError(Exception):
    """The root of everything that Counterfoil raises."""


class UsageError(CounterfoilError):
    """The developer has declared or called something in a way that cannot be right. The text says how to mend it."""


class LedgerError(CounterfoilError):
    """The ledger cannot be used as it is: missing, unreachable, another schema version, read-only.

    The text never carries a database driver's own message: those show hosts, parameters and rows.
    """


class LedgerUnavailable(LedgerError):
    """The ledger could not be asked, or its answer was lost. `certain` is True when surely nothing was written."""

    def __init__(self, message: str, *, certain: bool) -> None:
        super().__init__(message)
        self.certain = certain


class StaleVersion(CounterfoilError):
    """The effect has changed since it was read, so that what a person decided no longer speaks about it."""


class DeadlinePassed(CounterfoilError):
    """Raised by `effect.sending()` when nothing may be sent any more. Do not catch it."""


class ToolRefusal(CounterfoilError):
    """The root of what a tool raises when the provider surely refused."""

    code = "rejected"

    def __init__(
        self,
        code: str,
        reason: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        candidates: Sequence[Any] = (),
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.field = field
        self.hint = hint
        self.candidates = tuple(candidates)
        self.retry_after_s = retry_after_s
        self.status = status


class Rejected(ToolRefusal):
    """The provider refused: the effect has not happened and will not. Raise it only when the answer says so.

    Args:
        code: a stable word for the refusal, for example "card_declined"; it becomes part of what the model reads.
        reason: why, in the operation's own terms; no host, no upstream text.
        field: the argument to change, if one is to blame.
        hint: what a working call looks like.
        candidates: other values that would work, for example free slots.
        status: the HTTP status, where there is one. 409, 422 and 429 never speak for earlier attempts.

    Raised from a lost answer (`raise Rejected(...) from timeout`) it proves nothing and is treated as lost.

    Example:
        >>> Rejected("card_declined", "the card was declined", hint="ask for another card").code
        'card_declined'
    """

    def __init__(
        self,
        code: str,
        reason: str,
        *,
        field: str | None = None,
        hint: str | None = None,
        candidates: Sequence[Any] = (),
        status: int | None = None,
    ) -> None:
        super().__init__(code, reason, field=field, hint=hint, candidates=candidates, status=status)


class Throttled(ToolRefusal):
    """The provider surely did nothing and asks to come later. `retry_after_s` is in seconds, None when unsaid.

    Example:
        >>> Throttled(2.5).retry_after_s
        2.5
    """

    def __init__(self, retry_after_s: float | None = None, reason: str = "too many requests") -> None:
        super().__init__("rate_limited", reason, retry_after_s=retry_after_s, status=429)


class Forbidden(ToolRefusal):
    """The provider refused for want of a right. No change of arguments helps; the run should stop.

    Example:
        >>> Forbidden("the account may not refund").code
        'forbidden'
    """

    def __init__(self, reason: str, *, hint: str | None = None) -> None:
        super().__init__("forbidden", reason, hint=hint, status=403)
