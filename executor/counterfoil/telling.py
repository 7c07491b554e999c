"""Which words fit which end: from a refusal or a settled row to the words that an observation is filled with."""

from __future__ import annotations

from collections.abc import Iterable

from counterfoil.codes import CODES
from counterfoil.effect import Lost, Outcome, Proof, Refused, Row, Verdict
from counterfoil.errors import LedgerUnavailable
from counterfoil.observe import Observation, Words, about

RETRY_SOON_S = 5.0
WHY_NOT_TAKEN_BACK = {
    "applied": "It was carried out: a revoke is for what is not known; compensate it instead.",
    "no_effect": "It had no effect, so there is nothing to take back.",
    "effect_unknown": "It is not known whether it was carried out: only what was applied can be compensated.",
    "ended": "It was taken back before.",
    "under_way": "A second request for it may still be under way; wait a little.",
    "expired": "It was carried out or refused long ago, and its record is archived; a person has to see to it.",
    "revoking": "Another revoke of it has not ended yet.",
}


def refused_words(tool: str, echo: str, refused: Refused) -> Words:
    """The words for a refusal that the tool itself put into words."""
    return Words(
        tool=tool,
        code=told_code(refused.code),
        row_code=row_code(refused.code),
        reason=refused.reason,
        hint=refused.hint or "",
        field=refused.field or "",
        candidates=refused.candidates,
        arguments=echo,
        retry_after_s=refused.retry_after_s,
    )


def row_code(code: str) -> str:
    """The row of the table that a tool's own word follows: no word of a tool may claim another verdict."""
    known = CODES.get(code)
    return code if known is not None and known.verdict == "no_effect" and not known.ok else "rejected"


def told_code(code: str) -> str:
    """A tool's own word as it is told: a word that means another end here would contradict the verdict beside it."""
    return row_code(code) if code in CODES else code


def ending_words(tool: str, echo: str | None, row: Row) -> Words:
    """The words for an end that stands in the row, made by whoever."""
    code = row.code or "unavailable"
    if row.proof is Proof.REJECTED:
        return Words(
            tool=tool,
            code=told_code(code),
            row_code=row_code(code),
            reason=row.reason or "",
            arguments=echo,
        )
    if row.proof is Proof.REVOKED:
        return Words(tool=tool, code="revoked")
    reason = "The request did not arrive: looking after the time in which it could have found nothing."
    told = reason if row.proof is Proof.ABSENT_AFTER_GRACE else ""
    if row.proof is Proof.SAME_TRANSACTION:
        told = "It did not get through to its end, and all of it was undone; nothing happened."
    return Words(tool=tool, code="unavailable", reason=told, retry_after_s=RETRY_SOON_S)


def applied_words(tool: str, row: Row, *, mine: bool, looked: bool, interrupted: bool) -> Words:
    """The words for an effect that is there.

    `mine`: an attempt of this call returned. `looked`: this call looked. `interrupted`: it made no attempt, so what it
    found was begun by an earlier call.
    """
    if row.undone_by is not None:
        code = "ended"
    elif row.count > 1:
        code = "applied_more_than_once"
    elif not row.complete:
        code = "incomplete"
    elif row.pruned_at is not None:
        code = "expired"
    elif row.value is None and row.value_note is not None:
        code = "value_not_stored"
    elif not row.verified:
        code = "unverified"
    elif mine:
        code = "ok"
    else:
        code = "verified" if looked and row.proof is Proof.FOUND else "replayed"
    reason = f"It is done; {row.value_note}" if code == "value_not_stored" else ""
    if code == "verified" and interrupted:
        reason = "An earlier call was interrupted, or its answer lost; looking showed that it had been carried out."
    return Words(tool=tool, code=code, reason=reason)


def unknown_words(
    tool: str, row: Row, *, looks: bool, outcome: Outcome | None = None, key_expired: bool = False
) -> Words:
    """The words for a doubt. Where nothing can look, asking again would only send the model in circles.

    `outcome`: of this call's own last attempt. `key_expired`: the provider's memory of the key was all that there was.
    """
    if row.code in ("look_forbidden", "look_alike"):
        return Words(tool=tool, code=row.code)
    hint = "" if looks else f"Do not call {tool} for this again, in any wording. Report this: a person has to check it."
    reason = ""
    if isinstance(outcome, Lost) and outcome.status is not None:
        reason = f"The status {outcome.status} came as answer: it may have been carried out, or may still be."
    if key_expired and not looks:
        reason = "It may have been carried out, and its key has expired: it can no longer prevent a second one."
    return Words(tool=tool, code="effect_unknown", hint=hint, reason=reason)


def still_there(row: Row | None) -> Row:
    """A row that was seen and is gone means another ledger, or a restored one: nothing may be begun on that."""
    if row is None:
        raise LedgerUnavailable("an effect has vanished from the ledger", certain=False)
    return row


def under_way(tool: str, row: Row) -> Observation:
    """Another transaction holds the effect (on SQLite: the whole ledger) for longer than this call is patient."""
    reason = "Another call, perhaps for the same thing, is under way in the database; this one did nothing."
    return about(row, Words(tool=tool, code="in_progress", reason=reason), verdict=Verdict.EFFECT_UNKNOWN)


def no_room(tool: str, row: Row | None, wait_s: float) -> Observation:
    """No thread is free for the tool's function: refused before anything was begun."""
    if row is not None and row.verdict is Verdict.EFFECT_UNKNOWN:
        return about(row, Words(tool=tool, code="effect_unknown"))
    reason = "Too many calls are under way here, so nothing was sent."
    return about(row, Words(tool=tool, code="unavailable", reason=reason, retry_after_s=wait_s))


def refused_arguments(tool: str, problems: Iterable[tuple[str, str]], echo: str) -> Observation:
    """Arguments that do not fit: each problem with its field, and what was sent."""
    return about(None, Words(tool=tool, code="invalid_arguments", details=tuple(problems), arguments=echo))


def not_taken_back(tool: str, guard: str) -> Observation:
    """The effect that was to be taken back is not in a state for it; nothing was begun."""
    reason = WHY_NOT_TAKEN_BACK.get(guard, "It has changed meanwhile; look at it again.")
    words = Words(tool=tool, code="conflict", reason=reason, hint="Check the effect first; nothing was sent.")
    return about(None, words)


def no_compensation(row: Row) -> Observation:
    """An applied effect that nothing can make up for here."""
    reason = "It has no compensation; a person has to make up for it."
    return about(row, Words(tool=row.tool, code="conflict", reason=reason, hint="Report this to a person."))
