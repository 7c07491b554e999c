"""A call, and what the loop guard counts of it: a flow around a flow.

Owns how what a model was told counts: as a failure that other arguments mend, one that may pass, a success, an answer.
A call that a guard refused counts nothing here, and neither does what is told from the ledger.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import Any

from counterfoil.codes import CODES, GUARDED, Category
from counterfoil.effect import Row, Verdict
from counterfoil.errors import LedgerUnavailable
from counterfoil.guard import End, LoopGuard
from counterfoil.guard.loop import STOPS_AT
from counterfoil.looking import checked
from counterfoil.observe import Observation
from counterfoil.steps import Flow, Tally, do
from counterfoil.telling import stopped

_NEVER_COUNTED = frozenset({*GUARDED, "ledger_unavailable", "in_progress", "revoked"})


def tallied(one: Flow[Observation], limits: LoopGuard, *, enforce: bool = True) -> Flow[Observation]:
    """Carry out a call and count its end. Where a model goes on although no attempt is even asked for (another call's
    key, an effect that is unknown), its run is stopped by what was counted; without `enforce` nothing is stopped."""
    seen = yield from one
    end = ending(seen)
    if end is None:
        return seen
    try:
        counted = yield from do(Tally(end, _digest(seen) if end is End.ANSWERED else None))
    except LedgerUnavailable:
        return seen
    goes_on = counted is not None and (counted.wrong > limits.wrong_input or counted.blocked > STOPS_AT)
    if not goes_on or seen.ok or not enforce:
        return seen
    return stopped(seen)


def polled(row: Row, tool: str, limits: LoopGuard, **how: Any) -> Flow[Observation]:
    """`checked`, counted. Where the same doubt was asked about too often in a turn, it is told without one more look,
    so that a model that does not wait cannot hammer what is looked at; who goes on is stopped."""
    counted = None
    if row.verdict is Verdict.EFFECT_UNKNOWN:
        with suppress(LedgerUnavailable):
            counted = yield from do(Tally(End.POLLED, str(row.verdict)))
    refused = 0 if counted is None else counted.blocked
    seen = yield from checked(row, tool, **(how | ({"looks": False} if refused else {})))
    return stopped(seen) if refused >= STOPS_AT and not seen.ok else seen


def ending(seen: Observation) -> End | None:
    """How the call counts; None: not at all.

    Example:
        >>> ending(Observation(ok=False, verdict=Verdict.NO_EFFECT, code="card_declined", category="recoverable"))
        <End.WRONG: 'wrong'>
    """
    if seen.code in _NEVER_COUNTED or seen.replayed:
        return None
    if seen.ok:
        return End.ANSWERED if seen.code == CODES["read"].name else End.DONE
    match seen.verdict:
        case Verdict.EFFECT_APPLIED:
            return None
        case Verdict.EFFECT_UNKNOWN:
            return End.UNKNOWN
        case Verdict.NO_EFFECT:
            return End.PASSING if seen.category == Category.RETRYABLE else End.WRONG


def _digest(seen: Observation) -> str:
    text = json.dumps(seen.value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
