"""What is true of a story's end, and how far each tier must come. Knows nothing of processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from crash.life import Body, Point, Tier, Told, Verb

from counterfoil import Proof, Row, Verdict


@dataclass(frozen=True, slots=True)
class Story:
    """The process dies at `point` (None: it lives), its successor at `second`; `verb` is what successors do first."""

    tier: Tier
    fault: str
    point: Point | None
    second: Point | None = None
    verb: Verb = "call"
    body: Body = "blocking"

    def __str__(self) -> str:
        deaths = " + ".join(str(point) for point in (self.point, self.second) if point is not None) or "nobody dies"
        return f"{self.tier} {self.fault:<15} {deaths:<58} {self.verb:<9}"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a story ended: the row, what was told on the way, the true number of effects, and what is wrong with it."""

    story: Story
    row: Row
    effects: int
    told: list[Told]
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        row = self.row
        line = f"{self.story} -> {row.verdict:<14} {row.proof or '-':<18} attempts {row.attempts}"
        return f"{line}, effects {self.effects}" + "".join(f"\n    WRONG: {problem}" for problem in self.problems)


def wrong(ending: Ending) -> Iterator[str]:
    """What an ending says that is not so, or does not say although its tier promises it."""
    story, verdict, effects = ending.story, ending.row.verdict, ending.effects
    if effects > 1:
        yield "more than one effect"
    if verdict is Verdict.EFFECT_APPLIED and effects < 1:
        yield "applied, and the provider has none"
    if verdict is Verdict.NO_EFFECT and effects:
        yield "no effect, and the provider has one"
    for seen in ending.told:
        if (seen["verdict"], seen["count"]) in {("effect_applied", 0), ("no_effect", 1)}:
            yield f"told {seen}"
    if verdict not in expected(story, effects):
        yield f"ended as {verdict}"
    if verdict is Verdict.NO_EFFECT and ending.row.proof is not Proof.REJECTED:
        yield f"ended by {ending.row.proof}, and nobody sent again"


def expected(story: Story, effects: int) -> frozenset[Verdict]:
    """How far each tier must come: T0 may stay unknown, T1 must find what is there, T2 and T3 settle everything."""
    settled = Verdict.NO_EFFECT if story.fault == "refused" else Verdict.EFFECT_APPLIED
    unknown = Verdict.EFFECT_UNKNOWN
    match story.tier:
        case "T0":
            return frozenset({settled, unknown})
        case "T1":
            return frozenset({settled}) if effects else frozenset({settled, unknown})
        case "T2" | "T3" | "T4" | "T5":
            return frozenset({settled})


def right(endings: Sequence[Ending]) -> bool:
    """True when nothing is wrong with any of them, and there are some."""
    return bool(endings) and not any(ending.problems for ending in endings)
