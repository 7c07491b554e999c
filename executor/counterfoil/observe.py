"""From a row to what the model reads: the `Observation` and its text.

Owns the four parts (what failed, why, the arguments as sent, ONE next action), their order and their length. It takes
what is known from the row, never from the outcome in hand. No upstream text, host, trace or secret enters here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from counterfoil.codes import CODES, Code
from counterfoil.effect import MICROSECONDS, Proof, Row, Verdict

ARGUMENTS_SHOWN = 200
VALUE_SHOWN = 2_000
READ_SHOWN = 20_000
CANDIDATES_SHOWN = 5


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
    text: str = field(default="", repr=False)

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
        known=", ".join(words.known) or "none is registered",
    )
    made = Observation(
        ok=told.ok,
        verdict=known,
        code=words.code,
        category=str(told.category),
        reason=reason,
        details=tuple({"field": name, "problem": problem} for name, problem in words.details),
        rejected_arguments=words.arguments,
        candidates=words.candidates[:CANDIDATES_SHOWN],
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
    )
    return _with_text(made, words.tool, told)


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
    )
    return _with_text(made, tool, told)


def wait_s(row: Row) -> float:
    """Seconds until the effect is looked at next, at least 1."""
    due = row.look_at if row.look_at is not None else row.lease_until
    return max(1.0, (due - row.now) / MICROSECONDS)


def stored_value(row: Row) -> Any:
    """The value that the ledger kept, as JSON data; None where it kept none."""
    return None if row.value is None else json.loads(row.value)


def _named(words: Words) -> str:
    names = [name for name, _ in words.details if name] or ([words.field] if words.field else [])
    return ", ".join(dict.fromkeys(names)) or "the arguments"


def _seconds(seconds: float | None) -> str:
    return "a few" if seconds is None else f"{max(1, round(seconds))}"


def _with_text(made: Observation, tool: str, told: Code) -> Observation:
    ended = "succeeded" if told.ok else "was taken back" if told.name == "ended" else _ended(made.verdict)
    lines = [f"{tool} {ended} (code: {made.code})."]
    problems = "; ".join(f"{detail['field']} {detail['problem']}".strip() for detail in made.details)
    lines.append(f"Reason: {problems or made.reason}".rstrip(".") + ".")
    if made.value is not None:
        lines.append(f"Result: {_cut(_json(made.value), READ_SHOWN if told.name == 'read' else VALUE_SHOWN)}")
    if made.rejected_arguments is not None:
        lines.append(f"Rejected arguments: {_cut(made.rejected_arguments, ARGUMENTS_SHOWN)}")
    if made.candidates:
        lines.append(f"Candidates: {_cut(_json(list(made.candidates)), ARGUMENTS_SHOWN)}")
    lines.append(f"Next action: {made.next_action}")
    text = "\n".join(lines).encode("utf-8", "replace").decode("utf-8").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    content = {item.name: getattr(made, item.name) for item in fields(made)}
    return Observation(**content | {"text": text})


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
