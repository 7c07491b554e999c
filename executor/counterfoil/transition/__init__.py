"""The state table: what a change does to a row. Pure functions of (row as it is now, change, the ledger's time).

Owns the begin predicate and every transition, and nothing else does. The ledger reads the row under a lock, asks
`decide`, and writes the answer guarded by the row's version; no SQL here, no clock, no tool.
Rules are named by the design's P1 to P5 and by the findings F… and N… of the protocol review.
"""

from __future__ import annotations

from typing import assert_never

from counterfoil.changes import (
    Begin,
    Change,
    Push,
    Reading,
    Resolve,
    SettleClosed,
    SettleLook,
    SettleLost,
    SettleReturned,
    Undo,
)
from counterfoil.effect import Row
from counterfoil.transition.begin import begun, begun_entry, new_row
from counterfoil.transition.decision import Decision, Refusal, Repeated
from counterfoil.transition.look import absence_proves, absent, found, unclear
from counterfoil.transition.outcome import closed, lost, pushed, returned
from counterfoil.transition.person import resolved
from counterfoil.transition.undo import undone

__all__ = ["Decision", "Refusal", "Repeated", "absence_proves", "begun_entry", "decide", "new_row"]


def decide(row: Row, change: Change, reading: Reading, *, keys_trusted: bool = True) -> Decision | Repeated | Refusal:
    """What `change` does to `row`. `keys_trusted` is False once a tool was seen not to use its provider key (F9)."""
    match change:
        case Begin():
            return begun(row, change, reading, keys_trusted)
        case SettleReturned():
            return returned(row, change, reading)
        case SettleClosed():
            return closed(row, change, reading)
        case SettleLost():
            return lost(row, change, reading)
        case SettleLook():
            if change.found is not None:
                return found(row, change, reading)
            return absent(row, change, reading) if change.absent else unclear(row, change, reading)
        case Push():
            return pushed(row, change, reading)
        case Resolve():
            return resolved(row, change, reading)
        case Undo():
            return undone(row, change, reading)
        case _:
            assert_never(change)
