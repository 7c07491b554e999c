"""An attempt in one transaction with the ledger: how it is carried out in a thread, and how its caller waits for it.

Owns the moment at which it is decided whether such an attempt commits: either its thread comes to COMMIT before the
deadline, or its caller gives it up before that, never both. Decides nothing about verdicts.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from counterfoil.attempt import Gate, GateState, running
from counterfoil.changes import Applied, Begin, Declined, Reading, SettleClosed, SettleReturned
from counterfoil.effect import Lost, NeverSent, Proof, Refused, Returned, Row, Verdict
from counterfoil.errors import LedgerUnavailable, UsageError
from counterfoil.failure import classify, name_of
from counterfoil.ledger.guarding import GuardRefuses
from counterfoil.ledger.joint import Joint, Undone
from counterfoil.ledger.transaction import PATIENCE_S, Busy
from counterfoil.runner.door import let_in, let_value
from counterfoil.runner.worker import Deadline, completed
from counterfoil.settling import settling
from counterfoil.steps import BUSY, FULL, AttemptEnd, Transact, Transacted
from counterfoil.transition import new_row

if TYPE_CHECKING:
    from counterfoil.runner.shell import Shell

_log = logging.getLogger("counterfoil")
# Seconds that a caller waits for a COMMIT under way, and for the question after one whose reply was lost.
COMMIT_S: Final = 2 * PATIENCE_S


def transact(shell: Shell, step: Transact) -> Transacted:
    """Carry out the step in a worker, and wait for it in the caller's thread.

    Raises:
        LedgerUnavailable: nothing was begun (`certain=True`), or it is not known whether it was committed.
    """
    one = _Joined(shell, step)
    if not shell.site.attempts.reserve():
        return _FULL
    interrupt: BaseException | None = None
    try:
        shell.site.attempts.run(one.run)
        shell.site.clock.wait(one.done, one.most_s)
    except RuntimeError:  # no thread could be started
        return _FULL
    except BaseException as problem:  # noqa: BLE001 - raised again by the flow
        interrupt = problem
    if not one.give_up():
        one.done.wait(COMMIT_S)
    return one.told(interrupt)


async def transact_async(shell: Shell, step: Transact) -> Transacted:
    """Carry out the step in a worker, and wait for it in the event loop. Raises as `transact`."""
    one = _Joined(shell, step)
    if not shell.site.attempts.reserve():
        return _FULL
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ended.done():
            ended.set_result(None)

    one.wake = lambda: loop.call_soon_threadsafe(wake)
    try:
        shell.site.attempts.run(one.run)
    except RuntimeError:
        return _FULL
    interrupt: BaseException | None = None
    try:
        await shell.site.clock.wait_async(ended, one.most_s)
    except asyncio.CancelledError as cancelled:
        interrupt = cancelled
    if not one.give_up():
        waiting = loop.time() + COMMIT_S
        while not one.done.is_set() and loop.time() < waiting:
            try:
                await asyncio.wait({ended}, timeout=waiting - loop.time())
            except asyncio.CancelledError as cancelled:
                interrupt = cancelled
    return one.told(interrupt)


_FULL: Final = Transacted(Declined(None, FULL))


class _Joined:
    """One attempt, as its thread and its caller share it."""

    def __init__(self, shell: Shell, step: Transact) -> None:
        assert shell.job.begin is not None
        self.done = shell.site.ledger.host.event()
        self.wake: Callable[[], object] | None = None
        self._shell = shell
        self._row = step.row
        self._wait_s = max(0.0, step.wait_s)
        self._timeout_s = shell.job.tool.policy.timeout_s
        claim_id = shell.site.ledger.host.fresh()
        self._begin: Begin = replace(shell.job.begin, claim_id=claim_id, fresh=step.row is None)
        self._deadline = Deadline(shell.site.clock, self.most_s)
        self._gate = Gate(lambda: self._deadline.remaining_s())
        self._lock = threading.Lock()
        self._given_up = False
        self._commits = False
        self._result: Transacted | LedgerUnavailable | None = None

    @property
    def most_s(self) -> float:
        """The longest that a caller waits: for the key, then for the function."""
        return self._wait_s + self._timeout_s

    # ------------------------------------------------------------ the caller

    def give_up(self) -> bool:
        """Stop waiting: True when from here on it cannot commit; False when it has ended or is at its COMMIT."""
        with self._lock:
            if self._result is not None or self._commits:
                return False
            self._given_up = True
        self._gate.shut()
        return True

    def told(self, interrupt: BaseException | None) -> Transacted:
        """What the caller hears. Raises as `transact`."""
        with self._lock:
            result = self._result
        if self._given_up:
            reason = "cancelled" if interrupt is not None else "no end by the deadline"
            return Transacted(Applied(self._closed()), AttemptEnd(NeverSent(reason, retryable=False)), interrupt)
        if isinstance(result, Transacted):
            return replace(result, interrupt=interrupt or result.interrupt)
        if interrupt is not None:
            raise interrupt
        raise result or LedgerUnavailable("the reply to COMMIT was lost", certain=False)

    def _presumed(self) -> Row:
        """The row as it stands in the transaction that is under way."""
        ledger = self._shell.site.ledger
        return new_row(self._begin, "", Reading(ledger.clock.wall_us(), ledger.margin_us))

    def _closed(self) -> Row:
        """The row as it is going to be recorded, by the thread that still holds the key."""
        row = self._presumed()
        attempts = 1 + (0 if self._row is None else self._row.attempts)
        return replace(
            row, verdict=Verdict.NO_EFFECT, proof=Proof.SAME_TRANSACTION, code="unavailable", attempts=attempts
        )

    # ------------------------------------------------------------ the thread

    def run(self) -> None:
        """Carry it out, in a worker's thread."""
        result: Transacted | LedgerUnavailable
        try:
            result = self._carried_out()
        except LedgerUnavailable as problem:
            result = problem
        except BaseException as problem:  # noqa: BLE001 - a caller is waiting: it must hear something
            _log.exception("an attempt in one transaction broke off: %s", name_of(type(problem)), exc_info=False)
            result = LedgerUnavailable("an attempt in one transaction broke off", certain=False)
        with self._lock:
            self._result = result
        self.done.set()
        if self.wake is not None:
            try:
                self.wake()
            except RuntimeError:  # the loop is closed: its caller is gone, and the ledger knows the end
                _log.debug("an attempt ended after its event loop")

    def _carried_out(self) -> Transacted:
        try:
            joint = self._shell.site.ledger.joint(self._begin, wait_s=self._wait_s, timeout_s=self._timeout_s)
        except Busy:
            return Transacted(Declined(self._presumed(), BUSY))
        except UsageError as mistake:  # two budgets for one task: the developer hears of it
            return Transacted(Declined(None, "mistake"), interrupt=mistake)
        except GuardRefuses as refused:
            return Transacted(self._shell.site.ledger.refused(self._begin, refused.blocked))
        try:
            if isinstance(joint.answer, Declined):
                return Transacted(joint.answer)
            row = joint.answer.row
            self._shell.admitted = joint.answer.admitted
            end, interrupt = self._function_ended(joint, row)
            undone = Undone("the function did not return")
            if isinstance(end.outcome, Returned):
                settle = settling(row, end, self._begin.holder)
                assert isinstance(settle, SettleReturned)
                committed = joint.commit(replace(settle, proof=Proof.SAME_TRANSACTION), self._may_commit)
                if isinstance(committed, Row):
                    return Transacted(Applied(committed), end)
                undone = committed
        finally:
            joint.close()
        return self._undone(row, end, undone, interrupt)

    def _function_ended(self, joint: Joint, row: Row) -> tuple[AttemptEnd, BaseException | None]:
        """Call the function, with what it writes in the transaction; how it ended, and what must be raised."""
        job = self._shell.job
        with self._lock:
            if self._given_up:
                return AttemptEnd(NeverSent("given up before the start", retryable=False)), None
            self._deadline = Deadline(self._shell.site.clock, self._timeout_s)
        effect = self._shell.handle(row, self._gate, joint.connection)
        joint.lend()
        interrupt: BaseException | None = None
        try:
            with running(effect):
                assert job.values is not None
                value = completed(job.tool.function(effect, **job.values))
        except BaseException as problem:  # noqa: BLE001 - whatever a tool raises becomes an outcome
            end = let_in(self._outcome(problem), problem, job, self._shell.site.messages)
            if not isinstance(problem, (Exception, asyncio.CancelledError)):
                interrupt = problem
        else:
            end = AttemptEnd(Returned(None), let_value(value, job, self._shell.site.messages), effect.reference)
        joint.withdraw()
        self._gate.shut()
        if joint.misused is not None:
            end = AttemptEnd(NeverSent("the function tried to end the transaction", retryable=False))
            interrupt = interrupt or joint.misused
        return end, interrupt

    def _outcome(self, problem: BaseException) -> Refused | NeverSent:
        """A refusal keeps its words. Anything else had no effect either: the transaction is rolled back."""
        outcome = classify(problem, sends="anywhere", rejects=self._shell.job.tool.rejects, gate=GateState.UNTOUCHED)
        if isinstance(outcome, Lost):
            outcome = classify(problem, sends="marked", rejects=(), gate=GateState.UNTOUCHED)
        assert not isinstance(outcome, Lost)
        return outcome

    def _may_commit(self) -> bool:
        """The last thing before COMMIT: whoever is first, the deadline, the caller's patience or this."""
        with self._lock:
            self._commits = not self._given_up and self._deadline.remaining_s() > 0
            return self._commits

    def _undone(self, row: Row, end: AttemptEnd, undone: Undone, interrupt: BaseException | None) -> Transacted:
        """The transaction is rolled back, or its COMMIT was not heard of: ask, and write down what is so."""
        closed = end
        if isinstance(end.outcome, Returned):
            closed = AttemptEnd(NeverSent(undone.reason, retryable=undone.retryable))
        closing = settling(row, closed, self._begin.holder)
        assert isinstance(closing, SettleClosed)
        if closing.proof is Proof.NEVER_SENT:
            closing = replace(closing, proof=Proof.SAME_TRANSACTION)
        try:
            answer = self._shell.site.ledger.undone(self._begin, closing)
        except LedgerUnavailable as problem:
            if interrupt is not None:
                return Transacted(Declined(None, "unrecorded"), closed, interrupt)
            raise LedgerUnavailable(str(problem), certain=not undone.in_doubt) from None
        now = answer.row
        if now is not None and now.claim_id == self._begin.claim_id:
            if now.verdict is Verdict.EFFECT_APPLIED:  # COMMIT had counted
                return Transacted(Applied(now), end, interrupt)
            closed = AttemptEnd(Lost("the function ended the transaction by itself"))
        return Transacted(answer, closed, interrupt)
