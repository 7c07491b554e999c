"""`counterfoil stats`: sums over the ledger, for a person at 80 columns or as JSON. It only reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Annotated

import typer

from counterfoil.cli import display
from counterfoil.cli.opening import auditing
from counterfoil.cli.options import JsonOption, LedgerOption, TenantOption
from counterfoil.ledger.stats import CodeStat, Stat


class By(StrEnum):
    """What the sums are grouped by."""

    DAY = "day"
    TOOL = "tool"
    CODE = "code"


def stats(
    by: Annotated[By, typer.Option(help="One group for each day (UTC), tool, or tool and code.")] = By.TOOL,
    tenant: TenantOption = None,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Count effects, verdicts, attempts, looks, answers and incidents."""
    with auditing(ledger, tenant) as audit:
        counted: Sequence[Stat | CodeStat] = (
            audit.code_stats() if by is By.CODE else audit.stats(by="day" if by is By.DAY else "tool")
        )
    if json_output:
        display.as_json([asdict(one) for one in counted])
        return
    page = display.Page()
    for one in counted:
        _tell(page, one)
    if not counted:
        page.line("nothing in the ledger yet")


def _tell(page: display.Page, one: Stat | CodeStat) -> None:
    if isinstance(one, CodeStat):
        page.line(f"{one.tool}  {one.code}", style="bold")
        page.table([("told at an end", str(one.entries or "")), ("told again", str(one.replayed or ""))])
        return
    page.line(one.group, style="bold")
    age = "" if one.oldest_unknown_s is None else f" (the oldest for {one.oldest_unknown_s:.0f} s)"
    page.table(
        [
            ("effects", f"{one.effects}: {one.applied} applied, {one.no_effect} none, {one.unknown} unknown{age}"),
            ("recovered", str(one.recovered or "")),
            ("attempts", str(one.attempts or "")),
            ("looks", str(one.looks or "")),
            ("answered from the ledger", str(one.replayed or "")),
            ("incidents", str(one.incidents or "")),
        ]
    )
