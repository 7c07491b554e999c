"""The flows that never send: a read-only tool, `check_effect`, and one look of reconcile at a doubt."""

from __future__ import annotations

from contextlib import suppress
from typing import assert_never

from counterfoil.changes import Answer, Declined
from counterfoil.effect import Lost, NeverSent, Refused, Returned, Row, Verdict
from counterfoil.errors import LedgerUnavailable
from counterfoil.observe import Observation, Words, about, of_read
from counterfoil.spec import ErrorSpec
from counterfoil.steps import Ask, Attempt, Flow, Request, Sleep, Start, Weigh, Write, do
from counterfoil.telling import (
    RETRY_SOON_S,
    applied_words,
    blocked_call,
    ending_words,
    no_room,
    refused_words,
    still_there,
    unknown_words,
)


def read_only(request: Request) -> Flow[Observation]:
    """One call of a tool that changes nothing: no row, and a lost answer may simply be asked again."""
    try:
        return (yield from _read(request))
    except LedgerUnavailable:  # a budget is to be kept
        reason = "Its budget cannot be kept now: the record of effects is away. A tool that only reads changes nothing."
        return about(None, Words(tool=request.tool, code="ledger_unavailable", reason=reason))


def _read(request: Request) -> Flow[Observation]:
    pause = request.wait_s
    for attempt in range(1, request.attempts_max + 1):
        started = yield from do(Start(fresh=True))
        if started.interrupt is not None:
            raise started.interrupt
        if isinstance(started.answer, Declined) and started.answer.blocked is not None:
            return blocked_call(request.tool, None, started.answer.blocked, request.echo)
        if isinstance(started.answer, Declined):
            return no_room(request.tool, None, request.wait_max_s)
        end = yield from do(Attempt(started.answer.row, started.deadline, False))
        with suppress(LedgerUnavailable):  # what was read is told all the same
            yield from do(Weigh(end.sign))
        if end.interrupt is not None:
            raise end.interrupt
        match end.outcome:
            case Returned():
                assert end.value is not None
                return of_read(request.tool, end.value.text, end.value.note)
            case Refused(code="rate_limited", retry_after_s=seconds) as refused:
                pause = pause if seconds is None else seconds
                if attempt == request.attempts_max or pause > request.patience_s:
                    return about(None, refused_words(request.tool, request.echo, refused, request.errors))
            case Refused() as refused:
                return about(None, refused_words(request.tool, request.echo, refused, request.errors))
            case NeverSent() | Lost():
                if attempt == request.attempts_max or pause > request.patience_s:
                    break
            case _:
                assert_never(end.outcome)
        yield from do(Sleep(pause, jitter=True))
        pause = min(pause * 2, request.wait_max_s)
    reason = "It did not answer; a tool that only reads changes nothing."
    return about(None, Words(tool=request.tool, code="unavailable", reason=reason, retry_after_s=request.wait_max_s))


def checked(row: Row, tool: str, *, looks: bool, errors: tuple[ErrorSpec, ...] = ()) -> Flow[Observation]:
    """What is known of an effect now; an unknown one that nobody works on is looked at once. It never sends."""
    looked = row.verdict is Verdict.EFFECT_UNKNOWN and not row.live and looks
    if looked:
        try:
            row = still_there((yield from settle_doubt(row)).row)
        except LedgerUnavailable:
            words = Words(tool=tool, code="ledger_unavailable", retry_after_s=RETRY_SOON_S)
            return about(row, words, verdict=Verdict.EFFECT_UNKNOWN)
    match row.verdict:
        case Verdict.EFFECT_APPLIED:
            return about(row, applied_words(tool, row, mine=False, looked=looked, interrupted=False))
        case Verdict.EFFECT_UNKNOWN:
            return about(
                row, Words(tool=tool, code="in_progress") if row.live else unknown_words(tool, row, looks=looks)
            )
        case Verdict.NO_EFFECT:
            return about(row, ending_words(tool, None, row, errors))
        case _:
            assert_never(row.verdict)


def settle_doubt(row: Row) -> Flow[Answer]:
    """One look at an effect, written down. It never sends. For reconcile and `check_effect`."""
    asked = yield from do(Ask(row))
    return (yield from do(Write(asked.look)))
