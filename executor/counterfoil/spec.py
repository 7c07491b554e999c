"""The rows that a tool adds to the table of codes: its own refusals, each with its one next action.

Owns `ErrorSpec` and every way in which one can contradict itself, its tool, or the other tools of an executor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from counterfoil.cleaning import plain
from counterfoil.codes import CODES, REFUSALS, Category, Code
from counterfoil.errors import UsageError
from counterfoil.message import tokens

CONSTRAINT_TOKENS: Final = 40
ACTION_TOKENS: Final = 50
FOLLOWS: Final = tuple(name for name in REFUSALS if CODES[name].category is not Category.RETRYABLE)
_CODE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """One refusal of a tool, as a row of its own in the table of codes. Give it in `@tool(errors=(...))`.

    It is told when the function raises `Rejected` with this code, or one of `exceptions`. What the raised `Rejected`
    says itself (reason, hint, field, candidates) goes before what stands here.

    Args:
        code: the tool's own word, for example "card_declined"; no word of the built-in table.
        constraint: why, in the operation's terms: what must hold for the call to work.
        hint: the one next action, a sentence; left out, the row that `follows` names has one.
        example: arguments of a call that works; checked against the tool and shown after the hint.
        field: the argument to change.
        candidates: values that would work, where they are known beforehand.
        alternative: another tool of the same executor to call instead.
        follows: the built-in row whose class, retry and stop hold for this one.
        exceptions: errors among the tool's `rejects` that this row is told for.

    Example:
        >>> ErrorSpec("too_late", "A slot is booked a day ahead or earlier.", hint="Book a later slot.").follows
        'rejected'
    """

    code: str
    constraint: str
    hint: str = ""
    example: Mapping[str, Any] | None = None
    field: str = ""
    candidates: Sequence[Any] = ()
    alternative: str = ""
    follows: str = "rejected"
    exceptions: tuple[type[Exception], ...] = ()

    @property
    def row(self) -> Code:
        """The built-in row that this one follows."""
        return CODES[self.follows]

    def next_action(self, tool: str) -> str:
        """The one next action; "" where the built-in row has it."""
        if self.alternative:
            return f"Call {self.alternative} instead: {self.hint}" if self.hint else f"Call {self.alternative} instead."
        if self.example is None:
            return self.hint
        shown = json.dumps(dict(self.example), ensure_ascii=False, default=str)
        return f"{self.hint or f'Call {tool} again.'} For example: {shown}."


def spec_of(specs: Sequence[ErrorSpec], code: str) -> ErrorSpec | None:
    """The tool's row for a code."""
    return next((one for one in specs if one.code == code), None)


def spec_for(specs: Sequence[ErrorSpec], problem: BaseException) -> ErrorSpec | None:
    """The tool's row for an exception that is no `Rejected`."""
    return next((one for one in specs if isinstance(problem, one.exceptions)), None)


def check_specs(
    tool: str,
    specs: Any,
    *,
    names: Collection[str],
    rejects: tuple[type[Exception], ...],
    problems_of: Callable[[Mapping[str, Any]], Sequence[object]],
) -> None:
    """Refuse rows that contradict themselves or their tool.

    Args:
        tool: its name.
        specs: what stands in `errors=`.
        names: the names of its arguments.
        rejects: the errors that it declares to be refusals.
        problems_of: what is wrong with arguments for it.

    Raises:
        UsageError: the first contradiction; the text says how to mend it.
    """
    if not isinstance(specs, tuple) or not all(isinstance(one, ErrorSpec) for one in specs):
        raise UsageError(f"the tool {tool}: errors= takes a tuple of ErrorSpec; write errors=(ErrorSpec(...),)")
    seen: set[str] = set()
    for spec in specs:
        for problem in _contradictions(tool, spec, names, rejects, problems_of):
            raise UsageError(f"the tool {tool}, ErrorSpec({spec.code!r}): {problem}")
        if spec.code in seen:
            raise UsageError(f"the tool {tool} has two ErrorSpecs for {spec.code!r}: make one of them")
        seen.add(spec.code)


def check_alternatives(specs: Mapping[str, Sequence[ErrorSpec]]) -> None:
    """Refuse rows that send a model to a tool that is not there. `specs` by the names of all tools.

    Raises:
        UsageError: the first such row.
    """
    for tool, rows in specs.items():
        for spec in rows:
            if spec.alternative and spec.alternative not in specs:
                raise UsageError(
                    f"the tool {tool}, ErrorSpec({spec.code!r}): alternative={spec.alternative!r} is no tool of this "
                    f"executor (these are: {', '.join(specs)}); register it, or name another one"
                )


# ---------------------------------------------------------------- details


def _contradictions(
    tool: str,
    spec: ErrorSpec,
    names: Collection[str],
    rejects: tuple[type[Exception], ...],
    problems_of: Callable[[Mapping[str, Any]], Sequence[object]],
) -> Iterator[str]:
    if spec.code in CODES:
        yield "this code is built in and means what the table says; choose a word of your own, and follows= for its row"
    if not _CODE.fullmatch(spec.code):
        yield 'a code is 1 to 64 of a-z, 0-9 and _, and begins with a letter, for example "card_declined"'
    if spec.follows not in FOLLOWS:
        yield f"follows={spec.follows!r} is none of {', '.join(FOLLOWS)}"
        return
    example: Any = spec.example
    if not isinstance(example, Mapping | None):
        yield "example= takes the arguments of a working call by name"
        return
    yield from _about_words(tool, spec)
    if spec.field and spec.field not in names:
        yield f"field={spec.field!r} is no argument of it (these are: {', '.join(names) or 'none'})"
    yield from _about_action(tool, spec)
    if spec.example is not None:
        for problem in problems_of(spec.example):
            yield f"its example is no working call: {problem}"
    listed: tuple[Any, ...] = spec.exceptions
    for one in listed:
        if not (isinstance(one, type) and issubclass(one, rejects)):
            yield f"exceptions= names {getattr(one, '__name__', one)}, which is not among rejects=; list it there too"


def _about_words(tool: str, spec: ErrorSpec) -> Iterator[str]:
    if not spec.constraint.strip():
        yield "constraint= is empty; say in the operation's own terms what must hold for the call to work"
    for word, text, most in (
        ("constraint", spec.constraint, CONSTRAINT_TOKENS),
        ("hint", spec.hint, ACTION_TOKENS),
        ("the next action", spec.next_action(tool), ACTION_TOKENS),
    ):
        if tokens(text) > most:
            yield f"{word} is about {tokens(text)} tokens long, and at most {most} fit into a message; shorten it"
        if word != "the next action" and plain(text, len(text)) != text:
            yield f"{word} holds a line break, markup, an address, a path or a secret; say it in words"


def _about_action(tool: str, spec: ErrorSpec) -> Iterator[str]:
    if spec.alternative == tool:
        yield "its alternative is the tool itself; drop it, or name another one"
    if spec.alternative and spec.example is not None:
        yield "two next actions, an example for this tool and another tool; a model takes the worse one: drop one"
    if spec.row.stop and (spec.hint or spec.example is not None or spec.alternative):
        yield f"follows={spec.follows!r} stops the run, so it has no other next action; drop hint, example, alternative"
