"""What the end of an attempt says of the service behind its tool, for the breaker.

Only passing faults of infrastructure count: unavailable, timed out, a status of 500 or more. A refusal, a wrong
argument, a bug in the tool and a cancellation are no fault of the service.
"""

from __future__ import annotations

from typing import Final

from counterfoil.effect import Lost, NeverSent, Refused
from counterfoil.errors import DeadlinePassed
from counterfoil.failure import explicit_chain, is_transport, status_of
from counterfoil.guard import Sign

_TIMED_OUT: Final = 408
_SERVER_FAULTS: Final = 500
# Too early, too many: the service is there, and wants to be left alone. Neither counts.
_BUSY: Final = frozenset({425, 429})


def sign_of(problem: BaseException, outcome: NeverSent | Refused | Lost) -> Sign:
    """The sign of an attempt whose function raised `problem`, which was judged to be `outcome`.

    Example:
        >>> sign_of(ConnectionResetError(), Lost("ConnectionResetError")), sign_of(KeyError("x"), Lost("KeyError"))
        (<Sign.FAULT: 'fault'>, <Sign.NOTHING: 'nothing'>)
    """
    if not isinstance(problem, Exception) or any(isinstance(one, DeadlinePassed) for one in explicit_chain(problem)):
        return Sign.NOTHING
    status = outcome.status if isinstance(outcome, Refused) else status_of(problem)
    if status is not None:
        return _of_status(status)
    refused = isinstance(outcome, Refused)  # without a status it may be the tool's own, made before anything was sent
    return Sign.FAULT if not refused and is_transport(problem) else Sign.NOTHING


def _of_status(status: int) -> Sign:
    if status in _BUSY:
        return Sign.NOTHING
    return Sign.FAULT if status >= _SERVER_FAULTS or status == _TIMED_OUT else Sign.ANSWER
