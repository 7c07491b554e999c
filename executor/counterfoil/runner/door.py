"""The door between a tool's exceptions and results and everything that is told or kept of them.

Owns what is let in of an exception: words that are clean enough for a model, a code that claims nothing, and an account
for engineers; and what is let in of a result: no secret that the call is known to hold. It decides no verdict.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel

from counterfoil.account import account_of
from counterfoil.changes import StoredValue
from counterfoil.cleaning import clean_data, masked, plain, secrets_in
from counterfoil.codes import CODES, REFUSALS
from counterfoil.effect import Lost, NeverSent, Refused, Unclear
from counterfoil.errors import ToolRefusal
from counterfoil.message import tokens
from counterfoil.runner.job import REASON_MAX, Job
from counterfoil.runner.messages import Messages
from counterfoil.runner.values import kept_value
from counterfoil.spec import ACTION_TOKENS, spec_for
from counterfoil.steps import AttemptEnd
from counterfoil.telling import told_code

CODE_MAX: Final = 64
REASON_SHOWN: Final = 200
HINT_READ: Final = 2_000
FIELD_SHOWN: Final = 64
CANDIDATE_SHOWN: Final = 80
_NO_CODE: Final = re.compile(r"[^A-Za-z0-9_.:-]+")


def let_in(outcome: Refused | NeverSent | Lost, problem: BaseException, job: Job, messages: Messages) -> AttemptEnd:
    """The end of an attempt that raised `problem`, as it may be told and kept. It never raises: an odd exception, or an
    odd session beside it, costs words and account, not the outcome."""
    try:
        return _let_in(outcome, problem, job, messages)
    except Exception:  # noqa: BLE001 - code of others runs in here
        if not isinstance(outcome, Refused):
            return AttemptEnd(outcome)
        code = outcome.code if outcome.code in REFUSALS else "rejected"
        bare = replace(outcome, code=code, reason="", hint=None, field=None, candidates=())
        return AttemptEnd(bare)


def _let_in(outcome: Refused | NeverSent | Lost, problem: BaseException, job: Job, messages: Messages) -> AttemptEnd:
    hidden = hidden_of(job, messages)
    account = account_of(problem, hidden)
    if not isinstance(outcome, Refused):
        return AttemptEnd(outcome, account=account)
    if isinstance(problem, ToolRefusal):
        return AttemptEnd(_as_said(outcome, problem, hidden), account=account)
    spec = spec_for(job.tool.errors, problem)
    if spec is None:  # the kind of an exception is for engineers: it stands in the account
        return AttemptEnd(replace(outcome, reason=CODES[outcome.code].reason), account=account)
    return AttemptEnd(replace(outcome, code=spec.code, reason=spec.constraint), account=account)


def clean_look(evidence: Unclear, job: Job, messages: Messages) -> Unclear:
    """What the author of a look says to engineers, without secrets."""
    try:
        reason = masked(str(evidence.reason)[: 4 * REASON_MAX], hidden_of(job, messages))
    except Exception:  # noqa: BLE001 - as above: it costs the words
        reason = "unclear"
    return replace(evidence, reason=reason)


def let_value(value: Any, job: Job, messages: Messages) -> StoredValue:
    """What a function returned, or a look found, as it may be told and kept. It never raises."""
    try:
        hidden = [*_known(job, messages), *secrets_in(job.context, named_only=True)]
    except Exception:  # noqa: BLE001 - as above: then nobody knows what must not stand in it
        return StoredValue(None, 0, None, "its result could not be read and was not kept")
    return kept_value(value, job.tool.policy, hidden)


def hidden_of(job: Job, messages: Messages) -> list[str]:
    """Every secret that this call is known to hold."""
    return [*_known(job, messages), *secrets_in(job.context)]


def _known(job: Job, messages: Messages) -> list[str]:
    hidden = [*messages.hide]
    for name in job.tool.arguments.secret_names:
        hidden += _all_texts((job.values or {}).get(name))
    return hidden


# ---------------------------------------------------------------- details


def _as_said(outcome: Refused, problem: ToolRefusal, hidden: list[str]) -> Refused:
    """A refusal in the tool's own words, cleaned and cut from what was raised: `outcome` may hold half a secret."""
    reason = _said(problem, "reason")
    hint = _said(problem, "hint") or ""
    named = _said(problem, "field")
    return replace(
        outcome,
        code=told_code(_code(outcome.code, hidden)),
        # Without words of its own, `outcome` has the exception's kind, which is for engineers.
        reason="" if reason is None else plain(reason, REASON_SHOWN, hidden),
        hint=_action(hint, hidden) or None,
        field=None if named is None else plain(named, FIELD_SHOWN, hidden),
        candidates=tuple(clean_data(one, CANDIDATE_SHOWN, hidden) for one in outcome.candidates),
    )


def _said(problem: ToolRefusal, name: str) -> str | None:
    try:
        said = getattr(problem, name, None)
    except Exception:  # noqa: BLE001 - a subclass's own property
        return None
    return said if isinstance(said, str) and said else None


def _code(code: str, hidden: list[str]) -> str:
    return _NO_CODE.sub("_", masked(code, hidden)).strip("_")[:CODE_MAX] or "rejected"


def _action(hint: str, hidden: list[str]) -> str:
    """A hint, as many whole sentences of it as fit. One that something had to be taken out of is none: half an action
    is worse than the table's own."""
    hint = " ".join(hint[:HINT_READ].split())
    if plain(hint, HINT_READ, hidden) != hint:
        return ""
    while tokens(hint) > ACTION_TOKENS:
        shorter = hint.rstrip().rstrip(".!?…")
        cut_at = max(shorter.rfind(sign) for sign in (". ", "! ", "? "))
        if cut_at < 0:
            return ""
        hint = shorter[: cut_at + 1]
    return hint


def _all_texts(value: Any) -> Iterable[str]:
    """Every text in a secret argument, whatever its shape."""
    reveal = getattr(value, "get_secret_value", None)
    match reveal() if callable(reveal) else value:
        case None | bool():
            return []
        case str() as text:
            return [text]
        case bytes() as data:
            return [data.decode("utf-8", "replace")]
        case dict() as members:
            return [text for one in members.values() for text in _all_texts(one)]
        case list() | tuple() | set() | frozenset() as items:
            return [text for one in items for text in _all_texts(one)]
        case BaseModel() as model:
            members = {**model.__dict__, **(model.__pydantic_extra__ or {})}
            return [text for one in members.values() for text in _all_texts(one)]
        case other if dataclasses.is_dataclass(other):
            held = [getattr(other, one.name, None) for one in dataclasses.fields(other)]
            return [text for one in held for text in _all_texts(one)]
        case other:
            return [str(other)]
