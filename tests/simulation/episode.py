"""One episode: the real executors on simulated machines, the actors that use them, and the history of what happened.

Owns what may befall an actor at a point, and the quiet end: the world answers again, everything
under way lands or dies, doubts are looked at until nothing more is due.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from simulation.actors import Actors, Host
from simulation.chance import Chance, Made
from simulation.machine import SimulatedClock, SimulatedHost
from simulation.plan import Plan, Strike, plan
from simulation.scheduler import MICROSECONDS, Machine, Scheduler, Task
from simulation.store import TABLES, Fate, Store
from simulation.tools import KINDS, SET, Setting, described
from simulation.world import World

from counterfoil import Executor
from counterfoil.ledger import ledger
from counterfoil.ledger.connect import describing
from counterfoil.ledger.outlook import outlook

MARGIN_S = 1.0
HORIZON_S = 60.0
MACHINES = 4
_ROUNDS = 60
_CUTS_MOST = 6
QUEUE = "counterfoil-writer"


@dataclass(frozen=True)
class Ended:
    """What came of an episode: its history, what it reached, and the decisions that were not defaults."""

    history: dict[str, Any]
    hits: Counter[str]
    made: list[Made]
    trace: list[str]


@contextmanager
def direct(most: int | None) -> Iterator[None]:
    """Ledgers that are made here serve so many callers in their own threads; None: as many as they always do."""
    before = dict(ledger.DIRECT)
    if most is not None:
        ledger.DIRECT.update(dict.fromkeys(before, most))
    try:
        yield
    finally:
        ledger.DIRECT.update(before)


class Episode:
    """One seed at work on a store."""

    last: Chance | None = None  # of the episode that was made last, for one that breaks off

    def __init__(self, seed: int, store: Store, kept: frozenset[Made] | None = None, *, traced: bool = False) -> None:
        self.seed = seed
        self.store = store
        self.chance = Chance(seed, kept)
        Episode.last = self.chance
        self.plan: Plan = plan(self.chance)
        self.scheduler = Scheduler(self.chance)
        self.scheduler.shuffled = True
        self.scheduler.at_point = self._at_point
        self.events: list[dict[str, Any]] = []
        self.trace: list[str] | None = [] if traced else None
        self.world = World(self.scheduler, self.chance, self.plan.faults, self.tell)
        self.actors = Actors(self.scheduler, self.chance, self.plan, self.world, self.tell)
        self.hosts: list[Host] = []
        self.machines: list[Machine] = []
        self.healing = False
        self._strikes: dict[str, list[Strike]] = {}
        for strike in self.plan.strikes:
            self._strikes.setdefault(strike.place, []).append(strike)
        self._passed: Counter[str] = Counter()
        self._cuts = 0
        self._incarnations = 0
        self._seen: dict[str, dict[str, Any]] = {}
        self._rows: set[str] = set()

    # ------------------------------------------------------------ the history

    def tell(self, kind: str, **members: Any) -> None:
        self.events.append({"at": self.scheduler.now, "kind": kind, **members})
        if self.trace is not None:
            task = self.scheduler.current
            who = "" if task is None else f"{task.machine.name} {task.name}"
            shown = {name: content for name, content in members.items() if name != "row"}
            if "row" in members:
                row = members["row"]
                shown |= {name: row[name] for name in ("verdict", "proof", "attempts", "open_attempts", "version")}
            self.trace.append(f"{self._clock()} {who:<34} {kind:<10} {shown}")

    def _clock(self) -> str:
        return f"{(self.scheduler.now - 1_800_000_000 * MICROSECONDS) / MICROSECONDS:10.4f}"

    def committed(self, machine: Machine) -> None:
        """Something was committed: say what has changed."""
        for effect, attempt, reference in self.store.simulated_rows():
            if reference not in self._rows:
                self._rows.add(reference)
                self.tell("landed", effect=effect, attempt=attempt, key=f"{effect}-k0", reference=reference, count=1,
                          complete=True, what="effect")  # fmt: skip
        counts: dict[str, int] | None = None
        task = self.scheduler.mine()
        changed = 0
        for row in self.store.rows("effects"):
            if self._seen.get(row["key"]) != row:
                changed += 1
                counts = counts if counts is not None else self.store.entry_counts()
                before = self._seen.get(row["key"])
                self._seen[row["key"]] = row
                if row["proof"] is not None and (before is None or before["proof"] != row["proof"]):
                    self.scheduler.hits[f"proof {row['proof']}"] += 1
                if before is not None and row["attempts"] > before["attempts"]:
                    self.scheduler.hits[f"begun again from {before['proof'] or 'unknown (P2)'}"] += 1
                self.tell("committed", host=machine.name, call=None if task is None else task.call,
                          effect=row["id"], entries=counts.get(row["key"], 0), row=row)  # fmt: skip
        if task is not None and task.name == QUEUE and changed:
            self.scheduler.hits["committed by the queue" if changed == 1 else "several committed by the queue"] += 1

    # ------------------------------------------------------------ what befalls actors

    def point(self, moment: str) -> None:
        """A point of the ledger: before a transaction, or after it."""
        task = self.scheduler.mine()
        self.scheduler.point(f"{'' if task is None else task.step or 'background'} ledger {moment}")

    def fate(self, machine: Machine, moment: str) -> Fate:
        """What becomes of a connection."""
        if self.healing or not self.plan.cuts or self._cuts >= _CUTS_MOST or self.scheduler.mine() is None:
            return "counts"
        if moment == "connect":
            if not self.chance.happens("cut at connect", self.plan.cuts / 3):
                return "counts"
            fate: Fate = "refused"
        elif not self.chance.happens("cut at commit", self.plan.cuts):
            return "counts"
        else:
            fate = "lost after" if self.chance.happens("cut after commit", 0.6) else "lost before"
        self._cuts += 1
        self.scheduler.hits[f"cut {fate}"] += 1
        if self.trace is not None:
            self.trace.append(f"{self._clock()} {machine.name:<34} cut        {fate}")
        return fate

    def _at_point(self, task: Task, label: str) -> None:
        if self.trace is not None:
            self.trace.append(f"{self._clock()} {task.machine.name + ' ' + task.name:<34} . {label}")
        if self.healing:
            return
        self._passed[label] += 1
        for strike in self._strikes.get(label, ()):
            if strike.time == self._passed[label]:
                self._strike(task, strike)
        if self.plan.delays and self.chance.happens("delay", self.plan.delays):
            self.scheduler.now += round(self.chance.between("delay by", 0.0005, 0.12) * MICROSECONDS)
        if self.plan.jumps and self.chance.happens("jump", 0.02):
            self._jump(task.machine)

    def _jump(self, machine: Machine) -> None:
        skew = round(self.chance.between("jump to", 0, MARGIN_S * 0.9) * MICROSECONDS)
        if self.plan.breaks_clock:
            skew = round(self.chance.between("jump far", -60, 60) * MICROSECONDS)
            self.tell("broke", effect=None, condition="clock")
        self.scheduler.hits["clock jumped"] += 1
        machine.skew_us = skew

    def _strike(self, task: Task, strike: Strike) -> None:
        machine = task.machine
        where = f"at {strike.place}"
        match strike.blow:
            case "kill":
                self.scheduler.hits[f"kill {where}"] += 1
                self.kill(machine)
            case "pause" | "long pause":
                most = 1.0 if strike.blow == "pause" else 30.0
                self.scheduler.hits[f"pause {where}"] += 1
                self.tell("paused", host=machine.name)
                self.scheduler.pause(machine, self.chance.between("pause by", 0.05, most))
            case "cancel":
                self._cancel(task, where)

    def _cancel(self, task: Task, where: str) -> None:
        """Ctrl-C: into the actor at the point, or, at a point of a thread of the library, one that waits for it."""
        callers = [one for one in task.machine.tasks if one.call is not None and one.is_alive()]
        struck = next(iter(callers), None) if task.name.startswith("counterfoil") else task
        if struck is not None:
            self.scheduler.hits[f"cancel {where}"] += 1
            self.tell("cancelled", host=task.machine.name, call=struck.call)
            self.scheduler.interrupt(struck, KeyboardInterrupt())

    def kill(self, machine: Machine) -> None:
        """SIGKILL: its tasks never act again, the database ends its transactions; perhaps it is started again."""
        if machine.dead:
            return
        self.tell("crash", host=machine.name)
        self.scheduler.kill(machine)
        self.store.broken_off(machine.slot, machine)
        self.hosts = [host for host in self.hosts if host.machine is not machine]
        if self.plan.restarts or not self.hosts:
            after = self.scheduler.now + round(self.chance.between("restart after", 0.01, 6) * MICROSECONDS)
            self.scheduler.at(after, lambda: self._restarted(machine.slot))

    def _restarted(self, slot: int) -> None:
        if not self.healing:
            host = self.start_host(slot)
            self._start(host, "caller again", partial(self.actors.caller, host, 9))

    # ------------------------------------------------------------ hosts and actors

    def start_host(self, slot: int) -> Host:
        self._incarnations += 1
        skew = round(self.chance.between("skew", 0, self.plan.skew_s) * MICROSECONDS)
        boot = round(self.chance.between("boot", 1, 1000) * MICROSECONDS)
        machine = Machine(self.scheduler, f"host-{slot}:{self._incarnations}", slot=slot, skew_us=skew, boot_us=boot)
        self.machines.append(machine)
        engine = self.store.take(slot, self, machine)
        with describing(), direct(0 if self.plan.queued else None):
            executor = Executor(
                engine,
                [KINDS[name].tool for name in self.plan.kinds],
                clock=SimulatedClock(machine),
                clock_margin_s=MARGIN_S,
                observer=self._observe,
                host=SimulatedHost(machine),
                random=Random(self._incarnations),  # noqa: S311
            )
        host = Host(machine, executor)
        self.hosts.append(host)
        return host

    def _observe(self, moment: str, step: str, tool: str, effect_id: str) -> None:
        task = self.scheduler.mine()
        if task is not None:
            task.step = step
        self.scheduler.point(f"{step} {moment}")

    def _start(self, host: Host, name: str, work: Callable[[], None]) -> None:
        if not host.machine.dead:
            self.scheduler.start(host.machine, work, name)

    # ------------------------------------------------------------ the whole

    def run(self) -> Ended:
        """Live the episode to its quiet end."""
        SET.now = Setting(self.world, self.store, self.actors.here)
        try:
            self._live()
            quiet = self._calm()
        finally:
            for machine in self.machines:
                self.scheduler.discard(machine)
                self.store.broken_off(machine.slot, machine)
            SET.now = None
        tools: dict[str, Any] = {}
        for name in self.plan.kinds:
            tools |= described(KINDS[name])
        history = {"seed": self.seed, "margin_us": round(MARGIN_S * MICROSECONDS), "tools": tools,
                   "events": self.events, "tables": {table: self.store.rows(table) for table in TABLES},
                   "quiet": quiet}  # fmt: skip
        return Ended(history, self.scheduler.hits, self.chance.made, self.trace or [])

    def _live(self) -> None:
        one = self.plan
        hosts = [self.start_host(slot) for slot in range(one.hosts)]
        for number in range(one.callers):
            host = hosts[number % len(hosts)]
            self._start(host, f"caller {number}", partial(self.actors.caller, host, number))
        for number in range(one.reconcilers):
            host = hosts[-1 - number % len(hosts)]
            self._start(host, f"reconciler {number}", partial(self.actors.reconciler, host))
        others = (
            (one.operator, "operator", self.actors.operator),
            (one.takes_back, "taker back", self.actors.taker_back),
            (one.checks, "checker", self.actors.checker),
        )
        for taken, name, work in others:
            if taken:
                self._start(hosts[0], name, partial(work, hosts[0]))
        self.scheduler.run(self._is_lived, self.scheduler.now + round(HORIZON_S * MICROSECONDS))

    def _is_lived(self) -> bool:
        return not any(
            task.is_alive()
            for machine in self.machines
            if not machine.dead
            for task in machine.tasks
            if not task.name.startswith(("counterfoil", "reconciler"))
        )

    def _calm(self) -> bool:
        """Heal the world, let what is under way end, then look at doubts until nothing more is due."""
        scheduler = self.scheduler
        self.healing = self.world.healed = True
        for machine in self.machines:
            scheduler.resume(machine)
            for task in machine.tasks:
                if task.name.startswith("reconciler"):
                    self._end(task)
        scheduler.run(lambda: self._is_lived() and self.world.idle, scheduler.now + 60 * MICROSECONDS)
        scheduler.run(lambda: False, scheduler.now + 3 * MICROSECONDS)  # what waits in a backlog is written
        healer = self.start_host(MACHINES - 1)
        since = scheduler.now + healer.machine.skew_us
        for _ in range(_ROUNDS):
            done = self._healed(healer, since)
            due_at = outlook(healer.executor._ledger, healer.executor._lookable(), "").due_at
            if due_at is None or not done:
                return True
            scheduler.now = max(scheduler.now, due_at - healer.machine.skew_us + 1000)
        return self._only_unprovable()

    def _end(self, task: Task) -> None:
        if task.greenlet:
            task.interrupt = KeyboardInterrupt()
            self.scheduler.wake(task)

    def _healed(self, healer: Host, since: int) -> bool:
        """One reconcile; False when it is of no more use: what is left has been looked at `since` all is well."""
        looked: list[int] = []

        def work() -> None:
            looked.append(healer.executor.reconcile().looked)

        task = self.scheduler.start(healer.machine, work, "healer")
        self.scheduler.run(lambda: not task.is_alive())
        if task.trouble is not None:
            raise task.trouble
        late = max((row["review_at"] or 0 for row in self._seen.values()), default=0)
        return not (self.scheduler.now > late + 2 * MICROSECONDS and self._only_unprovable(since))

    def _only_unprovable(self, since: int = 0) -> bool:
        """Whether what is still due are doubts that no look can end, looked at after their review and `since`."""
        return all(
            row["verdict"] == "effect_unknown" and row["absent_from"] is None and int(row["updated_at"]) >= since
            for row in self.store.rows("effects")
            if row["look_at"] is not None
        )


def run(seed: int, store: Store, kept: frozenset[Made] | None = None, *, traced: bool = False) -> Ended:
    """Live one seed; with `kept`, only these of its decisions are other than their defaults."""
    store.clear()
    return Episode(seed, store, kept, traced=traced).run()
