"""What both executors share: the ledger, the tools, and how a call is made ready.

Owns everything but the waiting. A call is validated and named here; what follows is the flow's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import sqlalchemy as sa

from counterfoil import flow, looking, undoing
from counterfoil.arguments import Invalid, Valid
from counterfoil.changes import Undoes, UndoKind
from counterfoil.clock import Clock, SystemClock
from counterfoil.effect import Row, Verdict
from counterfoil.errors import LedgerError, UsageError
from counterfoil.guard import Budget, LoopGuard
from counterfoil.host import Host, SystemHost
from counterfoil.identity import NotCanonical, identify
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.cipher import CipherKeys
from counterfoil.ledger.connect import close_engine, open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.rows import CODE_MAX
from counterfoil.observe import Observation, Words, about
from counterfoil.runner.backlog import Backlog
from counterfoil.runner.behind import Sightings
from counterfoil.runner.check import CHECK_EFFECT, CHECK_SCHEMA, UNREGISTERED, called, wanted_id
from counterfoil.runner.guarding import Limits, Mode, asks_of, asks_of_undo, counted, with_twin
from counterfoil.runner.incidents import OnIncident, listener
from counterfoil.runner.job import NO_ROW, Job, Observer, Site
from counterfoil.runner.messages import Messages
from counterfoil.runner.naming import NOT_NAMED, Names, Secrets, agree
from counterfoil.runner.overrun import Overruns
from counterfoil.runner.requests import begin_of, request_of
from counterfoil.runner.resolve import decided, resolve
from counterfoil.runner.settings import by_name, check_settings, check_turn, with_undos
from counterfoil.runner.watch import Watch
from counterfoil.runner.worker import Workers
from counterfoil.steps import Flow
from counterfoil.telling import RETRY_SOON_S, no_compensation, refused_arguments, under_way
from counterfoil.text import storable
from counterfoil.tool import ALL_ARGUMENTS, AllArguments, Tool

LEDGER_THREADS = 16
ROLLBACK_MAX = 10_000
CALL_ID_MAX = 500


class _Prepared:
    """A call that may run: who does it, and its flow."""

    __slots__ = ("flow", "job")

    def __init__(self, job: Job, one: Flow[Observation]) -> None:
        self.job = job
        self.flow = one


class Core(Names):
    """What both executors share: everything but the waiting."""

    def __init__(
        self,
        ledger: str | sa.Engine,
        tools: Iterable[Tool[Any, Any]] = (),
        *,
        tenant: str = "",
        secret: bytes | Sequence[bytes] | None = None,
        cipher_key: bytes | Sequence[bytes] | None = None,
        clock: Clock | None = None,
        clock_margin_s: float = 2.0,
        observer: Observer | None = None,
        on_incident: OnIncident | None = None,
        attempts_max: int = 64,
        messages: Messages | None = None,
        random: Random | None = None,
        budget: Budget | None = None,
        loop_guard: LoopGuard | None = LoopGuard(),  # noqa: B008 - frozen
        mode: Mode = "enforce",
        host: Host | None = None,
    ) -> None:
        """Open a ledger and register tools.

        Args:
            ledger: `sqlite:///FILE` (created on first use), `postgresql+psycopg://…`, or an engine of either.
            tools: the tools that this executor may run; names must differ.
            tenant: whose effects these are; part of every key.
            secret: for tools that take secret arguments: keys the HMAC that stands for them in the effect's identity.
                Several while one is exchanged for another (see `switch_secret`), the newest first.
            cipher_key: 32 random bytes that encrypt what is kept of calls; several while one is exchanged.
            clock: a settable clock for tests; the ledger then takes its time from it too.
            clock_margin_s: seconds by which the clocks of hosts and ledger may differ.
            observer: told of each step before and after it.
            on_incident: told of each incident that this executor raises, after it is written, in the thread that wrote
                it. What it raises is logged. A crash may lose a telling; `audit.incidents()` has them all.
            attempts_max: how many tool functions may run at once here, overrun ones included.
            messages: how long what a model is told may be, and which secrets of the program never stand in it.
            random, host: the source of jitter; how work is started in the background, and waits. For tests.
            budget: what each task may use up that has no budget of its own; then every call names its task.
            loop_guard: when a call that goes on failing in a turn of a task is no longer tried; None: it always is.
            mode: "observe": the guards only count, and note what they would have refused. A pause holds all the same.

        Raises:
            UsageError: two tools of one name, secret arguments without `secret`, a URL that is none; the ledger
                wants a tenant, a secret or a cipher key that was not given.
            LedgerError: the ledger is missing, unreachable, of another schema version, or not durable.
        """
        check_settings(tenant, clock_margin_s, attempts_max)
        self._secrets, self._cipher_keys = Secrets.given(secret), CipherKeys.given(cipher_key)
        self._tools = by_name(tools, self._secrets.newest is not None)
        self._known = with_undos(self._tools)
        self._tenant, self._process = tenant, os.getpid()
        self._clock, host = clock or SystemClock(), host or SystemHost()
        holder, told = host.name(), listener(on_incident)
        self._limits = Limits(tenant, holder, budget, loop_guard, mode)
        self._owns_engine = isinstance(ledger, str)
        self._engine = open_engine(ledger)  # after all checks: what is open would be left behind by a refusal
        self._ledger = Ledger(
            self._engine, clock=self._clock, clock_margin_s=clock_margin_s, on_incident=told, host=host,
            cipher_keys=self._cipher_keys,
        )  # fmt: skip
        self._agree()
        self._sightings = Sightings(self._ledger)
        self._site = Site(
            ledger=self._ledger,
            clock=self._clock,
            holder=holder,
            attempts=Workers("counterfoil-attempt", attempts_max, host),
            looks=Workers("counterfoil-look", attempts_max, host),
            overruns=Overruns(self._ledger, self._clock),
            backlog=Backlog(self._ledger),
            observer=observer,
            random=random or Random(),  # noqa: S311 - jitter, no secret
            messages=messages or Messages(),
            see=self._see,
        )
        self.audit = Audit(self._ledger, tenant=tenant)

    def schemas(self) -> list[dict[str, Any]]:
        """The JSON schemas of all tools for a model, `check_effect` among them: name, description, parameters."""
        return [one.schema() for one in self._tools.values()] + [CHECK_SCHEMA]

    @property
    def tools(self) -> Mapping[str, Tool[Any, Any]]:
        """The registered tools by name."""
        return dict(self._tools)

    def trust_keys(self, tool: str) -> None:
        """Allow resending under the provider key again, after a tool that was seen not to use its key was mended.

        Raises:
            UsageError: no such tool.
            LedgerError: the ledger cannot be written to.
        """
        if tool not in self._tools:
            raise UsageError(f"no tool is named {tool!r} here")
        self._ledger.trust_keys(tool, self._tenant)

    def _agree(self) -> None:
        try:
            agree(self._ledger, self._tools.values(), self._tenant, self._secrets, self._cipher_keys)
        except Exception:
            if self._owns_engine:
                close_engine(self._engine)
            raise

    def _close(self) -> None:
        self._site.overruns.close()
        self._site.backlog.close()
        self._sightings.close()
        self._ledger.close()
        if self._owns_engine:
            close_engine(self._engine)

    # ------------------------------------------------------------ making a call ready

    def _prepare(
        self,
        name: str,
        arguments: str | bytes | Mapping[str, Any],
        *,
        task: str | None,
        turn: int | None,
        call_id: str | None,
        context: Any,
        key: str | None,
        occurrence: str | int | None,
    ) -> _Prepared | Observation:
        if os.getpid() != self._process:
            raise UsageError("threads and connections do not cross a fork: make a new executor in the child process")
        check_turn(turn)
        if name == CHECK_EFFECT:
            asked = self._prepare_check(arguments, context, task or "", turn)
            if not isinstance(asked, Observation) or asked.code not in ("not_found", "invalid_arguments"):
                return asked
            echo = json.dumps({"effect_id": wanted_id(arguments)})
            return counted(self._ledger, self._limits, asked, None, CHECK_EFFECT, echo, task, turn)
        tool = self._tools.get(name)
        if tool is None:
            known = [*self._tools, CHECK_EFFECT]
            seen = about(None, Words(tool=called(name), code="unknown_tool", known=known))
            return counted(self._ledger, self._limits, seen, None, called(name), "{}", task, turn)
        self._limits.needs_task(task)
        valid = tool.arguments.validate(arguments, secret=self._secrets.newest)
        if isinstance(valid, Invalid):
            seen = refused_arguments(name, [(one.field, one.problem) for one in valid.problems], valid.echo)
            return counted(self._ledger, self._limits, seen, tool, name, valid.echo, task, turn)
        again = occurrence if occurrence not in (None, "") else valid.occurrence
        job = Job(
            tool=tool, effect_id="", actor=self._site.holder, values=valid.values, context=context, task=task or "",
            turn=turn, call_id=call_id,
        )  # fmt: skip
        job = replace(job, asks=asks_of(job, self._limits, valid, f"{key or ''} {again or ''}".strip()))
        if tool.read_only:
            one = looking.read_only(request_of(tool, None, holder=job.actor, echo=valid.echo))
            return _Prepared(job, self._limits.tallied(job, one))
        return self._named(job, arguments, valid, key, again)

    def _named(
        self, job: Job, raw: Any, valid: Valid, key: str | None, again: str | int | None
    ) -> _Prepared | Observation:
        """A call whose effect has its name."""
        tool, name = job.tool, job.tool.name
        if isinstance(tool.key, AllArguments) and key is None and not job.task:
            raise UsageError(f"{name} is keyed by all its arguments within a task: give call(..., task=...) or key=...")
        try:
            identity, named_by = self._identity(job, raw, valid, {"explicit_key": key, "occurrence": again})
        except LedgerError:
            words = Words(tool=name, code="ledger_unavailable", reason=NOT_NAMED, retry_after_s=RETRY_SOON_S)
            return about(None, words, verdict=Verdict.EFFECT_UNKNOWN)
        except NotCanonical as problem:
            seen = refused_arguments(name, [(problem.path, problem.problem)], valid.echo)
            return counted(self._ledger, self._limits, seen, tool, name, valid.echo, job.task, job.turn)
        begin = begin_of(
            job,
            identity,
            tenant=self._tenant,
            kept=valid.stored,
            echo=valid.echo,
            occurrence=again,
            asks=with_twin(job, again),
        )
        begin = replace(begin, named_by=named_by)
        ready = replace(job, begin=begin, effect_id=identity.id)
        one = flow.call(request_of(tool, identity, holder=job.actor, echo=valid.echo))
        return _Prepared(ready, self._limits.tallied(ready, one))

    def _prepare_check(self, arguments: Any, context: Any, task: str, turn: int | None) -> _Prepared | Observation:
        wanted = wanted_id(arguments)
        if wanted is None:
            problem = (("effect_id", "must be the effect_id that an earlier answer named, and nothing else"),)
            return about(None, Words(tool=CHECK_EFFECT, code="invalid_arguments", details=problem))
        try:
            row = self._effect(wanted)
            joint = [one.name for one in self._tools.values() if one.same_transaction]
            if row is None and joint:  # it may stand in a transaction that is open, where no reading sees it
                if self._ledger.is_under_way(wanted):
                    return under_way(joint[0] if len(joint) == 1 else "the tool", replace(NO_ROW, id=wanted))
                row = self._effect(wanted)
        except LedgerError:
            words = Words(tool=CHECK_EFFECT, code="ledger_unavailable", retry_after_s=RETRY_SOON_S)
            return about(None, words, verdict=Verdict.EFFECT_UNKNOWN)
        if row is None:
            words = Words(
                tool=CHECK_EFFECT, code="not_found", field="effect_id", reason="No effect has this effect_id."
            )
            return about(None, words)
        tool = self._known.get(row.tool)
        looks = tool is not None and tool.postcondition_function is not None
        holder = self._site.holder
        job = Job(tool=tool or UNREGISTERED, effect_id=row.id, actor=holder, context=context, task=task, turn=turn)
        return _Prepared(*self._limits.checked(job, row, looks=looks))

    def _effect(self, effect_id: str) -> Row | None:
        try:
            row = self.audit.effect(effect_id)
        except UsageError:
            return None
        return row if row.id == effect_id else None

    def _prepare_undo(self, effect_id: str, kind: UndoKind, context: Any) -> _Prepared:
        row = self.audit.effect(effect_id)
        tool = self._tools.get(row.tool)
        undo = None if tool is None else tool.revoke_tool if kind == "revoke" else tool.compensation_tool
        if undo is None:
            raise UsageError(f"{row.tool} has no {kind} here: declare one with @{row.tool}.{kind}()")
        identity = identify(
            tenant=self._tenant,
            tool=undo.name,
            task="",
            names=ALL_ARGUMENTS,
            identity_arguments={},
            # A revoke names the attempts made so far: after a later one it is another revoke (protocol F7).
            explicit_key=f"{row.id}:{row.attempts}" if kind == "revoke" else row.id,
        )
        job = Job(tool=undo, effect_id=identity.id, actor=self._site.holder, values={}, context=context, task=row.task)
        asks = asks_of_undo(undo, self._limits)
        begin = replace(
            begin_of(job, identity, tenant=self._tenant, asks=asks), undoes=Undoes(row.key, kind, row.attempts)
        )
        request = request_of(undo, identity, holder=job.actor)
        if kind == "revoke":
            return _Prepared(replace(job, begin=begin), undoing.revoked(replace(request, keyed=True), row))
        return _Prepared(replace(job, begin=begin), undoing.compensated(request))

    def _to_roll_back(self, task: str) -> list[Row]:
        if not task:
            raise UsageError("rollback takes the name of a task")
        rows = self.audit.effects(verdict=Verdict.EFFECT_APPLIED, task=task, limit=ROLLBACK_MAX)
        return [row for row in rows if row.undo_kind is None and row.undone_by is None]

    def _cannot_roll_back(self, row: Row) -> Observation | None:
        tool = self._tools.get(row.tool)
        if tool is not None and tool.compensation_tool is not None:
            return None
        return no_compensation(row)

    def _resolve(self, effect_id: str, verdict: Verdict | str, by: str, why: str, version: int, value: Any) -> Row:
        wanted = decided(verdict, by, why)
        row = self.audit.effect(effect_id)
        return resolve(self._ledger, row, wanted, by=by, why=why, version=version, value=value)

    def _see(self, row: Row, code: str, job: Job) -> None:
        call_id = None if job.call_id is None else storable(str(job.call_id), CALL_ID_MAX)
        sighting = {"key": row.key, "call_id": call_id, "task": storable(job.task), "turn": job.turn}
        self._sightings.add(sighting | {"code": storable(code, CODE_MAX), "at": row.now})

    def _job_for(self, row: Row) -> Job:
        return Job(tool=self._known[row.tool], effect_id=row.id, actor="reconcile")

    def _watch(self, interval_s: float, claim_s: float) -> Watch:
        return Watch(
            self._ledger, self._lookable(), self._tenant,
            interval_s=interval_s, claim_s=claim_s, random=self._site.random,
        )  # fmt: skip

    def _lookable(self) -> list[str]:
        return [name for name, one in self._known.items() if one.postcondition_function is not None]
