"""The commands by name, as typer runs them."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from counterfoil.cli import database, guards, incidents, keeping, read, reencrypting, sealing, serving, statistics, work
from counterfoil.cli.ending import Commands

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a trace that shows local variables shows secrets
    help="The effect ledger: what was begun, what is known of it, and what a person should see.",
)
db = typer.Typer(no_args_is_help=True, help="The ledger's tables.")

for command in (work.demo, read.effects, read.show, read.doubts, statistics.stats, work.reconcile, work.resolve,
                work.tools, work.schemas, guards.pause, guards.resume, guards.status, keeping.prune):  # fmt: skip
    app.command()(command)
app.add_typer(incidents.group, name="incidents")
app.add_typer(serving.group, name="mcp")
app.add_typer(sealing.group, name="audit")
app.add_typer(db, name="db")
db.command()(database.upgrade)
db.command()(database.check)
db.command()(database.tenants)
db.command()(reencrypting.reencrypt)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(version("counterfoil"))
        raise typer.Exit


@app.callback()
def about(
    _asked: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """The effect ledger: what was begun, what is known of it, and what a person should see."""
