"""What becomes of an effect that another one takes back: by a revoke (P3) or by a compensation.

A revoke names all attempts so far. While it is not known to have ended, nothing begins; acknowledged, it decides for
every attempt that it named, whatever they say later (protocol F7).
A compensation begins only from applied, and not while a
second request may still be under way (F22).
"""

from __future__ import annotations

from typing import Any

from counterfoil.changes import Reading, Undo
from counterfoil.effect import Proof, Row, Verdict
from counterfoil.transition.clocks import is_over
from counterfoil.transition.decision import Decision, Refusal, Repeated
from counterfoil.transition.schedule import after_settling
from counterfoil.transition.settled import ended


def undone(row: Row, change: Undo, reading: Reading) -> Decision | Repeated | Refusal:
    if change.stage == "named" and row.pruned_at is not None:
        return Refusal("expired")  # what it was is archived: nobody could say what to take back
    if change.kind == "compensation":
        return _compensation(row, change, reading)
    match change.stage:
        case "named":
            return _revoke_named(row, change)
        case "done":
            return _revoke_done(row, change, reading)
        case "dropped":
            if row.revoke_by != change.by:
                return Repeated()
            return _entry(change, "revoke_dropped", {"revoke_by": None})


def _entry(change: Undo, event: str, columns: dict[str, Any], **detail: Any) -> Decision:
    return Decision(columns, event, 0, change.actor, {"by": change.by, **detail})


def _revoke_named(row: Row, change: Undo) -> Decision | Repeated | Refusal:
    if row.revoke_by == change.by:
        return Repeated()
    if row.revoke_by is not None:
        return Refusal("revoking")
    if row.verdict is Verdict.EFFECT_APPLIED:
        return Refusal("applied")
    if row.replaceable:
        return Refusal("no_effect")
    if row.attempts != change.through:
        return Refusal("stale")
    return _entry(change, "revoke_asked", {"revoke_by": change.by}, through=change.through)


def _revoke_done(row: Row, change: Undo, reading: Reading) -> Decision | Repeated:
    if row.revoked_through >= change.through:
        return Repeated()
    columns: dict[str, Any] = {
        "revoke_by": None,
        "revoked_through": change.through,
        "revoked_at": reading.now,
    }
    if row.verdict is Verdict.EFFECT_APPLIED:
        return _entry(change, "revoked", columns | {"undone_by": change.by}, through=change.through)
    columns |= {
        "verdict": Verdict.NO_EFFECT,
        "proof": Proof.REVOKED,
        "code": "revoked",
        "reason": None,
        "open_attempts": 0,
        "settled_attempt": 0,
        "key_answered": True,
        "key_tainted": False,
        "lease_until": ended(row, reading),
        "look_at": after_settling(row, reading.now),
    }
    return _entry(change, "revoked", columns, through=change.through, proof=str(Proof.REVOKED))


def _compensation(row: Row, change: Undo, reading: Reading) -> Decision | Repeated | Refusal:
    if row.undone_by == change.by:
        return Repeated()
    match change.stage:
        case "named":
            if row.verdict is not Verdict.EFFECT_APPLIED:
                return Refusal(str(row.verdict))
            if row.undone_by is not None:
                return Refusal("ended")
            last = row.sends_until + (row.grace_us or 0) + reading.margin_us
            if row.attempts > 1 and not is_over(row, last, reading):
                return Refusal("under_way")
            return _entry(change, "compensation_asked", {})
        case "done":
            return _entry(change, "compensated", {"undone_by": change.by})
        case "dropped":
            return _entry(change, "compensation_dropped", {})


def speaks_too_late(row: Row, attempt: int) -> bool:
    """Whether an acknowledged revoke has decided for this attempt: what it says now is written down, and no more."""
    return row.revoked_at is not None and attempt <= row.revoked_through
