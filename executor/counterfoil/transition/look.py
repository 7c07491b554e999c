"""What a look answered: found latches, absent proves only by P4, unclear proves nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from counterfoil.changes import Reading, SettleLook
from counterfoil.effect import Proof, Row, Verdict
from counterfoil.transition.clocks import earliest
from counterfoil.transition.decision import Decision
from counterfoil.transition.schedule import after_settling, next_look
from counterfoil.transition.settled import ended, latched, late, value_columns


def found(row: Row, change: SettleLook, reading: Reading) -> Decision:
    seen = change.found
    assert seen is not None
    added = tuple(name for name in seen.references if name not in row.references)
    columns: dict[str, Any] = {"references": (*row.references, *added), "looks": row.looks + 1}
    detail: dict[str, Any] = {"proof": str(Proof.FOUND), "count": seen.count, "complete": seen.complete}
    detail |= {"references": list(seen.references), "asked_at": change.asked_at, "code": _told(change, row.count)}
    if change.ends_revoke:
        columns["revoke_by"] = None
    elif row.revoked_at is not None and change.asked_at <= row.revoked_at:
        # It saw an attempt that the revoke has named, and so has undone: no attempt begins while a revoke is unknown.
        return Decision({"looks": row.looks + 1}, "found_before_revoke", 0, change.actor, detail)
    if row.verdict is not Verdict.EFFECT_APPLIED:
        columns |= latched(row, Proof.FOUND, 0, reading) | value_columns(change.value) | {"code": detail["code"]}
        columns |= {"count": seen.count, "complete": seen.complete}
        incidents = late(row, row.attempts) if row.verdict is Verdict.NO_EFFECT else ()
        return Decision(columns, "found", 0, change.actor, detail, incidents + _shape(seen.count, seen.complete))
    count = max(row.count, seen.count, len(columns["references"]))
    completed = seen.complete and not row.complete
    columns |= {"count": count, "complete": row.complete or seen.complete, "verified": True}
    columns |= value_columns(change.value) if completed or (row.value is None and row.value_digest is None) else {}
    columns |= {"look_at": after_settling(replace(row, verified=True), reading.now)}
    return Decision(columns, "found", 0, change.actor, detail, _shape(count, True) if count > row.count else ())


def _told(change: SettleLook, counted: int) -> str:
    """The code that a model is told of what was found."""
    seen = change.found
    assert seen is not None
    if max(seen.count, counted) > 1:
        return "applied_more_than_once"
    if not seen.complete:
        return "incomplete"
    return change.code if change.value is None or change.value.text is not None else "value_not_stored"


def _shape(count: int, complete: bool) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    more = (("applied_more_than_once", {"count": count, "certain": True}),) if count > 1 else ()
    return more if complete else (*more, ("incomplete", {"count": count}))


def absence_proves(row: Row, change: SettleLook) -> bool:
    """P4: the look was asked later than the last instant at which any attempt can send, land and stay unseen."""
    if row.verdict is not Verdict.EFFECT_UNKNOWN or row.absent_from is None:
        return False
    return earliest(row, change.asked_at, change.asked_boot_id, change.asked_boot_us) > row.absent_from


def absent(row: Row, change: SettleLook, reading: Reading) -> Decision:
    detail: dict[str, Any] = {"asked_at": change.asked_at, "evidence": "absent"}
    if not absence_proves(row, change):
        return _looked(row, change, reading, detail)
    settled = replace(row, conditional_at=reading.now)
    columns = {
        "verdict": Verdict.NO_EFFECT,
        "proof": Proof.ABSENT_AFTER_GRACE,
        "code": "unavailable",
        "reason": None,
        "open_attempts": 0,
        "settled_attempt": 0,
        "key_tainted": True,
        "lease_until": ended(row, reading),
        "conditional_at": settled.conditional_at,
        "looks": row.looks + 1,
        "look_at": after_settling(settled, reading.now),
    }
    detail |= {"proof": str(Proof.ABSENT_AFTER_GRACE), "absent_from": row.absent_from, "code": "unavailable"}
    return Decision(columns, "absent", 0, change.actor, detail)


def unclear(row: Row, change: SettleLook, reading: Reading) -> Decision:
    detail = {"asked_at": change.asked_at, "evidence": "unclear", "reason": change.unclear}
    return _looked(row, change, reading, detail)


def _looked(row: Row, change: SettleLook, reading: Reading, detail: Mapping[str, Any]) -> Decision:
    """A look that settles nothing: it is written down, and the next one is set."""
    looks = row.looks + 1
    if row.verdict is Verdict.EFFECT_UNKNOWN:
        columns: dict[str, Any] = {"looks": looks, "look_at": next_look(replace(row, looks=looks), reading)}
        columns["code"] = change.cause or "effect_unknown"
        detail = {**detail, "code": columns["code"]}
    else:
        verified = row.verified and not change.verifies
        columns = {"looks": looks, "verified": verified}
        settled = replace(row, looks=looks, verified=verified)
        columns |= {"look_at": after_settling(settled, reading.now, unclear=change.unclear is not None)}
    return Decision(columns, "looked", 0, change.actor, detail)
