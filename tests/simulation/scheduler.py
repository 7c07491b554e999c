"""Tasks that take turns in one thread, in a time of their own: who goes on is drawn, and time passes when all wait.

Owns tasks (greenlets), machines (what a crash, a pause and a clock belong to), and the true time of the world. A task
gives up its turn at a point, or by waiting. A killed machine's tasks never get another turn; their frames are kept
until the episode is over, and whatever they still do then, while they are discarded, is refused by `Dead`.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from greenlet import getcurrent, greenlet
from simulation.chance import Chance

MICROSECONDS = 1_000_000
START_US = 1_800_000_000 * MICROSECONDS
POINT_US = 100
_DISCARDS = 50


class Dead(BaseException):
    """What a killed task meets when its frames are discarded."""


class Stuck(Exception):
    """Nothing can go on and no time is set for anything: a fault of the simulation or a deadlock."""


class Machine:
    """A process on a host: what is killed and paused as one."""

    def __init__(self, scheduler: Scheduler, name: str, *, slot: int, skew_us: int = 0, boot_us: int = 0) -> None:
        self.scheduler = scheduler
        self.name = name
        self.slot = slot
        self.skew_us = skew_us
        self.boot_distance_us = boot_us - scheduler.now
        self.dead = False
        self.paused_until: int | None = None
        self.pauses: list[tuple[int, int]] = []
        self.held: list[Task] = []
        self.tasks: list[Task] = []
        self.fresh = 0

    def paused_us(self, since: int) -> int:
        """For how many microseconds it has stood still since an instant."""
        return sum(max(0, end - max(since, begin)) for begin, end in self.pauses)


class Task:
    """One thread of a machine."""

    def __init__(self, machine: Machine, work: Callable[[], object], name: str) -> None:
        self.machine = machine
        self.name = name
        self.step = ""
        self.call: int | None = None
        self.interrupt: BaseException | None = None
        self.trouble: BaseException | None = None
        self.waits = 0
        self.ready = False
        self._work = work
        self.greenlet = greenlet(self._run)

    def _run(self) -> None:
        try:
            self._work()
        except Dead:
            pass
        except BaseException as problem:  # noqa: BLE001 - told by the episode, or by whoever looks
            self.trouble = problem

    def is_alive(self) -> bool:
        return not self.greenlet.dead


class AtPoint(Protocol):
    def __call__(self, task: Task, label: str) -> None: ...


class Scheduler:
    """The turns and the time of one episode."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        self.now = START_US
        self.hits: Counter[str] = Counter()
        self.at_point: AtPoint | None = None
        self.current: Task | None = None
        self.shuffled = False
        self.turns = 0
        self._hub = getcurrent()
        self._ready: list[Task] = []
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0

    # ------------------------------------------------------------ for tasks

    def start(self, machine: Machine, work: Callable[[], object], name: str) -> Task:
        if machine.dead:
            raise Dead
        task = Task(machine, work, name)
        machine.tasks.append(task)
        self._make_ready(task)
        return task

    def mine(self) -> Task | None:
        """The task that asks; None for the episode itself."""
        task = self.current
        if task is None or getcurrent() is not task.greenlet:
            return None
        return task

    def point(self, label: str) -> None:
        """A place at which the task may be killed, paused, cancelled or overtaken."""
        task = self.mine()
        if task is None:
            self._refuse_dead()
            return
        self.hits[label] += 1
        self.now += POINT_US
        if self.at_point is not None:
            self.at_point(task, label)
        self._make_ready(task)
        self._switch(task)

    def wait(self, until: int | None) -> None:
        """Wait to be woken, or until an instant."""
        task = self.mine()
        if task is None:
            self._refuse_dead()
            raise Stuck("the episode itself cannot wait")
        if task.interrupt is None:
            task.waits += 1
            if until is not None:
                self.at(until, _Wake(self, task, task.waits))
            self._switch(task)
        else:
            self._raise_interrupt(task)

    def sleep(self, seconds: float) -> None:
        until = self.now + max(0, round(seconds * MICROSECONDS))
        while self.now < until:
            self.wait(until)

    def wake(self, task: Task) -> None:
        if not task.ready and task is not self.current and not task.greenlet.dead:
            self._make_ready(task)

    def interrupt(self, task: Task, problem: BaseException) -> None:
        """Have `problem` raised in the task where it stands."""
        task.interrupt = problem
        self.wake(task)

    def _switch(self, task: Task) -> None:
        self._hub.switch()
        if task.machine.dead:
            raise Dead
        self._raise_interrupt(task)

    def _raise_interrupt(self, task: Task) -> None:
        if task.interrupt is not None:
            problem, task.interrupt = task.interrupt, None
            raise problem

    def _refuse_dead(self) -> None:
        if getcurrent() is not self._hub:
            raise Dead

    def _make_ready(self, task: Task) -> None:
        if task.machine.dead:
            return
        task.ready = True
        task.waits += 1
        if task.machine.paused_until is not None:
            task.machine.held.append(task)
        else:
            self._ready.append(task)

    # ------------------------------------------------------------ for the episode

    def at(self, instant: int, work: Callable[[], None]) -> None:
        """Have `work` done at an instant. It is nobody's task: it must not wait."""
        self._number += 1
        heapq.heappush(self._timers, (instant, self._number, work))

    def kill(self, machine: Machine) -> None:
        machine.dead = True
        machine.held.clear()
        self._ready = [task for task in self._ready if task.machine is not machine]

    def pause(self, machine: Machine, seconds: float) -> None:
        until = self.now + round(seconds * MICROSECONDS)
        if machine.dead or machine.paused_until is not None:
            return
        machine.paused_until = until
        machine.pauses.append((self.now, until))
        machine.held += [task for task in self._ready if task.machine is machine]
        self._ready = [task for task in self._ready if task.machine is not machine]
        self.at(until, lambda: self.resume(machine))

    def resume(self, machine: Machine) -> None:
        if machine.dead or machine.paused_until is None:
            return
        machine.paused_until = None
        begin, end = machine.pauses[-1]
        machine.pauses[-1] = (begin, min(end, self.now))
        self._ready += machine.held
        machine.held.clear()

    def run(self, until: Callable[[], bool], horizon: int | None = None, most_turns: int = 20_000) -> bool:
        """Let the tasks take turns until something holds, or the horizon is reached; whether it holds."""
        while not until():
            if self.turns > most_turns:
                raise Stuck(f"no end after {most_turns} turns")
            while self._timers and self._timers[0][0] <= self.now:
                heapq.heappop(self._timers)[2]()
            if self._ready:
                self._turn()
                continue
            if not self._timers or (horizon is not None and self._timers[0][0] > horizon):
                if horizon is not None:
                    self.now = max(self.now, horizon)
                return until()
            self.now = max(self.now, self._timers[0][0])
        return True

    def _turn(self) -> None:
        self.turns += 1
        ready = self._ready
        place = self.chance.below("turn", len(ready)) if len(ready) > 1 and self.shuffled else 0
        task = ready.pop(place)
        task.ready = False
        self.current = task
        try:
            task.greenlet.switch()
        finally:
            self.current = None

    def discard(self, machine: Machine) -> None:
        """End what is left of a machine's tasks; nothing of it reaches ledger or world."""
        self.kill(machine)
        for task in machine.tasks:
            for _ in range(_DISCARDS):
                if task.greenlet.dead or not task.greenlet:
                    break
                task.greenlet.throw(Dead())
        machine.tasks.clear()


class _Wake:
    """Wakes a task from one wait and no other."""

    __slots__ = ("number", "scheduler", "task")

    def __init__(self, scheduler: Scheduler, task: Task, number: int) -> None:
        self.scheduler = scheduler
        self.task = task
        self.number = number

    def __call__(self) -> None:
        if self.task.waits == self.number and not self.task.machine.dead:
            self.scheduler.wake(self.task)
