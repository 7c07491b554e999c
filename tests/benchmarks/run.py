"""The benchmarks: `python -m benchmarks.run`, in `tests`. Every side in the same run, rounds in turn, medians.

Owns the command line, the order of the parts, and the file of results. A result file that is there is gone on with:
what is measured again replaces what stands in it, and the rest stays.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from benchmarks import flush, footprint, growth, matrix, page, peers, places, report
from benchmarks.matrix import CALLERS, SIDES, Effort, SideSpec
from benchmarks.process import Process, SideFailed
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

PARTS: Final = {"first-call": "first", "replay": "replay", "settle": "settle"}
OTHERS: Final = ("reconcile", "slow-disk", "growth", "memory", "python", "footprint")
# A disk in the network, or one without a cache of its own that keeps what it holds.
SLOW_FLUSH_US: Final = 2_000
SLOW_SIDES: Final = ("threads", "tasks", "same_rows", "dbos")
SLOW_CALLERS: Final = (1, 32, 256)


@dataclass(frozen=True)
class Plan:
    """How much of everything: the ordinary run takes about ten minutes of two quiet cores."""

    effort: Effort
    sizes: tuple[int, ...]
    growth_rounds: int
    growth_round_s: float
    lasting_calls: int
    lasting_s: float
    profiled: int
    doubts: int
    imports: int


PLANS: Final = {
    "quick": Plan(Effort(1, 0.15, 0.5, peers_most=32), (10_000,), 1, 0.15, 2_000, 5, 300, 100, 3),
    "ordinary": Plan(Effort(5, 0.25, 2.0), (10_000, 100_000, 1_000_000), 4, 0.2, 100_000, 20, 2_000, 500, 7),
    "long": Plan(
        Effort(9, 1.0, 15.0), (10_000, 100_000, 1_000_000, 5_000_000), 9, 0.5, 1_000_000, 3600, 5_000, 2_000, 15
    ),
}  # fmt: skip


@dataclass
class Run:
    """One run: what is wanted of it, where it writes, and what it has found."""

    plan: Plan
    effort_name: str
    parts: tuple[str, ...]
    ledgers: tuple[str, ...]
    callers: tuple[int, ...]
    specs: tuple[SideSpec, ...]
    file: Path | None
    results: dict[str, Any]
    progress: Progress
    console: Console
    interpreters: dict[str, Path] = field(default_factory=dict)

    def told(self, part: str, ledger: str, *path: str, found: Any) -> None:
        """Keep what was found, in the file too."""
        there = self.results.setdefault(part, {}).setdefault(ledger, {})
        for name in path[:-1]:
            there = there.setdefault(name, {})
        if path:
            there.setdefault(path[-1], {}).update(found)
        else:
            there.update(found)
        self.keep()

    def keep(self) -> None:
        """Write the file, whole or not at all."""
        if self.file is not None:
            fresh = self.file.with_name(self.file.name + ".new")
            fresh.write_text(json.dumps(self.results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            fresh.replace(self.file)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, show, and write what is asked for; 1 where a wanted peer is missing."""
    asked = _parser().parse_args(arguments)
    console = Console(stderr=True)
    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"), TimeElapsedColumn(), console=console,
    )  # fmt: skip
    name = "quick" if asked.quick else "long" if asked.long else "ordinary"
    run = Run(
        plan=PLANS[name],
        effort_name=name,
        parts=tuple(asked.only or (*PARTS, *OTHERS)),
        ledgers=tuple(asked.ledger or places.LEDGERS),
        callers=tuple(asked.callers or CALLERS),
        specs=tuple(spec for spec in SIDES if _wanted(spec, asked)),
        file=asked.json,
        results=_kept(asked.json),
        progress=progress,
        console=console,
    )
    if asked.render:
        missing = False
    else:
        with progress:
            missing = measure(run)
    sys.stdout.write(report.text(run.results) + "\n")
    if asked.write:
        for written in page.write(run.results, asked.write_to):
            console.print(f"wrote {written}")
    return 1 if missing else 0


def measure(run: Run) -> bool:
    """Measure all wanted parts; True where a side had to be left out."""
    wanted = {spec.peer for spec in run.specs if spec.peer is not None}
    missing = _environments(run, wanted)
    if "powertools" in run.interpreters and not places.has_redis():
        run.console.print("no redis-server on this machine: Powertools is left out (apt-get install redis-server)")
        del run.interpreters["powertools"]
        missing = True
    run.specs = tuple(spec for spec in run.specs if spec.peer is None or spec.peer in run.interpreters)
    if "slow-disk" in run.parts and flush.compiler() is None:
        run.console.print("no C compiler on this machine: the slow disk is left out (apt-get install gcc libc6-dev)")
        run.parts = tuple(part for part in run.parts if part != "slow-disk")
        missing = True
    with places.opened() as opened:
        run.results["made"] = _made(run, opened)
        if report.is_busy(run.results):
            run.console.print("other work runs on this machine: the figures will be noise")
        kinds = [PARTS[part] for part in run.parts if part in PARTS]
        steps: dict[str, Callable[[places.Places], None]] = {
            "reconcile": run_reconcile(run), "growth": run_growth(run), "memory": run_memory(run),
            "python": run_python(run), "footprint": run_footprint(run), "slow-disk": run_slow_disk(run),
        }  # fmt: skip
        if kinds:
            _run_matrix(run, opened, kinds)
        for part in run.parts:
            if part in steps:
                steps[part](opened)
    run.keep()
    return missing


def _run_matrix(run: Run, opened: places.Places, kinds: Sequence[str]) -> None:
    bar = run.progress.add_task("calls", total=len(run.ledgers) * len(kinds) * len(run.callers))
    versions: dict[str, dict[str, str]] = {}

    def told(ledger: str, kind: str, callers: int, found: dict[str, dict[str, Any]]) -> None:
        run.told("cells", ledger, kind, str(callers), found=found)
        run.results["made"]["versions"] = versions
        run.progress.update(bar, advance=1, description=f"{ledger}: {report.KIND_TITLES[kind]}, {callers} callers")

    effort = run.plan.effort
    effort = replace(effort, callers=run.callers)
    matrix.measure(
        run.specs, opened, run.interpreters, effort, ledgers=run.ledgers, kinds=kinds, told=told, versions=versions
    )


def _bar(run: Run, title: str, total: int) -> TaskID:
    return run.progress.add_task(title, total=total)


def run_reconcile(run: Run) -> Callable[[places.Places], None]:
    """One process settles doubts by `reconcile`."""

    def part(opened: places.Places) -> None:
        bar = _bar(run, "reconcile", len(run.ledgers))
        for ledger in run.ledgers:
            with Process("ours", "Threads", opened.ledger(ledger), errors=opened.folder) as side:
                side.ask("reconcile", calls=20)
                rates = sorted(side.ask("reconcile", calls=run.plan.doubts)["rate"] for _ in range(3))
            run.told("reconcile", ledger, found={"rate": rates[1]})
            run.progress.advance(bar)

    return part


def run_slow_disk(run: Run) -> Callable[[places.Places], None]:
    """First calls while each flush takes longer, on servers and files of their own."""

    def part(fast: places.Places) -> None:
        run.results["made"]["flush_us"] = [round(flush.flush_us(fast.folder / "flush")), SLOW_FLUSH_US]
        callers = tuple(one for one in SLOW_CALLERS if one in run.callers)
        bar = _bar(run, "slow disk", len(run.ledgers) * len(callers))

        def told(ledger: str, kind: str, callers: int, found: dict[str, dict[str, Any]]) -> None:
            rate = found.get("same_rows", {}).get("rate")
            if callers == 1 and rate is not None and rate > 1e6 / (2 * SLOW_FLUSH_US):
                raise SideFailed(f"the flush is no slower on {ledger}: {rate} calls of two commits in a second")
            run.told("slow_cells", ledger, kind, str(callers), found=found)
            run.progress.update(bar, advance=1, description=f"slow disk: {ledger}, {callers} callers")

        specs = [spec for spec in run.specs if spec.key in SLOW_SIDES]
        effort = replace(run.plan.effort, callers=callers)
        with flush.slower(SLOW_FLUSH_US), places.opened() as opened:
            matrix.measure(
                specs, opened, run.interpreters, effort, ledgers=run.ledgers, kinds=["first"], told=told, versions={}
            )

    return part


def run_growth(run: Run) -> Callable[[places.Places], None]:
    """Calls on ledgers that grow."""

    def part(opened: places.Places) -> None:
        bar = _bar(run, "growth", len(run.ledgers) * len(run.plan.sizes))
        for ledger in run.ledgers:

            def told(size: int, found: dict[str, Any], ledger: str = ledger) -> None:
                run.told("growth", ledger, str(size), found=found)
                run.progress.update(bar, advance=1, description=f"growth: {ledger}, {size:,} effects")

            growth.measure(
                opened,
                ledger,
                run.plan.sizes,
                rounds=run.plan.growth_rounds,
                round_s=run.plan.growth_round_s,
                told=told,
            )

    return part


def run_memory(run: Run) -> Callable[[places.Places], None]:
    """What calls hold."""

    def part(opened: places.Places) -> None:
        bar = _bar(run, "memory", len(run.ledgers))
        for ledger in run.ledgers:
            with Process("measures", "Memory", opened.ledger(ledger), errors=opened.folder) as side:
                held = side.ask("concurrent", calls=1000)
            with Process("measures", "Memory", opened.ledger(ledger), errors=opened.folder) as side:
                lasting = side.ask("lasting", calls=run.plan.lasting_calls, callers=256, seconds=run.plan.lasting_s)
            run.told("memory", ledger, found={"concurrent": held, "lasting": lasting})
            run.progress.advance(bar)

    return part


def run_python(run: Run) -> Callable[[places.Places], None]:
    """Our own time per call."""

    def part(opened: places.Places) -> None:
        bar = _bar(run, "our own Python", len(run.ledgers))
        for ledger in run.ledgers:
            with Process("measures", "OwnPython", opened.ledger(ledger), errors=opened.folder) as side:
                run.told("python", ledger, found=side.ask("profile", calls=run.plan.profiled))
            run.progress.advance(bar)

    return part


def run_footprint(run: Run) -> Callable[[places.Places], None]:
    """Import and installation."""

    def part(_: places.Places) -> None:
        bar = _bar(run, "import and size", 1)
        run.results["footprint"] = footprint.measure(run.interpreters, run.plan.imports)
        run.keep()
        run.progress.advance(bar)

    return part


# ---------------------------------------------------------------- details


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="less of everything, in two minutes; its figures are rough")
    size.add_argument("--long", action="store_true", help="more of everything, and 5,000,000 effects; takes hours")
    parser.add_argument("--only", action="append", choices=[*PARTS, *OTHERS], help="this part; may be repeated")
    parser.add_argument("--ledger", action="append", choices=places.LEDGERS, help="this database; may be repeated")
    parser.add_argument(
        "--callers", action="append", type=int, choices=CALLERS, help="so many callers; may be repeated"
    )
    parser.add_argument(
        "--side", action="append", choices=[spec.key for spec in SIDES], help="this side; may be repeated"
    )
    parser.add_argument("--no-peers", action="store_true", help="Counterfoil and the raw drivers alone")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the results here; one that is there is gone on with"
    )
    parser.add_argument("--write", action="store_true", help="write docs/explanation/performance.md and its charts")
    parser.add_argument("--write-to", type=Path, default=page.FOLDER, help=argparse.SUPPRESS)
    parser.add_argument(
        "--render", action="store_true", help="measure nothing: show, and with --write write, what --json holds"
    )
    return parser


def _wanted(spec: SideSpec, asked: argparse.Namespace) -> bool:
    return not (asked.no_peers and spec.peer) and (not asked.side or spec.key in asked.side)


def _kept(file: Path | None) -> dict[str, Any]:
    kept: dict[str, Any] = json.loads(file.read_text("utf-8")) if file is not None and file.exists() else {}
    return kept


def _environments(run: Run, wanted: set[str]) -> bool:
    """Have an environment for each wanted peer; True where one cannot be made."""
    missing = False
    bar = _bar(run, "the peers' environments", len(wanted)) if wanted else None
    for peer in peers.PEERS:
        if peer.name not in wanted:
            continue
        try:
            run.interpreters[peer.name] = peers.interpreter(peer)
        except subprocess.CalledProcessError as problem:
            missing = True
            run.console.print(f"{peer.title} is left out: {(problem.stderr or '').strip()[-500:]}")
        if bar is not None:
            run.progress.advance(bar)
    return missing


def _made(run: Run, opened: places.Places) -> dict[str, Any]:
    made: dict[str, Any] = {
        "at": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "effort": run.effort_name,
        "machine": _machine(),
        "versions": {},
        "licences": {peer.name: peer.licence for peer in peers.PEERS},
    }
    if "postgresql" in run.ledgers:
        made["server"] = opened.shown()
    earlier = run.results.get("made", {})
    part = {"at": made["at"], "effort": run.effort_name, "load": round(os.getloadavg()[0], 1)}
    made["parts"] = {**earlier.get("parts", {}), **dict.fromkeys(run.parts, part)}
    return {**earlier, **made, "versions": earlier.get("versions", {})}


def _machine() -> dict[str, str]:
    processor = platform.processor() or platform.machine()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": processor,
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_gib:.0f} GiB",
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": platform.python_version(),
    }


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no server is left behind
    sys.exit(main())
