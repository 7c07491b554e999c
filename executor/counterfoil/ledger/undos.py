"""Which change of an effect follows from a change of the one that takes it back."""

from __future__ import annotations

from typing import Literal

from counterfoil.changes import Begin, Change, SettleLook, SettleReturned, Undo, UndoKind
from counterfoil.effect import Row, Verdict


class OriginalRefuses(Exception):
    """The effect that should be taken back may not be: the whole transaction comes to nothing."""

    def __init__(self, guard: str) -> None:
        super().__init__(guard)
        self.guard = guard


def following(row: Row, change: Change, original: Row) -> Undo | SettleLook:
    """The change of `original` that follows from `change` of `row`, which takes it back."""
    kind: UndoKind = "revoke" if row.undo_kind == "revoke" else "compensation"
    actor = row.holder or "ledger"
    if isinstance(change, SettleReturned) and change.original is not None:
        return SettleLook(
            key=original.key,
            actor=actor,
            asked_at=row.begun_at,
            found=change.original,
            value=change.original_value,
            ends_revoke=True,
        )
    return Undo(
        key=original.key,
        actor=actor,
        by=row.id,
        kind=kind,
        stage=_stage(row, change),
        through=row.undo_through,
    )


def _stage(row: Row, change: Change) -> Literal["named", "done", "dropped"]:
    if isinstance(change, Begin):
        return "named"
    return "done" if row.verdict is Verdict.EFFECT_APPLIED else "dropped"
