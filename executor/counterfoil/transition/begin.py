"""The begin predicate, in this one place: when a new attempt may begin, and what the row is then.

From no effect always; from unknown only by P2, the same key again. A lease's end permits nothing by itself.
"""

from __future__ import annotations

from typing import Any, assert_never

from counterfoil.changes import Begin, Reading, Terms
from counterfoil.effect import Proof, Row, Verdict, bit
from counterfoil.transition.clocks import boot_columns, is_over, latest
from counterfoil.transition.decision import Decision, Refusal, Repeated


def new_row(begin: Begin, provider_key: str, reading: Reading) -> Row:
    """The row of an effect that the ledger has never seen: unknown from its birth, because the tool runs next."""
    now, terms = reading.now, begin.terms
    blank = Row(
        key=begin.key,
        id=begin.id,
        tenant=begin.tenant,
        tool=begin.tool,
        task=begin.task,
        occurrence=begin.occurrence,
        fingerprint=begin.fingerprint,
        canonical_version=begin.canonical_version,
        arguments=begin.arguments,
        echo=begin.echo,
        verdict=Verdict.NO_EFFECT,
        provider_key=provider_key,
        provider_keys=(provider_key,),
        key_first_begun_at=now,
        created_at=now,
        undoes=None if begin.undoes is None else begin.undoes.key,
        undo_kind=None if begin.undoes is None else begin.undoes.kind,
        undo_through=0 if begin.undoes is None else begin.undoes.through,
        version=0,
    )
    columns = _attempt(blank, begin, terms, reading) | _cost(begin)
    return blank.changed({**columns, "version": 1, "updated_at": now, "now": now})


def begun(row: Row, begin: Begin, reading: Reading, keys_trusted: bool) -> Decision | Repeated | Refusal:
    if row.claim_id == begin.claim_id:
        return Repeated()
    changed = row.fingerprint != begin.fingerprint
    if changed and not row.replaceable:
        return Refusal("conflict")
    if row.revoke_by is not None:
        return Refusal("revoking")
    match row.verdict:
        case Verdict.EFFECT_APPLIED:
            return Refusal("applied")
        case Verdict.EFFECT_UNKNOWN:
            refusal = _resend_refusal(row, begin.terms, reading, keys_trusted)
            if refusal is not None:
                return Refusal(refusal)
            columns = _attempt(row, begin, begin.terms, reading)
            permission = "same_key"
        case Verdict.NO_EFFECT:
            columns = _attempt(row, begin, begin.terms, reading)
            columns |= {"arguments": begin.arguments, "echo": begin.echo, "task": begin.task}
            columns |= {"fingerprint": begin.fingerprint, "canonical_version": begin.canonical_version}
            columns |= _renewed_key(row, reading) | _cost(begin)
            permission = row.proof or Proof.NEVER_SENT
        case _:
            assert_never(row.verdict)
    detail = {"permission": str(permission), "provider_key": columns.get("provider_key", row.provider_key)}
    if changed:
        detail["arguments_before"] = row.echo
    return Decision(columns, "begun", row.attempts + 1, begin.holder, detail | _call(begin))


def _cost(begin: Begin) -> dict[str, Any]:
    """What is held for the effect from its begin on: only a begin from no effect reserves (protocol F21)."""
    unit, amount = begin.asks.cost if begin.asks is not None and begin.asks.cost is not None else (None, 0)
    return {"cost_unit": unit, "cost_amount": amount, "cost_held": amount, "cost_charged": 0}


def _call(begin: Begin) -> dict[str, Any]:
    told = {"turn": begin.turn, "call_id": begin.call_id, "task": begin.task}
    return {name: content for name, content in told.items() if content not in (None, "")}


def begun_entry(begin: Begin, row: Row) -> Decision:
    """The entry of an effect's birth."""
    detail = {"permission": "new", "provider_key": row.provider_key} | _call(begin)
    return Decision({}, "begun", 1, begin.holder, detail)


def _resend_refusal(row: Row, terms: Terms, reading: Reading, keys_trusted: bool) -> str | None:
    """P2, the whole of it: None when the same key may go out again."""
    if reading.now <= row.lease_until:
        return "in_progress"
    if terms.retention_us is None or not row.keyed or not keys_trusted:
        return "unknown"
    grace = max(terms.grace_us or 0, row.grace_us or 0)
    arrives_by = latest(row, reading) + terms.timeout_us + grace + reading.margin_us
    if arrives_by > row.key_first_begun_at + terms.retention_us:
        return "key_expired"
    if not terms.concurrent and not is_over(row, row.sends_until + grace + reading.margin_us, reading):
        return "under_way"
    if row.open_attempts & bit(row.attempts + 1):
        return "too_many_attempts"
    return None


def _attempt(row: Row, begin: Begin, terms: Terms, reading: Reading) -> dict[str, Any]:
    now, number = reading.now, row.attempts + 1
    deadline = now + terms.timeout_us
    sends_until = max(row.sends_until, deadline)
    keeps_open = row.open_attempts if row.verdict is Verdict.EFFECT_UNKNOWN else 0
    absent_from = _absent_from(row, terms, sends_until, reading)
    grace_us = terms.grace_us
    if keeps_open and grace_us is not None and row.grace_us is not None:
        grace_us = max(grace_us, row.grace_us)
    return {
        "verdict": Verdict.EFFECT_UNKNOWN,
        "proof": None,
        "code": "in_progress",
        "reason": None,
        "attempts": number,
        "open_attempts": keeps_open | bit(number),
        "settled_attempt": None,
        "holder": begin.holder,
        "claim_id": begin.claim_id,
        "lease_until": deadline + reading.margin_us,
        "sends_until": sends_until,
        "earlier_sends_until": row.sends_until,
        "absent_from": absent_from,
        **boot_columns(row, reading),
        "look_at": deadline + reading.margin_us,
        "looks": 0,
        "review_at": now + terms.review_us if row.verdict is Verdict.NO_EFFECT else row.review_at,
        "grace_us": None if absent_from is None else grace_us,
        "review_us": terms.review_us,
        "audit_us": terms.audit_us,
        "keyed": terms.keyed and (row.keyed or row.verdict is Verdict.NO_EFFECT),
        "retention_us": None if begin.undoes is not None else _retention(row, terms),
        "pruned_at": None,
        "begun_at": now,
        "unknown_since": now if row.verdict is Verdict.NO_EFFECT else row.unknown_since,
    }


def _retention(row: Row, terms: Terms) -> int | None:
    """For how long the record must outlive its last request: the longest that any attempt was told of its key."""
    known = [one for one in (row.retention_us, terms.retention_us) if one is not None]
    return max(known, default=None)


def _absent_from(row: Row, terms: Terms, sends_until: int, reading: Reading) -> int | None:
    """P4's instant: it never decreases, and an open attempt without a grace keeps it at never (None)."""
    open_without_grace = row.verdict is Verdict.EFFECT_UNKNOWN and row.absent_from is None
    if terms.grace_us is None or open_without_grace:
        return None
    return max(row.absent_from or 0, sends_until + terms.grace_us + reading.margin_us)


def _renewed_key(row: Row, reading: Reading) -> dict[str, Any]:
    """A new provider key only when every attempt under the old one was closed for good and one was answered (F13)."""
    if not row.key_answered or row.key_tainted:
        return {}
    generation = row.key_generation + 1
    name = f"{row.id}-k{generation}"
    return {
        "key_generation": generation,
        "provider_key": name,
        "provider_keys": (*row.provider_keys, name),
        "key_first_begun_at": reading.now,
        "key_answered": False,
        "key_tainted": False,
    }
