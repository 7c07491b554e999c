"""Who is measured at what, and the measuring: rounds of all sides in turn, so that what disturbs one disturbs all.

Owns the order of things and the medians. It draws no conclusion.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.places import LEDGERS, Places
from benchmarks.process import Process, SideFailed
from benchmarks.side import KINDS

CALLERS: Final = (1, 8, 32, 256)
CALLS_MOST: Final = 20_000


@dataclass(frozen=True)
class SideSpec:
    """A side of the table: its class, what it can do, and on what."""

    key: str
    title: str
    module: str
    name: str
    kinds: tuple[str, ...] = KINDS
    ledgers: tuple[str, ...] = LEDGERS
    peer: str | None = None
    on: str = "ledger"

    def place(self, places: Places, ledger: str) -> str:
        """A fresh place of the kind that it wants."""
        match self.on:
            case "ledger":
                return places.ledger(ledger)
            case "redis":
                return places.redis()
            case _:
                return places.empty(ledger)


SIDES: Final = (
    SideSpec("threads", "Counterfoil, threads", "ours", "Threads"),
    SideSpec("tasks", "Counterfoil, tasks", "ours", "Tasks"),
    SideSpec("same_rows", "raw driver, the same rows", "raw", "SameRows"),
    SideSpec("tiny", "raw driver, two tiny autocommits", "raw", "Tiny", kinds=("first",), on="empty"),
    SideSpec("dbos", "DBOS", "with_dbos", "Dbos", kinds=("first", "replay"), peer="dbos", on="empty"),
    SideSpec(
        "langgraph", "LangGraph checkpointer, sync", "with_langgraph", "LangGraph",
        kinds=("first", "replay"), peer="langgraph", on="empty",
    ),
    SideSpec(
        "powertools", "Powertools on Redis, fsync always", "with_powertools", "Powertools",
        kinds=("first", "replay"), ledgers=("postgresql",), peer="powertools", on="redis",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Effort:
    """How much is done.

    Attributes:
        rounds: rounds of each side in each cell.
        round_s: how long a round shall take, about.
        side_s: when a side has taken so long in a cell, it gets no further round there; one it always gets.
        callers: how many callers there are in turn.
        peers_most: with more callers than that the peers are left out.
    """

    rounds: int
    round_s: float
    side_s: float
    callers: tuple[int, ...] = CALLERS
    peers_most: int = CALLERS[-1]


@dataclass
class Measured:
    """The rounds of one side in one cell."""

    rates: list[float]
    us: list[float]
    cpu_us: list[float]
    made: int = 0
    refused: int = 0
    why: str | None = None

    def add(self, heard: Mapping[str, Any]) -> None:
        """Count one round."""
        self.rates.append(heard["rate"])
        self.us += heard["us"]
        self.cpu_us.append(heard["cpu_us"])
        self.made += heard["made"]
        self.refused += heard["refused"]
        self.why = self.why or heard["why"]

    def figures(self) -> dict[str, Any]:
        """The medians, and the spread of the rates."""
        self.us.sort()
        return {
            "rate": round(statistics.median(self.rates), 1),
            "rates": [round(rate, 1) for rate in self.rates],
            "p50_us": percentile(self.us, 50),
            "p99_us": percentile(self.us, 99),
            "cpu_us": round(statistics.median(self.cpu_us), 1),
            "made": self.made,
            "refused": self.refused,
            "why": self.why,
        }


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """The value below which that many percent of the ordered values lie."""
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else None


@contextmanager
def opened_sides(
    specs: Sequence[SideSpec], places: Places, ledger: str, interpreters: Mapping[str, Path]
) -> Iterator[dict[str, Process]]:
    """A process for each side that works on this ledger.

    Raises:
        SideFailed: one of them cannot be opened.
    """
    with ExitStack() as stack:
        running: dict[str, Process] = {}
        for spec in specs:
            python = None if spec.peer is None else interpreters[spec.peer]
            place = spec.place(places, ledger)
            side = Process(spec.module, spec.name, place, errors=places.folder, python=python)
            stack.callback(side.close)
            running[spec.key] = side
        yield running


def cell(
    sides: Mapping[str, Process], kind: str, callers: int, effort: Effort, rates: dict[str, float], turn: int
) -> dict[str, dict[str, Any]]:
    """Measure all sides at one kind of call and one number of callers.

    `rates` holds each side's rate as it was seen last, and gives the size of its rounds.
    """
    found = {key: Measured([], [], []) for key in sides}
    spent = dict.fromkeys(sides, 0.0)
    failed: dict[str, str] = {}
    order = list(sides)
    for key in order:
        if key not in rates:
            try:
                heard = sides[key].ask("round", kind=kind, callers=callers, calls=max(callers, 40))
            except SideFailed as problem:
                failed[key] = str(problem)
            else:
                rates[key] = float(heard["rate"])
    for number in range(effort.rounds):
        shift = (turn + number) % len(order)
        for key in order[shift:] + order[:shift]:
            if key in failed or (number and spent[key] > effort.side_s):
                continue
            calls = _calls(rates[key], callers, effort)
            try:
                heard = sides[key].ask("round", kind=kind, callers=callers, calls=calls)
            except SideFailed as problem:
                failed[key] = str(problem)
                continue
            found[key].add(heard)
            rates[key] = heard["rate"] or rates[key]
            spent[key] += heard["made"] / max(heard["rate"], 0.1)
    return {key: {"failed": failed[key]} if key in failed else measured.figures() for key, measured in found.items()}


def _calls(rate: float, callers: int, effort: Effort) -> int:
    """As many calls as fit in a round, and no fewer than let each caller call once: answers come in waves."""
    return min(max(int(rate * effort.round_s), callers, 10), CALLS_MOST)


def measure(
    specs: Sequence[SideSpec],
    places: Places,
    interpreters: Mapping[str, Path],
    effort: Effort,
    *,
    ledgers: Sequence[str],
    kinds: Sequence[str],
    told: Callable[[str, str, int, dict[str, dict[str, Any]]], None],
    versions: dict[str, dict[str, str]],
) -> None:
    """Measure all cells; `told` hears each: ledger, kind, callers, figures by side."""
    turn = 0
    for ledger in ledgers:
        here = [spec for spec in specs if ledger in spec.ledgers]
        with opened_sides(here, places, ledger, interpreters) as running:
            for spec in here:
                versions.setdefault(spec.key, {}).update(running[spec.key].ask("versions"))
            for kind in kinds:
                rates: dict[str, float] = {}
                for callers in effort.callers:
                    turn += 1
                    able = {
                        spec.key: running[spec.key]
                        for spec in here
                        if kind in spec.kinds and (spec.peer is None or callers <= effort.peers_most)
                    }
                    told(ledger, kind, callers, cell(able, kind, callers, effort, rates, turn))
