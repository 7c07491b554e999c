"""What models can be told by the tools of one executor, as a table; and what their descriptions leave unsaid.

Owns the catalogue (one row for each tool and code) and the lint of descriptions. It runs no tool and reads no ledger.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from counterfoil.codes import CODES, GUARDED, Code
from counterfoil.spec import ErrorSpec
from counterfoil.tool import AnyTool

RULES: Final = {
    "what": "a description begins with a sentence that says what the tool does",
    "when": "a description says when to use the tool: after what, instead of what, only if",
    "units": "a quantity says its unit: in its name, its description or the tool's",
    "alike": "no two tools are described in the same words",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One row of the catalogue: what one tool can tell under one code."""

    tool: str
    code: str
    verdict: str
    category: str
    retry: str
    stops: bool
    reason: str
    next_action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flaw:
    """One thing that a description leaves unsaid. `rule` is a key of `RULES`; `argument` is None for the tool."""

    tool: str
    rule: str
    problem: str
    argument: str | None = None


def catalogue(tools: Iterable[AnyTool]) -> list[Told]:
    """One row for each tool and code, the tool's own rows after the built-in ones.

    Example:
        >>> from counterfoil import tool
        >>> @tool(read_only=True, errors=(ErrorSpec("closed", "The shop is closed on Sundays."),))
        ... def price(order: str) -> int:
        ...     '''Tell what an order costs.'''
        ...     return 1
        >>> [row.code for row in catalogue([price])][-2:]
        ['ledger_unavailable', 'closed']
    """
    rows = []
    for tool in tools:
        rows += [_of_code(tool, CODES[name]) for name in _codes(tool)]
        rows += [_of_spec(tool, spec) for spec in tool.errors]
    return rows


def markdown(tools: Iterable[AnyTool]) -> str:
    """The catalogue as a page in Markdown."""
    lines = [
        "# What the tools can tell",
        "",
        "In the texts, EFFECT stands for the id of the effect, N for a number of seconds, ARGUMENT for the argument in",
        "question. A tool may word a refusal more closely when it raises it.",
        "",
        "| tool | code | verdict | class | retry | reason | next action |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in catalogue(tools):
        category = f"{row.category}, stops the run" if row.stops else row.category
        cells = (f"`{row.tool}`", f"`{row.code}`", row.verdict, category, row.retry, row.reason, row.next_action)
        lines.append("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in cells) + " |")
    return "\n".join([*lines, ""])


def flaws(tools: Iterable[AnyTool]) -> list[Flaw]:
    """What the descriptions of tools leave unsaid.

    Example:
        >>> from counterfoil import tool
        >>> @tool(read_only=True)
        ... def price(order: str) -> int:
        ...     '''Tell what an order costs, in cents.'''
        ...     return 1
        >>> [flaw.rule for flaw in flaws([price])]
        ['when']
    """
    found: list[Flaw] = []
    described: dict[str, str] = {}
    for tool in tools:
        found += _of_tool(tool)
        words = " ".join(re.findall(r"\w+", tool.description.lower()))
        twin = described.setdefault(words, tool.name)
        if words and twin != tool.name:
            found.append(Flaw(tool=tool.name, rule="alike", problem=f"it is described in the words of {twin}"))
    return found


def as_data(rows: Iterable[Told | Flaw]) -> list[dict[str, Any]]:
    """The rows as JSON data."""
    return [asdict(row) for row in rows]


# ---------------------------------------------------------------- which codes

_REFUSED: Final = (
    "invalid_arguments", "rejected", "not_found", "no_results", "ambiguous", "conflict", "possible_duplicate",
    "forbidden", "rate_limited", "unavailable",
)  # fmt: skip
_EFFECTIVE: Final = ("ok", "replayed", "value_not_stored", "expired", "in_progress", "key_conflict")
_IN_DOUBT: Final = ("effect_unknown", "applied_more_than_once")
_LOOKED: Final = ("verified", "unverified", "look_forbidden", "look_alike", "incomplete")


def _codes(tool: AnyTool) -> Iterator[str]:
    """The built-in codes that a call of this tool can end with."""
    told = {"read"} if tool.read_only else {*_EFFECTIVE}
    told |= {*_REFUSED, *GUARDED, "ledger_unavailable"}
    if tool.read_only:
        told -= {"possible_duplicate"}
    elif not tool.same_transaction:
        told |= {*_IN_DOUBT}
    if tool.postcondition_function is not None:
        told |= {*_LOOKED}
    if tool.revoke_tool is not None:
        told |= {"revoked", "revoking"}
    if tool.compensation_tool is not None:
        told |= {"ended"}
    return (name for name in CODES if name in told)


def _of_code(tool: AnyTool, code: Code) -> Told:
    return Told(
        tool=tool.name,
        code=code.name,
        verdict=code.verdict,
        category=str(code.category),
        retry=str(code.retry),
        stops=code.stop,
        reason=_filled(code.reason, tool, code.name),
        next_action=_filled(code.next_action, tool, code.name),
    )


def _of_spec(tool: AnyTool, spec: ErrorSpec) -> Told:
    row = spec.row
    action = spec.next_action(tool.name) or _filled(row.next_action, tool, row.name, spec.field)
    return Told(
        tool=tool.name,
        code=spec.code,
        verdict=row.verdict,
        category=str(row.category),
        retry=str(row.retry),
        stops=row.stop,
        reason=spec.constraint,
        next_action=action,
    )


def _filled(template: str, tool: AnyTool, code: str, field: str = "") -> str:
    named = ", ".join(tool.key_names) if code == "key_conflict" else field
    return template.format(tool=tool.name, effect_id="EFFECT", seconds="N", field=named or "ARGUMENT", known="…")


# ---------------------------------------------------------------- what is left unsaid

_WHEN: Final = re.compile(
    r"\b(use (it|this)|call (it|this)|when(ever)?|after|before|until|unless|instead of|rather than"
    r"|only (if|for|to)|if (the|a|an|you|there|nothing))\b",
    re.IGNORECASE,
)
_QUANTITIES: Final = frozenset(
    {
        "age", "amount", "balance", "budget", "cost", "delay", "depth", "discount", "distance", "duration", "fee",
        "height", "interval", "length", "mass", "period", "price", "radius", "rate", "size", "speed", "temperature",
        "timeout", "tip", "total", "volume", "wait", "weight", "width",
    }
)  # fmt: skip
_UNITS: Final = re.compile(
    r"\b(minor( units?)?|cents?|pence|euros?|dollars?|eur|usd|gbp|chf|jpy|percent(age)?|ratio|fraction|degrees?"
    r"|(micro|milli)?sec(ond)?s?|minutes?|hours?|days?|weeks?|months?|years?|nights?|(kilo|mega|giga)?bytes?|[kmg]i?b"
    r"|(kilo)?grams?|kg|pounds?|tons?|ms|mm|cm|km|(kilo|centi|milli)?met(er|re)s?|miles?|feet|inch(es)?|kmh|mph"
    r"|(milli)?lit(er|re)s?|ml|celsius|fahrenheit|kelvin|items?|pieces?|seats?|people|persons?|units?)\b|%",
    re.IGNORECASE,
)
_SHORT_UNITS: Final = frozenset({"s", "us", "min", "mins", "h", "d", "b", "g", "lb", "m", "l", "c", "f", "k"})
_SENTENCE: Final = re.compile(r"[^.!?]+[.!?]|[^.!?]+\Z")
_WORDS_LEAST: Final = 3


def _of_tool(tool: AnyTool) -> Iterator[Flaw]:
    sentence = _SENTENCE.match(tool.description.strip())
    if sentence is None or len(re.findall(r"\w+", sentence[0])) < _WORDS_LEAST:
        yield Flaw(tool=tool.name, rule="what", problem="its description does not begin with what it does")
    if not _WHEN.search(tool.description):
        yield Flaw(
            tool=tool.name, rule="when", problem='its description does not say when to use it: add "Use it when …"'
        )
    properties = tool.schema()["parameters"].get("properties", {})
    for name, content in properties.items():
        if _lacks_unit(name, content, tool.description):
            yield Flaw(
                tool=tool.name,
                rule="units",
                argument=name,
                problem=f"{name} is a quantity without a unit: end its name with one (amount_minor, wait_s), "
                "or say it in Field(description=…)",
            )


def _lacks_unit(name: str, content: Mapping[str, Any], description: str) -> bool:
    words = re.findall(r"[a-z]+|%", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().replace("_", " "))
    if not _is_number(content) or not _QUANTITIES & set(words):
        return False
    if words[-1] in _SHORT_UNITS:
        return False
    mine = set(words)
    sentences = [said[0] for said in _SENTENCE.finditer(description)]
    near = [said for said in sentences if mine & set(re.findall(r"[a-z]+", said.lower()))]
    texts = (" ".join(words), str(content.get("description", "")), *near)
    return not any(_UNITS.search(text) for text in texts)


def _is_number(content: Mapping[str, Any]) -> bool:
    kinds = [content, *content.get("anyOf", ())]
    return any(one.get("type") in ("integer", "number") for one in kinds)
