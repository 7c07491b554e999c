"""How long a call waits before its next move, and what it has done so far: pure arithmetic, no step of its own.

Owns the pauses between attempts and looks of one call, within its patience. Whether an attempt may begin it does not
know: the ledger does.
"""

from __future__ import annotations

from dataclasses import dataclass

from counterfoil.effect import MICROSECONDS, NeverSent, Outcome, Proof, Refused, Returned, Row
from counterfoil.steps import AttemptEnd, Request

LOOK_SLOWEST_S = 5.0


@dataclass(slots=True)
class Course:
    """What this call has done so far. `patience_s` is what is left of its waiting."""

    patience_s: float
    used: int = 0
    looks: int = 0
    looked: bool = False
    waited: bool = False
    polls: int = 0
    sent: bool = False
    resend_over: bool = False
    key_expired: bool = False
    end: AttemptEnd | None = None
    held: AttemptEnd | None = None

    @property
    def mine(self) -> bool:
        """True when an attempt of this call itself returned."""
        return self.end is not None and isinstance(self.end.outcome, Returned)


def asked_to_wait(outcome: Outcome) -> bool:
    """True when the provider said for how long: then the pause is not shortened by jitter."""
    return isinstance(outcome, Refused) and outcome.retry_after_s is not None


def pause_before_next(request: Request, course: Course, row: Row) -> float | None:
    """Seconds to wait before the next attempt of this call; None when there is to be none."""
    if course.used >= request.attempts_max:
        return None
    outcome = course.end.outcome if course.end is not None else None
    back_off = min(request.wait_s * 2 ** max(0, course.used - 1), request.wait_max_s)
    match outcome:
        case NeverSent(_, retryable) if row.proof in (Proof.NEVER_SENT, Proof.SAME_TRANSACTION):
            pause = back_off if retryable else None
        case Refused(code="rate_limited") as refused if row.proof is Proof.REJECTED:
            pause = back_off if refused.retry_after_s is None else refused.retry_after_s
        case Refused() if row.proof is Proof.REJECTED:
            pause = None
        case _:  # absence has been waited for already
            pause = 0.0
    return pause if pause is not None and pause <= course.patience_s else None


def asked_pause(course: Course) -> float:
    """Seconds that the provider asked to wait before the next request. More than is left of patience: none follows."""
    outcome = course.end.outcome if course.end is not None else None
    if not isinstance(outcome, Refused) or not outcome.retry_after_s or course.held is course.end:
        return 0.0
    course.held = course.end
    if outcome.retry_after_s <= course.patience_s:
        return outcome.retry_after_s
    course.resend_over = True
    return 0.0


def may_resend(request: Request, course: Course) -> bool:
    """Whether it is worth asking for P2: the ledger decides whether it holds."""
    return request.keyed and not course.resend_over and not course.waited and course.used < request.attempts_max


def pause_before_look(request: Request, course: Course, row: Row) -> float | None:
    """Seconds until it is worth looking (or sending under the key) again; None when patience ends before."""
    if not request.looks and not may_resend(request, course):
        return None
    pause = min(request.wait_s * 2 ** max(0, course.looks - 1), LOOK_SLOWEST_S)
    for instant in (row.absent_from, row.sends_until):
        if instant is not None and row.now <= instant:
            pause = min(pause, (instant - row.now + 1000) / MICROSECONDS)
    return pause if pause <= course.patience_s else None
