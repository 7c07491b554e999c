"""The asynchronous shell: carries out the steps in an event loop.

The ledger and blocking tools run in threads, coroutines in the loop. A cancellation that falls into a record write is
held back until the write is complete; nothing begins after it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from counterfoil.attempt import Effect, running
from counterfoil.changes import Answer, Applied, Change, Declined
from counterfoil.effect import MICROSECONDS, Evidence, NeverSent, Row, Unclear
from counterfoil.errors import LedgerUnavailable
from counterfoil.runner.blocking import BlockingShell
from counterfoil.runner.job import Job, Site, as_evidence, invoke, of_failed_look
from counterfoil.runner.shell import Shell
from counterfoil.runner.transactional import transact_async
from counterfoil.runner.worker import Deadline, Running
from counterfoil.steps import (
    FULL,
    Ask,
    Asked,
    Attempt,
    AttemptEnd,
    Flow,
    Read,
    Sight,
    Sleep,
    Start,
    Started,
    Step,
    Tally,
    Transact,
    Weigh,
    Write,
)

T = TypeVar("T")
_log = logging.getLogger("counterfoil")
# Seconds that a cancelled coroutine gets to end; one that swallows its cancellation overruns.
CANCELLED_ENDS_S = 0.2


class AsyncShell(Shell):
    """Carries out the steps in an event loop; ledger and blocking tools run in threads, coroutines in the loop."""

    def __init__(self, site: Site, job: Job, ledger_threads: ThreadPoolExecutor) -> None:
        super().__init__(site, job)
        self._ledger_threads = ledger_threads

    async def run(self, flow: Flow[T]) -> T:
        """Drive a flow to its end."""
        answer: Any = None
        trouble: BaseException | None = None
        while True:
            try:
                step = flow.throw(trouble) if trouble is not None else flow.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            self.observe("before", step)
            answer, trouble = None, None
            try:
                answer = await self.do(step)
            except LedgerUnavailable as problem:
                trouble = problem
            self.observe("after", step)

    async def do(self, step: Step[Any]) -> Any:
        """Carry out one step."""
        match step:
            case Read(key):
                return await self._read(key)
            case Start(fresh):
                return await self._start(fresh)
            case Attempt():
                return await self.attempt(step)
            case Write(change):
                answer, interrupt = await self._changed(change)
                if interrupt is not None:
                    raise interrupt
                return answer
            case Transact():
                return await transact_async(self, step)
            case Ask(row):
                return await self.ask(row)
            case Sleep():
                await self.site.clock.sleep_async(self.pause_s(step))
            case Sight():
                self.sight(step)
            case Weigh():
                await self._whole(lambda: self.weigh(step))
            case Tally():
                return await self._whole(lambda: self.tally(step))
            case _:
                raise AssertionError(f"no such step: {step!r}")
        return None

    async def _read(self, key: bytes) -> Row | None:
        ledger = self.site.ledger
        if not ledger.grouped:
            return await self._whole(lambda: ledger.read(key))
        answer, interrupt = await self._kept(ledger.read_soon(key, asyncio.get_running_loop()))
        if interrupt is not None:
            raise interrupt
        if isinstance(answer, BaseException):
            return await self._whole(lambda: ledger.found(key, answer))
        return answer

    async def _start(self, fresh: bool) -> Started:
        begin = self.job.begin
        if begin is None:
            started, interrupt = await self._shielded(lambda: self.start(fresh))
            if interrupt is not None and isinstance(started.answer, Applied) and started.interrupt is None:
                self.site.attempts.release()  # what was begun will not run
            return replace(started, interrupt=interrupt or started.interrupt)
        if not self.site.attempts.reserve():
            return Started(Declined(None, FULL))
        begun: Started | None = None
        try:
            deadline = Deadline(self.site.clock, self.job.tool.policy.timeout_s)
            answer, interrupt = await self._changed(self.claim(begin, fresh))
            begun = self.started(answer, deadline, interrupt)
            return begun
        finally:
            self.keep_place(begun)

    async def _changed(self, change: Change) -> tuple[Answer, BaseException | None]:
        """Write one change together with others, even when the caller is cancelled meanwhile."""
        ledger = self.site.ledger
        if not ledger.grouped:
            return await self._shielded(lambda: self.write(change))
        interrupt: BaseException | None = None
        try:
            carried, interrupt = await self._kept(ledger.change_soon(change, asyncio.get_running_loop()))
            if isinstance(carried, (Applied, Declined)):
                return carried, interrupt
            answer, later = await self._shielded(lambda: ledger.concluded(change, carried))
        except LedgerUnavailable:
            self.unwritten(change)
            if interrupt is not None:
                raise interrupt from None
            raise
        return answer, interrupt or later

    async def _kept(self, future: asyncio.Future[T]) -> tuple[T, BaseException | None]:
        """Wait for a future to the end even when the caller is cancelled meanwhile; the cancellation comes beside."""
        interrupt: BaseException | None = None
        while not future.done():
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError as cancelled:
                interrupt = cancelled
            except Exception:  # noqa: BLE001 - of the future itself, which is asked for it below
                break
        if interrupt is not None and future.exception() is not None:
            raise interrupt
        return future.result(), interrupt

    async def _shielded(self, work: Callable[[], T]) -> tuple[T, BaseException | None]:
        """Complete `work` in a thread even when the caller is cancelled meanwhile; the cancellation comes beside."""
        return await self._kept(asyncio.get_running_loop().run_in_executor(self._ledger_threads, work))

    async def _whole(self, work: Callable[[], T]) -> T:
        """Complete `work`, then let a cancellation that fell into it through."""
        result, interrupt = await self._shielded(work)
        if interrupt is not None:
            raise interrupt
        return result

    async def attempt(self, step: Attempt) -> AttemptEnd:
        """Run the function and wait for it until the deadline."""
        try:
            one, effect = await self._whole(lambda: self.begun(step)) if step.row.undoes else self.begun(step)
        except RuntimeError:  # nobody could watch it, so the function is not called
            self.site.attempts.release()
            return AttemptEnd(NeverSent("no thread could be started"))
        if not self.job.tool.is_async:
            try:
                self.site.attempts.run(lambda: self.in_thread(step, one, effect))
            except RuntimeError:  # no thread could be started, so the function was not called
                one.finish(AttemptEnd(NeverSent("no thread could be started")))
            return await self._until_deadline(step, one, None)
        loop = asyncio.get_running_loop()
        one.gone = loop.is_closed
        task = loop.create_task(self._in_loop(step, one, effect))

        def closed(_: asyncio.Task[None]) -> None:
            self.site.attempts.release()
            if not one.entered:  # cancelled before its first line: the coroutine never ran
                self._finish(one, AttemptEnd(NeverSent("cancelled before the start", retryable=False)))

        task.add_done_callback(closed)
        return await self._until_deadline(step, one, task)

    async def _until_deadline(self, step: Attempt, one: Running, task: asyncio.Task[None] | None) -> AttemptEnd:
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not ended.done():
                ended.set_result(None)

        one.listen(lambda: _in_loop_soon(loop, wake))
        interrupt: BaseException | None = None
        try:
            await self.site.clock.wait_async(ended, step.deadline.remaining_s())
        except asyncio.CancelledError as cancelled:
            interrupt = cancelled
        if task is not None and not one.done.is_set():
            one.gate.shut()
            task.cancel()
            try:
                await asyncio.wait({ended}, timeout=CANCELLED_ENDS_S)
            except asyncio.CancelledError as cancelled:
                interrupt = cancelled
        return self.given_up(step, one, interrupt)

    async def _in_loop(self, step: Attempt, one: Running, effect: Effect) -> None:
        one.entered = True
        values = self.before_call(step, one)
        if isinstance(values, AttemptEnd):
            self._finish(one, values)
            return
        try:
            with running(effect):
                result = await invoke(self.job.tool, effect, values)
        except BaseException as problem:  # noqa: BLE001 - whatever a tool raises becomes an outcome
            end = self.raised(problem, one.gate)
        else:
            end = self.returned(result, effect, one.gate)
        self._finish(one, end)

    def _finish(self, one: Running, end: AttemptEnd) -> None:
        """End an attempt. What an abandoned one says late is a ledger write, and must not hold up the loop; it is not
        awaited, so that no cancellation can lose it."""
        if not one.finish_if_awaited(end):
            try:
                threading.Thread(target=one.finish, args=(end,), name="counterfoil-late", daemon=True).start()
            except RuntimeError:  # no thread to be had: rather hold up the loop for a write than lose the end
                one.finish(end)

    def push(self, one: Running) -> None:
        """Leave the push to its thread: a write here would hold up every coroutine of the loop."""
        self.site.overruns.wake()

    async def ask(self, row: Row) -> Asked:
        """Ask the postcondition and wait for at most `look_timeout_s`."""
        function = self.job.tool.postcondition_function
        if function is None or not inspect.iscoroutinefunction(function):
            blocking = BlockingShell(self.site, self.job)
            return await asyncio.get_running_loop().run_in_executor(None, blocking.ask, row)
        clock, seconds = self.site.clock, self.job.tool.policy.look_timeout_s
        boot, begun_us = self.site.ledger.boot(), clock.boot_us()
        deadline = Deadline(clock, seconds)
        effect = await self._whole(lambda: self.looking(row, deadline)) if row.undoes else self.looking(row, deadline)
        if isinstance(effect, Unclear):
            return self.asked(row, effect, boot, 0.0)
        task = asyncio.get_running_loop().create_task(_heard(function(effect), effect))
        try:
            await clock.wait_async(task, deadline.remaining_s())
        finally:
            task.cancel()
        late = Unclear(f"the postcondition did not answer within {seconds:g} s")
        evidence = task.result() if task.done() and not task.cancelled() else late
        return self.asked(row, evidence, boot, (clock.boot_us() - begun_us) / MICROSECONDS)


async def _heard(coroutine: Coroutine[Any, Any, Any], effect: Effect) -> Evidence:
    try:
        with running(effect):
            return as_evidence(await coroutine)
    except Exception as problem:  # noqa: BLE001 - a look that fails is unclear
        return of_failed_look(problem)


def _in_loop_soon(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(wake)
    except RuntimeError:  # the loop is closed: its caller is gone, and the end is recorded as a late one
        _log.debug("an attempt ended after its event loop")
