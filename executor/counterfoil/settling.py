"""How the end of an attempt is asked to be written down. It decides no verdict: the transition does."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias, assert_never

from counterfoil.changes import Change, SettleClosed, SettleLost, SettleReturned
from counterfoil.effect import Lost, NeverSent, Proof, Refused, Returned, Row
from counterfoil.guard import Admitted, Breaker, Health, Sign
from counterfoil.guard.breaker import CLOSED
from counterfoil.steps import AttemptEnd


def settling(
    row: Row,
    end: AttemptEnd,
    actor: str,
    *,
    speaks_for_key: bool = False,
    breaker: Breaker | None = None,
    admitted: Admitted | None = None,
) -> Change:
    """The change that the end of an attempt of `row` asks the ledger for. `breaker`: what it is counted for, where a
    fault is to be counted, or one had been when the attempt was `admitted`."""
    change = replace(_settling(row, end, actor, speaks_for_key), row=row)
    counts = end.sign is Sign.FAULT or (admitted is not None and admitted.circuit != CLOSED)
    return replace(change, health=Health(end.sign, breaker)) if counts and breaker is not None else change


_Ending: TypeAlias = SettleReturned | SettleClosed | SettleLost


def _settling(row: Row, end: AttemptEnd, actor: str, speaks_for_key: bool) -> _Ending:
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
                account=end.account,
            )
        case NeverSent(reason):
            return _never_sent(row, end, actor, reason)
        case Lost(reason, status=status):
            return SettleLost(
                key=row.key, attempt=row.attempts, actor=actor,
                reason=reason if status is None else f"{reason} with the status {status}",
                key_unused=end.key_unused, key_unread=end.key_unread, account=end.account,
            )  # fmt: skip
        case _:
            assert_never(end.outcome)


def _never_sent(row: Row, end: AttemptEnd, actor: str, reason: str) -> SettleClosed:
    return SettleClosed(
        key=row.key,
        attempt=row.attempts,
        actor=actor,
        proof=Proof.NEVER_SENT,
        code="unavailable",
        reason=reason,
        account=end.account,
    )
