"""ONE CALL, as a pure generator of typed steps: validate is done before, everything after stands here.

Owns the order of things: read, begin, attempt, settle, look, wait, answer. No I/O, no clock, no SQL, no randomness:
each `yield` is a step that a shell carries out and answers, and a point where a crash may fall. Whether an attempt may
begin is not decided here but by the ledger's write, which asks the guards too; this only asks for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from counterfoil.changes import ORIGINAL, Applied, Declined
from counterfoil.effect import NeverSent, Proof, Refused, Returned, Row, Verdict
from counterfoil.errors import LedgerUnavailable
from counterfoil.guard import Blocked
from counterfoil.observe import Observation, Words, about
from counterfoil.pacing import Course, asked_pause, asked_to_wait, may_resend, pause_before_look, pause_before_next
from counterfoil.settling import settling
from counterfoil.steps import (
    BUSY,
    FULL,
    Ask,
    Attempt,
    AttemptEnd,
    Flow,
    Read,
    Request,
    Sight,
    Sleep,
    Start,
    Started,
    Transact,
    Write,
    do,
)
from counterfoil.telling import (
    applied_words,
    blocked_call,
    conflict,
    ending_words,
    no_room,
    not_taken_back,
    refused_words,
    still_there,
    under_way,
    unknown_words,
)

POLL_FIRST_S = 0.05
POLL_SLOWEST_S = 0.5
# Guards of a resend that waiting does not lift.
LASTING_GUARDS = frozenset({"unknown", "key_expired", "too_many_attempts"})


def call(request: Request) -> Flow[Observation]:
    """One call of one effect, from its first reading to what the model is told."""
    course = Course(request.patience_s)
    row: Row | None = None
    try:
        row = yield from do(Read(request.key))
        while True:
            step = yield from _advance(request, course, row)
            if isinstance(step, Observation):
                return step
            row = step
    except LedgerUnavailable:
        return _without_ledger(request, course, row)


def _advance(request: Request, course: Course, row: Row | None) -> Flow[Observation | Row | None]:
    """One move: an observation ends the call, a row (or None) is the state to go on from."""
    if row is None:
        return (yield from _begin(request, course, row))
    if row.fingerprint != request.fingerprint and not row.replaceable:
        yield from do(Sight(row, "key_conflict"))
        return conflict(request.tool, request.key_names, request.echo, row, request.content)
    match row.verdict:
        case Verdict.EFFECT_APPLIED:
            return (yield from _tell_applied(request, course, row))
        case Verdict.NO_EFFECT:
            return (yield from _go_on_from_none(request, course, row))
        case Verdict.EFFECT_UNKNOWN:
            if row.live:
                return (yield from _wait(request, course, row))
            return (yield from _doubt(request, course, row))
        case _:
            assert_never(row.verdict)


# ---------------------------------------------------------------- begin, attempt, settle


def _begin(request: Request, course: Course, row: Row | None) -> Flow[Observation | Row | None]:
    if request.transacts:
        return (yield from _transact(request, course, row))
    started = yield from do(Start(fresh=row is None))
    match started.answer:
        case Declined(found, guard):
            if started.interrupt is not None:
                raise started.interrupt
            if started.answer.blocked is not None:
                return _guarded(request, course, found, started.answer.blocked)
            if guard == FULL:
                return no_room(request.tool, row, request.wait_max_s)
            if guard.startswith(ORIGINAL):
                return not_taken_back(request.tool, guard.removeprefix(ORIGINAL))
            if guard == "revoking" and row is not None:
                return about(row, Words(tool=request.tool, code="revoking"))
            course.resend_over |= guard in LASTING_GUARDS
            course.key_expired |= guard == "key_expired"
            return still_there(found)
        case Applied(begun):
            return (yield from _attempt(request, course, begun, started))


def _transact(request: Request, course: Course, row: Row | None) -> Flow[Observation | Row | None]:
    """Begin, attempt and settle as one: afterwards all of it counts, or nothing does."""
    try:
        done = yield from do(Transact(row, course.patience_s))
    except LedgerUnavailable as trouble:
        course.sent = not trouble.certain
        raise
    if done.interrupt is not None:
        raise done.interrupt
    if done.end is not None:
        course.used += 1
        course.end = done.end
    match done.answer:
        case Declined(held, blocked=Blocked() as blocked):
            return _guarded(request, course, held, blocked)
        case Declined(held, guard) if guard == BUSY:
            return under_way(request.tool, still_there(held))
        case Declined(guard=guard) if guard == FULL:
            return no_room(request.tool, row, request.wait_max_s)
        case Applied(found) | Declined(found):
            return still_there(found)


def _guarded(request: Request, course: Course, row: Row | None, blocked: Blocked) -> Observation | Row:
    """A guard is against an attempt. It speaks only where there is no effect; what is applied or unknown is told."""
    course.resend_over = True
    if row is None or row.verdict is Verdict.NO_EFFECT:
        return blocked_call(request.tool, row, blocked, request.echo)
    return row


def _attempt(request: Request, course: Course, begun: Row, started: Started) -> Flow[Observation | Row | None]:
    resend = begun.open_attempts.bit_count() > 1  # as the ledger granted it, not as this call had seen the row
    if started.interrupt is not None:
        end = AttemptEnd(NeverSent("cancelled before the start", retryable=False), interrupt=started.interrupt)
    else:
        course.used += 1
        course.sent = True
        course.looked = False
        end = yield from do(Attempt(begun, started.deadline, resend))
    course.end = end
    settle = settling(
        begun, end, request.holder, speaks_for_key=request.speaks_for_key,
        breaker=request.breaker, admitted=started.admitted,
    )  # fmt: skip
    try:
        answer = yield from do(Write(settle))
    except LedgerUnavailable:
        if end.interrupt is not None:  # whatever became of the record, the caller's cancellation goes through
            raise end.interrupt from None
        raise
    if end.interrupt is not None:
        raise end.interrupt
    if resend and isinstance(end.outcome, NeverSent) and not end.outcome.retryable:
        course.resend_over = True
    found = still_there(answer.row)
    course.sent = False
    if request.verifies and isinstance(end.outcome, Returned):
        found = yield from _verify(found)
    return found


def _verify(row: Row) -> Flow[Row]:
    """Look after a success. A ledger that fails here takes nothing from what is settled."""
    try:
        asked = yield from do(Ask(row))
        return still_there((yield from do(Write(replace(asked.look, verifies=True)))).row)
    except LedgerUnavailable:
        return replace(row, verified=False)


# ---------------------------------------------------------------- where there is no effect


def _go_on_from_none(request: Request, course: Course, row: Row) -> Flow[Observation | Row | None]:
    if course.waited:
        # A waiter answers with the end of the attempt that it waited for: it does not begin (protocol F25).
        words = ending_words(request.tool, request.echo, row, request.errors)
        if row.fingerprint != request.fingerprint:
            reason = "Another call with the same key and other arguments was under way; nothing was sent for this one."
            words = Words(tool=request.tool, code="unavailable", reason=reason, retry_after_s=request.wait_s)
        yield from do(Sight(row, words.code))
        return about(row, words)
    if course.end is None:
        return (yield from _begin(request, course, row))
    pause = pause_before_next(request, course, row)
    if pause is None:
        return about(row, _refusal_words(request, course, row))
    if pause:
        yield from _sleep(course, pause, jitter=not asked_to_wait(course.end.outcome))
    return (yield from _begin(request, course, row))


def _refusal_words(request: Request, course: Course, row: Row) -> Words:
    outcome = course.end.outcome if course.end is not None else None
    if isinstance(outcome, Refused) and row.proof is Proof.REJECTED:
        return refused_words(request.tool, request.echo, outcome, request.errors)
    return ending_words(request.tool, request.echo, row, request.errors)


# ---------------------------------------------------------------- where nothing is known


def _wait(request: Request, course: Course, row: Row) -> Flow[Observation | Row | None]:
    """Another call works on it: wait for its end, then say that it is in progress."""
    course.waited = True
    pause = min(POLL_FIRST_S * 1.5**course.polls, POLL_SLOWEST_S)
    if pause > course.patience_s:
        yield from do(Sight(row, "in_progress"))
        return about(row, Words(tool=request.tool, code="in_progress"))
    course.polls += 1
    yield from _sleep(course, pause)
    return still_there((yield from do(Read(request.key))))


def _doubt(request: Request, course: Course, row: Row) -> Flow[Observation | Row | None]:
    """Nobody works on it and nothing is proven: look, or send the same again under its key, or say unknown."""
    if request.looks and not course.looked:
        asked = yield from do(Ask(row))
        course.patience_s -= asked.took_s
        course.looks += 1
        course.looked = True
        return still_there((yield from do(Write(asked.look))).row)
    hold = asked_pause(course)
    if hold:
        yield from _sleep(course, hold)
    if may_resend(request, course):
        begun = yield from _begin(request, course, row)
        if not isinstance(begun, Row) or begun.version != row.version:
            course.looked = False
            return begun
    pause = pause_before_look(request, course, row)
    if pause is None:
        yield from do(Sight(row, "effect_unknown"))
        return about(row, _unknown_words(request, course, row))
    yield from _sleep(course, pause)
    course.looked = False
    return still_there((yield from do(Read(request.key))))


def _unknown_words(request: Request, course: Course, row: Row) -> Words:
    looks = request.looks or (request.keyed and not course.key_expired)
    outcome = None if course.end is None else course.end.outcome
    return unknown_words(request.tool, row, looks=looks, outcome=outcome, key_expired=course.key_expired)


def _sleep(course: Course, seconds: float, *, jitter: bool = False) -> Flow[None]:
    course.patience_s -= seconds
    yield from do(Sleep(seconds, jitter))


# ---------------------------------------------------------------- what is told


def _tell_applied(request: Request, course: Course, row: Row) -> Flow[Observation]:
    words = applied_words(request.tool, row, mine=course.mine, looked=course.looks > 0, interrupted=course.used == 0)
    if not course.mine:
        yield from do(Sight(row, words.code))
    return about(row, words, replayed=words.code == "replayed")


def _without_ledger(request: Request, course: Course, row: Row | None) -> Observation:
    """The ledger fails under the call. What others did meanwhile is not known, so it is never told as no effect."""
    if row is not None and row.verdict is Verdict.EFFECT_APPLIED:
        return about(row, applied_words(request.tool, row, mine=course.mine, looked=False, interrupted=False))
    if course.sent:
        reason = "It was carried out or may have been; its record is pending."
    elif course.used:
        reason = "It was tried, and whether it was carried out cannot be recorded or looked up now."
    else:
        reason = "The record of effects cannot be used now; this call sent nothing."
    words = Words(tool=request.tool, code="ledger_unavailable", reason=reason, retry_after_s=request.wait_max_s)
    return about(row, words, verdict=Verdict.EFFECT_UNKNOWN)
