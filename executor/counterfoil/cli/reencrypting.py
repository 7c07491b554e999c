"""`db reencrypt`: brings a ledger under the newest cipher key, and says what stays plain."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from counterfoil.cli import display
from counterfoil.cli.ending import Code, Ended
from counterfoil.cli.keeping import who
from counterfoil.cli.opening import CIPHER_VARIABLE, changing, cipher_keys
from counterfoil.cli.options import JsonOption, LedgerOption
from counterfoil.errors import UsageError
from counterfoil.ledger.reencryption import Encryption, Reencrypted
from counterfoil.ledger.reencryption import reencrypt as bring_under

_SHOWN = 20


def reencrypt(
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who does it; else USER@HOST.")] = None,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Encrypt the ledger, or exchange its cipher key: all under the first key of COUNTERFOIL_CIPHER_KEYS.

    Ends with code 7 when something could not be brought under it.
    """
    keys = cipher_keys()
    if keys is None:
        raise UsageError(f"set {CIPHER_VARIABLE}: all cipher keys of the ledger, one on each line, the newest first")
    with changing(ledger) as book, _progress() as tell:
        done = bring_under(book, keys, by=by or who(), told=tell)
    if json_output:
        display.as_json(asdict(done) | {"unreadable": list(done.unreadable), "complete": done.complete})
    else:
        _show(done)
    if not done.complete:
        raise Ended(Code.NOT_ENCRYPTED)


def show_encryption(page: display.Page, seen: Encryption) -> None:
    """How far a ledger is encrypted, for a person."""
    page.line(f"encrypted by the cipher key with the id {seen.key_ids[0]}", indent=2)
    if seen.plain:
        page.line(f"remark: {seen.plain} effects and incidents are plain: counterfoil db reencrypt", indent=2)
    if seen.earlier:
        page.line(f"remark: {seen.earlier} effects and incidents are under an earlier key", indent=2)
    _show_entries(page, seen.plain_entries)


def _show(done: Reencrypted) -> None:
    page = display.Page()
    page.line(f"the cipher key with the id {done.key_id} encrypts this ledger")
    page.line(f"encrypted {done.encrypted} that were plain, and wrapped {done.rewrapped} anew", indent=2)
    for one in done.unreadable[:_SHOWN]:
        page.line(f"cannot be decrypted: {one}", indent=2, style="red")
    if len(done.unreadable) > _SHOWN:
        page.line(f"… and {len(done.unreadable) - _SHOWN} more; --json lists all", indent=2)
    if done.left:
        page.line(f"{done.left} are being worked on: run it again", indent=2)
    _show_entries(page, done.plain_entries)


def _show_entries(page: display.Page, number: int) -> None:
    if number:
        page.line(f"{number} entries were written in plain and stay so until their effects are pruned", indent=2)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[Reencrypted], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("encrypting") as status:
        yield lambda done: status.update(f"encrypting: {done.encrypted + done.rewrapped} so far")
