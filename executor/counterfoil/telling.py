"""Which words fit which end: from a refusal or a settled row to the words that an observation is filled with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from counterfoil.codes import CODES, REFUSALS, Retry
from counterfoil.effect import MICROSECONDS, Lost, Outcome, Proof, Refused, Row, Verdict
from counterfoil.errors import LedgerUnavailable
from counterfoil.guard import Blocked
from counterfoil.message import cut
from counterfoil.observe import Observation, Words, about
from counterfoil.spec import ErrorSpec, spec_of

RETRY_SOON_S = 5.0
VALUE_BYTES = 40
_OUT: Final = object()
WHY_NOT_TAKEN_BACK = {
    "applied": "It was carried out: a revoke is for what is not known; compensate it instead.",
    "no_effect": "It had no effect, so there is nothing to take back.",
    "effect_unknown": "It is not known whether it was carried out: only what was applied can be compensated.",
    "ended": "It was taken back before.",
    "under_way": "A second request for it may still be under way; wait a little.",
    "expired": "It was carried out or refused long ago, and its record is archived; a person has to see to it.",
    "revoking": "Another revoke of it has not ended yet.",
}


def refused_words(tool: str, echo: str, refused: Refused, errors: Sequence[ErrorSpec] = ()) -> Words:
    """The words for a refusal: those that were raised, then those of the tool's own row, then those of the table."""
    return _own_words(
        tool,
        Words(
            tool=tool,
            code=told_code(refused.code),
            row_code=row_code(refused.code),
            reason=refused.reason,
            hint=refused.hint or "",
            field=refused.field or "",
            candidates=refused.candidates,
            arguments=echo,
            retry_after_s=refused.retry_after_s,
        ),
        errors,
    )


def _own_words(tool: str, words: Words, errors: Sequence[ErrorSpec]) -> Words:
    spec = spec_of(errors, words.code)
    if spec is None:
        return words
    return replace(
        words,
        row_code=spec.follows,
        reason=words.reason or spec.constraint,
        hint="" if spec.row.stop else words.hint or spec.next_action(tool),
        field=words.field or spec.field,
        candidates=words.candidates or tuple(spec.candidates),
    )


def row_code(code: str) -> str:
    """The row of the table that a tool's own word follows: no word of a tool may claim another verdict."""
    return code if code in REFUSALS else "rejected"


def told_code(code: str) -> str:
    """A tool's own word as it is told: a word that means another end here would contradict the verdict beside it."""
    return row_code(code) if code in CODES else code


def ending_words(tool: str, echo: str | None, row: Row, errors: Sequence[ErrorSpec] = ()) -> Words:
    """The words for an end that stands in the row, made by whoever."""
    code = row.code or "unavailable"
    if row.proof is Proof.REJECTED:
        words = Words(tool=tool, code=told_code(code), row_code=row_code(code), reason=row.reason or "", arguments=echo)
        return _own_words(tool, words, errors)
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
        reason = "It may have been carried out, and its key has expired: it can no longer prevent a double."
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


def conflict(tool: str, key_names: str, echo: str, row: Row, content: frozenset[str]) -> Observation:
    """The key stands for other arguments already. `content`: arguments that do not identify, so never differ."""
    if row.verdict is Verdict.EFFECT_UNKNOWN:
        # Another key is no way out here: the earlier call may have had its effect.
        reason = f"An earlier call with the same {key_names}, whose arguments were not these, has no known end yet."
        return about(row, Words(tool=tool, code="effect_unknown", reason=reason, arguments=echo))
    details = differences(row.echo, echo, content)
    words = Words(tool=tool, code="key_conflict", field=key_names, arguments=echo, details=details)
    return about(row, words, verdict=Verdict.NO_EFFECT)


def differences(before: str, now: str, content: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Which arguments are others than those that the key was used with, old and new, as sent; secrets stay masked.

    Example:
        >>> differences('{"amount":10,"order":"A"}', '{"amount":12,"order":"A"}', frozenset())
        (('amount', 'was 10, now 12'),)
    """
    old, new = (json.loads(text, parse_float=Decimal) for text in (before, now))
    names = [name for name in {**old, **new} if name not in content and old.get(name, _OUT) != new.get(name, _OUT)]
    told = tuple((name, f"was {_shown(old.get(name, _OUT))}, now {_shown(new.get(name, _OUT))}") for name in names)
    return told or (("", "What differs is secret."),)


def _shown(value: Any) -> str:
    return "left out" if value is _OUT else cut(json.dumps(value, default=str), VALUE_BYTES)


def not_taken_back(tool: str, guard: str) -> Observation:
    """The effect that was to be taken back is not in a state for it; nothing was begun."""
    reason = WHY_NOT_TAKEN_BACK.get(guard, "It has changed meanwhile; look at it again.")
    words = Words(tool=tool, code="conflict", reason=reason, hint="Check the effect first; nothing was sent.")
    return about(None, words)


def no_compensation(row: Row) -> Observation:
    """An applied effect that nothing can make up for here. What is told is about the taking back, not about it."""
    reason = f"{row.tool} has no compensation, and what it did stands; a person has to make up for it."
    words = Words(tool=f"{row.tool}-compensation", code="conflict", reason=reason, hint="Report this to a person.")
    return about(row, words, verdict=Verdict.NO_EFFECT)


STOP_ACTION = "Stop and report this to a person; do not call {tool} again."
STOP_UNKNOWN = "Do not call {tool} for this again, in any wording. Stop and report this: a person has to check it."
_WHY_BLOCKED = {
    "same_answers": "It gave the same answer {used} times in a row; it was not asked again.",
    "tool_failures": "{tool} has failed {used} times in this turn; nothing was sent.",
    "calls_per_turn": "The {limit} calls of this turn are used up; nothing was sent.",
    "calls_per_task": "The {limit} calls of this task are used up; nothing was sent.",
    "calls_per_tool": "The {limit} calls of {tool} in this task are used up; nothing was sent.",
    "spend": "Of the budget of {limit} (minor units of {unit}) {left} are left, this costs {wanted}; nothing was sent.",
}


def _look_alike_words(tool: str, blocked: Blocked, echo: str | None) -> Words:
    minutes = round(blocked.age_us / MICROSECONDS / 60)
    age = f"{minutes} minutes ago" if minutes > 1 else "just now"
    done = "may have been carried out" if blocked.unknown else "was carried out"
    confirm = (
        f"call {tool} again with a new occurrence" if blocked.asks_model else "stop and report it: a person confirms"
    )
    hint = f"Ask the user whether a separate one is wanted. Only if it is, {confirm}."
    if blocked.unknown:  # nobody can want a separate one before it is known whether there is one
        hint = f"Do not call {tool} for this again, in any wording. Call check_effect with effect_id {blocked.twin}."
    return Words(
        tool=tool,
        code="possible_duplicate",
        reason=f"The same with another key {done} {age} ({blocked.twin}); nothing was sent.",
        hint=hint,
        arguments=echo,
    )


def blocked_call(tool: str, row: Row | None, blocked: Blocked, echo: str | None = None) -> Observation:
    """A guard is against a new attempt, and there is no effect: it was refused before anything was sent."""
    seen = {"tool": tool, "limit": blocked.limit, "used": blocked.used, "wanted": blocked.wanted}
    seen |= {"left": max(0, blocked.limit - blocked.used), "unit": blocked.unit}
    if blocked.twin:
        alike = about(row, _look_alike_words(tool, blocked, echo))
        return replace(alike, retry=str(Retry.CHECK)) if blocked.unknown else alike
    why = _WHY_BLOCKED.get(blocked.cap.partition(".")[0], "").format(**seen)
    words = Words(
        tool=tool,
        code=blocked.code,
        reason=why,
        arguments=echo if blocked.code == "repeated_call" else None,
        hint=STOP_ACTION.format(tool=tool) if blocked.stop else "",
        retry_after_s=blocked.wait_us / MICROSECONDS if blocked.wait_us else None,
    )
    seen_now = about(row, words)
    if not blocked.stop:
        return seen_now
    return replace(seen_now, stop=seen_now.stop or blocked.code, retry="never", retry_after_s=None)


def stopped(seen: Observation, code: str = "repeated_call") -> Observation:
    """The same, told as the end of the run: the model goes on although it was told what it may do."""
    action = STOP_UNKNOWN if seen.verdict is Verdict.EFFECT_UNKNOWN else STOP_ACTION
    ended = replace(
        seen, stop=seen.stop or code, retry="never", retry_after_s=None, next_action=action.format(tool=seen.tool)
    )
    return replace(ended, text=ended.message())
