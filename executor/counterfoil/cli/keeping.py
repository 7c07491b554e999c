"""`prune`: takes old, settled effects out of the ledger, into a file, and leaves tombstones."""

from __future__ import annotations

import contextlib
import getpass
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from counterfoil.cli import display
from counterfoil.cli.opening import changing
from counterfoil.cli.options import JsonOption, LedgerOption
from counterfoil.effect import MICROSECONDS
from counterfoil.errors import UsageError
from counterfoil.ledger.archive import Archive
from counterfoil.ledger.keeping import BATCH, Pruned
from counterfoil.ledger.keeping import prune as take_out

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_KEPT: Final = {
    "unknown": "are unknown",
    "incomplete": "are incomplete",
    "doubled": "were applied more than once",
    "look_due": "are looked at again",
    "undo_open": "are being taken back",
    "incident_open": "have an open incident",
    "unreadable": "cannot be decrypted",
    "key_remembered": "may still be known to the provider by their key",
}


def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Not changed for so long: 90d, 12h, 30m, 60s.")
    ],
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="FILE", help="Append what is taken out to this file; else it is lost."),
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="NAME", help="Of this tenant alone.")] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who prunes; else USER@HOST.")] = None,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Take old, settled effects out of the ledger. Their keys go on being known, and are never run as new."""
    age_us = _age_us(older_than)
    with ExitStack() as stack:
        book = stack.enter_context(changing(ledger))
        archive = None if export is None else stack.enter_context(Archive(export, remembered=BATCH))
        tell = stack.enter_context(_progress())
        done = take_out(book, age_us, archive, by=by or who(), tenant=tenant, told=tell)
    if json_output:
        display.as_json(
            {"pruned": done.pruned, "kept": dict(done.kept), "export": None if export is None else str(export)}
        )
        return
    page = display.Page()
    where = "" if export is None else f", archived in {export}"
    page.line(f"pruned {done.pruned} effect{'' if done.pruned == 1 else 's'}{where}")
    for why, number in sorted(done.kept.items()):
        page.line(f"kept {number} that {_KEPT[why]}", indent=2)


def _age_us(text: str) -> int:
    found = re.fullmatch(r"(\d{1,9})([smhd])", text.strip())
    if found is None:
        raise UsageError("--older-than takes a whole number with its unit: 90d, 12h, 30m or 60s")
    return int(found[1]) * _UNITS[found[2]] * MICROSECONDS


def who() -> str:
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):
        return socket.gethostname()


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[Pruned], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("pruning") as status:
        yield lambda done: status.update(f"pruning: {done.pruned} taken out, {sum(done.kept.values())} kept so far")
