"""What an attempt said: returned, closed by its own proof, lost, or still running past its deadline.

A success carries no guard but the key and always latches. A proof closes its own attempt and no other (protocol F1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from counterfoil.changes import Push, Reading, SettleClosed, SettleLost, SettleReturned
from counterfoil.effect import BITS, Proof, Row, Verdict, bit
from counterfoil.guard import Sign
from counterfoil.transition.clocks import boot_columns, is_over
from counterfoil.transition.decision import Decision, Refusal, Repeated
from counterfoil.transition.schedule import after_settling, next_look
from counterfoil.transition.settled import ended, latched, late, value_columns
from counterfoil.transition.undo import speaks_too_late

# Statuses that only a request gets which the provider has processed, so that it has stored them under the key. What
# fails validation, is not let in, is throttled or meets a key in use is not stored, and speaks for no other attempt
# (F20).
SPEAKING_STATUSES = frozenset({402})


def returned(row: Row, change: SettleReturned, reading: Reading) -> Decision | Repeated | Refusal:
    attempt, names = change.attempt, () if change.reference is None else (change.reference,)
    added = tuple(name for name in names if name not in row.references)
    detail: dict[str, Any] = {"proof": str(change.proof), "code": change.code, **_noted(change)}
    if change.proof is Proof.SAME_TRANSACTION and not _is_present(row, attempt):
        return Refusal("fence")
    if names:
        detail["reference"] = change.reference
    if speaks_too_late(row, attempt):
        return Decision({}, "returned_after_revoke", attempt, change.actor, detail)
    if row.verdict is not Verdict.EFFECT_APPLIED:
        columns = latched(row, change.proof, attempt, reading) | value_columns(change.value)
        columns |= {"code": change.code, "references": (*row.references, *added), "complete": True}
        columns |= {"count": max(1, row.count)}
        return Decision(columns, "returned", attempt, change.actor, detail, late(row, attempt))
    if row.settled_attempt == attempt and row.proof is Proof.RETURNED:
        return Repeated()
    columns = {"references": (*row.references, *added)}
    if _same_effect(row, change):
        columns |= {"complete": True, "settled_attempt": attempt, "proof": Proof.RETURNED}
        columns |= value_columns(change.value) if row.value is None or not row.complete else {}
        return Decision(columns, "returned_again", attempt, change.actor, detail)
    columns["count"] = row.count + 1
    detail["code"] = "applied_more_than_once"
    more = ("applied_more_than_once", {"count": row.count + 1, "attempt": attempt, "certain": True})
    return Decision(columns, "returned_again", attempt, change.actor, detail, (more,))


def _same_effect(row: Row, change: SettleReturned) -> bool:
    """Whether a success on an applied row speaks of the effect that is known already, not of a second one."""
    if change.reference is not None and row.references:
        return change.reference in row.references
    if row.proof in (Proof.FOUND, Proof.OPERATOR) or row.settled_attempt == change.attempt:
        return True
    return row.keyed and change.provider_key == row.provider_key


def closed(row: Row, change: SettleClosed, reading: Reading) -> Decision | Repeated | Refusal:
    attempt, mine = change.attempt, bit(change.attempt)
    if row.verdict is Verdict.EFFECT_APPLIED:
        return Refusal("applied")
    detail = {"proof": str(change.proof), "code": change.code, "reason": change.reason, **_said(change)}
    if not _is_open(row, attempt):
        if row.settled_attempt == attempt and row.proof == change.proof:
            return Repeated()
        return Refusal("closed_before")
    answered = change.proof is Proof.REJECTED
    for_key = change.speaks_for_key and answered and row.keyed and _speaks(row, change, reading)
    left = 0 if for_key else row.open_attempts & ~mine
    columns: dict[str, Any] = {"open_attempts": left, "key_answered": row.key_answered or answered}
    lease_ended = ended(row, reading)
    if attempt == row.attempts:
        columns["lease_until"] = lease_ended
    if left:
        columns["look_at"] = next_look(replace(row, lease_until=columns.get("lease_until", row.lease_until)), reading)
        told = {"code": "effect_unknown", "answered": change.code}  # what is told is about the effect, not the attempt
        return Decision(columns, "closed", attempt, change.actor, detail | told | {"open": left.bit_count()})
    columns |= {
        "verdict": Verdict.NO_EFFECT,
        "proof": change.proof,
        "code": change.code,
        "reason": change.reason,
        "settled_attempt": attempt,
        "lease_until": lease_ended,
        "look_at": after_settling(row, reading.now),
    }
    return Decision(columns, "closed", attempt, change.actor, detail)


def _is_open(row: Row, attempt: int) -> bool:
    """Whether nothing has proven this attempt yet. Its place is another's after 60 more attempts."""
    return attempt > row.attempts - BITS and bool(row.open_attempts & bit(attempt))


def _is_present(row: Row, attempt: int) -> bool:
    """Whether this attempt is the one that the row was begun for, and nothing has been proven since."""
    return row.verdict is Verdict.EFFECT_UNKNOWN and row.attempts == attempt


def _speaks(row: Row, change: SettleClosed, reading: Reading) -> bool:
    """Whether a refusal is one that the provider has stored under the key: told by a status that only a processed
    request gets, and when no earlier attempt can still send (F20)."""
    if change.status not in SPEAKING_STATUSES:
        return False
    return change.attempt == row.attempts and is_over(row, row.earlier_sends_until, reading)


def lost(row: Row, change: SettleLost, reading: Reading) -> Decision | Repeated | Refusal:
    if row.verdict is not Verdict.EFFECT_UNKNOWN or row.attempts != change.attempt:
        return Refusal("fence")
    if row.code == change.code and row.reason == change.reason and row.lease_until <= reading.now:
        return Repeated()
    lease_ended = ended(row, reading)
    columns: dict[str, Any] = {"lease_until": lease_ended, "code": change.code, "reason": change.reason}
    columns |= {"look_at": next_look(replace(row, lease_until=lease_ended), reading)}
    if change.key_unread:
        columns["keyed"] = False
    return Decision(
        columns, "lost", change.attempt, change.actor, {"reason": change.reason, "code": change.code, **_said(change)}
    )


def _said(change: SettleClosed | SettleLost) -> dict[str, Any]:
    return _noted(change) | ({} if change.account is None else {"error": dict(change.account)})


def _noted(change: SettleReturned | SettleClosed | SettleLost) -> dict[str, Any]:
    fault = change.health is not None and change.health.sign is Sign.FAULT
    return {name: True for name, seen in (("key_unused", change.key_unused), ("fault", fault)) if seen}


def pushed(row: Row, change: Push, reading: Reading) -> Decision | Repeated | Refusal:
    if not _is_open(row, change.attempt):
        return Refusal("closed_before")
    sends_until = max(row.sends_until, reading.now + reading.margin_us)
    columns: dict[str, Any] = {"sends_until": sends_until, **boot_columns(row, reading)}
    if change.attempt < row.attempts:
        columns["earlier_sends_until"] = max(row.earlier_sends_until, sends_until)
    if row.absent_from is not None and row.grace_us is not None:
        absent_from = max(row.absent_from, sends_until + row.grace_us + reading.margin_us)
        columns |= {"absent_from": absent_from}
    event = None if change.noted else "overrun"
    return Decision(columns, event, change.attempt, change.actor, {"sends_until": sends_until} if event else {})
