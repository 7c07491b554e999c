"""The provider, and the wire to it: seeded, and able to be as wicked as the declared conditions permit, or more so.

Owns what is true: requests under way, effects that stand, keys that are remembered, stones. It tells the history each
thing as it happens, and it says so (`broke`) whenever it breaks a condition that a tool declares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from simulation.chance import Chance
from simulation.machine import SimulatedEvent
from simulation.scheduler import MICROSECONDS, Dead, Machine, Scheduler

MS = 1000
UNDECLARED_US = 8 * MICROSECONDS


class Told(Protocol):
    def __call__(self, kind: str, **members: Any) -> None: ...


@dataclass(frozen=True)
class Manners:
    """How a tool's provider behaves, as the tool declares it. Times in microseconds; None: not declared."""

    grace_us: int | None = None
    retention_us: int | None = None
    keyed: bool = False
    idempotent: bool = False
    serialised: bool = True
    stores_refusals: bool = False
    one_request: bool = False


@dataclass
class Landing:
    """One real effect."""

    effect: str
    attempt: int
    key: str
    reference: str
    group: str
    complete: bool = True
    standing: bool = True
    shown_from: int = 0
    shown_surely: int = 0


@dataclass
class Known:
    """What a provider remembers of a key."""

    body: str
    first_at: int
    until: int
    answer: Answer | None = None


@dataclass(frozen=True)
class Answer:
    """What the provider says; status 0: nothing comes back."""

    status: int
    reference: str | None = None
    retry_after_s: float | None = None


@dataclass
class Request:
    """One request on its way. `by` is the last moment at which the declared conditions let it land and be seen."""

    effect: str
    attempt: int
    key: str
    body: str
    manners: Manners
    by: int
    declined: int = 0
    fails: int = 0
    landed: int = 0
    idle: bool = False
    partly: bool = False
    waiting: Callable[[Answer], None] | None = None
    refusals: list[int] = field(default_factory=list)  # one list for all copies of the request


@dataclass
class World:
    """The provider of one episode. `faults` are those that this episode may show."""

    scheduler: Scheduler
    chance: Chance
    faults: frozenset[str]
    told: Told
    healed: bool = False
    landings: list[Landing] = field(default_factory=list)
    known: dict[str, Known] = field(default_factory=dict)
    stones: set[str] = field(default_factory=set)
    under_way: dict[str, int] = field(default_factory=dict)
    functions: dict[str, list[Machine]] = field(default_factory=dict)
    broken: set[tuple[str, str]] = field(default_factory=set)
    number: int = 0

    # ------------------------------------------------------------ chance

    def shows(self, fault: str, probability: float = 0.35) -> bool:
        """Whether a fault that this episode may show happens here; counts it."""
        if self.healed or fault not in self.faults or not self.chance.happens(fault, probability):
            return False
        self.scheduler.hits[f"fault {fault}"] += 1
        return True

    def broke(self, effect: str, condition: str) -> None:
        if (effect, condition) not in self.broken:
            self.broken.add((effect, condition))
            self.scheduler.hits[f"broke {condition}"] += 1
            self.told("broke", effect=effect, condition=condition)

    # ------------------------------------------------------------ sending

    def send(
        self, machine: Machine, request: Request, *, marked: bool, deadline: int, checked_at: int, patience_s: float
    ) -> Answer:
        """Let a request leave and wait for its answer; status 0 when none comes in `patience_s`."""
        scheduler = self.scheduler
        scheduler.point("request before")
        self._refuse_dead(machine)
        now = scheduler.now
        alive_until = now - machine.paused_us(checked_at)
        self._set_bound(request, max(deadline, alive_until))
        self.told("sent", effect=request.effect, attempt=request.attempt, key=request.key, host=machine.name,
                  marked=marked)  # fmt: skip
        self._draw_fates(request)
        answered = SimulatedEvent(machine)
        heard: list[Answer] = []

        def hear(answer: Answer) -> None:
            heard.append(answer)
            answered.set()

        request.waiting = hear
        self._depart(request)
        answered.wait(patience_s)
        self._refuse_dead(machine)
        request.waiting = None
        scheduler.point("request after")
        return heard[0] if heard else Answer(0)

    def _set_bound(self, request: Request, sends_until: int) -> None:
        """Until when a request may land and be hidden, within the declared conditions; without any: for long."""
        grace = request.manners.grace_us
        request.by = sends_until + (UNDECLARED_US if grace is None else grace)
        if request.by < self.scheduler.now:
            self.broke(request.effect, "pause")

    def _draw_fates(self, request: Request) -> None:
        """What the provider will do, the same for each copy of the request."""
        if self.shows("declines"):
            request.declined = 402
        elif self.shows("throttles"):
            request.declined = 429
        elif self.shows("fails before acting"):
            request.fails = 500
        if self.shows("acts in part"):
            request.partly = True
        if self.shows("returns without acting"):
            request.idle = True

    def _depart(self, request: Request) -> None:
        if self.shows("loses the request"):
            self.scheduler.at(self.scheduler.now + 5 * MS, lambda: self._lost(request))
            return
        copies = 1
        safely = self._deduplicates(request) and request.manners.serialised
        if self.shows("delivers twice") and (safely or "breaks client_resent" in self.faults):
            copies = 2
            if "breaks client_resent" in self.faults:
                self.scheduler.hits["fault breaks client_resent"] += 1
                self.broke(request.effect, "client_resent")
        for copy, arrival in enumerate(sorted(self._arrival(request) for _ in range(copies))):
            # Nobody hears what is said to a later copy, unless a layer below the client makes it, which breaks a
            # condition.
            one = request if not copy or "breaks client_resent" in self.faults else replace(request, waiting=None)
            self.under_way[request.effect] = self.under_way.get(request.effect, 0) + 1
            self.scheduler.at(arrival, partial(self._arrive, one))

    def _deduplicates(self, request: Request) -> bool:
        return request.manners.keyed or request.manners.idempotent

    def _arrival(self, request: Request) -> int:
        now, latest = self.scheduler.now, request.by
        soon = now + round(self.chance.between("travel", 5 * MS, 60 * MS))
        if self.shows("breaks grace", 0.5):
            return max(soon, latest + round(self.chance.between("later than grace", 0.1, 15) * MICROSECONDS))
        if self.shows("commits late"):
            return max(soon, round(self.chance.between("late", soon, max(soon, latest))))
        return soon

    def _lost(self, request: Request) -> None:
        self.told("lost", effect=request.effect, attempt=request.attempt, key=request.key)

    def _answer(self, request: Request, answer: Answer) -> None:
        """Send an answer back."""
        if self.shows("loses the answer"):
            return
        status = answer.status
        if status == 201 and self.shows("answers 500 after acting"):
            answer = Answer(500)
        waiting = request.waiting
        if waiting is not None:
            travel = round(self.chance.between("travel back", 5 * MS, 60 * MS))
            if self.shows("answers late"):
                travel += round(self.chance.between("answer late", 0.1, 4) * MICROSECONDS)
            self.scheduler.at(self.scheduler.now + travel, lambda: self._hand_over(request, answer))

    def _hand_over(self, request: Request, answer: Answer) -> None:
        if request.waiting is not None:
            request.waiting(answer)

    # ------------------------------------------------------------ arriving

    def _arrive(self, request: Request) -> None:
        """Key first, then the work, then the effect, then the key again."""
        now, manners = self.scheduler.now, request.manners
        if request.key in self.stones:
            if self.shows("breaks stone", 0.7):
                self.broke(request.effect, "stone")
            else:
                self._refuse(request, Answer(410))
                return
        name = request.effect if manners.idempotent else request.key
        if self._deduplicates(request):
            if name in self.known and self.shows("breaks key", 0.5):
                self.broke(request.effect, "key")
            elif self._is_known(request, name):
                return
        if request.declined == 429:
            self._refuse(request, Answer(429, retry_after_s=self.chance.one_of("retry after", (None, 0.2, 30.0))))
            return
        if self._deduplicates(request) and manners.serialised:
            self._remember(request, name, now)
        work = round(self.chance.between("work", 1 * MS, 20 * MS))
        if self.shows("works long"):
            work = max(work, round(self.chance.between("long work", 0, max(0, request.by - now))))
        if now + work > request.by and now <= request.by:
            work = max(0, request.by - now)
        self.scheduler.at(now + work, lambda: self._act(request, name, now))

    def _is_known(self, request: Request, name: str) -> bool:
        """Whether the provider knows the key; then the request is done with."""
        known = self.known.get(name)
        if known is None:
            return False
        now = self.scheduler.now
        if now > known.until:
            del self.known[name]
            self.scheduler.hits["fault forgets keys"] += 1
            return False
        if known.body != request.body and not request.manners.idempotent:
            self._refuse(request, Answer(422))
        elif known.answer is None:
            if request.manners.idempotent:
                self._deduplicate(request, Answer(500))
            else:
                self._refuse(request, Answer(409))
        elif known.answer.status == 402:
            self._refuse(request, known.answer)
        else:
            self._deduplicate(request, known.answer)
        return True

    def _remember(self, request: Request, name: str, first_at: int, answer: Answer | None = None) -> None:
        known = self.known.get(name)
        if known is not None and known.until >= self.scheduler.now:
            known.answer = answer or known.answer
            return
        retention = request.manners.retention_us or 0
        keeps = retention + round(self.chance.between("remembers longer", 0, 3) * MICROSECONDS)
        if self.shows("breaks retention", 0.5):
            keeps = round(self.chance.between("forgets early", 0, retention))
            self.broke(request.effect, "retention")
        self.known[name] = Known(request.body, first_at, first_at + keeps, answer)

    def _act(self, request: Request, name: str, first_at: int) -> None:
        manners, keeps = request.manners, self._deduplicates(request)
        if request.key in self.stones:
            if "breaks stone" not in self.faults:
                self._forget_unanswered(name)
                self._refuse(request, Answer(410))
                return
            self.broke(request.effect, "stone")
        if request.declined:
            acted = self.shows("breaks acted_on_refusal", 0.5)
            if acted:
                self._land(request)
                self.broke(request.effect, "acted_on_refusal")
            if keeps and (manners.stores_refusals or acted):  # a provider that acts under a key remembers it
                self._remember(request, name, first_at, Answer(402))
            else:
                self._forget_unanswered(name)
            self._refuse(request, Answer(402))
            return
        if request.fails:
            self._forget_unanswered(name)
            self._end(request)
            self.told("lost", effect=request.effect, attempt=request.attempt, key=request.key)
            self._answer(request, Answer(500))
            return
        if request.idle:
            self.broke(request.effect, "returned_without_acting")
            self._forget_unanswered(name)
            self._end(request)
            self._answer(request, Answer(201, f"nothing-{self._next()}"))
            return
        if keeps and not manners.serialised:  # the key is stored when the work is done: another may have been faster
            known = self.known.get(name)
            if known is not None and known.answer is not None and known.until >= self.scheduler.now:
                self.scheduler.hits["fault works on one key twice"] += 1
        answer = Answer(201, self._land(request))
        if keeps:
            self._remember(request, name, first_at, answer)
        self._end(request)
        self._answer(request, answer)

    def _forget_unanswered(self, name: str) -> None:
        known = self.known.get(name)
        if known is not None and known.answer is None:
            del self.known[name]

    def _land(self, request: Request, kind: str = "effect") -> str:
        now = self.scheduler.now
        reference = f"ref-{self._next()}"
        surely = now
        if request.landed or request.refusals:  # a copy acts, though the client was told what became of another
            self.broke(request.effect, "client_resent")
        request.landed += 1
        if self.shows("shows late"):
            surely = round(self.chance.between("shown late", now, max(now, request.by)))
            if self.shows("breaks grace", 0.5):
                surely = max(now, request.by) + round(self.chance.between("shown later", 0.1, 10) * MICROSECONDS)
        if max(now, surely) > request.by and request.manners.grace_us is not None:
            self.broke(request.effect, "grace")
        self.landings.append(
            Landing(request.effect, request.attempt, request.key, reference, request.body,
                    complete=not request.partly, shown_from=now, shown_surely=surely)
        )  # fmt: skip
        self.told("landed", effect=request.effect, attempt=request.attempt, key=request.key, reference=reference,
                  count=1, complete=not request.partly, what=kind)  # fmt: skip
        return reference

    def _refuse(self, request: Request, answer: Answer) -> None:
        self.scheduler.hits[f"answer {answer.status}"] += 1
        self.told("refused", effect=request.effect, attempt=request.attempt, key=request.key)
        request.refusals.append(answer.status)
        self._end(request)
        self._answer(request, answer)

    def _deduplicate(self, request: Request, answer: Answer) -> None:
        self.scheduler.hits["fault resent and known"] += 1
        self.told("deduplicated", effect=request.effect, attempt=request.attempt, key=request.key)
        self._end(request)
        self._answer(request, answer)

    def _end(self, request: Request) -> None:
        self.under_way[request.effect] -= 1

    def _next(self) -> int:
        self.number += 1
        return self.number

    # ------------------------------------------------------------ looking

    def look(self, machine: Machine, effect: str, *, group: str | None = None, hang_s: float = 3.0) -> list[Landing]:
        """What the provider shows of an effect (of its group, for a look-alike search), or an error.

        Raises:
            ConnectionError, PermissionError: the look failed.
        """
        scheduler = self.scheduler
        scheduler.point("look before")
        self._refuse_dead(machine)
        asked_at = scheduler.now + machine.skew_us  # as the host that asks has it: the ledger's time
        if self.shows("slow look"):
            scheduler.sleep(self.chance.between("look waits", 0.05, 1.2))
        if self.shows("hangs in the look", 0.2):
            scheduler.sleep(hang_s)
        if self.shows("fails in the look"):
            self._looked(effect, asked_at, "unclear")
            raise ConnectionResetError
        if self.shows("forbids the look", 0.1):
            self._looked(effect, asked_at, "unclear")
            raise PermissionError
        shown = [one for one in self.landings if one.standing and self._is_shown(one)
                 and (one.effect == effect if group is None else one.group == group)]  # fmt: skip
        shown = self._lie(effect, group, shown)
        # A search that matches look-alikes too proves nothing by what it finds.
        self._looked(effect, asked_at, "absent" if not shown else "found" if group is None else "unclear")
        if self.shows("slow look"):
            scheduler.sleep(self.chance.between("look answers late", 0.05, 1.2))
        scheduler.point("look after")
        self._refuse_dead(machine)
        return shown

    def _is_shown(self, landing: Landing) -> bool:
        now = self.scheduler.now
        if now >= landing.shown_surely or self.healed:
            return True
        # A replica, each time another one: what was seen a moment ago may be gone again.
        return not self.shows("shows an old replica", 0.7) and "shows an old replica" in self.faults

    def _lie(self, effect: str, group: str | None, shown: list[Landing]) -> list[Landing]:
        if self.shows("lies in the look", 0.3):
            truly = any(one.effect == effect for one in shown)
            self.broke(effect, "look_lied")
            name = f"lie-{self._next()}"
            return [] if truly else [Landing(effect, 0, "", name, group or "")]
        if group is not None and self.shows("shows a look-alike"):
            reference = f"alike-{self._next()}"
            self.told("alike", effect=effect, reference=reference)
            return [*shown, Landing("a stranger's", 0, "", reference, group)]
        return shown

    def _looked(self, effect: str, asked_at: int, answer: str) -> None:
        self.told("looked", effect=effect, asked_at=asked_at, answer=answer, shown=self.stands(effect) > 0)

    # ------------------------------------------------------------ taking back

    def take_back(
        self, machine: Machine, request: Request, original: str, keys: tuple[str, ...], *, stone: bool, deadline: int,
        checked_at: int, patience_s: float,
    ) -> Answer:  # fmt: skip
        """Send a revoke (with a stone for each of `keys`) or a refund. Repeating it does no more."""
        self.scheduler.point("undo before")
        self._refuse_dead(machine)
        now = self.scheduler.now
        self._set_bound(request, max(deadline, now - machine.paused_us(checked_at)))
        self.told("sent", effect=request.effect, attempt=request.attempt, key=request.key, host=machine.name,
                  marked=False)  # fmt: skip
        answered = SimulatedEvent(machine)
        heard: list[Answer] = []

        def hear(answer: Answer) -> None:
            heard.append(answer)
            answered.set()

        request.waiting = hear
        if self.shows("loses the request"):
            self._lost(request)
        else:
            self.under_way[request.effect] = self.under_way.get(request.effect, 0) + 1
            self.scheduler.at(self._arrival(request), lambda: self._undo(request, original, keys, stone))
        answered.wait(patience_s)
        self._refuse_dead(machine)
        request.waiting = None
        self.scheduler.point("undo after")
        return heard[0] if heard else Answer(0)

    def _undo(self, request: Request, original: str, keys: tuple[str, ...], stone: bool) -> None:
        done = self.known.get(request.key)
        if done is not None and done.answer is not None:
            self._deduplicate(request, done.answer)
            return
        standing = [
            one for one in self.landings if one.effect == original and one.standing and (not stone or one.key in keys)
        ]
        if stone and standing and self.chance.happens("revoke finds", 0.3):
            self._end(request)
            self._answer(request, Answer(200, standing[0].reference))
            return
        if not stone and self.shows("declines"):
            self._refuse(request, Answer(402))
            return
        if stone:
            self.stones.update(keys)
        for one in standing:
            one.standing = False
            self.told("undone", effect=original, reference=one.reference)
        answer = Answer(204, self._land(request, "undo"))
        self.known[request.key] = Known("", self.scheduler.now, self.scheduler.now + 10**15, answer)
        self._end(request)
        self._answer(request, answer)

    # ------------------------------------------------------------ the truth

    def stands(self, effect: str) -> int:
        return sum(1 for one in self.landings if one.effect == effect and one.standing)

    def may_still_land(self, effect: str) -> bool:
        """Whether a request is under way, or a function that may send is still at work somewhere."""
        at_work = any(not machine.dead for machine in self.functions.get(effect, ()))
        return at_work or self.under_way.get(effect, 0) > 0

    @property
    def idle(self) -> bool:
        """Nothing is under way, and no living machine's function is at work."""
        return not any(self.under_way.values()) and not any(self.may_still_land(effect) for effect in self.functions)

    def _refuse_dead(self, machine: Machine) -> None:
        if machine.dead:
            raise Dead
