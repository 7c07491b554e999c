"""AsyncExecutor: the verbs of `Executor` for a program with an event loop.

Owns how each verb waits: nothing here blocks the loop. What the verbs mean and raise stands with `Executor`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa

from counterfoil import looking
from counterfoil.changes import UndoKind
from counterfoil.effect import Incident, Row, Verdict
from counterfoil.errors import LedgerError, LedgerUnavailable
from counterfoil.observe import Observation
from counterfoil.reconcile import CLAIM_S, Reconciled, never, review, sweep, unwritten
from counterfoil.runner.asynchronous import AsyncShell
from counterfoil.runner.core import LEDGER_THREADS, Core
from counterfoil.runner.hearing import Called, heard
from counterfoil.runner.incidents import close_incident
from counterfoil.runner.task import AsyncVerbs
from counterfoil.runner.watch import INTERVAL_S, Told
from counterfoil.tool import Tool


class AsyncExecutor(AsyncVerbs, Core):
    """The same verbs for a program with an event loop. Blocking tools and the ledger run in threads."""

    def __init__(self, ledger: str | sa.Engine, tools: Iterable[Tool[Any, Any]] = (), **settings: Any) -> None:
        """See `Executor`."""
        super().__init__(ledger, tools, **settings)
        self._threads = ThreadPoolExecutor(LEDGER_THREADS, thread_name_prefix="counterfoil-ledger")

    async def call(
        self,
        tool: str,
        arguments: str | bytes | Mapping[str, Any],
        *,
        task: str | None = None,
        turn: int | None = None,
        call_id: str | None = None,
        context: Any = None,
        key: str | None = None,
        occurrence: str | int | None = None,
    ) -> Observation:
        """See `Executor.call`. A cancellation is recorded first, then raised; nothing begins after it."""
        loop = asyncio.get_running_loop()
        with heard(self._site.observer, Called(tool=tool, task=task, turn=turn, call_id=call_id)) as tell:
            prepared = await loop.run_in_executor(
                self._threads,
                lambda: self._prepare(
                    tool, arguments, task=task, turn=turn, call_id=call_id, context=context, key=key,
                    occurrence=occurrence,
                ),
            )  # fmt: skip
            if isinstance(prepared, Observation):
                return tell(self._site.messages.worded(prepared))
            shell = AsyncShell(self._site, prepared.job, self._threads)
            return tell(self._site.messages.worded(await shell.run(prepared.flow)))

    async def reconcile(self, *, limit: int = 100) -> Reconciled:
        """See `Executor.reconcile`."""
        return await self._reconciled(limit, CLAIM_S, never)

    async def watch(
        self,
        *,
        stop: asyncio.Event | None = None,
        interval_s: float = INTERVAL_S,
        limit: int = 100,
        claim_s: float = CLAIM_S,
        told: Told | None = None,
    ) -> Reconciled:
        """See `Executor.watch`. A cancellation ends it too; a record that is being written is completed first."""
        loop = asyncio.get_running_loop()
        stop = stop or asyncio.Event()
        watch = self._watch(interval_s, claim_s)
        stopped = loop.create_task(stop.wait())
        try:
            while not stop.is_set():
                try:
                    done = await self._reconciled(limit, claim_s, stop.is_set)
                    seen = await loop.run_in_executor(self._threads, watch.looked, done)
                except LedgerError as problem:
                    seen = watch.away(problem)
                if told is not None:
                    told(seen)
                await self._clock.wait_async(stopped, seen.pause_s)
        finally:
            stopped.cancel()
        return watch.total

    async def _reconciled(self, limit: int, claim_s: float, stopped: Callable[[], bool]) -> Reconciled:
        loop = asyncio.get_running_loop()
        done = Reconciled()
        due = sweep(self._ledger, self._lookable(), self._tenant, limit, claim_s=claim_s, stopped=stopped)
        while (row := await loop.run_in_executor(self._threads, next, due, None)) is not None:
            shell = AsyncShell(self._site, self._job_for(row), self._threads)
            try:
                after = (await shell.run(looking.settle_doubt(row))).row
            except LedgerUnavailable:
                await loop.run_in_executor(self._threads, unwritten, self._ledger, row)
                after = None
            done = done.with_look(row, after)
        return await loop.run_in_executor(self._threads, review, self._ledger, self._tenant, done)

    async def close_incident(self, number: int, *, by: str, why: str) -> Incident:
        """See `Executor.close_incident`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads, lambda: close_incident(self._ledger, self._tenant, number, by=by, why=why)
        )

    async def revoke(self, effect_id: str, *, context: Any = None) -> Observation:
        """See `Executor.revoke`."""
        return await self._undo(effect_id, "revoke", context)

    async def compensate(self, effect_id: str, *, context: Any = None) -> Observation:
        """See `Executor.compensate`."""
        return await self._undo(effect_id, "compensation", context)

    async def rollback(self, task: str, *, context: Any = None) -> dict[str, Observation]:
        """See `Executor.rollback`."""
        rows = await asyncio.get_running_loop().run_in_executor(self._threads, self._to_roll_back, task)
        return {row.id: self._cannot_roll_back(row) or await self.compensate(row.id, context=context) for row in rows}

    async def _undo(self, effect_id: str, kind: UndoKind, context: Any) -> Observation:
        loop = asyncio.get_running_loop()
        prepared = await loop.run_in_executor(self._threads, self._prepare_undo, effect_id, kind, context)
        with heard(self._site.observer, Called(tool=prepared.job.tool.name, task=prepared.job.task)) as tell:
            return tell(await AsyncShell(self._site, prepared.job, self._threads).run(prepared.flow))

    async def resolve(
        self, effect_id: str, verdict: Verdict | str, *, by: str, why: str, version: int, value: Any = None
    ) -> Row:
        """See `Executor.resolve`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._resolve, effect_id, verdict, by, why, version, value)

    async def close(self) -> None:
        """See `Executor.close`."""
        await asyncio.get_running_loop().run_in_executor(None, self._close)
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        await self.close()
