"""`audit seal`, `audit verify` and `audit export`: closing what was written, comparing with it, taking it elsewhere."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from counterfoil.cli import display
from counterfoil.cli.ending import Code, Ended
from counterfoil.cli.opening import application, changing, cipher_keys, reading
from counterfoil.cli.options import AppOption, JsonOption, LedgerOption
from counterfoil.errors import UsageError
from counterfoil.ledger import archived
from counterfoil.ledger.audit import instant_text
from counterfoil.ledger.connect import database_file, describing
from counterfoil.ledger.export import COLUMNS, rows
from counterfoil.ledger.seals import Seal
from counterfoil.ledger.seals import seal as close
from counterfoil.ledger.verifying import Verified
from counterfoil.ledger.verifying import verify as compare
from counterfoil.runner.naming import SECRET_MIN

VARIABLE: Final = "COUNTERFOIL_SECRET"
_SHOWN: Final = 50

group = typer.Typer(no_args_is_help=True, help="Seal the ledger, and see whether it is as it was sealed.")


class Form(StrEnum):
    """How `audit export` writes."""

    JSONL = "jsonl"
    CSV = "csv"


@group.command()
def seal(app: AppOption = None, ledger: LedgerOption = None, json_output: JsonOption = False) -> None:
    """Close all that was written since the last seal, and print the new root: keep it elsewhere.

    The secret that keys the seal is the application's (--app), or that of COUNTERFOIL_SECRET.
    """
    with _progress("sealing") as tell:
        if app is not None:
            with application(app, ledger) as executor:
                made = close(executor._ledger, executor._secrets.newest, told=lambda one: tell(one.number))
        else:
            secret = next(iter(_secrets()), None)
            with changing(ledger) as book:
                made = close(book, secret, told=lambda one: tell(one.number))
    if json_output:
        display.as_json([seal_content(one) for one in made])
        return
    page = display.Page()
    for one in made[-1:]:
        total, several = sum(each.entries for each in made), f" in {len(made)} seals" if len(made) > 1 else ""
        page.line(f"sealed {sum(each.effects for each in made)} effects and {total} entries{several}")
        page.line(f"root {one.text}")
        if one.secret_id is None:
            page.line("no secret keys it: whoever can write to the database can make such a seal", style="dim")
    if not made:
        page.line("nothing new to seal")


@group.command()
def verify(
    root: Annotated[
        str | None, typer.Option("--root", metavar="NUMBER:ROOT", help="A root that was kept elsewhere.")
    ] = None,
    app: AppOption = None,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Name what is not as it was sealed. Reads only; ends with code 6 when there is something."""
    url, secrets = _of_application(app, ledger) if app is not None else (ledger, _secrets())
    with reading(url) as engine, _progress("comparing") as tell:
        seen = compare(engine, secrets, root=root, told=tell)
    if json_output:
        display.as_json(_content(seen))
    else:
        _show(seen)
    if not seen.ok:
        raise Ended(Code.NOT_AS_SEALED)


@group.command()
def export(
    form: Annotated[Form, typer.Option("--format", help="JSON lines, or comma-separated values.")] = Form.JSONL,
    tenant: Annotated[str | None, typer.Option("--tenant", metavar="NAME", help="Of this tenant alone.")] = None,
    ledger: LedgerOption = None,
) -> None:
    """Write every entry, with the effect that it belongs to, to stdout. Reads only."""
    with reading(ledger) as engine:
        found = rows(engine, tenant)
        if form is Form.JSONL:
            for one in found:
                sys.stdout.write(json.dumps(one) + "\n")
            return
        out = csv.writer(sys.stdout)
        out.writerow(COLUMNS)
        for one in found:
            cells = ((json.dumps(cell) if isinstance(cell, dict) else cell) for cell in one.values())
            out.writerow(cells)


@group.command()
def archive(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `prune --export` has written.")],
) -> None:
    """Write the effects of an archive to stdout, as JSON lines, decrypted with COUNTERFOIL_CIPHER_KEYS. Reads only."""
    for one in archived.rows(file, cipher_keys()):
        sys.stdout.write(json.dumps(one) + "\n")


# ---------------------------------------------------------------- details


def seal_content(one: Seal) -> dict[str, Any]:
    """A seal as JSON data."""
    return {
        "number": one.number,
        "at": instant_text(one.at),
        "effects": one.effects,
        "entries": one.entries,
        "secret_id": one.secret_id,
        "root": one.text,
    }


def _secrets() -> list[bytes]:
    """The secrets of the environment, one on each line: the first keys new seals, all verify."""
    found = [line.encode() for line in os.environ.get(VARIABLE, "").splitlines() if line]
    if any(len(one) < SECRET_MIN for one in found):
        raise UsageError(f"{VARIABLE} holds at least {SECRET_MIN} random bytes on each line")
    return found


def _of_application(app: str, ledger: str | None) -> tuple[str, list[bytes]]:
    """The ledger and the secrets of an application, which opens nothing meanwhile; its own one comes first."""
    with describing(), application(app, ledger) as executor:
        file = database_file(executor._engine)
        opened = f"sqlite:///{file}" if file is not None else executor._engine.url.render_as_string(hide_password=False)
        mine = executor._secrets.words
        return ledger or opened, [*mine, *_secrets()]


def _content(seen: Verified) -> dict[str, Any]:
    return {
        "ok": seen.ok,
        "seals": seen.seals,
        "effects": seen.effects,
        "entries": seen.entries,
        "unsealed": seen.unsealed,
        "pruned": seen.pruned,
        "unkeyed": seen.unkeyed,
        "last": None if seen.last is None else seal_content(seen.last),
        "findings": [
            {"what": one.what, "how": one.how, "name": one.name, "seq": one.seq, "remark": one.remark}
            for one in seen.findings
        ],
    }


def _show(seen: Verified) -> None:
    page = display.Page()
    if seen.last is None:
        page.line("nothing is sealed yet: counterfoil audit seal")
    elif seen.ok:
        page.line(
            f"as it was sealed: {seen.effects} effects, {seen.entries} entries, {seen.seals} seals", style="green"
        )
    for one in seen.findings[:_SHOWN]:
        page.line(one.text, style="red")
    if len(seen.findings) > _SHOWN:
        page.line(f"… and {len(seen.findings) - _SHOWN} more; --json lists all")
    if seen.unsealed:
        page.line(f"{seen.unsealed} effects have changes that no seal holds yet", indent=2)
    if seen.unkeyed:
        page.line(f"{seen.unkeyed} seals are not keyed: compare a root that you keep elsewhere (--root)", indent=2)


@contextlib.contextmanager
def _progress(doing: str) -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(doing) as status:
        yield lambda number: status.update(f"{doing}: {number} so far")
