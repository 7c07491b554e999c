"""The four parts of a message as text or as JSON, within a cap.

Owns their order (what failed, why, the arguments as sent, ONE next action) and what is cut where they are too long:
candidates and arguments first, then the reason; never the code and never the action. It knows no row and no code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from counterfoil.text import storable

Form: TypeAlias = Literal["text", "json"]

TOKENS: Final = 100
TOKENS_LEAST: Final = 50
BYTES_PER_TOKEN: Final = 4
_ARGUMENTS_SHOWN: Final = 200
_CANDIDATES_SHOWN: Final = 5
_REASON_LEAST: Final = 24
_STUB: Final = 40
_CUT_BEFORE: Final = re.compile(r"… \([\d,]+ characters\)\Z")
_BREAKS: Final = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def tokens(text: str) -> int:
    """How many tokens a text costs, as estimated here: one for each four bytes of UTF-8, rounded up.

    Example:
        >>> tokens("It is done."), tokens("")
        (3, 0)
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a message is made of. `problems` are those of arguments, each a clause of its own; `result` is JSON text,
    the one part that the cap does not count: it has a cap of its own."""

    tool: str
    code: str
    verdict: str
    ended: str
    reason: str
    action: str
    problems: Sequence[str] = ()
    result: str | None = None
    arguments: str | None = None
    candidates: Sequence[Any] = ()

    @property
    def head(self) -> str:
        return f"{self.tool} {self.ended} (code: {self.code})."


def render(parts: Parts, form: Form = "text", most: int = TOKENS) -> str:
    """The message. At most `most` tokens without the result, unless code and action alone are longer.

    Example:
        >>> parts = Parts(tool="book", code="ambiguous", verdict="no_effect", ended="had no effect",
        ...     reason="Two rooms fit.", action="Choose a room.", arguments='{"size":2}', candidates=("12", "14"))
        >>> print(render(parts))
        book had no effect (code: ambiguous).
        Reason: Two rooms fit.
        Rejected arguments: {"size":2}
        Candidates: ["12", "14"]
        Next action: Choose a room.
        >>> print(render(parts, "json", 60))  # doctest: +ELLIPSIS
        {"tool": "book", "code": "ambiguous", "verdict": "no_effect", "reason": "Two rooms fit.", "rejected_arg...
    """
    room = most * BYTES_PER_TOKEN
    return _as_text(parts, room) if form == "text" else _as_json(parts, room)


# ---------------------------------------------------------------- text


def _as_text(parts: Parts, most: int) -> str:
    head, action = one_line(parts.head), one_line(parts.action)
    room = most - _size(head) - _size(action) - len("\nReason: .\nNext action: ")
    reason, arguments, candidates = _shared(parts, room, len("\nRejected arguments: "), len("\nCandidates: "))
    lines = [head, f"Reason: {reason.rstrip('.')}."]
    lines += [] if parts.result is None else [f"Result: {parts.result.translate(_BREAKS)}"]
    lines += [f"Rejected arguments: {arguments}"] if arguments else []
    lines += [f"Candidates: {candidates}"] if candidates else []
    return storable("\n".join([*lines, f"Next action: {action}"]))


def _shared(parts: Parts, room: int, arguments_label: int, candidates_label: int) -> tuple[str, str, str]:
    """Reason, arguments and candidates, each cut to its share of the room. A part that gets no room is left out."""
    reason = _whole_reason(parts)
    stubs = sum(
        min(label + _STUB, label + _size(text))
        for label, text in ((arguments_label, parts.arguments or ""), (candidates_label, _listed(parts.candidates)))
        if text
    )
    reason_room = max(_REASON_LEAST, room - stubs)
    told = _told_reason(parts, reason, reason_room)
    room -= _size(told)
    full = _listed(parts.candidates)
    wanted = 0 if parts.arguments is None else min(_size(parts.arguments), _ARGUMENTS_SHOWN) + arguments_label
    share = room - min(wanted, max(room // 2, room - _size(full) - candidates_label)) if full else 0
    candidates = _fitting(parts.candidates, share - candidates_label) if full else ""
    room -= _size(candidates) + candidates_label if candidates else 0
    arguments = ""
    if parts.arguments is not None:
        arguments = cut(parts.arguments, min(room - arguments_label, _ARGUMENTS_SHOWN + _STUB))
    return told, arguments, candidates


def _whole_reason(parts: Parts) -> str:
    return one_line(" ".join([*([parts.reason] if parts.reason else []), "; ".join(parts.problems)])).strip()


def _told_reason(parts: Parts, whole: str, room: int) -> str:
    if _size(whole) <= room:
        return whole
    for shown in range(len(parts.problems) - 1, 0, -1):
        fewer = [*parts.problems[:shown], f"and {len(parts.problems) - shown} more"]
        text = one_line(" ".join([*([parts.reason] if parts.reason else []), "; ".join(fewer)])).strip()
        if _size(text) <= room:
            return text
    return cut(whole, room) or cut(whole, _REASON_LEAST)


def _fitting(candidates: Sequence[Any], room: int) -> str:
    """As many candidates as there is room for, and how many more there are."""
    for shown in range(min(len(candidates), _CANDIDATES_SHOWN), 0, -1):
        more = len(candidates) - shown
        text = _listed(candidates[:shown]) + (f" and {more} more" if more else "")
        if _size(text) <= room:
            return text
    return cut(_listed(candidates), room)


def cut(text: str, room: int) -> str:
    """`text` within `room` bytes; what was cut is said. "" where not even that has room.

    Example:
        >>> cut("x" * 1000, 30)
        'xxxxxxxx… (1,000 characters)'
    """
    text = storable(text)
    if _size(text) <= room:
        return text
    before = _CUT_BEFORE.search(text)
    note = before[0] if before else f"… ({len(text):,} characters)"
    left = room - _size(note)
    return text.encode()[:left].decode("utf-8", "ignore") + note if left >= 0 else ""


def one_line(text: str) -> str:
    """`text` without line breaks of any kind, so that no part can pass for another."""
    return " ".join(storable(text).split())


# ---------------------------------------------------------------- JSON


def _as_json(parts: Parts, most: int) -> str:
    fixed = {"tool": one_line(parts.tool), "code": parts.code, "next_action": one_line(parts.action)}
    room = most - _size(_written(fixed)) - len(', "verdict": ""') - len(parts.verdict) - len(', "reason": ""')
    arguments_label, candidates_label = len(', "rejected_arguments": ""'), len(', "candidates": ')
    for spare in range(0, most, 16):  # escapes make a text longer than it was
        reason, arguments, candidates = _shared(parts, room - spare, arguments_label, candidates_label)
        content: dict[str, Any] = {
            "tool": fixed["tool"],
            "code": parts.code,
            "verdict": parts.verdict,
            "reason": reason,
        }
        content |= {"rejected_arguments": arguments} if arguments else {}
        content |= {"candidates": _data(candidates)} if candidates else {}
        content |= {"next_action": fixed["next_action"]}
        if _size(_written(content)) <= most:
            break
    else:
        content = fixed
    if parts.result is not None:
        content = _before_action(content, "result", _data(parts.result))
    return _written(content)


def _before_action(content: Mapping[str, Any], name: str, value: Any) -> dict[str, Any]:
    action = content["next_action"]
    return {key: one for key, one in content.items() if key != "next_action"} | {name: value, "next_action": action}


def _written(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False).translate(_BREAKS)


def _data(text: str) -> Any:
    """The JSON value that a text begins with; the text itself where it was cut."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except json.JSONDecodeError:
        return text


def _listed(candidates: Sequence[Any]) -> str:
    if not candidates:
        return ""
    return storable(json.dumps(list(candidates), ensure_ascii=False, default=str).translate(_BREAKS))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
