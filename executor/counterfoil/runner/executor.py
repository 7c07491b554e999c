"""Executor and AsyncExecutor: where tools, ledger and clock meet.

Owns the public verbs. `call` returns an observation for everything that a model or the world can do wrong; it raises
only for the developer (`UsageError`). The other verbs raise `LedgerError` too, and `StaleVersion` where a person
decides on what has changed since.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from random import Random
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa

from counterfoil import flow
from counterfoil.arguments import Arguments, Invalid
from counterfoil.changes import Begin, Declined, Resolve, Terms
from counterfoil.clock import Clock, SystemClock
from counterfoil.effect import MICROSECONDS, Row, Verdict
from counterfoil.errors import LedgerError, StaleVersion, UsageError
from counterfoil.identity import CANONICAL_VERSION, Identity, NotCanonical, identify
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.observe import Observation, Words, about
from counterfoil.reconcile import Reconciled, review, sweep
from counterfoil.runner.asynchronous import AsyncShell
from counterfoil.runner.behind import Sightings
from counterfoil.runner.blocking import BlockingShell
from counterfoil.runner.overrun import Overruns
from counterfoil.runner.shell import Job, Observer, Site
from counterfoil.runner.values import stored
from counterfoil.runner.worker import Workers
from counterfoil.steps import Flow, Request
from counterfoil.telling import RETRY_SOON_S
from counterfoil.tool import AllArguments, Policy, Tool, tool

CHECK_EFFECT = "check_effect"
LEDGER_THREADS = 16
_CHECK_SCHEMA: dict[str, Any] = {
    "name": CHECK_EFFECT,
    "description": "Tell whether an earlier action that ended as unknown or in progress has happened. It changes "
    "nothing. Use it with the effect_id that the earlier answer named, instead of calling the tool again.",
    "parameters": {
        "type": "object",
        "properties": {"effect_id": {"type": "string", "description": "The effect_id from the earlier answer."}},
        "required": ["effect_id"],
        "additionalProperties": False,
    },
}


def _check_arguments(effect_id: str) -> None:
    """The arguments of check_effect."""


_CHECK_ARGUMENTS = Arguments(_check_arguments, key=("effect_id",))


@tool(read_only=True, name="unregistered")
def _unregistered() -> None:
    """Stands for a tool that this executor does not know: its effects can be told, not looked at."""


class _Prepared:
    """A call that may run: who does it, and its flow."""

    __slots__ = ("flow", "job")

    def __init__(self, job: Job, one: Flow[Observation]) -> None:
        self.job = job
        self.flow = one


class _Executor:
    """What both executors share: everything but the waiting."""

    def __init__(
        self,
        ledger: str | sa.Engine,
        tools: Iterable[Tool[Any, Any]] = (),
        *,
        tenant: str = "",
        secret: bytes | None = None,
        clock: Clock | None = None,
        clock_margin_s: float = 2.0,
        observer: Observer | None = None,
        attempts_max: int = 64,
        random: Random | None = None,
    ) -> None:
        """Open a ledger and register tools.

        Args:
            ledger: `sqlite:///FILE` (created on first use), `postgresql+psycopg://…`, or an engine of either.
            tools: the tools that this executor may run; names must differ.
            tenant: whose effects these are; part of every key.
            secret: for tools that take secret arguments: keys the HMAC that stands for them in the effect's identity.
            clock: a settable clock for tests; the ledger then takes its time from it too.
            clock_margin_s: seconds by which the clocks of hosts and ledger may differ.
            observer: told of each step before and after it.
            attempts_max: how many tool functions may run at once here, overrun ones included.
            random: the source of jitter; for tests.

        Raises:
            UsageError: two tools of one name, secret arguments without `secret`, a URL that is none.
            LedgerError: the ledger is missing, unreachable, of another schema version, or not durable.
        """
        self._tools = _by_name(tools, secret)
        self._tenant = tenant
        self._secret = secret
        self._clock = clock or SystemClock()
        self._owns_engine = isinstance(ledger, str)
        self._engine = open_engine(ledger)
        self._ledger = Ledger(self._engine, clock=self._clock, clock_margin_s=clock_margin_s)
        self._sightings = Sightings(self._ledger)
        self._site = Site(
            ledger=self._ledger,
            clock=self._clock,
            holder=f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}",
            attempts=Workers("counterfoil-attempt", attempts_max),
            looks=Workers("counterfoil-look", attempts_max),
            overruns=Overruns(self._ledger, self._clock),
            observer=observer,
            random=random or Random(),
            see=self._see,
        )
        self.audit = Audit(self._ledger, tenant=tenant or None)

    def schemas(self) -> list[dict[str, Any]]:
        """The JSON schemas of all tools for a model, `check_effect` among them: name, description, parameters."""
        return [one.schema() for one in self._tools.values()] + [_CHECK_SCHEMA]

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

    def _close(self) -> None:
        self._sightings.close()
        if self._owns_engine:
            self._engine.dispose()

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
        if name == CHECK_EFFECT:
            return self._prepare_check(arguments, context)
        tool = self._tools.get(name)
        if tool is None:
            known = [*self._tools, CHECK_EFFECT]
            return about(None, Words(tool=str(name)[:64], code="unknown_tool", known=known))
        valid = tool.arguments.validate(arguments, secret=self._secret)
        if isinstance(valid, Invalid):
            return _invalid(name, valid)
        job = Job(
            tool=tool,
            effect_id="",
            actor=self._site.holder,
            values=valid.values,
            context=context,
            task=task or "",
            turn=turn,
            call_id=call_id,
        )
        if tool.read_only:
            request = self._request(tool, None, valid.echo)
            return _Prepared(job, flow.read_only(request))
        if isinstance(tool.key, AllArguments) and key is None and not task:
            raise UsageError(f"{name} is keyed by all its arguments within a task: give call(..., task=...) or key=...")
        assert tool.key is not None
        again = occurrence if occurrence not in (None, "") else valid.occurrence
        try:
            identity = identify(
                tenant=self._tenant,
                tool=name,
                task=task or "",
                names=tool.key,
                identity_arguments=valid.identity,
                explicit_key=key,
                occurrence=again,
            )
        except NotCanonical as problem:
            return _not_canonical(name, problem, valid.echo)
        begin = self._begin(tool, identity, job, valid.stored, valid.echo, again)
        ready = Job(**{item: getattr(job, item) for item in job.__slots__} | {
            "begin": begin, "effect_id": identity.id})  # fmt: skip
        return _Prepared(ready, flow.call(self._request(tool, identity, valid.echo)))

    def _begin(
        self, tool: Tool[Any, Any], identity: Identity, job: Job, kept: str, echo: str, occurrence: str | int | None
    ) -> Begin:
        return Begin(
            key=identity.key,
            id=identity.id,
            tenant=self._tenant,
            tool=tool.name,
            task=job.task,
            turn=job.turn,
            call_id=job.call_id,
            occurrence="" if occurrence is None else str(occurrence),
            fingerprint=identity.fingerprint,
            canonical_version=CANONICAL_VERSION,
            arguments=kept,
            echo=echo,
            holder=self._site.holder,
            claim_id="",
            terms=terms(tool),
        )

    def _request(self, tool: Tool[Any, Any], identity: Identity | None, echo: str) -> Request:
        policy: Policy = tool.policy
        names = tool.key if isinstance(tool.key, tuple) else ()
        return Request(
            tool=tool.name,
            key=b"" if identity is None else identity.key,
            fingerprint=b"" if identity is None else identity.fingerprint,
            holder=self._site.holder,
            echo=echo,
            key_names=", ".join(names) or "key",
            looks=tool.postcondition_function is not None,
            keyed=policy.key_policy is not None or tool.idempotent,
            speaks_for_key=policy.key_policy is not None and policy.key_policy.replays_refusals,
            patience_s=policy.patience_s,
            attempts_max=policy.attempts_max,
            wait_s=policy.wait_s,
            wait_max_s=policy.wait_max_s,
        )

    def _prepare_check(self, arguments: str | bytes | Mapping[str, Any], context: Any) -> _Prepared | Observation:
        wanted = _effect_id(arguments)
        if wanted is None:
            problem = (("effect_id", "must be the effect_id that an earlier answer named, and nothing else"),)
            return about(None, Words(tool=CHECK_EFFECT, code="invalid_arguments", details=problem))
        try:
            row = self.audit.effect(wanted)
        except UsageError:
            row = None
        except LedgerError:
            words = Words(tool=CHECK_EFFECT, code="ledger_unavailable", retry_after_s=RETRY_SOON_S)
            return about(None, words, verdict=Verdict.EFFECT_UNKNOWN)
        if row is None or row.id != wanted:
            words = Words(
                tool=CHECK_EFFECT, code="not_found", field="effect_id", reason="No effect has this effect_id."
            )
            return about(None, words)
        tool = self._tools.get(row.tool)
        looks = tool is not None and tool.postcondition_function is not None
        job = Job(tool=tool or _unregistered, effect_id=row.id, actor=self._site.holder, context=context)
        return _Prepared(job, flow.checked(row, row.tool, looks=looks))

    def _resolve(self, effect_id: str, verdict: Verdict | str, by: str, why: str, version: int, value: Any) -> Row:
        if not by.strip() or not why.strip():
            raise UsageError("a doubt is resolved by a named person with a reason: give by= and why=")
        try:
            decided = Verdict(verdict)
        except ValueError:
            raise UsageError("a doubt is resolved to effect_applied or to no_effect") from None
        if decided is Verdict.EFFECT_UNKNOWN:
            raise UsageError("a doubt is resolved to effect_applied or to no_effect")
        row = self.audit.effect(effect_id)
        return resolve(self._ledger, row, decided, by=by, why=why, version=version, value=value)

    def _see(self, row: Row, code: str, job: Job) -> None:
        sighting = {"key": row.key, "call_id": job.call_id, "task": job.task, "turn": job.turn, "code": code}
        self._sightings.add(sighting | {"at": row.now})

    def _job_for(self, row: Row) -> Job:
        return Job(tool=self._tools[row.tool], effect_id=row.id, actor="reconcile")

    def _lookable(self) -> list[str]:
        return [name for name, one in self._tools.items() if one.postcondition_function is not None]


class Executor(_Executor):
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
        prepared = self._prepare(
            tool, arguments, task=task, turn=turn, call_id=call_id, context=context, key=key, occurrence=occurrence
        )
        if isinstance(prepared, Observation):
            return prepared
        return BlockingShell(self._site, prepared.job).run(prepared.flow)

    def reconcile(self, *, limit: int = 100) -> Reconciled:
        """Look at what is due, settle what can be proven. It never sends. At most `limit` effects are looked at.

        Raises:
            LedgerError: the ledger does not answer.
        """
        done = Reconciled()
        for row in sweep(self._ledger, self._lookable(), self._tenant, limit):
            answer = BlockingShell(self._site, self._job_for(row)).run(flow.settle_doubt(row))
            done = done.with_look(row, answer.row)
        return review(self._ledger, self._tenant, done)

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


class AsyncExecutor(_Executor):
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
        prepared = await loop.run_in_executor(
            self._threads,
            lambda: self._prepare(
                tool, arguments, task=task, turn=turn, call_id=call_id, context=context, key=key, occurrence=occurrence
            ),
        )
        if isinstance(prepared, Observation):
            return prepared
        return await AsyncShell(self._site, prepared.job, self._threads).run(prepared.flow)

    async def reconcile(self, *, limit: int = 100) -> Reconciled:
        """See `Executor.reconcile`."""
        loop = asyncio.get_running_loop()
        done = Reconciled()
        due = await loop.run_in_executor(
            self._threads, lambda: sweep(self._ledger, self._lookable(), self._tenant, limit)
        )
        for row in due:
            shell = AsyncShell(self._site, self._job_for(row), self._threads)
            answer = await shell.run(flow.settle_doubt(row))
            done = done.with_look(row, answer.row)
        return await loop.run_in_executor(self._threads, review, self._ledger, self._tenant, done)

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


def terms(tool: Tool[Any, Any]) -> Terms:
    """The tool's declared times as the ledger keeps them."""
    policy: Policy = tool.policy
    keys = policy.key_policy
    retention_s = policy.idempotent_window_s if tool.idempotent else keys.retention_s if keys is not None else None
    return Terms(
        timeout_us=_us(policy.timeout_s),
        grace_us=None if policy.grace_s is None else _us(policy.grace_s),
        review_us=_us(policy.review_after_s),
        audit_us=_us(policy.audit_s),
        retention_us=None if retention_s is None else _us(retention_s),
        concurrent=tool.idempotent or (keys is not None and keys.concurrent),
        replays_refusals=keys is not None and keys.replays_refusals,
    )


def resolve(ledger: Ledger, row: Row, verdict: Verdict, *, by: str, why: str, version: int, value: Any = None) -> Row:
    """Resolve `row` in the ledger; the row as it is then. Raises as `Executor.resolve` does."""
    kept = None if value is None else stored(value, Policy().value_max_bytes)
    change = Resolve(key=row.key, verdict=verdict, by=by.strip(), why=why.strip(), version=version, value=kept)
    answer = ledger.apply([change])[0]
    if not isinstance(answer, Declined):
        return answer.row
    match answer.guard:
        case "stale":
            now = "gone" if answer.row is None else f"at version {answer.row.version}"
            raise StaleVersion(f"the effect was read at version {version} and is {now}: read it again, then decide")
        case "may_still_send":
            raise UsageError("an attempt may still be sending: wait until its last possible send is over (sends_until)")
        case guard:
            raise UsageError(f"the effect is settled already ({guard}): there is no doubt to resolve")


def _us(seconds: float) -> int:
    return round(seconds * MICROSECONDS)


def _by_name(tools: Iterable[Tool[Any, Any]], secret: bytes | None) -> dict[str, Tool[Any, Any]]:
    named: dict[str, Tool[Any, Any]] = {}
    for one in tools:
        if not isinstance(one, Tool):
            raise UsageError(f"{getattr(one, '__name__', one)!r} is no tool: decorate the function with @tool(...)")
        if one.name in named:
            raise UsageError(f"two tools are named {one.name!r}: give one of them another name=")
        if one.arguments.has_secrets and not secret:
            raise UsageError(f"{one.name} takes a secret argument: give Executor(..., secret=...) to key its digest")
        named[one.name] = one
    return named


def _invalid(tool: str, invalid: Invalid) -> Observation:
    details = tuple((problem.field, problem.problem) for problem in invalid.problems)
    return about(None, Words(tool=tool, code="invalid_arguments", details=details, arguments=invalid.echo))


def _not_canonical(tool: str, problem: NotCanonical, echo: str) -> Observation:
    details = ((problem.path, problem.problem),)
    return about(None, Words(tool=tool, code="invalid_arguments", details=details, arguments=echo))


def _effect_id(arguments: str | bytes | Mapping[str, Any]) -> str | None:
    valid = _CHECK_ARGUMENTS.validate(arguments)
    return None if isinstance(valid, Invalid) else str(valid.values["effect_id"])
