"""What an episode is made of, drawn from its seed: tools, hosts, actors, and which faults it may show.

Each seed takes only some of the faults and actors, so that every combination gets depth. Most seeds stay within the
declared conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from simulation.chance import Chance
from simulation.tools import KINDS

# Within the declared conditions.
FAULTS = (
    "loses the request", "loses the answer", "commits late", "answers late", "delivers twice",
    "answers 500 after acting", "fails before acting", "acts in part", "shows late", "shows an old replica",
    "fails in the look", "hangs in the look", "forbids the look", "slow look", "shows a look-alike", "declines",
    "throttles", "slow function", "patient client", "refuses the connection", "works long",
)  # fmt: skip
STEPS = (
    "Read", "Start", "Attempt", "Write:SettleReturned", "Write:SettleClosed", "Write:SettleLost", "Write:SettleLook",
    "Ask", "Sleep", "Sight", "Transact",
)  # fmt: skip
PLACES = (
    *(f"{step} {moment}" for step in STEPS for moment in ("before", "after")),
    *(f"{step} ledger {moment}" for step in ("Read", "Start", "Write:SettleReturned", "Write:SettleClosed",
      "Write:SettleLost", "Write:SettleLook", "Transact", "background", "reconcile", "resolve")
      for moment in ("before", "after")),
    "function before", "function after", "request before", "request after", "look before", "look after",
    "undo before", "undo after",
)  # fmt: skip
# What makes a step likely: the kinds of tools that come to it, and a fault that leads there.
_LOOKING = ("t2-anywhere", "t2-once", "t1", "t3-looks")
AIMS: dict[str, tuple[tuple[str, ...], str | None]] = {
    "Write:SettleClosed": ((), "declines"),
    "Write:SettleLost": ((), "loses the answer"),
    "Write:SettleLook": (_LOOKING, "loses the answer"),
    "Ask": (_LOOKING, "loses the answer"),
    "Transact": (("t5",), None),
}
# What a condition is declared for, and the fault that makes its breaking matter.
BREAKS: dict[str, tuple[str, str | None]] = {
    "breaks grace": ("t", "commits late"),
    "breaks retention": ("t3", "loses the answer"),
    "breaks key": ("t3", "loses the answer"),
    "breaks client_resent": ("t", "delivers twice"),
    "breaks acted_on_refusal": ("t", "declines"),
    "breaks stone": ("t4", "commits late"),
    "returns without acting": ("t", None),
    "lies in the look": ("t", "loses the answer"),
}

BREAKING = tuple(BREAKS)

Blow: TypeAlias = Literal["kill", "pause", "long pause", "cancel"]


@dataclass(frozen=True)
class Strike:
    """Something that happens to an actor at the how-manyeth passing of a place."""

    place: str
    time: int
    blow: Blow


@dataclass(frozen=True)
class Plan:
    """One episode. Times in seconds."""

    kinds: tuple[str, ...]
    hosts: int
    callers: int
    calls: int
    orders: int
    spread_s: float
    reconcilers: int
    operator: bool
    wrong_operator: bool
    takes_back: bool
    checks: bool
    conflicts: bool
    rewords: bool
    faults: frozenset[str]
    strikes: tuple[Strike, ...]
    skew_s: float
    jumps: bool
    breaks_clock: bool
    cuts: float
    delays: float
    restarts: bool
    queued: bool


def plan(chance: Chance) -> Plan:
    """The plan of a seed."""
    names = (*KINDS, "t4", "t4-looks")  # what is taken back needs more seeds to be reached at a bad moment
    kinds = [names[chance.below("kind", len(names))]]
    share = chance.one_of("share of faults", (0.15, 0.3, 0.5))
    faults = {fault for fault in FAULTS if chance.happens(f"with {fault}", share)}
    strikes = _aimed(chance, kinds, faults) if chance.happens("aimed", 0.5) else []
    strikes += _random_strikes(chance)
    breaking = chance.happens("breaks conditions", 0.2)
    if breaking:
        faults |= _breaking(chance, kinds[0])
        if chance.happens("long pause", 0.3):
            strikes.append(Strike(chance.one_of("place of a long pause", PLACES), 1, "long pause"))
    if "shows an old replica" in faults:
        faults.add("shows late")
    if chance.happens("second kind", 0.12):
        joined = chance.happens("beside a joint transaction", 0.3)
        kinds.append("t5" if joined else names[chance.below("other kind", len(names))])
    return Plan(
        kinds=tuple(dict.fromkeys(kinds)),
        hosts=1 + chance.below("hosts", 3),
        callers=chance.one_of("callers", (1, 2, 2, 3, 4)),
        calls=chance.one_of("calls", (1, 1, 2, 3)),
        orders=1 + chance.happens("two orders", 0.15),
        spread_s=chance.one_of("spread", (0.0, 0.3, 3.0, 10.0, 22.0)),
        reconcilers=chance.one_of("reconcilers", (0, 1, 1, 2)),
        operator=chance.happens("operator", 0.15),
        wrong_operator=breaking and chance.happens("wrong operator", 0.3),
        takes_back=chance.happens("takes back", 0.8 if kinds[0].startswith("t4") else 0.3),
        checks=chance.happens("checks", 0.15),
        conflicts=chance.happens("conflicts", 0.1),
        rewords=chance.happens("rewords", 0.2),
        faults=frozenset(faults),
        strikes=tuple(strikes),
        skew_s=chance.one_of("skews", (0.0, 0.4, 0.9)),
        jumps=chance.happens("jumps", 0.1),
        breaks_clock=breaking and chance.happens("breaks clock", 0.15),
        cuts=chance.one_of("cuts", (0.0, 0.0, 0.04, 0.12)),
        delays=chance.one_of("delays", (0.0, 0.05, 0.2)),
        restarts=chance.happens("restarts", 0.7),
        queued=chance.happens("queued", 0.4),
    )


def _aimed(chance: Chance, kinds: list[str], faults: set[str]) -> list[Strike]:
    """One strike at a step that this episode is then likely to come to."""
    step = chance.one_of("aimed at", STEPS)
    fitting, fault = AIMS.get(step, ((), None))
    if fitting:
        kinds[0] = chance.one_of("aimed kind", fitting)
    if fault is not None:
        faults.add(fault)
    moment = chance.one_of("aimed moment", ("before", "after"))
    blows: tuple[Blow, ...] = ("kill", "cancel", "pause")
    return [Strike(f"{step} {moment}", chance.one_of("aimed passing", (1, 1, 2)), chance.one_of("aimed blow", blows))]


def _random_strikes(chance: Chance) -> list[Strike]:
    blows: tuple[Blow, ...] = ("kill", "kill", "cancel", "pause")
    return [
        Strike(chance.one_of("place", PLACES), chance.one_of("passing", (1, 1, 2, 3)), chance.one_of("blow", blows))
        for _ in range(chance.one_of("strikes", (0, 0, 1, 1, 2)))
    ]


def _breaking(chance: Chance, kind: str) -> set[str]:
    fitting = [fault for fault, (tools, _) in BREAKS.items() if kind.startswith(tools)]
    chosen = {fitting[chance.below("breaks first", len(fitting))]}
    chosen |= {fault for fault in fitting if chance.happens(f"with {fault}", 0.12)}
    return chosen | {fault for broken in chosen if (fault := BREAKS[broken][1]) is not None}
