"""Commands that read the ledger: effects, show, doubts. They write nothing and create nothing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

import typer

from counterfoil.cli import display
from counterfoil.cli.ending import Code, Ended
from counterfoil.cli.opening import auditing
from counterfoil.cli.options import EffectArgument, JsonOption, LedgerOption, LimitOption, TenantOption
from counterfoil.effect import MICROSECONDS, Row
from counterfoil.errors import UsageError


def effects(
    verdict: Annotated[
        str | None, typer.Option(metavar="VERDICT", help="no_effect, effect_unknown or effect_applied.")
    ] = None,
    tool: Annotated[str | None, typer.Option(metavar="NAME", help="Of this tool.")] = None,
    task: Annotated[str | None, typer.Option(metavar="NAME", help="Of this task.")] = None,
    tenant: TenantOption = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Created then or later: 2026-03-04T09:00:00+00:00.")
    ] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="With this argument; may be given several times.")
    ] = None,
    limit: LimitOption = 100,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """List effects, newest first."""
    asked: dict[str, Any] = {"verdict": verdict, "tool": tool, "task": task}
    asked |= {"since": _instant(since), "where": _conditions(where or ())}
    with auditing(ledger, tenant) as audit:
        rows = audit.effects(**asked, limit=limit)
    _tell(rows, "no effects", json_output)
    if not json_output and len(rows) == limit:
        display.Page().line(f"(the newest {limit}; --limit shows more)", style="dim")


def show(
    effect: EffectArgument,
    tenant: TenantOption = None,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Show one effect with its history."""
    with auditing(ledger, tenant) as audit:
        row = audit.effect(effect)
        history, sightings = audit.history(row.id), audit.sightings(row.id)
    if json_output:
        entries = [display.entry_content(entry) for entry in history]
        display.as_json(display.effect_content(row) | {"history": entries, "sightings": sightings})
        return
    page = display.Page()
    display.show_effect(page, row)
    display.show_history(page, history, sightings)


def doubts(
    max_age: Annotated[
        float | None,
        typer.Option("--max-age", min=0, metavar="SECONDS", help="End with code 2 when one is older than this."),
    ] = None,
    tenant: TenantOption = None,
    limit: LimitOption = 1000,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """List effects that are unknown, oldest first."""
    with auditing(ledger, tenant) as audit:
        rows = audit.doubts(limit=limit)
    _tell(rows, "no doubts", json_output)
    if max_age is not None and any(_age_s(row) > max_age for row in rows):
        raise Ended(Code.DOUBT_TOO_OLD)


def _tell(rows: Sequence[Row], none: str, json_output: bool) -> None:
    if json_output:
        display.as_json([display.effect_content(row) for row in rows])
        return
    page = display.Page()
    for row in rows:
        page.effect(row)
    if not rows:
        page.line(none)


def _age_s(row: Row) -> float:
    return (row.now - row.unknown_since) / MICROSECONDS


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError("--since takes an instant with its UTC offset: 2026-03-04T09:00:00+00:00") from None


def _conditions(where: Sequence[str]) -> dict[str, str]:
    wanted: dict[str, str] = {}
    for condition in where:
        name, equals, value = condition.partition("=")
        if not (name and equals):
            raise UsageError("--where takes name=value, for example --where order=A-17")
        if wanted.setdefault(name, value) != value:
            raise UsageError(f"--where names {name} twice, with different values: no effect has both")
    return wanted
