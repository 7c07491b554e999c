"""What one process of a crash test does with its life: open an executor, call or reconcile, and die where it is told.

Owns the tools of each tier, the observer that kills its own process, and the record that a survivor leaves. Judges
nothing: `story` does. `nursery` imports this once and forks a process for each life.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

import sqlalchemy as sa
from provider import Answer, Provider

from counterfoil import (
    Absent,
    AsyncExecutor,
    Effect,
    Executor,
    Found,
    KeyPolicy,
    Observation,
    Policy,
    Proof,
    Rejected,
    Tool,
    Unclear,
    Verdict,
    tool,
)

TIMEOUT_S = 0.5
GRACE_S = 0.3
MARGIN_S = 0.1
CLIENT_S = 0.8  # longer than the attempt, so that a held answer makes the thread overrun
RETENTION_S = 60.0
ORDER = {"order": "A-1", "amount": 5}
TOOL = "pay"
POLL_S = 0.15
SWEEP_S = 0.02
WRITES = ("Start", "Write:SettleReturned", "Write:SettleClosed", "Write:SettleLost", "Write:SettleLook")
BEHIND = ("counterfoil-sightings", "counterfoil-overruns")

Tier: TypeAlias = Literal["T0", "T1", "T2", "T3"]
Verb: TypeAlias = Literal["call", "reconcile", "sweep"]
Told: TypeAlias = dict[str, Any]
Body: TypeAlias = Literal["blocking", "coroutine", "blocking_in_loop"]


class Point(NamedTuple):
    """Where a process dies: at the `occurrence`-th time that `moment` of `step` is reached.

    Moments of every step: before, after. Of a step that writes also: sql (the effect's row is written, its entry is
    not), commit (all is written, COMMIT is not sent), committed. The step `Request` is the tool's own: before it is
    sent (inside `effect.sending()`), and after it was answered.
    """

    moment: str
    step: str
    occurrence: int = 1

    def __str__(self) -> str:
        return f"{self.moment} {self.step}" + (f" #{self.occurrence}" if self.occurrence > 1 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a process is to do. `out` is the file of its record, `marker` the file it writes just before it dies.

    `calls` are made at least (0: none), then more until the effect is settled or `settle_s` is over. `closed_port` is
    where the first request goes while the file `refuse_once` is there. `stop` pauses the process instead of killing it.
    With `gate`, a file that somebody holds locked, the executor is opened, the file `ready` is written, and nothing
    more is done until the lock is free. `callers` is how many threads (or tasks) make the calls.
    Before its calls, with the verb "reconcile" it reconciles until the effect is settled, with "sweep" until
    `settle_s` is over whatever happens.
    """

    ledger: str
    provider: str
    tenant: str
    tier: Tier
    out: str
    marker: str
    refuse_once: str
    closed_port: int
    verb: Verb = "call"
    body: Body = "blocking"
    calls: int = 1
    settle_s: float = 0.0
    point: Point | None = None
    stop: bool = False
    gate: str | None = None
    ready: str = ""
    callers: int = 1


# ---------------------------------------------------------------- dying


class Mortal(Protocol):
    """What says where a process ends: see `Life`."""

    @property
    def point(self) -> Point | None: ...

    @property
    def stop(self) -> bool: ...

    @property
    def marker(self) -> str: ...


class Watch:
    """Sees every point of the process go by, and ends it at the one that was asked for."""

    def __init__(self, life: Mortal) -> None:
        self._life = life
        self._times: Counter[tuple[str, str]] = Counter()
        self._step = ""
        self._committing = False
        self.trace: list[Point] = []

    def observe(self, moment: str, step: str, tool: str, effect_id: str) -> None:
        """The executor's observer."""
        if moment == "before":
            self._step = step
        self.reach(moment, step)
        if moment == "after":
            self._step = ""

    def reach(self, moment: str, step: str) -> None:
        self._times[moment, step] += 1
        point = Point(moment, step, self._times[moment, step])
        self.trace.append(point)
        if point == self._life.point:
            self._die(point)

    def _die(self, point: Point) -> None:
        with Path(self._life.marker).open("w") as marker:
            marker.write(str(point))
            marker.flush()
            os.fsync(marker.fileno())
        if self._life.stop:  # sent to this very thread, which so cannot come any further before all of them stand still
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    def listen(self) -> None:
        """See into the ledger's transactions too, in this process alone."""
        sa.event.listen(sa.Engine, "after_cursor_execute", self._executed)
        sa.event.listen(sa.Engine, "commit", self._commits)
        sa.event.listen(sa.Pool, "checkin", self._checked_in)

    def _in_write(self) -> bool:
        return self._step in WRITES and threading.current_thread().name not in BEHIND

    def _executed(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if self._in_write() and statement.startswith(("INSERT INTO effects", "UPDATE effects")):
            self.reach("sql", self._step)

    def _commits(self, _connection: Any) -> None:
        if self._in_write():
            self._committing = True
            self.reach("commit", self._step)

    def _checked_in(self, *_: Any) -> None:
        if self._in_write() and self._committing:
            self._committing = False
            self.reach("committed", self._step)


# ---------------------------------------------------------------- the tools


class Shop:
    """The tool `pay` of each tier, over one provider."""

    def __init__(self, life: Life, watch: Watch) -> None:
        self._life = life
        self._watch = watch
        self._provider = Provider.at(life.provider)

    def tool(self) -> Tool[Any, Any]:
        function = self._pay_async if self._life.body == "coroutine" else self._pay
        declare = tool(key=("order",), name=TOOL, sends="marked", policy=self._policy())
        declared: Tool[Any, Any] = declare(cast(Callable[..., Any], function))
        if self._life.tier in ("T1", "T2"):
            declared.postcondition(self._paid)
        return declared

    def _policy(self) -> Policy:
        grace_s = None if self._life.tier in ("T0", "T1") else GRACE_S
        keys = KeyPolicy(retention_s=RETENTION_S, replays_refusals=True) if self._life.tier == "T3" else None
        patience_s = 0.6 if self._life.tier == "T1" else 4.0
        return Policy(timeout_s=TIMEOUT_S, grace_s=grace_s, key_policy=keys, patience_s=patience_s, wait_s=0.5)

    def _pay(self, effect: Effect, order: str, amount: int) -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        with effect.sending():
            self._watch.reach("before", "Request")
            answer = self._send(effect, order, amount)
            self._watch.reach("after", "Request")
        return _receipt(effect, answer)

    async def _pay_async(self, effect: Effect, order: str, amount: int) -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        with effect.sending():
            self._watch.reach("before", "Request")
            answer = await asyncio.to_thread(self._send, effect, order, amount)
            self._watch.reach("after", "Request")
        return _receipt(effect, answer)

    def _send(self, effect: Effect, order: str, amount: int) -> Answer:
        refused = Path(self._life.refuse_once)
        there = Provider.at(f"http://127.0.0.1:{self._life.closed_port}") if refused.exists() else self._provider
        refused.unlink(missing_ok=True)
        body = {"order": order, "amount": amount}
        return there.send(effect.id, key=effect.provider_key, body=body, timeout_s=CLIENT_S)

    def _paid(self, effect: Effect) -> Found[str] | Absent | Unclear:
        answer = self._provider.look(effect.id)
        if answer.status != 200 or not isinstance(answer.body, list):
            return Unclear(f"status {answer.status}")
        names = [str(one["id"]) for one in answer.body]
        return Found(names[0], reference=names) if names else Absent()


def _receipt(effect: Effect, answer: Answer) -> str:
    if 400 <= answer.status < 500:
        raise Rejected("card_declined", "the card was declined", status=answer.status)
    if answer.status != 201:
        raise RuntimeError(f"status {answer.status}")
    effect.reference = str(answer.body["id"])
    return effect.reference


# ---------------------------------------------------------------- living


class Hands:
    """The verbs of either executor, for a life that waits for each."""

    def __init__(self, life: Life, watch: Watch) -> None:
        self._life = life
        self._runner = asyncio.Runner() if life.body != "blocking" else None
        kind = Executor if self._runner is None else AsyncExecutor
        tools = [Shop(life, watch).tool()]
        self.executor: Executor | AsyncExecutor = kind(
            life.ledger, tools, tenant=life.tenant, clock_margin_s=MARGIN_S, observer=watch.observe
        )

    def call(self) -> list[Observation]:
        """One call by each caller, all at once."""
        executor, callers = self.executor, range(self._life.callers)
        if isinstance(executor, Executor):
            if len(callers) == 1:
                return [executor.call(TOOL, ORDER, call_id="call-0")]
            with ThreadPoolExecutor(len(callers)) as threads:
                return list(threads.map(lambda number: executor.call(TOOL, ORDER, call_id=f"call-{number}"), callers))
        assert self._runner is not None
        return self._runner.run(_called(executor, callers))

    def reconcile(self) -> None:
        self._done(self.executor.reconcile())

    def close(self) -> None:
        self._done(self.executor.close())

    def _done(self, result: object) -> None:
        if self._runner is not None and isinstance(result, Coroutine):
            self._runner.run(result)


async def _called(executor: AsyncExecutor, callers: range) -> list[Observation]:
    calls = (executor.call(TOOL, ORDER, call_id=f"call-{number}") for number in callers)
    return list(await asyncio.gather(*calls))


def live(life: Life) -> None:
    """Live, and leave a record: what was told, each time with the count at the provider, and the points passed."""
    watch = Watch(life)
    watch.listen()
    hands = Hands(life, watch)
    if life.gate is not None:
        Path(life.ready).touch()
        with Path(life.gate).open() as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
    ending = time.monotonic() + life.settle_s
    told = _reconciled(life, hands, ending) if life.verb != "call" else []
    told += _called_on(life, hands, ending)
    hands.close()
    Path(life.out).write_text(json.dumps({"told": told, "trace": watch.trace}), "utf-8")


def _called_on(life: Life, hands: Hands, ending: float) -> list[Told]:
    """Call as often as asked, then until the effect is settled or the time is over."""
    told: list[Told] = []
    for number in range(1, sys.maxsize if life.calls else 0):
        seen = hands.call()
        told += [_told(life, "call", one.code, one.verdict, one.proof, one.effect_id) for one in seen]
        settled = seen[-1].ok or seen[-1].code == "card_declined" or time.monotonic() >= ending
        if number >= life.calls and settled:
            break
        if number >= life.calls:
            time.sleep(POLL_S)
    return told


def _reconciled(life: Life, hands: Hands, ending: float) -> list[Told]:
    """Reconcile until the effect is settled. It may not be there at all: then there is nothing to say."""
    while True:
        hands.reconcile()
        rows = hands.executor.audit.effects(tenant=life.tenant)
        settled = not rows or rows[0].verdict is not Verdict.EFFECT_UNKNOWN
        if (settled and life.verb == "reconcile") or time.monotonic() >= ending:
            return [_told(life, "reconcile", str(row.code), row.verdict, row.proof, row.id) for row in rows]
        time.sleep(POLL_S if life.verb == "reconcile" else SWEEP_S)


def _told(life: Life, verb: Verb, code: str, verdict: Verdict, proof: Proof | None, effect_id: str | None) -> Told:
    count = Provider.at(life.provider).count(effect_id) if effect_id is not None else 0
    return {"verb": verb, "code": code, "verdict": str(verdict), "proof": proof and str(proof), "count": count}


def from_json(line: str) -> Life:
    """The life in one line of JSON."""
    content = json.loads(line)
    point = content.pop("point")
    return Life(**content, point=None if point is None else Point(*point))
