"""`pause` and `resume` stop and start a tool on every host; `status` shows what the guards have to say now."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from counterfoil.cli import display
from counterfoil.cli.opening import auditing, changing
from counterfoil.cli.options import JsonOption, LedgerOption
from counterfoil.cli.options import TenantOption as ListedOption
from counterfoil.errors import UsageError
from counterfoil.ledger.audit import ToolState, instant_text
from counterfoil.ledger.standing import EVERYBODY
from counterfoil.runner import task

ToolArgument = Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.")]
TenantOption = Annotated[
    str, typer.Option("--tenant", metavar="NAME", help="Of this tenant alone; else of every tenant.")
]


def pause(
    tool: ToolArgument,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who says so.")] = "",
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason; it is kept.")] = "",
    tenant: TenantOption = EVERYBODY,
    ledger: LedgerOption = None,
) -> None:
    """Let nothing begin with a tool, on any host, until it is resumed. Looking goes on."""
    if not by.strip() or not why.strip():
        raise UsageError("a tool is paused by a named person with a reason: give --by NAME and --why TEXT")
    with changing(ledger) as book:
        task.pause(book, tool, tenant, by=by, why=why)
    display.Page().line(f"{tool} is paused{_of(tenant)}: counterfoil resume {tool}")


def resume(tool: ToolArgument, tenant: TenantOption = EVERYBODY, ledger: LedgerOption = None) -> None:
    """Let attempts with a paused tool begin again."""
    with changing(ledger) as book:
        if not book.guards.resume(tool, tenant):
            raise UsageError(f"{tool} is not paused{_of(tenant)}: counterfoil status lists what is")
    display.Page().line(f"{tool} goes on{_of(tenant)}")


def status(tenant: ListedOption = None, ledger: LedgerOption = None, json_output: JsonOption = False) -> None:
    """List the tools that are paused, and those whose service fails."""
    with auditing(ledger, tenant) as audit:
        seen = audit.guards()
    if json_output:
        display.as_json([_content(one) for one in seen])
        return
    page = display.Page()
    for one in seen:
        page.line(f"{one.tool}{_of(one.tenant)}", style="bold")
        page.table(_lines(one))
    if not seen:
        page.line("no tool is paused, and none fails")


def _lines(one: ToolState) -> list[tuple[str, str]]:
    lines = []
    if one.paused_at is not None:
        lines.append(("paused", f"{instant_text(one.paused_at)} by {one.paused_by}: {one.paused_why}"))
    if one.opened_at is not None:
        probe = ", a probe is under way" if one.probing else ""
        lines.append(("breaker", f"open since {instant_text(one.opened_at)}{probe}"))
    if one.failures:
        lines.append(("failures", f"{one.failures} in a row"))
    return lines


def _content(one: ToolState) -> dict[str, Any]:
    instants = {"opened_at": instant_text(one.opened_at), "paused_at": instant_text(one.paused_at)}
    return asdict(one) | instants


def _of(tenant: str) -> str:
    return "" if tenant == EVERYBODY else f" for the tenant {tenant!r}"
