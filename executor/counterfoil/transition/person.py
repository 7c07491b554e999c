"""What a person decides (P5): bound to the version that was read, refused while an attempt may still send."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from counterfoil.changes import Reading, Resolve
from counterfoil.effect import Proof, Row, Verdict
from counterfoil.transition.clocks import is_over
from counterfoil.transition.decision import Decision, Refusal, Repeated
from counterfoil.transition.schedule import after_settling
from counterfoil.transition.settled import ended, latched, late, value_columns


def resolved(row: Row, change: Resolve, reading: Reading) -> Decision | Repeated | Refusal:
    if row.claim_id == change.claim_id:
        return Repeated()  # asked again after a lost reply
    if row.version != change.version:
        return Refusal("stale")
    if not is_over(row, row.sends_until, reading):
        return Refusal("may_still_send")
    detail = {"proof": str(Proof.OPERATOR), "verdict": str(change.verdict), "why": change.why}
    match change.verdict:
        case Verdict.EFFECT_APPLIED:
            if row.verdict is Verdict.EFFECT_APPLIED:
                return Refusal("applied")
            columns = latched(row, Proof.OPERATOR, 0, reading) | value_columns(change.value)
            columns |= {"claim_id": change.claim_id, "code": "resolved", "count": max(1, row.count)}
            incidents = late(row, row.attempts) if row.verdict is Verdict.NO_EFFECT else ()
            return Decision(columns, "resolved", 0, change.by, detail | {"code": "replayed"}, incidents)
        case Verdict.NO_EFFECT:
            if row.verdict is not Verdict.EFFECT_UNKNOWN:
                return Refusal(str(row.verdict))
            settled = replace(row, conditional_at=reading.now)
            columns = {
                "verdict": Verdict.NO_EFFECT,
                "proof": Proof.OPERATOR,
                "claim_id": change.claim_id,
                "code": "resolved",
                "reason": None,
                "open_attempts": 0,
                "settled_attempt": 0,
                "key_tainted": True,
                "lease_until": ended(row, reading),
                "conditional_at": settled.conditional_at,
                "look_at": after_settling(settled, reading.now),
            }
            return Decision(columns, "resolved", 0, change.by, detail | {"code": "unavailable"})
        case Verdict.EFFECT_UNKNOWN:
            return Refusal("effect_unknown")
        case _:
            assert_never(change.verdict)
