"""Commands about an application, and those that settle: tools, schemas, reconcile, resolve, demo."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import entry_points
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from counterfoil import catalogue
from counterfoil.cli import display, watching
from counterfoil.cli.ending import Code, Ended, NotResolved
from counterfoil.cli.opening import application, changing
from counterfoil.cli.options import AppOption, EffectArgument, JsonOption, LedgerOption, LimitOption
from counterfoil.effect import Verdict
from counterfoil.errors import UsageError
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.connect import describing
from counterfoil.reconcile import CLAIM_S, Reconciled
from counterfoil.runner.async_executor import AsyncExecutor
from counterfoil.runner.executor import Executor
from counterfoil.runner.resolve import resolve as write_down
from counterfoil.runner.watch import INTERVAL_S
from counterfoil.tool import AllArguments, AnyTool

GROUP: Final = "counterfoil.commands"
BATCH: Final = 20
_MEANS: Final = {
    "T0": "stops at unknown; a person decides",
    "T1": "finds it; cannot prove that it is absent",
    "T2": "finds it, or proves that it is absent",
    "T3": "sends again under the same key",
    "T4": "takes it back, or finds it",
    "T5": "no answer can be lost: it commits together with the ledger",
}
_ONLY_READS: Final = "changes nothing in the world"


def tools(
    app: AppOption = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print all that models can be told, a row for each tool and code.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check the descriptions; end with code 5 when one leaves something unsaid.")
    ] = False,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """List an application's tools, and what can be done for each after a lost answer."""
    if markdown and check:
        raise UsageError("--markdown and --check are two things: ask for one of them")
    with describing(), application(app, ledger) as executor:
        known = [_declared(one) for one in executor.tools.values()]
        registered = list(executor.tools.values())
    if markdown:
        rows = catalogue.as_data(catalogue.catalogue(registered))
        display.as_json(rows) if json_output else typer.echo(catalogue.markdown(registered), nl=False)
        return
    if check:
        _check(registered, json_output)
        return
    if json_output:
        display.as_json(known)
        return
    page = display.Page()
    for one in known:
        page.line(f"{one['name']}  {one['tier'] or 'read-only'}: {one['means']}", style="bold")
        key = one["key"] if isinstance(one["key"], str) else ", ".join(one["key"] or ())
        page.table([("key", key), ("timeout", _seconds(one["timeout_s"])), ("grace", _seconds(one["grace_s"]))])
    if not known:
        page.line("no tools")


def _check(registered: Sequence[AnyTool], json_output: bool) -> None:
    found = catalogue.flaws(registered)
    if json_output:
        display.as_json(catalogue.as_data(found))
    else:
        page = display.Page()
        for flaw in found:
            page.line(f"{flaw.tool}: {flaw.problem} ({flaw.rule})")
        if not found:
            page.line(f"{len(registered)} tools, nothing left unsaid")
    if found:
        raise Ended(Code.UNSAID)


def schemas(app: AppOption = None, ledger: LedgerOption = None, json_output: JsonOption = False) -> None:
    """Show what a model is told of an application's tools; --json prints the JSON schemas."""
    with describing(), application(app, ledger) as executor:
        known = executor.schemas()
    if json_output:
        display.as_json(known)
        return
    page = display.Page()
    for one in known:
        page.line(one["name"], style="bold")
        for line in one["description"].splitlines():
            page.line(line, indent=2)
        required = one["parameters"].get("required", ())
        for name, content in one["parameters"].get("properties", {}).items():
            need = "" if name in required else ", may be left out"
            page.line(f"{name}: {content.get('type', 'see --json')}{need}", indent=4, style="dim")


def reconcile(
    app: AppOption = None,
    limit: LimitOption = 1000,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until a signal asks to stop.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", help="With --watch: at most so long between two rounds.")
    ] = INTERVAL_S,
    claim: Annotated[
        float,
        typer.Option("--claim", metavar="SECONDS", help="With --watch: so long others leave alone what is taken."),
    ] = CLAIM_S,
    seals: Annotated[
        bool, typer.Option("--seal/--no-seal", help="With --watch: seal what is new, once a minute.")
    ] = True,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Look at what is due and settle what can be proven. It never sends."""
    if watch:
        out = sys.stdout  # what the application prints goes elsewhere meanwhile
        with application(app, ledger) as executor:
            size = min(BATCH, limit)
            code = watching.watch(
                executor, out, json_output=json_output, seals=seals, limit=size, interval_s=interval, claim_s=claim
            )
        raise Ended(code)
    with application(app, ledger) as executor, _progress() as tell:
        done = _reconciled(executor, limit, tell)
    if json_output:
        display.as_json(asdict(done))
        return
    page = display.Page()
    page.line(f"looked at {done.looked}: {done.applied} applied, {done.no_effect} without effect, "
              f"{done.unknown} still unknown")  # fmt: skip
    if done.incidents:
        page.line(f"{done.incidents} raised for a person to see: counterfoil incidents")


def resolve(
    effect: EffectArgument,
    applied: Annotated[bool, typer.Option("--applied", help="It has happened.")] = False,
    no_effect: Annotated[bool, typer.Option("--no-effect", help="It has not, and will not.")] = False,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who says so.")] = "",
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="How that is known; it is kept.")] = "",
    version: Annotated[
        int | None, typer.Option("--version", metavar="N", help="The version that was read; else the present one.")
    ] = None,
    value: Annotated[
        str | None, typer.Option("--value", metavar="JSON", help="With --applied: what the tool would have returned.")
    ] = None,
    ledger: LedgerOption = None,
    json_output: JsonOption = False,
) -> None:
    """Write down what a person found out about an unknown effect."""
    verdict = _decision(applied, no_effect)
    if not by.strip() or not why.strip():
        raise UsageError("a doubt is resolved by a named person with a reason: give --by NAME and --why TEXT")
    content = _value(value, verdict)
    with changing(ledger) as book:
        row = Audit(book).effect(effect)
        read = row.version if version is None else version
        try:
            after = write_down(book, row, verdict, by=by, why=why, version=read, value=content)
        except UsageError as refusal:
            raise NotResolved(str(refusal)) from None
    if json_output:
        display.as_json(display.effect_content(after) | {"version_read": read, "version_given": version is not None})
        return
    page = display.Page()
    if version is None:
        page.line(f"at version {read}, as it was read just now:")
        page.effect(row)
        page.line("is now:")
    page.effect(after)


def demo(
    retry_blindly: Annotated[
        bool, typer.Option("--retry-blindly", help="A plain three-times retry instead of Counterfoil.")
    ] = False,
    ledger: Annotated[
        str | None,
        typer.Option("--ledger", metavar="URL", help="A ledger to play on, instead of a temporary one."),
    ] = None,
    json_output: JsonOption = False,
) -> None:
    """Let an agent pay and book on real servers while answers get lost, and count what they have."""
    found = list(entry_points(group=GROUP, name="demo"))
    if not found:
        raise UsageError("the demo is not installed: pip install 'counterfoil[demo]'")
    try:
        run = found[0].load()
        code = run(json_output=json_output, retry_blindly=retry_blindly, ledger=ledger)
    except ModuleNotFoundError as missing:
        raise UsageError(f"the demo needs {missing.name}: pip install 'counterfoil[demo]'") from None
    if code:
        raise Ended(int(code))


# ---------------------------------------------------------------- details


def _declared(one: AnyTool) -> dict[str, Any]:
    tier = None if one.read_only else one.tier
    key = "all arguments, within the task" if isinstance(one.key, AllArguments) else one.key
    return {
        "name": one.name,
        "tier": tier,
        "means": _ONLY_READS if tier is None else _MEANS[tier],
        "key": list(key) if isinstance(key, tuple) else key,
        "timeout_s": one.policy.timeout_s,
        "grace_s": one.policy.grace_s,
        "sends": one.sends,
        "description": one.description,
    }


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:g} s"


def _reconciled(executor: Executor | AsyncExecutor, limit: int, tell: Callable[[int], None]) -> Reconciled:
    """Reconcile in batches, so that a person sees it move; all batches of an AsyncExecutor in one event loop."""
    if isinstance(executor, Executor):
        return _in_batches(lambda size: executor.reconcile(limit=size), limit, tell)
    with asyncio.Runner() as loop:
        return _in_batches(lambda size: loop.run(executor.reconcile(limit=size)), limit, tell)


def _in_batches(once: Callable[[int], Reconciled], limit: int, tell: Callable[[int], None]) -> Reconciled:
    done = Reconciled()
    while done.looked < limit:
        more = once(min(BATCH, limit - done.looked))
        done = done.plus(more)
        tell(done.looked)
        if more.looked == 0:
            break
    return done


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int], None]]:
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status("looking at what is due") as status:
        yield lambda looked: status.update(f"looking at what is due: {looked} so far")


def _decision(applied: bool, no_effect: bool) -> Verdict:
    if applied == no_effect:
        raise UsageError("a doubt is resolved to one of two: give --applied or --no-effect")
    return Verdict.EFFECT_APPLIED if applied else Verdict.NO_EFFECT


def _value(text: str | None, verdict: Verdict) -> Any:
    if text is None:
        return None
    if verdict is not Verdict.EFFECT_APPLIED:
        raise UsageError("--value is what the tool would have returned: it goes with --applied")
    try:
        return json.loads(text, parse_constant=_no_number)
    except ValueError:
        raise UsageError("""--value takes JSON, for example '{"payment": "pi_1"}'""") from None


def _no_number(name: str) -> Any:
    raise ValueError(name)
