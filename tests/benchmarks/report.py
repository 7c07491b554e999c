"""What the figures say: the ratios, the targets met or not, and the tables as text.

Owns the arithmetic over a run's results (the dictionary that is also its JSON) and nothing of the measuring.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.matrix import CALLERS, SIDES

Results = Mapping[str, Any]
LEDGER_TITLES: Final = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
KIND_TITLES: Final = {"first": "first call", "replay": "replay", "settle": "settling a doubt"}
OURS: Final = ("threads", "tasks")
BASE: Final = "same_rows"
FIRST_TARGETS: Final = {
    "postgresql": {1: 0.8, 32: 2.5, 256: 4.0},
    "sqlite": {1: 0.6, 32: 4.0, 256: 6.0},
}
REPLAY_TARGETS: Final = {1: 0.3, 32: 0.3}
DBOS_TARGETS: Final = {1: 2.5, 32: 15.0}
GROWN: Final = 1_000_000
GROWTH_TARGET: Final = 1.3
PYTHON_TARGET_US: Final = 150.0


@dataclass(frozen=True)
class Target:
    """A target, and what was measured; None where it was not."""

    name: str
    ledger: str
    wanted: str
    measured: float | None
    met: bool | None
    unit: str = ""

    @property
    def shown(self) -> str:
        """What was measured, for a table."""
        return "not measured" if self.measured is None else f"{number(self.measured)}{self.unit}"

    @property
    def verdict(self) -> str:
        """Met, not met, or not measured."""
        return "–" if self.met is None else "met" if self.met else "**not met**"


def targets(results: Results) -> list[Target]:
    """All targets, in the order in which the page shows them."""
    return [target for ledger in LEDGER_TITLES for target in _of_ledger(results, ledger)]


def is_busy(results: Results) -> bool:
    """Whether other work ran on the machine when any of the parts began."""
    return load(results) > 0.4 * int(results["made"]["machine"]["cores"])


def load(results: Results) -> float:
    """The machine's load as the worst of the parts found it."""
    return max(float(part["load"]) for part in results["made"]["parts"].values())


def at(results: Results, ledger: str, kind: str, callers: int, cells: str = "cells") -> Mapping[str, Any]:
    """The figures of a cell by side; empty where it was not measured. `cells`: of which disk, "slow_cells" too."""
    found: Mapping[str, Any] = results.get(cells, {}).get(ledger, {}).get(kind, {}).get(str(callers), {})
    return found


def better(cell: Mapping[str, Any]) -> str | None:
    """Which of our two executors made more calls."""
    there = [key for key in OURS if cell.get(key, {}).get("rate")]
    return max(there, key=lambda key: float(cell[key]["rate"]), default=None)


def ratio(cell: Mapping[str, Any], key: str | None, base: str) -> float | None:
    """One side's rate over another's."""
    rate, floor = cell.get(key or "", {}).get("rate"), cell.get(base, {}).get("rate")
    return rate / floor if rate and floor else None


def number(value: float) -> str:
    """A figure as a person reads it."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def text(results: Results) -> str:
    """Everything as plain text."""
    parts = [_matrix(results, ledger, kind) for ledger in LEDGER_TITLES for kind in KIND_TITLES]
    rows = [("target", "ledger", "wanted", "measured", "")]
    rows += [
        (one.name, LEDGER_TITLES[one.ledger], one.wanted, one.shown, one.verdict.strip("*")) for one in targets(results)
    ]
    parts += [_matrix(results, ledger, "first", "slow_cells") for ledger in LEDGER_TITLES]
    parts += [*_others(results), "Targets\n" + columns(rows)]
    return "\n\n".join(part for part in parts if part)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned columns, the first to the left and the others to the right."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            value.ljust(width) if index == 0 else value.rjust(width)
            for index, (value, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def matrix_rows(results: Results, ledger: str, kind: str, cells: str = "cells") -> list[tuple[str, ...]]:
    """The rows of one table: side, callers, calls per second, against the base, p50, p99."""
    rows: list[tuple[str, ...]] = []
    for callers in CALLERS:
        cell = at(results, ledger, kind, callers, cells)
        for spec in SIDES:
            figures = cell.get(spec.key)
            if figures is None:
                continue
            if "failed" in figures:
                rows.append((str(callers), spec.title, "failed", "–", "–", "–"))
                continue
            against = ratio(cell, spec.key, BASE)
            refused = f" ({figures['refused']} refused)" if figures["refused"] else ""
            rows.append(
                (
                    str(callers),
                    spec.title + refused,
                    number(figures["rate"]),
                    "–" if against is None else f"{against:.2f}",
                    _ms(figures["p50_us"]),
                    _ms(figures["p99_us"]),
                )
            )
    return rows


MATRIX_HEAD: Final = ("callers", "side", "calls/s", "against (a)", "p50 ms", "p99 ms")


def _matrix(results: Results, ledger: str, kind: str, cells: str = "cells") -> str:
    rows = matrix_rows(results, ledger, kind, cells)
    if not rows:
        return ""
    turned = [(row[1], row[0], *row[2:]) for row in [MATRIX_HEAD, *rows]]
    where = "" if cells == "cells" else ", slow disk"
    return f"{LEDGER_TITLES[ledger]}: {KIND_TITLES[kind]}{where}\n{columns(turned)}"


def _ms(us: float | None) -> str:
    return "–" if us is None else f"{us / 1000:.2f}"


def _others(results: Results) -> Iterator[str]:
    for ledger, found in results.get("reconcile", {}).items():
        yield f"{LEDGER_TITLES[ledger]}: one reconcile settles {number(found['rate'])} doubts a second"
    rows: list[tuple[str, ...]]
    for ledger, sizes in results.get("growth", {}).items():
        rows = [("effects", "what", "empty calls/s", "full calls/s", "cost")]
        for size, found in sizes.items():
            rows += [
                (f"{int(size):,}", what, number(one["empty_rate"]), number(one["full_rate"]), f"{one['cost']:.2f}")
                for what, one in found.items()
            ]
        yield f"{LEDGER_TITLES[ledger]}: growth\n{columns(rows)}"
    for ledger, found in results.get("memory", {}).items():
        first, last = found["lasting"]["series"][0], found["lasting"]["series"][-1]
        yield (
            f"{LEDGER_TITLES[ledger]}: {found['concurrent']['held_mib']} MiB for 1,000 concurrent calls; "
            f"{first[1]} MiB after {first[0]:,} calls, {last[1]} MiB after {last[0]:,}"
        )
    for ledger, found in results.get("python", {}).items():
        rows = [("one caller's first call", "µs")]
        rows += [(name, number(value)) for name, value in found.items()]
        yield f"{LEDGER_TITLES[ledger]}: where the time goes\n{columns(rows)}"
    if "footprint" in results:
        rows = [("", "import ms", "installed MiB", "packages")]
        rows += [
            (name, number(one["import_ms"]), number(one["installed_mib"]), str(len(one["packages"])))
            for name, one in results["footprint"].items()
        ]
        yield columns(rows)


def _of_ledger(results: Results, ledger: str) -> Iterator[Target]:
    for callers, wanted in FIRST_TARGETS[ledger].items():
        cell = at(results, ledger, "first", callers)
        yield _least(f"first call against (a), {_callers(callers)}", ledger, wanted, ratio(cell, better(cell), BASE))
    for callers, wanted in REPLAY_TARGETS.items():
        cell = at(results, ledger, "replay", callers)
        name = f"replay against one raw indexed read, {_callers(callers)}"
        yield _least(name, ledger, wanted, ratio(cell, better(cell), BASE))
    for callers, wanted in DBOS_TARGETS.items():
        cell = at(results, ledger, "first", callers)
        yield _least(f"first call against DBOS, {_callers(callers)}", ledger, wanted, ratio(cell, better(cell), "dbos"))
    cell = at(results, ledger, "first", 32)
    ours, floor = cell.get(better(cell) or "", {}).get("p99_us"), cell.get(BASE, {}).get("p99_us")
    share = ours / floor if ours and floor else None
    yield _most("p99 of a first call over (a)'s, 32 callers", ledger, 1.0, share, "")
    grown = results.get("growth", {}).get(ledger, {}).get(str(GROWN), {})
    for kind in ("first", "replay"):
        costs = [float(one["cost"]) for what, one in grown.items() if what.startswith(kind)]
        name = f"{KIND_TITLES[kind]} at 10⁶ effects over an empty ledger's"
        yield _most(name, ledger, GROWTH_TARGET, max(costs, default=None), "")
    own = results.get("python", {}).get(ledger, {}).get("without_driver_us")
    yield _most("our own Python, the driver's time aside, per first call", ledger, PYTHON_TARGET_US, own, " µs")


def _least(name: str, ledger: str, wanted: float, measured: float | None) -> Target:
    return Target(name, ledger, f"≥ {wanted:g}", measured, None if measured is None else measured >= wanted)


def _most(name: str, ledger: str, wanted: float, measured: float | None, unit: str) -> Target:
    met = None if measured is None else measured <= wanted
    return Target(name, ledger, f"≤ {wanted:g}{unit}", measured, met, unit)


def _callers(count: int) -> str:
    return "1 caller" if count == 1 else f"{count} callers"
