"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from counterfoil.cli.opening import VARIABLE

LedgerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        metavar="URL",
        help=f"The ledger, sqlite:///FILE or postgresql+psycopg://…; else {VARIABLE}.",
        show_default=False,
    ),
]
AppOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:OBJECT",
        help="An Executor, or a function that returns one, of a module found from this folder.",
        show_default=False,
    ),
]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
TenantOption: TypeAlias = Annotated[
    str | None, typer.Option("--tenant", metavar="NAME", help="Of this tenant alone; else of all.")
]
EffectArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="EFFECT", help="The effect's id, or as much of its beginning as is unique.")
]
LimitOption: TypeAlias = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most so many.")]
