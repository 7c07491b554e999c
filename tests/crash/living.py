"""What a process of a crash test does: open an executor, call, reconcile or decide, and record what it heard.

`nursery` imports this once and forks a process for each life.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import sys
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from crash.life import MARGIN_S, ORDER, POLL_S, SWEEP_S, TOOL, Life, Told, Verb, Watch
from crash.shop import Shop, sales
from provider import Provider

from counterfoil import (
    AsyncExecutor,
    Executor,
    Observation,
    Proof,
    Row,
    StaleVersion,
    UsageError,
    Verdict,
)
from counterfoil.ledger import ledger as the_ledger


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

    def revoke(self, effect_id: str) -> Observation:
        seen: Observation = self._done(self.executor.revoke(effect_id))
        return seen

    def resolve(self, row: Row, verdict: Verdict) -> None:
        why = "asked the provider"
        self._done(self.executor.resolve(row.id, verdict, by="Ada", why=why, version=row.version))

    def watch(self, settled: threading.Event) -> None:
        """Watch until that is set."""
        executor = self.executor
        if isinstance(executor, Executor):
            executor.watch(stop=settled, interval_s=POLL_S)
        else:
            assert self._runner is not None
            self._runner.run(_watched(executor, settled))

    def close(self) -> None:
        self._done(self.executor.close())

    def _done(self, result: Any) -> Any:
        if self._runner is not None and isinstance(result, Coroutine):
            return self._runner.run(result)
        return result


async def _watched(executor: AsyncExecutor, settled: threading.Event) -> None:
    stop = asyncio.Event()
    watching = asyncio.create_task(executor.watch(stop=stop, interval_s=POLL_S))
    await asyncio.to_thread(settled.wait)
    stop.set()
    await watching


async def _called(executor: AsyncExecutor, callers: range) -> list[Observation]:
    calls = (executor.call(TOOL, ORDER, call_id=f"call-{number}") for number in callers)
    return list(await asyncio.gather(*calls))


def live(life: Life) -> None:
    """Live, and leave a record: what was told, each time with the count at the provider, and the points passed."""
    if "patience_s" in life.detail:
        vars(the_ledger)["PATIENCE_S"] = life.detail["patience_s"]
    watch = Watch(life)
    watch.listen()
    hands = Hands(life, watch)
    if life.gate is not None:
        Path(life.ready).touch()
        with Path(life.gate).open() as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
    ending = time.monotonic() + life.settle_s
    told = _before_calls(life, hands, watch, ending)
    told += _called_on(life, hands, ending)
    hands.close()
    Path(life.out).write_text(json.dumps({"told": told, "trace": watch.trace}), "utf-8")


def _before_calls(life: Life, hands: Hands, watch: Watch, ending: float) -> list[Told]:
    match life.verb:
        case "call":
            return []
        case "resolve":
            return [_resolved(life, hands, watch, ending)]
        case "watch":
            return _watching(life, hands, ending)
        case "reconcile" | "sweep":
            return _reconciled(life, hands, ending)


def _called_on(life: Life, hands: Hands, ending: float) -> list[Told]:
    """Call as often as asked, then until the effect is settled or the time is over."""
    told: list[Told] = []
    for number in range(1, sys.maxsize if life.calls else 0):
        seen = hands.call()
        told += [_told(life, "call", one.code, one.verdict, one.proof, one.effect_id) for one in seen]
        if life.tier == "T4" and seen[-1].code == "effect_unknown":
            one = hands.revoke(str(seen[-1].effect_id))
            if one.code != "conflict":  # which speaks of the revoke, that it was not begun, and not of the effect
                told.append(_told(life, "revoke", one.code, one.verdict, one.proof, seen[-1].effect_id))
        last = seen[-1]
        ended = last.verdict is Verdict.EFFECT_APPLIED or last.ok or last.code == "card_declined"
        if number >= life.calls and (ended or time.monotonic() >= ending):
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


def _watching(life: Life, hands: Hands, ending: float) -> list[Told]:
    """Watch until the effect is settled."""
    settled = threading.Event()
    watching = threading.Thread(target=hands.watch, args=(settled,))
    watching.start()
    while True:
        (row,) = hands.executor.audit.effects(tenant=life.tenant)
        if row.verdict is not Verdict.EFFECT_UNKNOWN or time.monotonic() >= ending:
            settled.set()
            watching.join()
            return [_told(life, "watch", str(row.code), row.verdict, row.proof, row.id)]
        time.sleep(SWEEP_S)


def _resolved(life: Life, hands: Hands, watch: Watch, ending: float) -> Told:
    """What a person reads, asks the provider and decides, again until it is taken; the last refusal, if it never is."""
    while True:
        (row,) = hands.executor.audit.effects(tenant=life.tenant)
        verdict = Verdict.EFFECT_APPLIED if _count(life, row.id) else Verdict.NO_EFFECT
        try:
            watch.reach("before", "Resolve")
            hands.resolve(row, verdict)
        except (StaleVersion, UsageError) as refused:
            if row.verdict is Verdict.EFFECT_UNKNOWN and time.monotonic() < ending:
                time.sleep(SWEEP_S)
                continue
            return _told(life, "resolve", type(refused).__name__, Verdict.EFFECT_UNKNOWN, None, row.id)
        return _told(life, "resolve", "decided", verdict, Proof.OPERATOR, row.id)


def _told(
    life: Life, verb: Verb | str, code: str, verdict: Verdict, proof: Proof | None, effect_id: str | None
) -> Told:
    count = _count(life, effect_id) if effect_id is not None else 0
    return {"verb": verb, "code": code, "verdict": str(verdict), "proof": proof and str(proof), "count": count}


def _count(life: Life, effect_id: str) -> int:
    """How many effects there are, as the world has it."""
    if life.tier != "T5":
        return Provider.at(life.provider).count(effect_id)
    return sold(life.ledger, effect_id)


def sold(ledger_url: str, effect_id: str) -> int:
    """How many rows there are in the table of the tools whose effect is in the ledger's database."""
    engine = sa.create_engine(ledger_url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        asked = sa.select(sa.func.count()).select_from(sales).where(sales.c.reference == effect_id)
        return connection.execute(asked).scalar_one()
