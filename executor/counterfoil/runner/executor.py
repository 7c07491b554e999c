"""Executor: where tools, ledger and clock meet in a blocking program.

Owns the public verbs. `call` returns an observation for everything that a model or the world can do wrong; it raises
only for the developer (`UsageError`). The other verbs raise `LedgerError` too, and `StaleVersion` where a person
decides on what has changed since.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from counterfoil import looking
from counterfoil.changes import UndoKind
from counterfoil.effect import Incident, Row, Verdict
from counterfoil.errors import LedgerError, LedgerUnavailable
from counterfoil.observe import Observation
from counterfoil.reconcile import CLAIM_S, Reconciled, never, review, sweep, unwritten
from counterfoil.runner.blocking import BlockingShell
from counterfoil.runner.core import Core
from counterfoil.runner.hearing import Called, heard
from counterfoil.runner.incidents import close_incident
from counterfoil.runner.resolve import resolve
from counterfoil.runner.task import BlockingVerbs
from counterfoil.runner.watch import INTERVAL_S, Told

__all__ = ["Executor", "resolve"]


class Executor(BlockingVerbs, Core):
    """Runs tools for a blocking program. Safe to share between threads.

    Example:
        >>> import tempfile, pathlib
        >>> from counterfoil import Executor, tool
        >>> @tool(key=("order",))
        ... def remind(order: str) -> str:
        ...     "Send the customer a reminder for one order. Use it when an order is overdue."
        ...     return "sent"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Executor(f"sqlite:///{pathlib.Path(folder) / 'ledger.db'}", tools=[remind]) as executor:
        ...         first = executor.call("remind", {"order": "A-1"})
        ...         again = executor.call("remind", '{"order": "A-1"}')
        >>> first.code, again.code, again.value
        ('ok', 'replayed', 'sent')
    """

    def call(
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
        """Run one call and say what is known of its effect.

        Args:
            tool: the name of the tool.
            arguments: an object, or JSON text as a model writes it.
            task: the piece of work; the scope of tools that are keyed by all their arguments.
            turn: the round of the model in the task; recorded.
            call_id: the model's id of the call; recorded, never identity.
            context: tokens, sessions: handed to the tool as `effect.context`, never stored.
            key: the caller's own name for the effect, in place of the tool's key.
            occurrence: tells a wanted repeat from the same call made again.

        Raises:
            UsageError: the developer's mistake: no task where one is needed, an empty key.
        """
        with heard(self._site.observer, Called(tool=tool, task=task, turn=turn, call_id=call_id)) as tell:
            prepared = self._prepare(
                tool, arguments, task=task, turn=turn, call_id=call_id, context=context, key=key, occurrence=occurrence
            )
            if isinstance(prepared, Observation):
                return tell(self._site.messages.worded(prepared))
            return tell(self._site.messages.worded(BlockingShell(self._site, prepared.job).run(prepared.flow)))

    def reconcile(self, *, limit: int = 100) -> Reconciled:
        """Look at what is due, settle what can be proven. It never sends. At most `limit` effects are looked at.

        Raises:
            LedgerError: the ledger does not answer.
        """
        return self._reconciled(limit, CLAIM_S, never)

    def watch(
        self,
        *,
        stop: threading.Event | None = None,
        interval_s: float = INTERVAL_S,
        limit: int = 100,
        claim_s: float = CLAIM_S,
        told: Told | None = None,
    ) -> Reconciled:
        """Reconcile round after round until `stop` is set; what all rounds did together. It never sends.

        Any number of processes and hosts may watch one ledger. A ledger that is away is waited for. When `stop` is set,
        the look under way is finished and written, and what was taken and not looked at is given back.

        Args:
            stop: ends the watch; None: it goes on for ever.
            interval_s: between two rounds it sleeps until the next look is due, and at most so many seconds.
            limit: at most so many looks in one round.
            claim_s: for so many seconds other watchers leave alone what this one has taken. If this process dies, they
                take it over after that. Let it be longer than a look takes.
            told: called after each round.

        Raises:
            UsageError: a time that is no finite number of seconds above 0.
        """
        stop = stop or threading.Event()
        watch = self._watch(interval_s, claim_s)
        while not stop.is_set():
            try:
                seen = watch.looked(self._reconciled(limit, claim_s, stop.is_set))
            except LedgerError as problem:
                seen = watch.away(problem)
            if told is not None:
                told(seen)
            self._clock.wait(stop, seen.pause_s)
        return watch.total

    def _reconciled(self, limit: int, claim_s: float, stopped: Callable[[], bool]) -> Reconciled:
        done = Reconciled()
        for row in sweep(self._ledger, self._lookable(), self._tenant, limit, claim_s=claim_s, stopped=stopped):
            try:
                after = BlockingShell(self._site, self._job_for(row)).run(looking.settle_doubt(row)).row
            except LedgerUnavailable:
                unwritten(self._ledger, row)
                after = None
            done = done.with_look(row, after)
        return review(self._ledger, self._tenant, done)

    def close_incident(self, number: int, *, by: str, why: str) -> Incident:
        """Close an incident that a person has seen to. One that is closed stays as it was closed first.

        Args:
            number: the incident's number.
            by: the person's name.
            why: the reason, for the record.

        Raises:
            UsageError: a name or reason is missing; no incident of this tenant has the number.
            LedgerError: the ledger cannot be written to.
        """
        return close_incident(self._ledger, self._tenant, number, by=by, why=why)

    def revoke(self, effect_id: str, *, context: Any = None) -> Observation:
        """Take an unknown effect back with its tool's revoke, and tell what is known of it then.

        Acknowledged: no effect, also for a request that arrives late. Found: applied. Its own end unknown: the effect
        stays unknown and cannot begin; call it again, a revoke may be sent again.

        Raises:
            UsageError: no such effect, or its tool has no revoke.
            LedgerError: the ledger cannot be read.
        """
        return self._undo(effect_id, "revoke", context)

    def compensate(self, effect_id: str, *, context: Any = None) -> Observation:
        """Make up for an applied effect with its tool's compensation; the observation is about the compensation.

        At most once for each effect, by the same rules as any effect. The effect is answered `ended` from then on.

        Raises:
            UsageError: no such effect, or its tool has no compensation.
            LedgerError: the ledger cannot be read.
        """
        return self._undo(effect_id, "compensation", context)

    def _undo(self, effect_id: str, kind: UndoKind, context: Any) -> Observation:
        prepared = self._prepare_undo(effect_id, kind, context)
        with heard(self._site.observer, Called(tool=prepared.job.tool.name, task=prepared.job.task)) as tell:
            return tell(BlockingShell(self._site, prepared.job).run(prepared.flow))

    def rollback(self, task: str, *, context: Any = None) -> dict[str, Observation]:
        """Compensate a task's applied effects, newest first; what came of each, by effect id. It does not stop at one
        that fails: read each.

        Raises:
            UsageError: an empty task.
            LedgerError: the ledger cannot be read.
        """
        return {
            row.id: self._cannot_roll_back(row) or self.compensate(row.id, context=context)
            for row in self._to_roll_back(task)
        }

    def resolve(
        self, effect_id: str, verdict: Verdict | str, *, by: str, why: str, version: int, value: Any = None
    ) -> Row:
        """Write down what a person found out about an unknown effect.

        Args:
            effect_id: the effect's public id, or its beginning.
            verdict: `effect_applied` or `no_effect`.
            by: the person's name.
            why: the reason, for the history.
            version: the version of the effect that the person read.
            value: what the tool would have returned, when it was applied.

        Raises:
            UsageError: a name, reason or verdict is missing; an attempt may still send; the effect is applied already.
            StaleVersion: the effect has changed since that version.
            LedgerError: the ledger cannot be written to.
        """
        return self._resolve(effect_id, verdict, by, why, version, value)

    def close(self) -> None:
        """Write what waits and close the ledger's connections (those of an engine of yours stay open)."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        self.close()
