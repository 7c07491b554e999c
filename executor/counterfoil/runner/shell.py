"""What both shells share: the steps that only touch the ledger, and what runs around a tool's function or a look.

Owns how an attempt is made ready, called, given up and recorded late. Decides nothing about verdicts: `failure`, the
flow and the ledger do.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from counterfoil.arguments import Invalid
from counterfoil.attempt import Effect, Gate, GateState, running
from counterfoil.changes import Answer, Begin, Change, Declined, SettleClosed, SettleReturned
from counterfoil.effect import (
    Found,
    Lost,
    NeverSent,
    Refused,
    Returned,
    Revoked,
    Row,
)
from counterfoil.errors import LedgerUnavailable
from counterfoil.failure import classify, explicit_chain, is_transport, name_of
from counterfoil.guard import Sign
from counterfoil.runner.door import let_in, let_value
from counterfoil.runner.guarding import Guarding
from counterfoil.runner.job import NO_ROW, bare, interrupt_of, invoke
from counterfoil.runner.signs import sign_of
from counterfoil.runner.worker import Deadline, Running, completed
from counterfoil.settling import settling
from counterfoil.steps import (
    FULL,
    Attempt,
    AttemptEnd,
    Sight,
    Sleep,
    Started,
    Step,
    Write,
)


class Shell(Guarding):
    """What both shells share: the steps that only touch the ledger, and what runs inside a worker's thread."""

    def observe(self, moment: str, step: Step[Any]) -> None:
        """Tell the observer."""
        if self.site.observer is not None:
            name = type(step).__name__
            if isinstance(step, Write):
                name += f":{type(step.change).__name__}"
            self.site.observer(moment, name, self.job.tool.name, self.job.effect_id)

    def start(self, fresh: bool) -> Started:
        """Begin: the host's deadline runs from here, before the ledger is asked."""
        if not self.site.attempts.reserve():
            return Started(Declined(None, FULL))
        deadline = Deadline(self.site.clock, self.job.tool.policy.timeout_s)
        if self.job.begin is None:
            return self._start_reading(deadline)
        started: Started | None = None
        try:
            answer, interrupt = self.whole(self.claim(self.job.begin, fresh))
            started = self.started(answer, deadline, interrupt)
            return started
        finally:
            self.keep_place(started)

    def claim(self, begin: Begin, fresh: bool) -> Begin:
        """The begin under a claim of its own."""
        return replace(begin, claim_id=self.site.ledger.host.fresh(), fresh=fresh)

    def started(self, answer: Answer, deadline: Deadline, interrupt: BaseException | None) -> Started:
        """What a begin comes to."""
        if isinstance(answer, Declined):
            return Started(answer, interrupt=interrupt)
        if not answer.row.open_attempts:
            return Started(Declined(answer.row, "over"), interrupt=interrupt)
        self.admitted = answer.admitted or self.admitted
        return Started(answer, deadline, interrupt)

    def keep_place(self, started: Started | None) -> None:
        """Give back the place of a function that will not run."""
        if started is None or started.interrupt is not None or isinstance(started.answer, Declined):
            self.site.attempts.release()

    def _start_reading(self, deadline: Deadline) -> Started:
        """Begin an attempt of a read-only tool; a place that is not used is given back."""
        started: Started | None = None
        try:
            started = self.start_reading(deadline)
            return started
        finally:
            self.keep_place(started)

    def write(self, change: Change) -> Answer:
        """Write one change. The end of an attempt that cannot be written now is kept and written later."""
        try:
            return self.site.ledger.change(change)
        except LedgerUnavailable:
            self.unwritten(change)
            raise

    def unwritten(self, change: Change) -> None:
        """Keep the end of an attempt that cannot be written now."""
        if isinstance(change, (SettleReturned, SettleClosed)):
            self.site.backlog.add(change)

    def whole(self, change: Change) -> tuple[Answer, BaseException | None]:
        """Write one change even when Ctrl-C or an exit falls into it: asked again, it changes nothing twice."""
        try:
            return self.write(change), None
        except Exception:
            raise
        except BaseException as interrupt:
            # A half-stepped statement in the frames below would keep the database's write lock.
            traceback.clear_frames(interrupt.__traceback__)
            with suppress(LedgerUnavailable):
                return self.write(change), interrupt
            raise

    def sight(self, step: Sight) -> None:
        """Note a call that was answered from the ledger."""
        self.site.see(step.row, step.code, self.job)

    def pause_s(self, step: Sleep) -> float:
        """The seconds to wait: with jitter, a random part of them."""
        return self.site.random.uniform(0, step.seconds) if step.jitter else step.seconds

    # ------------------------------------------------------------ one attempt

    def begun(self, step: Attempt) -> tuple[Running, Effect]:
        """The attempt and its handle, ready to run."""
        row, deadline = step.row, step.deadline

        def late(end: AttemptEnd) -> None:
            if not (one.told_never_sent and isinstance(end.outcome, NeverSent)):
                self.record_late(row, end)

        gate = Gate(deadline.remaining_s)
        effect = self.handle(row, gate)
        one = Running(gate, late, self.site.ledger.host.event())
        if row is not NO_ROW:
            self.site.overruns.watch(one, row, self.job.actor, deadline)
        return one, effect

    def handle(self, row: Row, gate: Gate, connection: sa.Connection | None = None) -> Effect:
        """What the tool's function holds in its hand; `connection` for one in the ledger's own transaction."""
        return Effect(
            id=row.id,
            provider_key=row.provider_key,
            provider_keys=row.provider_keys,
            arguments=lambda: self._told(row),
            context=self.job.context,
            attempt=row.attempts,
            gate=gate,
            connection=connection,
            original=self.original(row),
        )

    def _told(self, row: Row) -> Mapping[str, Any]:
        if row is NO_ROW:
            return self.job.values or {}
        revived = self.job.tool.arguments.revive(row.arguments)
        return {} if isinstance(revived, Invalid) else revived

    def call_values(self, step: Attempt) -> Mapping[str, Any] | NeverSent:
        """The arguments of the function: the present ones, or, for a resend, those that the ledger keeps."""
        if not step.resend:
            assert self.job.values is not None
            return self.job.values
        revived = self.job.tool.arguments.revive(step.row.arguments)
        if isinstance(revived, Invalid):
            return NeverSent("the stored arguments no longer fit the tool", retryable=False)
        return {**(self.job.values or {}), **revived}  # secrets are of the present call

    def before_call(self, step: Attempt, one: Running) -> Mapping[str, Any] | AttemptEnd:
        """The last thing before the function is called, in the thread that calls it."""
        values = self.call_values(step)
        if isinstance(values, NeverSent):
            return AttemptEnd(values)
        if not one.start():
            return AttemptEnd(NeverSent("given up before the start", retryable=False))
        if step.deadline.remaining_s() <= 0:
            return AttemptEnd(NeverSent("the deadline passed before the start", retryable=False))
        return values

    def returned(self, value: Any, effect: Effect, gate: Gate) -> AttemptEnd:
        """The end of a function that returned."""
        untouched = gate.shut()
        if gate.refused and untouched and self.job.tool.sends == "marked":
            # The function swallowed DeadlinePassed and made up a result: nothing has passed the gate.
            return AttemptEnd(NeverSent("the deadline passed before sending", retryable=False))
        kept = let_value(value, self.job, self.site.messages)
        end = AttemptEnd(Returned(None), kept, effect.reference, key_unused=self._key_unused(gate), sign=Sign.ANSWER)
        return self._of_revoke(end, value) if self.job.tool.undo_kind == "revoke" else end

    def _of_revoke(self, end: AttemptEnd, value: Any) -> AttemptEnd:
        """What a revoke returned: acknowledged, or the original that it found instead."""
        match value:
            case Revoked():
                return end
            case Found() as found:
                kept = let_value(found.value, self.job, self.site.messages)
                return replace(end, original=bare(found), original_value=kept)
            case _:  # it may be sent again, so this is a doubt and no harm
                return AttemptEnd(Lost(f"the revoke returned {name_of(type(value))}, not Revoked or Found"))

    def raised(self, problem: BaseException, gate: Gate) -> AttemptEnd:
        """The end of a function that raised."""
        gate.shut()  # first: what is judged as never sent must not be sent by a thread of the function's own
        state = gate.state
        if state is GateState.SENDING and all(one is not gate.left_by for one in explicit_chain(problem)):
            state = GateState.SENT  # the block's error was handled, and this one came later: it proves nothing
        outcome = classify(problem, sends=self.job.tool.sends, rejects=self.job.tool.rejects, gate=state)
        if isinstance(outcome, Refused) and state is GateState.SHUT and self.job.tool.sends == "marked":
            outcome = replace(outcome, status=None)  # refused before the mark: the provider has said nothing to the key
        end = let_in(outcome, problem, self.job, self.site.messages)
        seen = isinstance(outcome, Refused) and outcome.status is not None
        seen |= isinstance(outcome, Lost) and (state is not GateState.SHUT or is_transport(problem))
        unread = self._key_unused(gate)
        sign, interrupt = sign_of(problem, outcome), interrupt_of(problem)
        return replace(end, key_unused=seen and unread, key_unread=unread, sign=sign, interrupt=interrupt)

    def _key_unused(self, gate: Gate) -> bool:
        return self.job.tool.policy.key_policy is not None and not gate.key_read

    def in_thread(self, step: Attempt, one: Running, effect: Effect) -> None:
        """Run the function to its end in a worker's thread."""
        values = self.before_call(step, one)
        if isinstance(values, AttemptEnd):
            one.finish(values)
            return
        try:
            with running(effect):
                result = completed(invoke(self.job.tool, effect, values))
        except BaseException as problem:  # noqa: BLE001 - whatever a tool raises becomes an outcome
            end = self.raised(problem, one.gate)
        else:
            end = self.returned(result, effect, one.gate)
        one.finish(end)

    def given_up(self, step: Attempt, one: Running, interrupt: BaseException | None) -> AttemptEnd:
        """The end of an attempt that its caller no longer waits for. What comes later is recorded when it comes."""
        shut = one.gate.shut()
        state = one.abandon()
        if isinstance(state, AttemptEnd):
            return replace(state, interrupt=interrupt or state.interrupt)
        if not state or (shut and self.job.tool.sends == "marked"):
            one.told_never_sent = True
            return AttemptEnd(NeverSent("given up before sending", retryable=False), interrupt=interrupt)
        if step.row is not NO_ROW:
            self.push(one)
        reason = "cancelled" if interrupt is not None else "no answer by the deadline"
        sign = Sign.FAULT if interrupt is None else Sign.NOTHING
        return AttemptEnd(Lost(reason, overrun=True), sign=sign, interrupt=interrupt)

    def push(self, one: Running) -> None:
        """See that the last possible send moves on now."""
        self.site.overruns.push(one)

    def record_late(self, row: Row, end: AttemptEnd) -> None:
        """Write what an abandoned attempt said at last."""
        if row is NO_ROW or (isinstance(end.outcome, Lost) and not end.key_unused):
            return
        speaks = self.job.tool.policy.speaks_for_key
        with suppress(LedgerUnavailable):  # then it is in the backlog
            self.write(settling(row, end, self.job.actor, speaks_for_key=speaks))
