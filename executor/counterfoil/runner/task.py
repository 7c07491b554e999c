"""One task of an agent: its calls, turn by turn, against one budget; and how a person pauses a tool.

Owns the verbs that both executors have for that. What a task has used up stands in the ledger; here is only its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from counterfoil.effect import Incident
from counterfoil.errors import UsageError
from counterfoil.guard import Account, Budget
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.ledger import Ledger
from counterfoil.observe import Observation
from counterfoil.runner.guarding import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.runner.async_executor import AsyncExecutor
    from counterfoil.runner.executor import Executor

T = TypeVar("T")


class _Task:
    """What both have: the name, the budget, the turn."""

    def __init__(self, core: GuardVerbs, name: str, budget: Budget | None) -> None:
        if not name:
            raise UsageError("a task has a name: what the agent works on, for example task('trip-42')")
        if budget is not None and not isinstance(budget, Budget):
            raise UsageError("budget= takes a Budget, for example Budget(calls_per_task=100)")
        self._core = core
        self.name = name
        self.budget = budget
        self.turn = 1

    def next_turn(self) -> int:
        """Begin the next round of the model; its number. What is counted by turn is counted anew."""
        self.turn += 1
        return self.turn

    def _declared(self) -> Account:
        account = self._core._ledger.guards.declare(self._core._limits.tenant, self.name, self.budget)
        self.turn += (account.turn or 1) - 1  # the turns begun here come after those that the ledger knows
        return account

    def _spent(self) -> dict[str, int]:
        return dict(self._core._ledger.guards.account(self._core._limits.tenant, self.name).spent)

    def _incidents(self) -> list[Incident]:
        return self._core.audit.incidents(task=self.name)


class Task(_Task):
    """One task: made by `executor.task(name, budget=…)`. A task that is taken up again goes on in its latest turn.

    Attributes:
        name: what the agent works on.
        budget: what was given here; None: the one that the task has, or none.
        turn: the present round of the model.

    Example:
        >>> import tempfile, pathlib
        >>> from counterfoil import Budget, Executor, tool
        >>> @tool(key=("order",), cost=lambda a: ("eur", a["cents"]))
        ... def charge(order: str, cents: int) -> str:
        ...     "Charge the card once for one order. Use it when the customer has confirmed the total."
        ...     return "charged"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Executor(f"sqlite:///{pathlib.Path(folder) / 'ledger.db'}", tools=[charge]) as executor:
        ...         task = executor.task("trip-42", budget=Budget(spend={"eur": 5000}))
        ...         first = task.call("charge", {"order": "A-1", "cents": 3000})
        ...         other = task.call("charge", {"order": "A-2", "cents": 3000})
        ...         spent = task.spent
        >>> first.code, other.code, spent
        ('ok', 'budget_exhausted', {'eur': 3000})
    """

    def __init__(self, executor: Executor, name: str, budget: Budget | None) -> None:
        super().__init__(executor, name, budget)
        self._executor = executor
        self._declared()

    def call(self, tool: str, arguments: str | bytes | Mapping[str, Any], **more: Any) -> Observation:
        """Call a tool in this task and turn; `more` as for `Executor.call`."""
        return self._executor.call(tool, arguments, task=self.name, turn=self.turn, **more)

    def rollback(self, *, context: Any = None) -> dict[str, Observation]:
        """Compensate what was applied in this task, newest first: see `Executor.rollback`."""
        return self._executor.rollback(self.name, context=context)

    @property
    def spent(self) -> dict[str, int]:
        """What is surely spent, by unit, in minor units. What is reserved or in doubt is not in it."""
        return self._spent()

    @property
    def incidents(self) -> list[Incident]:
        """The open incidents of this task, newest first."""
        return self._incidents()


class AsyncTask(_Task):
    """The same for a program with an event loop: `await task.call(…)`, `await task.spent`. What the ledger knows of the
    task is read at its first call: until then `turn` counts from 1."""

    def __init__(self, executor: AsyncExecutor, name: str, budget: Budget | None) -> None:
        super().__init__(executor, name, budget)
        self._executor = executor
        self._is_declared = False
        self._declaring = asyncio.Lock()

    async def call(self, tool: str, arguments: str | bytes | Mapping[str, Any], **more: Any) -> Observation:
        """See `Task.call`.

        Raises:
            UsageError: the task has another budget already.
        """
        async with self._declaring:  # calls at once declare it once
            if not self._is_declared:
                await self._asked(self._declared)
                self._is_declared = True
        return await self._executor.call(tool, arguments, task=self.name, turn=self.turn, **more)

    async def rollback(self, *, context: Any = None) -> dict[str, Observation]:
        """See `Task.rollback`."""
        return await self._executor.rollback(self.name, context=context)

    @property
    def spent(self) -> Coroutine[Any, Any, dict[str, int]]:
        """See `Task.spent`."""
        return self._asked(self._spent)

    @property
    def incidents(self) -> Coroutine[Any, Any, list[Incident]]:
        """See `Task.incidents`."""
        return self._asked(self._incidents)

    async def _asked(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor._threads, question)


class GuardVerbs:
    """What an executor can be asked about its guards, whatever its kind."""

    _ledger: Ledger
    _limits: Limits
    audit: Audit

    def _paused(self, tool: str, by: str, why: str) -> None:
        pause(self._ledger, tool, self._limits.tenant, by=by, why=why)

    def _resumed(self, tool: str) -> bool:
        return self._ledger.guards.resume(tool, self._limits.tenant)


class BlockingVerbs(GuardVerbs):
    """The verbs of `Executor`."""

    def task(self: Any, name: str, *, budget: Budget | None = None) -> Task:
        """One task, and what it may use up, on whatever host it runs.

        Raises:
            UsageError: no name; the task has another budget already.
            LedgerError: the ledger does not answer.
        """
        return Task(self, name, budget)

    def pause(self, tool: str, *, by: str, why: str) -> None:
        """Let nothing begin with a tool, on any host, until it is resumed; looks go on, and what is done is told.

        Raises:
            UsageError: a name or reason is missing.
            LedgerError: the ledger cannot be written to.
        """
        self._paused(tool, by, why)

    def resume(self, tool: str) -> bool:
        """Let attempts begin again; False when the tool was not paused for this tenant.

        Raises:
            LedgerError: the ledger cannot be written to.
        """
        return self._resumed(tool)


class AsyncVerbs(GuardVerbs):
    """The verbs of `AsyncExecutor`."""

    _threads: ThreadPoolExecutor

    def task(self: Any, name: str, *, budget: Budget | None = None) -> AsyncTask:
        """See `Executor.task`. Its budget is written at its first call."""
        return AsyncTask(self, name, budget)

    async def pause(self, tool: str, *, by: str, why: str) -> None:
        """See `Executor.pause`."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, lambda: self._paused(tool, by, why))

    async def resume(self, tool: str) -> bool:
        """See `Executor.resume`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._resumed, tool)


def pause(ledger: Ledger, tool: str, tenant: str, *, by: str, why: str) -> None:
    """Pause a tool in the ledger. Raises as `Executor.pause` does."""
    if not tool.strip() or not by.strip() or not why.strip():
        raise UsageError("a tool is paused by a named person with a reason: give by= and why=")
    ledger.guards.pause(tool, tenant, by=by.strip(), why=why.strip())
