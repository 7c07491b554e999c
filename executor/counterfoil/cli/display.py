"""What a person reads at 80 columns, and what a program reads as JSON.

Owns layout. What comes from models and providers is shown as text only: no markup, and nothing that a terminal obeys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import typer
from rich.console import Console
from rich.containers import Lines
from rich.text import Text

from counterfoil.effect import MICROSECONDS, Entry, Incident, Row, Verdict
from counterfoil.ledger.audit import described, instant_text

INSTANTS: Final = frozenset({"absent_from", "asked_at", "sends_until"})
_STYLES: Final = {"no_effect": "cyan", "effect_unknown": "bold yellow", "effect_applied": "green"}
_CUT: Final = 2000
_HANG: Final = 2


def plain(text: str) -> str:
    """The text with every sign that a terminal could obey, or that hides what it says, made visible.

    Example:
        >>> plain("a\\x1b[31mb\\n")
        'a�[31mb�'
    """
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def as_json(content: Any) -> None:
    """Write one JSON value, and nothing else, to stdout. Only ASCII: a terminal obeys none of it."""
    typer.echo(json.dumps(content, indent=2))


class Page:
    """A page for a person, on stdout."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, markup=False, emoji=False)

    def line(self, text: str = "", *, indent: int = 0, style: str = "", cut: bool = False) -> None:
        """One line; with `cut`, what does not fit is left out, else it goes on below, indented."""
        self._put(Text(plain(text), style=style), indent, cut)

    def effect(self, row: Row) -> None:
        """An effect in three lines."""
        self._put(_title(row), 0, False)
        self.line(f"{row.tool} {row.echo}", indent=2, cut=True)
        about = [f"created {moment(row.created_at)}", _attempts(row)]
        about += [f"{row.looks} look{'' if row.looks == 1 else 's'}"] if row.verdict is Verdict.EFFECT_UNKNOWN else []
        about += [f"task {row.task}"] if row.task else []
        about += [f"tenant {row.tenant}"] if row.tenant else []
        self.line(", ".join(about), indent=2, style="dim", cut=True)

    def table(self, rows: Iterable[tuple[str, str]], *, indent: int = 2) -> None:
        """Names and what they stand for; names without content are left out."""
        shown = [(name, content) for name, content in rows if content]
        width = max((len(name) for name, _ in shown), default=0) + 2
        for name, content in shown:
            lines = self._wrapped(Text(plain(_shortened(content))), indent + width)
            for number, line in enumerate(lines):
                told = "" if number else name
                self._console.print(Text(" " * indent) + Text(f"{told:<{width}}", style="dim") + line)

    def _put(self, text: Text, indent: int, cut: bool) -> None:
        if cut:
            text.truncate(max(20, self._console.width - indent), overflow="ellipsis")
            self._console.print(Text(" " * indent) + text, no_wrap=True, overflow="ignore", crop=False)
            return
        for number, line in enumerate(self._wrapped(text, indent + _HANG)):
            self._console.print(Text(" " * (indent + (_HANG if number else 0))) + line)

    def _wrapped(self, text: Text, indent: int) -> Lines:
        return text.wrap(self._console, max(20, self._console.width - indent), overflow="fold")


def _title(row: Row) -> Text:
    proof = f" ({row.proof})" if row.proof is not None else " (in progress)" if row.live else ""
    more = f", counted {row.count} times" if row.count > 1 else ""
    less = "" if row.complete else ", incomplete"
    return Text.assemble(
        (row.id, "bold"), "  ", (str(row.verdict), _STYLES[row.verdict]), plain(f"{proof}{more}{less}")
    )


def _attempts(row: Row) -> str:
    still_open = f" ({row.open_attempts.bit_count()} unproven)" if row.open_attempts else ""
    return f"{row.attempts} attempt{'' if row.attempts == 1 else 's'}{still_open}"


def _shortened(text: str) -> str:
    return text if len(text) <= _CUT else f"{text[:_CUT]}… ({len(text)} characters)"


def moment(instant: int | None) -> str:
    """An instant as a person reads it: to the second, in UTC with offset.

    Example:
        >>> moment(1_500_000)
        '1970-01-01T00:00:01+00:00'
    """
    if instant is None:
        return ""
    return datetime.fromtimestamp(instant // MICROSECONDS, UTC).isoformat(timespec="seconds")


def show_effect(page: Page, row: Row) -> None:
    """All that is known of an effect."""
    page.effect(row)
    page.table(
        [
            ("arguments", row.echo),
            ("code", row.code or ""),
            ("reason", row.reason or ""),
            ("value", row.value or ""),
            ("value note", row.value_note or ""),
            ("references", ", ".join(row.references)),
            ("provider keys", ", ".join(row.provider_keys)),
            ("version", str(row.version)),
            ("begun", moment(row.begun_at)),
            ("may send until", moment(row.sends_until)),
            ("absence counts", moment(row.absent_from)),
            ("next look", moment(row.look_at)),
            ("looks", str(row.looks or "")),
        ]
    )


def show_history(page: Page, entries: Iterable[Entry], sightings: Iterable[Mapping[str, Any]]) -> None:
    """The timeline: each entry with its time, what happened, who did it, and the detail."""
    page.line("history", style="bold")
    for entry in entries:
        attempt = f"  attempt {entry.attempt}" if entry.attempt else ""
        page.line(f"{entry.seq:>3}  {_precise(entry.at)}  {entry.event}{attempt}", indent=1)
        said = ", ".join(f"{name} {_text(content)}" for name, content in readable(entry.detail).items())
        page.line(f"by {entry.actor}", indent=6, style="dim", cut=True)
        page.line(_shortened(said), indent=6, style="dim")
    seen = list(sightings)
    if seen:
        page.line("answered from the ledger", style="bold")
    for one in seen:
        call = ", ".join(f"{name} {one[name]}" for name in ("task", "turn", "call_id") if one[name] not in (None, ""))
        page.line(f"{one['at']}  {one['code']}  {call}", indent=6)


def show_incident(page: Page, incident: Incident) -> None:
    """An incident in a few lines."""
    closed = f", closed {moment(incident.closed_at)} by {incident.closed_by}" if incident.closed_at is not None else ""
    page.line(f"{incident.number}  {incident.kind}  {incident.tool}", style="bold")
    page.line(f"{moment(incident.at)}{closed}  {incident.effect_id or ''}", indent=2)
    said = ", ".join(f"{name} {_text(content)}" for name, content in readable(incident.detail).items())
    if said:
        page.line(_shortened(said), indent=2, style="dim")
    if incident.closed_why:
        page.line(_shortened(f"closed because: {incident.closed_why}"), indent=2, style="dim")


def entry_content(entry: Entry) -> dict[str, Any]:
    """An entry as JSON data."""
    return {
        "seq": entry.seq,
        "at": instant_text(entry.at),
        "event": entry.event,
        "attempt": entry.attempt,
        "actor": entry.actor,
        "detail": readable(entry.detail),
    }


def incident_content(incident: Incident) -> dict[str, Any]:
    """An incident as JSON data."""
    return {
        "number": incident.number,
        "kind": incident.kind,
        "effect_id": incident.effect_id,
        "tool": incident.tool,
        "detail": readable(incident.detail),
        "at": instant_text(incident.at),
        "closed_at": instant_text(incident.closed_at),
        "closed_by": incident.closed_by,
        "closed_why": incident.closed_why,
    }


def effect_content(row: Row) -> dict[str, Any]:
    """An effect as JSON data."""
    return described(row)


def readable(detail: Mapping[str, Any]) -> dict[str, Any]:
    """The detail of an entry with its instants as text, and without what says nothing.

    Example:
        >>> readable({"asked_at": 0, "reason": None, "count": 1})
        {'asked_at': '1970-01-01T00:00:00.000000+00:00', 'count': 1}
    """
    told = {}
    for name, content in detail.items():
        if content is None or content == []:
            continue
        told[name] = instant_text(content) if name in INSTANTS and isinstance(content, int) else content
    return told


def _precise(instant: int) -> str:
    seconds, rest = divmod(instant, MICROSECONDS)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest).isoformat(timespec="milliseconds")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
