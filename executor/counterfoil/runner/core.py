"""What both executors share: the ledger, the tools, and how a call is made ready.

Owns everything but the waiting. A call is validated and named here; what follows is the flow's.
"""

from __future__ import annotations

import math
import os
import socket
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import sqlalchemy as sa

from counterfoil import flow, looking
from counterfoil.arguments import Arguments, Invalid
from counterfoil.changes import Begin, Terms
from counterfoil.clock import Clock, SystemClock
from counterfoil.effect import MICROSECONDS, Row, Verdict
from counterfoil.errors import LedgerError, UsageError
from counterfoil.identity import CANONICAL_VERSION, Identity, NotCanonical, identify
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.rows import CODE_MAX
from counterfoil.observe import Observation, Words, about
from counterfoil.runner.backlog import Backlog
from counterfoil.runner.behind import Sightings
from counterfoil.runner.incidents import OnIncident, listener
from counterfoil.runner.overrun import Overruns
from counterfoil.runner.resolve import decided, resolve
from counterfoil.runner.shell import NO_ROW, Job, Observer, Site
from counterfoil.runner.watch import Watch
from counterfoil.runner.worker import Workers
from counterfoil.steps import Flow, Request
from counterfoil.telling import RETRY_SOON_S, under_way
from counterfoil.text import storable
from counterfoil.tool import AllArguments, Policy, Tool, tool

CHECK_EFFECT = "check_effect"
LEDGER_THREADS = 16
TURN_MAX = 2**31
CALL_ID_MAX = 500
SECRET_MIN = 16
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


class Core:
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
        on_incident: OnIncident | None = None,
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
            on_incident: told of each incident that this executor raises, after it is written, in the thread that wrote
                it. What it raises is logged. A crash may lose a telling; `audit.incidents()` has them all.
            attempts_max: how many tool functions may run at once here, overrun ones included.
            random: the source of jitter; for tests.

        Raises:
            UsageError: two tools of one name, secret arguments without `secret`, a URL that is none.
            LedgerError: the ledger is missing, unreachable, of another schema version, or not durable.
        """
        _check_settings(tenant, secret, clock_margin_s, attempts_max)
        self._tools = _by_name(tools, secret)
        self._process = os.getpid()
        self._tenant = tenant
        self._secret = secret
        self._clock = clock or SystemClock()
        self._owns_engine = isinstance(ledger, str)
        listener(on_incident)
        self._engine = open_engine(ledger)
        self._ledger = Ledger(
            self._engine, clock=self._clock, clock_margin_s=clock_margin_s, on_incident=listener(on_incident)
        )
        self._sightings = Sightings(self._ledger)
        self._site = Site(
            ledger=self._ledger,
            clock=self._clock,
            holder=f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}",
            attempts=Workers("counterfoil-attempt", attempts_max),
            looks=Workers("counterfoil-look", attempts_max),
            overruns=Overruns(self._ledger, self._clock),
            backlog=Backlog(self._ledger),
            observer=observer,
            random=random or Random(),  # noqa: S311 - jitter, no secret
            see=self._see,
        )
        self.audit = Audit(self._ledger, tenant=tenant)

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
        self._site.overruns.close()
        self._site.backlog.close()
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
        if os.getpid() != self._process:
            raise UsageError(
                "this executor was made before a fork; threads and connections do not cross it: make a new one"
            )
        _check_turn(turn)
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
            return _Prepared(job, looking.read_only(request))
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
            verifies=policy.verify == "always" and tool.postcondition_function is not None,
            transacts=tool.same_transaction,
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
        tool = self._tools.get(row.tool)
        looks = tool is not None and tool.postcondition_function is not None
        job = Job(tool=tool or _unregistered, effect_id=row.id, actor=self._site.holder, context=context)
        return _Prepared(job, looking.checked(row, row.tool, looks=looks))

    def _effect(self, effect_id: str) -> Row | None:
        try:
            row = self.audit.effect(effect_id)
        except UsageError:
            return None
        return row if row.id == effect_id else None

    def _resolve(self, effect_id: str, verdict: Verdict | str, by: str, why: str, version: int, value: Any) -> Row:
        wanted = decided(verdict, by, why)
        row = self.audit.effect(effect_id)
        return resolve(self._ledger, row, wanted, by=by, why=why, version=version, value=value)

    def _see(self, row: Row, code: str, job: Job) -> None:
        call_id = None if job.call_id is None else storable(str(job.call_id), CALL_ID_MAX)
        sighting = {"key": row.key, "call_id": call_id, "task": storable(job.task), "turn": job.turn}
        self._sightings.add(sighting | {"code": storable(code, CODE_MAX), "at": row.now})

    def _job_for(self, row: Row) -> Job:
        return Job(tool=self._tools[row.tool], effect_id=row.id, actor="reconcile")

    def _watch(self, interval_s: float, claim_s: float) -> Watch:
        return Watch(
            self._ledger, self._lookable(), self._tenant,
            interval_s=interval_s, claim_s=claim_s, random=self._site.random,
        )  # fmt: skip

    def _lookable(self) -> list[str]:
        return [name for name, one in self._tools.items() if one.postcondition_function is not None]


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


def _check_settings(tenant: object, secret: object, clock_margin_s: float, attempts_max: object) -> None:
    if not isinstance(tenant, str):
        raise UsageError("tenant= is text")
    if secret is not None and (not isinstance(secret, bytes) or len(secret) < SECRET_MIN):
        raise UsageError(f"secret= takes at least {SECRET_MIN} random bytes that you keep")
    if not (math.isfinite(clock_margin_s) and clock_margin_s > 0):
        raise UsageError("clock_margin_s= is a number of seconds above 0: how far the clocks of hosts may differ")
    if not isinstance(attempts_max, int) or attempts_max < 1:
        raise UsageError("attempts_max= is a whole number, 1 or more")


def _check_turn(turn: object) -> None:
    if turn is not None and not (isinstance(turn, int) and abs(turn) < TURN_MAX):
        raise UsageError("turn= is the number of the model's round in the task: a small integer")


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
        if one.policy.verify == "always" and one.postcondition_function is None:
            raise UsageError(f'{one.name} has verify="always" and no postcondition to look with: register one')
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
