"""`incidents` lists what a person should see, and `incidents close` writes down that a person has seen to one."""

from __future__ import annotations

from typing import Annotated

import typer

from counterfoil.cli import display
from counterfoil.cli.opening import auditing, changing
from counterfoil.cli.options import JsonOption, LedgerOption, LimitOption, TenantOption
from counterfoil.errors import UsageError
from counterfoil.runner.incidents import close_incident

group = typer.Typer(invoke_without_command=True)


@group.callback()
def incidents(
    context: typer.Context,
    closed: Annotated[bool, typer.Option("--closed", help="Closed ones too.")] = False,
    tenant: TenantOption = None,
    limit: LimitOption = 1000,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """List what a person should see, newest first; or close one."""
    if context.invoked_subcommand is not None:
        return
    with auditing(ledger, tenant) as audit:
        seen = audit.incidents(closed=closed, limit=limit)
    if json_output:
        display.as_json([display.incident_content(incident) for incident in seen])
        return
    page = display.Page()
    for incident in seen:
        display.show_incident(page, incident)
    if not seen:
        page.line("no incidents")


@group.command()
def close(
    context: typer.Context,
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="The incident's number.")],
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who has seen to it.")] = "",
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="What came of it; it is kept.")] = "",
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Close an incident. One that is closed stays as it was closed first; the effect itself does not change."""
    if not by.strip() or not why.strip():
        raise UsageError("an incident is closed by a named person with a reason: give --by NAME and --why TEXT")
    listed = context.parent.params if context.parent is not None else {}
    with changing(ledger or listed.get("ledger")) as book:
        incident = close_incident(book, None, number, by=by, why=why)
    if json_output or listed.get("json_output"):
        display.as_json(display.incident_content(incident))
        return
    display.show_incident(display.Page(), incident)
