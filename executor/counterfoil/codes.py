"""What the model may be told: one table of codes. Messages and `docs/reference/codes.md` come from it.

Owns code, verdict, class, what a retry needs, whether the run stops, and the template of the ONE next action.
No row of an unknown effect may invite a retry, another key, or another wording.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from counterfoil.explanations import EXPLANATIONS


class Category(StrEnum):
    """Whose move it is: nobody's, the model's with other arguments, the same call's a little later, a person's."""

    DONE = "done"
    RECOVERABLE = "recoverable"
    RETRYABLE = "retryable"
    TERMINAL = "terminal"


class Retry(StrEnum):
    """What the next call needs."""

    NEVER = "never"
    CHANGE_ARGUMENTS = "change_arguments"
    AFTER = "after"
    CHECK = "check"


@dataclass(frozen=True, slots=True)
class Code:
    """One row. `verdict` is "any" where the row of the effect decides. In the templates stand {tool}, {effect_id},
    {seconds}, {field}, {known}."""

    name: str
    verdict: str
    category: Category
    retry: Retry
    stop: bool
    ok: bool
    reason: str
    next_action: str


_UNKNOWN_ACTION: Final = (
    "Do not call {tool} for this again, in any wording. Call check_effect with effect_id {effect_id} in {seconds} s."
)

_ROWS: Final = (
    Code("ok", "effect_applied", Category.DONE, Retry.NEVER, False, True,
         "It is done.", "Go on; do not call {tool} for this again."),
    Code("read", "no_effect", Category.DONE, Retry.NEVER, False, True,
         "It was read.", "Go on."),
    Code("verified", "effect_applied", Category.DONE, Retry.NEVER, False, True,
         "The answer was lost, and looking showed that it had been carried out.",
         "Go on; do not call {tool} for this again."),
    Code("replayed", "effect_applied", Category.DONE, Retry.NEVER, False, True,
         "It had been done before; this is the stored result, nothing was sent again.",
         "Go on. Only if another one is really wanted, ask for a further occurrence of it."),
    Code("unverified", "effect_applied", Category.DONE, Retry.NEVER, False, True,
         "It was reported as done, and a look has not seen it yet.",
         "Go on, and say that it is not confirmed yet; do not call {tool} for this again."),
    Code("expired", "effect_applied", Category.DONE, Retry.NEVER, False, True,
         "It was carried out long ago; its result is no longer kept.",
         "Go on; do not call {tool} for this again."),
    Code("value_not_stored", "effect_applied", Category.DONE, Retry.NEVER, False, True,
         "It is done; its result could not be kept.",
         "Go on; if the result is needed, it has to be read where it was made. Do not call {tool} for this again."),
    Code("in_progress", "effect_unknown", Category.TERMINAL, Retry.CHECK, False, False,
         "Another call for the same thing is under way.", _UNKNOWN_ACTION),
    Code("effect_unknown", "effect_unknown", Category.TERMINAL, Retry.CHECK, False, False,
         "The answer was lost: it may have been carried out, or may still be.", _UNKNOWN_ACTION),
    Code("look_forbidden", "effect_unknown", Category.TERMINAL, Retry.CHECK, False, False,
         "The answer was lost, and looking is refused: its credential is not accepted.",
         "Do not call {tool} for this again, in any wording. Report that the credential of {tool} is refused."),
    Code("look_alike", "effect_unknown", Category.TERMINAL, Retry.CHECK, False, False,
         "The answer was lost; a similar one exists, which is no proof that this one was carried out.",
         _UNKNOWN_ACTION),
    Code("incomplete", "effect_applied", Category.TERMINAL, Retry.NEVER, True, False,
         "A part of it was carried out, a part was not.",
         "Stop and report this to a person; do not call {tool} again."),
    Code("applied_more_than_once", "effect_applied", Category.TERMINAL, Retry.NEVER, True, False,
         "It was carried out, and more than one match was found.",
         "Report this to a person; do not call {tool} for this again."),
    Code("revoked", "no_effect", Category.DONE, Retry.NEVER, False, False,
         "It was taken back before it had an effect; the provider refuses it from now on.",
         "Go on; call {tool} again only if it is wanted after all."),
    Code("ended", "effect_applied", Category.TERMINAL, Retry.NEVER, False, False,
         "It was carried out, and taken back later; another one is a further occurrence of it.",
         "Go on; do not call {tool} for this again."),
    Code("revoking", "any", Category.TERMINAL, Retry.CHECK, False, False,
         "It is being taken back, and the end of that is not known yet.", _UNKNOWN_ACTION),
    Code("conflict", "no_effect", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "It does not fit what is there; nothing happened.", "Use another {field}."),
    Code("invalid_arguments", "no_effect", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "The arguments are not valid.", "Correct {field} and call {tool} again."),
    Code("unknown_tool", "no_effect", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "There is no tool of this name.", "Call one of the known tools: {known}."),
    Code("not_found", "no_effect", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "Nothing has this name.", "Correct {field} and call {tool} again."),
    Code("no_results", "no_effect", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "Nothing matches.", "Widen {field} and call {tool} again."),
    Code("ambiguous", "no_effect", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "More than one fits; nothing happened.", "Choose one of the candidates for {field} and call {tool} again."),
    Code("possible_duplicate", "no_effect", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "It resembles one that exists already; nothing was sent.",
         "Ask the user whether a separate one is wanted. Only if it is, call {tool} again with what sets it apart."),
    Code("rejected", "no_effect", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "It was refused; nothing happened.", "Change {field} and call {tool} again."),
    Code("key_conflict", "any", Category.RECOVERABLE, Retry.CHANGE_ARGUMENTS, False, False,
         "The same {field} was used before with other arguments; nothing was sent or changed.",
         "Use another {field} only if a separate one is really wanted."),
    Code("rate_limited", "no_effect", Category.RETRYABLE, Retry.AFTER, False, False,
         "Too many requests; nothing happened.", "Call {tool} again with the same arguments in {seconds} s."),
    Code("unavailable", "no_effect", Category.RETRYABLE, Retry.AFTER, False, False,
         "The request did not arrive; nothing happened.",
         "Call {tool} again with the same arguments in {seconds} s."),
    Code("forbidden", "no_effect", Category.TERMINAL, Retry.NEVER, True, False,
         "It is not permitted; nothing happened.", "Stop and report this to a person; do not call {tool} again."),
    Code("repeated_call", "no_effect", Category.TERMINAL, Retry.NEVER, False, False,
         "The same call has failed too often; nothing was sent.",
         "Do not call {tool} for this again, in any wording. Report to the user what failed."),
    Code("budget_exhausted", "no_effect", Category.TERMINAL, Retry.NEVER, True, False,
         "The budget of this task is used up; nothing was sent.",
         "Stop and report this to a person; do not call {tool} again."),
    Code("breaker_open", "no_effect", Category.RETRYABLE, Retry.AFTER, False, False,
         "{tool} has failed several times in a row and is left alone for a while; nothing was sent.",
         "Call {tool} again with the same arguments in {seconds} s."),
    Code("paused", "no_effect", Category.TERMINAL, Retry.NEVER, False, False,
         "A person has paused {tool}; nothing was sent.",
         "Do not call {tool} again in this task. Report to the user that it is paused."),
    Code("ledger_unavailable", "any", Category.TERMINAL, Retry.CHECK, False, False,
         "The record of effects cannot be used now.",
         "Do not call {tool} now. Report that the record of effects is not available."),
)  # fmt: skip

# What guards refuse with.
GUARDED: Final = ("repeated_call", "breaker_open", "paused", "budget_exhausted")
CODES: Final = MappingProxyType({row.name: row for row in _ROWS})
REFUSALS: Final = (
    "rejected", "not_found", "no_results", "ambiguous", "conflict", "possible_duplicate", "forbidden",
    "invalid_arguments", "rate_limited", "unavailable",
)  # fmt: skip
"""The rows that a refusal of a tool may speak by: nothing happened, and neither a guard nor a revoke is claimed."""


def page() -> str:
    """The table as a page of the documentation, in Markdown. A test holds `docs/reference/codes.md` to it."""
    lines = [
        "# Codes",
        "",
        "What a call can tell, as `observation.code`. A tool may add words of its own for a refusal, for example",
        "`card_declined`; they follow the row `rejected`, or the one that their `ErrorSpec` names. In the texts stand",
        "the tool's name, the effect's id, seconds and the arguments in question. This page is made from",
        "`counterfoil/codes.py`.",
        "",
    ]
    for row in CODES.values():
        ended = "Ok" if row.ok else "Not ok"
        stops = f"; the run stops with `{row.name}`" if row.stop else ""
        lines += [
            f"## {row.name}",
            "",
            f"{ended}, verdict {_verdict(row.verdict)}, {row.category}, retry {row.retry}{stops}.",
            "",
            f"- Reason: {row.reason}",
            f"- Next action: {row.next_action}",
            "",
            *textwrap.wrap(EXPLANATIONS[row.name], 120, break_long_words=False, break_on_hyphens=False),
            "",
        ]
    return "\n".join(lines)


def _verdict(name: str) -> str:
    return "as the effect's row has it" if name == "any" else f"`{name}`"
