"""From a row to what the model reads: the `Observation` and its text.

Owns the four parts (what failed, why, the arguments as sent, ONE next action), their order and their length. It takes
what is known from the row, never from the outcome in hand. No upstream text, host, trace or secret enters here.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from counterfoil.codes import CODES
from counterfoil.effect import MICROSECONDS, Proof, Row, Verdict
from counterfoil.message import TOKENS, Form, Parts, one_line, render

VALUE_SHOWN = 2_000
READ_SHOWN = 20_000
CANDIDATES_MOST = 10
NAMES_SHOWN = 3
NAME_SHOWN = 40
KNOWN_SHOWN = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a call tells: to the program in fields, to the model in `text`.

    `retry_after_s` is in seconds. `stop` holds the code when the run should end, else None. `value` is what the tool
    returned, as JSON data. For a read-only tool the verdict is always `no_effect`.

    Example:
        >>> Observation(ok=True, verdict=Verdict.NO_EFFECT, code="read", category="done").as_dict()["code"]
        'read'
    """

    ok: bool
    verdict: Verdict
    code: str
    category: str
    reason: str = ""
    details: tuple[Mapping[str, str], ...] = ()
    rejected_arguments: str | None = None
    candidates: tuple[Any, ...] = ()
    next_action: str = ""
    retry: str = "never"
    retry_after_s: float | None = None
    value: Any = None
    effect_id: str | None = None
    replayed: bool = False
    proof: Proof | None = None
    attempts: int = 0
    stop: str | None = None
    more: str | None = None
    tool: str = ""
    text: str = field(default="", repr=False)

    def message(self, form: Form = "text", tokens: int = TOKENS) -> str:
        """What the model is told, as "text" or as "json", in at most `tokens` tokens (four bytes of UTF-8 each).

        Arguments and candidates are cut to fit, then the reason; the code and the next action never. The result of a
        tool is not counted: it has its own cap.

        Example:
            >>> from counterfoil.observe import Words, about
            >>> seen = about(None, Words(tool="book", code="forbidden", reason="The hall is closed."))
            >>> print(seen.message("json"))  # doctest: +NORMALIZE_WHITESPACE
            {"tool": "book", "code": "forbidden", "verdict": "no_effect", "reason": "The hall is closed.",
             "next_action": "Stop and report this to a person; do not call book again."}
        """
        return render(_parts(self), form, tokens)

    def as_dict(self) -> dict[str, Any]:
        """The observation as JSON data."""
        content = {item.name: getattr(self, item.name) for item in fields(self)}
        content["verdict"] = str(self.verdict)
        content["proof"] = None if self.proof is None else str(self.proof)
        content["details"] = [dict(detail) for detail in self.details]
        content["candidates"] = list(self.candidates)
        return content


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a message is filled with. `code` may be a tool's own word; `row_code` is the table's row it follows."""

    tool: str
    code: str
    row_code: str = ""
    reason: str = ""
    hint: str = ""
    field: str = ""
    known: Sequence[str] = ()
    candidates: tuple[Any, ...] = ()
    details: tuple[tuple[str, str], ...] = ()
    arguments: str | None = None
    retry_after_s: float | None = None


def about(row: Row | None, words: Words, *, verdict: Verdict | None = None, replayed: bool = False) -> Observation:
    """The observation about `row` (None where there is no effect), worded by `words`."""
    told = CODES[words.row_code or words.code]
    known = verdict if verdict is not None else Verdict.NO_EFFECT if row is None else row.verdict
    seconds = words.retry_after_s
    if seconds is None and row is not None and known is Verdict.EFFECT_UNKNOWN:
        seconds = wait_s(row)
    value = stored_value(row) if row is not None and row.verdict is Verdict.EFFECT_APPLIED and told.ok else None
    reason = words.reason or told.reason.format(tool=words.tool, field=_named(words))
    action = words.hint or told.next_action.format(
        tool=words.tool,
        effect_id=row.id if row is not None else "unknown",
        seconds=_seconds(seconds),
        field=_named(words),
        known=_nearest(words.tool, words.known) or "none is registered",
    )
    made = Observation(
        ok=told.ok,
        verdict=known,
        code=words.code,
        category=str(told.category),
        reason=reason,
        details=tuple({"field": name, "problem": problem} for name, problem in words.details),
        rejected_arguments=words.arguments,
        candidates=words.candidates[:CANDIDATES_MOST],
        next_action=action,
        retry=str(told.retry),
        retry_after_s=None if seconds is None else round(seconds, 3),
        value=value,
        effect_id=None if row is None else row.id,
        replayed=replayed,
        proof=row.proof if row is not None and row.verdict is known else None,
        attempts=0 if row is None else row.attempts,
        stop=words.code if told.stop else None,
        more=f"docs/reference/codes.md#{told.name}",
        tool=words.tool,
    )
    return _with_text(made)


def of_read(tool: str, text: str | None, note: str | None) -> Observation:
    """The observation of a read-only tool that answered; `text` is its value as JSON, `note` says why there is none."""
    told = CODES["read"]
    value = None if text is None else json.loads(text)
    made = Observation(
        ok=True,
        verdict=Verdict.NO_EFFECT,
        code=told.name,
        category=str(told.category),
        reason=told.reason if note is None else f"It was read; {note}",
        next_action=told.next_action,
        value=value,
        tool=tool,
    )
    return _with_text(made)


def wait_s(row: Row) -> float:
    """Seconds until the effect is looked at next, at least 1."""
    due = row.look_at if row.look_at is not None else row.lease_until
    return max(1.0, (due - row.now) / MICROSECONDS)


def stored_value(row: Row) -> Any:
    """The value that the ledger kept, as JSON data; None where it kept none."""
    return None if row.value is None else json.loads(row.value)


def _named(words: Words) -> str:
    """The arguments in question. Their names may come from the model, so there is an end to them."""
    names = [words.field] if words.field else [name for name, _ in words.details if name]
    unlike = [one_line(name)[:NAME_SHOWN] for name in dict.fromkeys(names)]
    return "the arguments" if not unlike or len(unlike) > NAMES_SHOWN else ", ".join(unlike)


def _nearest(wanted: str, known: Sequence[str]) -> str:
    """All known names, or, where they are too many for a message, those that are most like what was wanted."""
    if sum(len(name) + 2 for name in known) <= KNOWN_SHOWN:
        return ", ".join(known)
    like = difflib.get_close_matches(wanted, known, n=len(known), cutoff=0.0)
    shown: list[str] = []
    for name in like:
        if sum(len(one) + 2 for one in (*shown, name)) > KNOWN_SHOWN:
            break
        shown.append(name)
    return f"{', '.join(shown)} and {len(known) - len(shown)} more"


def _seconds(seconds: float | None) -> str:
    # Rounded up: who obeys must not come before it is allowed.
    return "a few" if seconds is None else f"{max(1, math.ceil(round(seconds, 3)))}"


def _with_text(made: Observation) -> Observation:
    return replace(made, text=made.message())


def _parts(seen: Observation) -> Parts:
    ended = "succeeded" if seen.ok else "was taken back" if seen.code == "ended" else _ended(seen.verdict)
    shown = READ_SHOWN if seen.code == "read" else VALUE_SHOWN
    return Parts(
        tool=seen.tool,
        code=seen.code,
        verdict=str(seen.verdict),
        ended=ended,
        # Arguments that do not fit need no sentence before what is wrong with each.
        reason="" if seen.details and seen.code == "invalid_arguments" else seen.reason,
        problems=[f"{detail['field']} {detail['problem']}".strip() for detail in seen.details],
        result=None if seen.value is None else _cut(_json(seen.value), shown),
        arguments=seen.rejected_arguments,
        candidates=seen.candidates,
        action=seen.next_action,
    )


def _ended(verdict: Verdict) -> str:
    match verdict:
        case Verdict.NO_EFFECT:
            return "had no effect"
        case Verdict.EFFECT_UNKNOWN:
            return "may or may not have had its effect"
        case Verdict.EFFECT_APPLIED:
            return "was carried out, but not as it should be"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length] + f"… ({len(text)} characters)"
