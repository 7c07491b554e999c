"""Commands about the ledger's database: `db upgrade`, `db check` and `db tenants`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from counterfoil.cli import display
from counterfoil.cli.ending import Code, Ended
from counterfoil.cli.opening import changing, ledger_url, reading
from counterfoil.cli.options import JsonOption, LedgerOption
from counterfoil.cli.reencrypting import show_encryption
from counterfoil.errors import LedgerError
from counterfoil.ledger.health import Health, examine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.reencryption import encryption
from counterfoil.ledger.schema import REVISION
from counterfoil.ledger.upgrade import upgrade as bring_up


def upgrade(ledger: LedgerOption = None, json_output: JsonOption = False) -> None:
    """Make the ledger's tables, or bring them to this version. Any number of hosts may do so at once."""
    done = bring_up(ledger_url(ledger))
    if json_output:
        display.as_json(asdict(done))
    elif done.before == done.after:
        display.Page().line(f"the ledger has schema {done.after} already")
    elif done.before is None:
        display.Page().line(f"the ledger is made, with schema {done.after}")
    else:
        display.Page().line(f"the ledger went from schema {done.before} to {done.after}")


def check(ledger: LedgerOption = None, json_output: JsonOption = False) -> None:
    """Say whether the ledger is of this version, whole, and durable. Reads only."""
    ledger_url(ledger)
    try:
        with reading(ledger) as engine:
            seen, kept = examine(engine), None
            if seen.ok:
                kept = encryption(engine)
    except LedgerError as problem:
        if not json_output:
            raise
        display.as_json({"ok": False, "schema_needed": REVISION, "problems": [str(problem)]})
        raise Ended(Code.LEDGER_UNUSABLE) from None
    if json_output:
        display.as_json(_content(seen) | {"encryption": None if kept is None else asdict(kept)})
    else:
        _show(seen)
        if kept is not None and kept.key_ids:
            show_encryption(display.Page(), kept)
    if not seen.ok:
        raise Ended(Code.LEDGER_UNUSABLE)


def tenants(
    require: Annotated[
        bool | None,
        typer.Option("--require/--allow-none", help="Whether every executor must be given one.", show_default=False),
    ] = None,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Say whether executors must be given a tenant, or change that. Hosts notice it when they open the ledger."""
    if require is not None:
        with changing(ledger) as book:
            book.require_tenant(require)
    with reading(ledger) as engine:
        needed = Ledger(engine).needs_tenant()
    if json_output:
        display.as_json({"tenant_required": needed})
    else:
        display.Page().line(f"an executor {'must' if needed else 'need not'} be given a tenant")


def _content(seen: Health) -> dict[str, Any]:
    return {
        "ok": seen.ok,
        "database": seen.database,
        "schema": seen.schema_version,
        "schema_needed": REVISION,
        "settings": dict(seen.settings),
        "problems": list(seen.problems),
        "remarks": list(seen.remarks),
    }


def _show(seen: Health) -> None:
    page = display.Page()
    page.line("the ledger is fit" if seen.ok else "the ledger is NOT fit", style="green" if seen.ok else "bold red")
    page.table([("database", seen.database), ("schema", seen.schema_version or "none"), *seen.settings.items()])
    for problem in seen.problems:
        page.line(f"problem: {problem}", indent=2, style="red")
    for remark in seen.remarks:
        page.line(f"remark: {remark}", indent=2)
