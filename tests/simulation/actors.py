"""The actors of an episode: callers, reconcilers, an operator, one who takes back, one who only checks.

Owns what each does and when, and what the history is told of it. They use an executor as any program does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from simulation.chance import Chance
from simulation.plan import Plan
from simulation.scheduler import Machine, Scheduler, Task
from simulation.tools import KINDS
from simulation.world import Told, World

from counterfoil import Executor, LedgerError, StaleVersion, UsageError, Verdict


@dataclass(frozen=True)
class Host:
    """A machine with its executor."""

    machine: Machine
    executor: Executor


@dataclass
class Actors:
    """What the actors of one episode share."""

    scheduler: Scheduler
    chance: Chance
    plan: Plan
    world: World
    tell: Told
    calls: int = 0

    def here(self) -> Machine:
        """The machine whose turn it is."""
        return self._mine().machine

    def _mine(self) -> Task:
        task = self.scheduler.mine()
        assert task is not None
        return task

    def _rest(self, label: str, most_s: float) -> None:
        if most_s:
            self.scheduler.sleep(self.chance.between(label, 0.001, most_s))

    def caller(self, host: Host, number: int) -> None:
        self._rest("caller begins", self.plan.spread_s)
        for _ in range(self.plan.calls):
            self._call(host, number)
            self._rest("between calls", max(0.5, self.plan.spread_s))

    def _call(self, host: Host, number: int) -> None:
        chance = self.chance
        name = self.plan.kinds[chance.below("kind of call", len(self.plan.kinds))]
        order = f"order-{chance.below('order', self.plan.orders)}"
        arguments: dict[str, Any] = {"order": order, "amount": 5}
        if self.plan.conflicts and chance.happens("conflict", 0.4):
            arguments["amount"] = 6
        if self.plan.rewords and name != "t5" and chance.happens("reword", 0.5):
            arguments["note"] = "please"
        self._ask(host, name, order, lambda: host.executor.call(name, arguments, call_id=f"call-{number}"))

    def _ask(self, host: Host, name: str, order: str, asked: Callable[[], Any]) -> None:
        """Ask for an observation and tell the history what was told."""
        self.calls += 1
        task, number = self._mine(), self.calls
        task.call = number
        self.tell("call", call=number, host=host.machine.name, tool=name, order=order)
        try:
            seen = asked()
        except (KeyboardInterrupt, LedgerError, UsageError) as problem:
            self.tell("raised", call=number, error=type(problem).__name__)
        else:
            self.scheduler.hits[f"told {seen.code}"] += 1
            self.tell("told", call=number, effect=seen.effect_id, tool=name, code=seen.code, verdict=str(seen.verdict),
                      proof=None if seen.proof is None else str(seen.proof), ok=seen.ok,
                      next_action=seen.next_action, text=seen.text)  # fmt: skip
        task.call, task.step = None, ""

    def reconciler(self, host: Host) -> None:
        task = self._mine()
        while True:
            self._rest("reconciler waits", 10.0)
            task.step = "reconcile"
            try:
                host.executor.reconcile()
            except LedgerError:
                self.scheduler.hits["reconcile without ledger"] += 1

    def operator(self, host: Host) -> None:
        """Looks at doubts from time to time, and decides what the truth is; a wrong one sometimes what it is not."""
        task = self._mine()
        for _ in range(4):
            self._rest("operator waits", 12.0)
            task.step = "resolve"
            try:
                for row in host.executor.audit.doubts():
                    self._decide(host, row.id, row.version)
            except LedgerError:
                self.scheduler.hits["operator without ledger"] += 1

    def _decide(self, host: Host, effect: str, version: int) -> None:
        stands, under_way = self.world.stands(effect), self.world.may_still_land(effect)
        right = "effect_applied" if stands else None if under_way else "no_effect"
        wrong = self.plan.wrong_operator and self.chance.happens("wrong word", 0.6)
        word = right if not wrong else "no_effect" if right != "no_effect" else "effect_applied"
        if word is None:
            return
        if wrong:
            self.world.broke(effect, "operator")
        try:
            host.executor.resolve(effect, word, by="Ada", why="asked the provider", version=version)
        except (UsageError, StaleVersion, LedgerError) as problem:
            self.scheduler.hits[f"resolve {type(problem).__name__}"] += 1
        else:
            self.scheduler.hits["resolved"] += 1
            self.tell("resolved", effect=effect, verdict=word, by="Ada")

    def taker_back(self, host: Host) -> None:
        """Revokes doubts and compensates what is applied."""
        for _ in range(3):
            self._rest("taker back waits", self.chance.one_of("taker back's pace", (0.3, 3.0, 9.0)))
            try:
                rows = [row for row in host.executor.audit.effects() if row.undo_kind is None]
            except LedgerError:
                continue
            for row in rows:
                made = KINDS[row.tool].tool
                if row.verdict is Verdict.EFFECT_APPLIED and made.compensation_tool is not None:
                    self._ask(host, made.compensation_tool.name, "", partial(host.executor.compensate, row.id))
                elif row.verdict is not Verdict.EFFECT_APPLIED and made.revoke_tool is not None:
                    self._ask(host, made.revoke_tool.name, "", partial(host.executor.revoke, row.id))

    def checker(self, host: Host) -> None:
        for _ in range(3):
            self._rest("checker waits", 5.0)
            try:
                rows = host.executor.audit.effects(limit=1)
            except LedgerError:
                continue
            for row in rows:
                asked = partial(host.executor.call, "check_effect", {"effect_id": row.id})
                self._ask(host, "check_effect", "", asked)
