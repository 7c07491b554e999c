"""How the end of an attempt is asked to be written down. It decides no verdict: the transition does."""

from __future__ import annotations

from typing import assert_never

from counterfoil.changes import Change, SettleClosed, SettleLost, SettleReturned
from counterfoil.effect import Lost, NeverSent, Proof, Refused, Returned, Row
from counterfoil.guard import Breaker, Health
from counterfoil.steps import AttemptEnd


def settling(
    row: Row, end: AttemptEnd, actor: str, *, speaks_for_key: bool = False, breaker: Breaker | None = None
) -> Change:
    """The change that the end of an attempt of `row` asks the ledger for. `breaker`: what it is counted for."""
    health = None if breaker is None else Health(end.sign, breaker)
    match end.outcome:
        case Returned(_, reference):
            assert end.value is not None
            code = "ok" if end.value.text is not None else "value_not_stored"
            return SettleReturned(
                key=row.key,
                attempt=row.attempts,
                actor=actor,
                provider_key=row.provider_key,
                value=end.value,
                reference=reference or end.reference,
                code=code,
                key_unused=end.key_unused,
                original=end.original,
                original_value=end.original_value,
                health=health,
            )
        case Refused() as refused:
            return SettleClosed(
                key=row.key,
                attempt=row.attempts,
                actor=actor,
                proof=Proof.REJECTED,
                code=refused.code,
                reason=refused.reason,
                status=refused.status,
                speaks_for_key=speaks_for_key,
                key_unused=end.key_unused,
                health=health,
            )
        case NeverSent(reason):
            return SettleClosed(
                key=row.key,
                attempt=row.attempts,
                actor=actor,
                proof=Proof.NEVER_SENT,
                code="unavailable",
                reason=reason,
                health=health,
            )
        case Lost(reason):
            return SettleLost(
                key=row.key,
                attempt=row.attempts,
                actor=actor,
                reason=reason,
                key_unused=end.key_unused,
                key_unread=end.key_unread,
                health=health,
            )
        case _:
            assert_never(end.outcome)
