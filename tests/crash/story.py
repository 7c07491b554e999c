"""A story: a fault at the provider, a process that dies at one point, the processes that come after it, and the truth.

Owns how stories are played (several at once, each under a tenant of its own in one ledger) and what they are judged by:
the provider's own count, when it is quiet. Nothing here knows how the library works inside.
"""

from __future__ import annotations

import itertools
import json
import math
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from crash.life import ORDER, RETENTION_S, TOOL, Life, Point, Tier, Told
from crash.living import sold
from crash.nursery import Nursery
from crash.shop import sales
from crash.truth import Ending, Story, wrong
from provider import Fault, Provider

from counterfoil import Row, Verdict, tool
from counterfoil.arguments import Invalid
from counterfoil.effect import MICROSECONDS
from counterfoil.identity import identify
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger

AT_ONCE = 12
# How slow the times of a story are when it is played again, because the machine was too slow for it.
SLOWER = (1, 2, 4, 8, 16)
TRIES = len(SLOWER)
LATE_S = 0.2  # arrives before the deadline, so well inside timeout and grace on a busy machine too

# The words of the tests for what goes wrong with the first request (a refusal: with each).
FAULTS: dict[str, Fault | None] = {
    "none": None,
    "ack_lost": Fault("ack_lost"),
    "ack_held": Fault("ack_lost", mode="hold"),
    "request_lost": Fault("request_lost"),
    "late": Fault("late", seconds=LATE_S),
    "reset_after": Fault("reset_after"),
    "reset_before": Fault("reset_before"),
    "refused": Fault("refuse", status=402),
    "status_after": Fault("status", status=500, acts=True),
    "connect_refused": None,
}
SETTLE_S: dict[Tier, float] = {  # no more than it takes
    "T0": 0.0, "T1": 1.5, "T2": 40.0, "T3": 40.0, "T4": 40.0, "T5": 40.0,
}  # fmt: skip
BEFORE_BEGIN = frozenset(
    {Point("before", "Read"), Point("after", "Read"), Point("before", "Start"), Point("sql", "Start")}
    | {Point("commit", "Start"), Point("before", "Transact")}
)


@dataclass(frozen=True, slots=True)
class Played:
    """A story that was played, before the provider is quiet."""

    story: Story
    life: Life
    told: list[Told]
    problems: list[str]


class Unreached(Exception):
    """The process did not come to its point: the machine was too slow for this order of things. Play it again."""


class Stage:
    """One ledger, one provider and the nursery. Each story is played under a tenant of its own."""

    def __init__(
        self,
        ledger_url: str,
        provider: Provider,
        nursery: Nursery,
        folder: Path,
        closed_port: int,
        numbers: Iterator[int] | None = None,
    ) -> None:
        """Stages that share a provider share the `numbers` of their tenants."""
        self.ledger_url = ledger_url
        self.provider = provider
        self.nursery = nursery
        self._folder = folder
        self._closed_port = closed_port
        self._numbers = numbers or itertools.count(1)
        self._engine = open_engine(ledger_url)
        self._audit = Audit(Ledger(self._engine))  # of all tenants
        self._playing = ThreadPoolExecutor(AT_ONCE)

    def close(self) -> None:
        self._playing.shutdown()
        self._engine.dispose()

    # ------------------------------------------------------------ lives

    def life(self, story: Story) -> Life:
        """A life under a new tenant, with the fault of the story waiting for its first request."""
        tenant = f"s{next(self._numbers)}"
        life = Life(
            ledger=self.ledger_url,
            provider=self.provider.url,
            tenant=tenant,
            tier=story.tier,
            body=story.body,
            out=str(self._folder / f"{tenant}-out"),
            marker=str(self._folder / f"{tenant}-marker"),
            refuse_once=str(self._folder / f"{tenant}-refuse"),
            closed_port=self._closed_port,
        )
        self.arm(life, story.fault)
        return life

    def arm(self, life: Life, name: str) -> None:
        """Let that go wrong with the next request of this life's effect that no earlier fault takes."""
        fault = FAULTS[name]
        if name == "connect_refused":
            Path(life.refuse_once).touch()
        if fault is not None:
            self.provider.arm(
                fault.kind,
                times=None if name == "refused" else 1,
                reference=effect_id(life),
                mode=fault.mode,
                seconds=fault.seconds,
                status=fault.status,
                acts=fault.acts,
            )

    def perish(self, life: Life, point: Point) -> None:
        """Let a process live until it dies at `point`, and see that it did die there."""
        marker = Path(life.marker)
        marker.unlink(missing_ok=True)
        code = self.nursery.live(replace(life, point=point))
        if code == 0:
            raise Unreached(str(point))
        assert code == -signal.SIGKILL, f"exit code {code}: {Path(life.out).read_text('utf-8')}"
        assert marker.read_text("utf-8") == str(point)

    def survive(self, life: Life) -> dict[str, Any]:
        """Let a process live to its end; its record."""
        code = self.nursery.live(life)
        assert code == 0, f"exit code {code}: {Path(life.out).read_text('utf-8')}"
        return self.record(life)

    def record(self, life: Life) -> dict[str, Any]:
        """What a process has left that lived to its end."""
        content: dict[str, Any] = json.loads(Path(life.out).read_text("utf-8"))
        return content

    def row(self, life: Life) -> Row | None:
        """The one effect of a life's tenant, if there is any; those that take it back are not meant."""
        rows = self.rows(life)
        assert len(rows) <= 1
        return rows[0] if rows else None

    def rows(self, life: Life) -> list[Row]:
        """The effects of a life's tenant that do not take another one back."""
        return [row for row in self._audit.effects(tenant=life.tenant) if row.undo_kind is None]

    def count(self, life: Life) -> int:
        """How many effects there are in the world."""
        if life.tier == "T5":
            return sold(self.ledger_url, effect_id(life))
        return self.provider.count(effect_id(life))

    def prepare(self, tier: Tier) -> None:
        """Make what the effects of a tier need of the world."""
        prepare(self.provider, tier)
        if tier == "T5":
            sales.create(self._engine, checkfirst=True)

    # ------------------------------------------------------------ stories

    def rehearse(self, story: Story, steps: Iterable[str] = (), *, most: int = 2, calls: int = 1) -> list[Point]:
        """The points that the process of a story passes when it lives, each step at most `most` times.

        All `steps` are among them: a machine that is too slow for that is given more time.
        """
        missing: set[str] = set()
        for slowness in SLOWER:
            with suppress(Unreached):
                trace = self._rehearsed(story, replace(self.life(story), calls=calls, slowness=slowness))
                points = [point for point in trace if point.occurrence <= most]
                missing = {*steps} - {point.step for point in points}
                if not missing:
                    return points
        raise AssertionError(f"never came to {missing or story.point}: {story}")

    def _rehearsed(self, story: Story, life: Life) -> list[Point]:
        later = life
        if story.point is not None:
            self.perish(replace(life, calls=1), story.point)
            later = replace(life, verb=story.verb, calls=1, settle_s=SETTLE_S[story.tier] * life.slowness)
        return [Point(*point) for point in self.survive(later)["trace"]]

    def play(self, stories: Iterable[Story], *, calls: int = 1) -> list[Ending]:
        """Play stories, several at once; then wait until the provider is quiet, and judge each. Prints the table."""
        begun = {story: self._playing.submit(self._played, story, calls) for story in stories}
        wait(begun.values())
        slow = {story for story, playing in begun.items() if isinstance(playing.exception(), Unreached)}
        played = [self._played_alone(story, calls) if story in slow else begun[story].result() for story in begun]
        self.provider.quiesce()
        endings = [self._judged(one) for one in played]
        sys.stdout.write("\n".join([f"\n{len(endings)} stories", *map(str, endings), ""]))
        return endings

    def _played(self, story: Story, calls: int, slowness: int = 1) -> Played:
        life = replace(self.life(story), slowness=slowness)
        told: list[Told] = []
        problems: list[str] = []
        if story.point is None:
            told += self.survive(replace(life, calls=calls))["told"]
        else:
            self.perish(replace(life, calls=calls), story.point)
            problems += self._after_first_death(story, life)
        later = replace(life, verb=story.verb, calls=2, settle_s=SETTLE_S[story.tier] * slowness)
        if story.second is not None:
            self.perish(later, story.second)
            later = replace(later, verb="call")
        told += self.survive(later)["told"]
        return Played(story, life, told, problems)

    def _played_alone(self, story: Story, calls: int) -> Played:
        """Play a story whose process was too slow to come to its point, again, by itself and with more time."""
        for slowness in SLOWER:
            with suppress(Unreached):
                return self._played(story, calls, slowness)
        raise AssertionError(f"never came to its point: {story}")

    def _after_first_death(self, story: Story, life: Life) -> Iterator[str]:
        """A begin is durable before anything is sent, and nothing is before it."""
        row = self.row(life)
        assert story.point is not None
        unwritten = story.tier == "T5" and inside(story.tier, story.point)
        if (row is None) is not (unwritten or story.point in BEFORE_BEGIN):
            yield f"the row after the first death: {row}"
        if story.tier == "T5" and self.count(life) != (row is not None):
            yield f"the effect without its record, or the record without it: {row}"
        if row is None and any(one["method"] == "POST" for one in self._requests(life)):
            yield "something was sent before the begin was durable"

    def _requests(self, life: Life) -> list[dict[str, Any]]:
        return [one for one in self.provider.requests() if one["reference"] == effect_id(life)]

    def _judged(self, played: Played) -> Ending:
        life, row = played.life, self.row(played.life)
        assert row is not None
        assert row.id == effect_id(life)
        effects = self.count(life)
        ending = Ending(played.story, row, effects, played.told, played.problems)
        ending.problems.extend(wrong(ending))
        ending.problems.extend(self._wrong_in_book(row))
        posts = sum(one["method"] == "POST" for one in self._requests(life))
        if posts > row.attempts:
            ending.problems.append(f"{posts} requests in {row.attempts} attempts")
        return ending

    def _wrong_in_book(self, row: Row) -> Iterator[str]:
        """The entries explain the row without a gap, and nobody had to be alarmed."""
        history = self._audit.history(row.id)
        if [entry.seq for entry in history] != list(range(1, row.version + 1)):
            yield f"version {row.version}, entries {[entry.seq for entry in history]}"
        if history[-1].detail["verdict"] != row.verdict:
            yield f"the last entry says {history[-1].detail}"
        begun = [entry.attempt for entry in history if entry.event == "begun"]
        if begun != list(range(1, row.attempts + 1)):
            yield f"attempts {row.attempts}, begun {begun}"
        yield from self.lies(row)
        yield from self.alarms(row)

    def lies(self, row: Row) -> Iterator[str]:
        """The times at which the ledger said "no effect" and the provider had one (it has the clock of this host)."""
        history = self._audit.history(row.id)
        for entry, following in itertools.pairwise([*history, None]):
            if entry is not None and entry.detail["verdict"] == Verdict.NO_EFFECT:
                until = math.inf if following is None else following.at
                early = [one["at"] for one in self.provider.effects(row.id) if one["at"] * MICROSECONDS < until]
                yield from (f"entry {entry.seq} says no effect until {until}; there was one at {at}" for at in early)

    def verdicts(self, row: Row) -> set[str]:
        """Every verdict that the effect ever had."""
        return {entry.detail["verdict"] for entry in self._audit.history(row.id)}

    def alarms(self, row: Row) -> list[str]:
        """The incidents of an effect."""
        mine = [incident for incident in self._audit.incidents() if incident.effect_id == row.id]
        return [f"incident {incident.kind} {incident.detail}" for incident in mine]


def effect_id(life: Life, order: Mapping[str, Any] = ORDER) -> str:
    """The public id that the effect of a life has, whoever begins it."""
    return _effect_id(life.tenant, tuple(order.items()))


def _identity_arguments(order: Mapping[str, Any]) -> Mapping[str, Any]:
    @tool(key=("order",), name=TOOL)
    def declared(order: str, amount: int) -> None:
        """The arguments of the tool alone."""

    valid = declared.arguments.validate(order)
    assert not isinstance(valid, Invalid)
    return valid.identity


@cache
def _effect_id(tenant: str, order: tuple[tuple[str, Any], ...]) -> str:
    identity = identify(
        tenant=tenant,
        tool=TOOL,
        task="",
        names=("order",),
        identity_arguments=_identity_arguments(dict(order)),
        explicit_key=None,
        occurrence=None,
    )
    return identity.id


@contextmanager
def closed_port() -> Iterator[int]:
    """A port of this host that refuses connections: taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def inside(tier: Tier, point: Point) -> bool:
    """Whether a transaction of the ledger is open at that point of a process."""
    return point.moment in ("sql", "commit") or (tier == "T5" and point.step == "Request")


def prepare(provider: Provider, tier: Tier) -> None:
    """A provider de-duplicates only for the tier that relies on it: elsewhere a second request is a second effect."""
    if tier == "T3":
        provider.dedupe(RETENTION_S, replays_refusals=True)
