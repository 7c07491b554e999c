"""`mcp serve`: an application's tools as an MCP server."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from counterfoil.cli.opening import application
from counterfoil.cli.options import AppOption, LedgerOption
from counterfoil.errors import UsageError

group = typer.Typer(no_args_is_help=True, help="Offer an application's tools to MCP hosts.")


@group.command()
def serve(
    app: AppOption = None,
    ledger: LedgerOption = None,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="HOST:PORT", help="Serve streamable HTTP at /mcp there; else stdin and stdout."),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="What the server calls itself.")] = "counterfoil",
    task: Annotated[
        str | None, typer.Option("--task", help="The piece of work of calls that name none.", show_default=False)
    ] = None,
) -> None:
    """Serve until the host hangs up, or until it is interrupted. What the application prints goes to stderr."""
    address = None if http is None else _address(http)
    try:
        import anyio

        from counterfoil.adapters import mcp
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        raise UsageError(f"the MCP server needs {package}: pip install 'counterfoil[mcp]'") from None
    with contextlib.ExitStack() as stack:
        wire = stack.enter_context(mcp.own_wire()) if address is None else None
        served = mcp.server(stack.enter_context(application(app, ledger)), name=name, task=task)
        if wire is not None:
            anyio.run(mcp.serve_stdio, served, wire)
        elif address is not None:
            anyio.run(mcp.serve_http, served, *address)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise UsageError("--http takes HOST:PORT, for example --http 127.0.0.1:8000")
    return host.strip("[]"), int(port)
