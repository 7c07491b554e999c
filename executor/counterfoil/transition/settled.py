"""Pieces that several transitions share: how a row is latched, when its lease ended, what comes late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from counterfoil.changes import Reading, StoredValue
from counterfoil.effect import Proof, Row, Verdict, bit
from counterfoil.transition.schedule import after_settling


def ended(row: Row, reading: Reading) -> int:
    """The end of a lease that is over as of this instant: a live one includes its last microsecond."""
    return min(row.lease_until, reading.now - 1)


def value_columns(value: StoredValue | None) -> dict[str, Any]:
    if value is None:
        return {}
    return {
        "value": value.text,
        "value_size": value.size,
        "value_digest": value.digest,
        "value_note": value.note,
        "pruned_at": None,  # there is something to tell again
    }


def latched(row: Row, proof: Proof, settled: int, reading: Reading) -> dict[str, Any]:
    return {
        "verdict": Verdict.EFFECT_APPLIED,
        "proof": proof,
        "reason": None,
        "open_attempts": 0,
        "settled_attempt": settled,
        "lease_until": ended(row, reading),
        "look_at": after_settling(row, reading.now),
    }


def late(row: Row, attempt: int) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """The incidents of a success that arrives after somebody was told that there was none."""
    if row.verdict is Verdict.NO_EFFECT:
        return (("late_effect", {"attempt": attempt, "told": str(row.proof)}),)
    if row.open_attempts & bit(attempt) == 0 and row.attempts > attempt:
        return (("applied_more_than_once", {"attempt": attempt, "certain": False}),)
    return ()
