"""What one process of the fault table does with its life: call, be looked after, or audit; with the fault befalling it.

Owns the hands of the tools and what the first process does to itself. Judges nothing. `crash.nursery` imports this once
and forks a process for each life. All processes of a cell share one clock, which waiting moves on and which otherwise
stands still: a grace of a minute costs nothing, and a cell is the same on any machine.
"""

from __future__ import annotations

import json
import mmap
import struct
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import sqlalchemy as sa
from crash.life import Point, Watch
from cutting import away, commits
from faults import faults, tiers
from ledger_access import access_to
from pgproxy import proxy_before
from postgres import PostgresServer
from provider import Answer, Provider

from counterfoil import (
    Absent,
    Effect,
    Executor,
    Found,
    ManualClock,
    Observation,
    Rejected,
    Revoked,
    Throttled,
    Unclear,
    Verdict,
)
from counterfoil.effect import MICROSECONDS

ORDER: Final = {"order": "A-1", "amount": 5}
CLIENT_S: Final = 20.0
HOUR_US: Final = 3600 * MICROSECONDS
DAY_US: Final = 24 * HOUR_US
START_US: Final = 1_800_000_000 * MICROSECONDS
RETRY_AFTER_S: Final = 1.0
POLL_S: Final = 0.005
OK, CREATED, DECLINED, REUSED, THROTTLED = 200, 201, 402, 422, 429
payments = sa.Table("payments", sa.MetaData(), sa.Column("effect", sa.Text), sa.Column("amount", sa.Integer))

Does: TypeAlias = Literal["first", "second", "look after", "audit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What a process is to do. Only the first one of a cell meets the fault; `gate` is a file whose being there lets a
    transaction that waits for another call go on."""

    does: Does
    tier: str
    fault: str
    ledger: str
    socket: str
    provider: str
    closed_port: int
    clock: str
    out: str
    marker: str
    log: str = ""
    gate: str
    point: Point | None = None
    stop: bool = False


IMPORTED = ()


def from_json(line: str) -> Life:
    """The life in one line of JSON."""
    content = json.loads(line)
    point = content.pop("point")
    return Life(**content, point=None if point is None else Point(*point))


class SharedClock(ManualClock):
    """A settable clock whose hands are in a file, so that all processes of a cell see the same time."""

    def __init__(self, file: Path) -> None:
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), 8)
        super().__init__(self._now_us)

    @staticmethod
    def create(file: Path) -> SharedClock:
        """A new one."""
        file.write_bytes(struct.pack("q", START_US))
        return SharedClock(file)

    @property
    def _now_us(self) -> int:
        return int(struct.unpack("q", self._shared[:])[0])

    @_now_us.setter
    def _now_us(self, now_us: int) -> None:
        self._shared[:] = struct.pack("q", now_us)

    def set(self, now_us: int) -> None:
        """Move it on to that instant; it never goes back."""
        self._now_us = max(self._now_us, now_us)


# ---------------------------------------------------------------- the tools' hands


class Shop:
    """Carries out what the tools of a tier ask for, and the part of the fault that befalls the function itself."""

    def __init__(self, life: Life, watch: Watch) -> None:
        self._watch = watch
        self._provider = Provider.at(life.provider)
        self._closed = Provider.at(f"http://127.0.0.1:{life.closed_port}")
        self._fault = faults.BY_NAME[life.fault]
        self._own = self._fault.own if life.does == "first" else None
        self._declined = self._fault.name == "declined" and life.does == "first"
        self._gate = Path(life.gate) if self._fault.at_once and life.does != "look after" else None
        self.before_commit: Callable[[], object] = lambda: None
        self.answered = threading.Event()
        self._waits = self._fault.sends_last and life.does == "first"

    def prepare(self) -> None:
        if self._own == "fails":
            self._own = None
            raise RuntimeError("the price list could not be read")

    def send(self, effect: Effect, key: str | None) -> tiers.Receipt:
        to = self._provider
        if self._own == "refused":
            self._own, to = None, self._closed
        self._watch.reach("before", "Request")
        if self._waits:
            self.answered.wait(CLIENT_S)
        answer = to.send(effect.id, key=key, body=ORDER, timeout_s=CLIENT_S)
        self._watch.reach("after", "Request")
        return _receipt(effect, answer)

    def look(self, effect: Effect) -> Found[tiers.Receipt] | Absent | Unclear:
        answer = self._provider.look(effect.id)
        if answer.status != OK or not isinstance(answer.body, list):
            return Unclear(f"status {answer.status}")
        mine = [str(one["id"]) for one in answer.body if one["reference"] == effect.id]
        if mine:
            return Found({"payment": mine[0]}, reference=mine)
        alike = [str(one["id"]) for one in answer.body]
        return Found({"payment": alike[0]}, reference=alike, matches="look_alike") if alike else Absent()

    def withdraw(self, effect: Effect) -> Revoked | Found[tiers.Receipt]:
        """Use up each key by another request, the stone: from then on the provider refuses the original (422)."""
        for key in effect.original.provider_keys:
            answer = self._provider.send(f"stone-{effect.original.id}", key=key, body="stone", timeout_s=CLIENT_S)
            if answer.status == REUSED:
                return Found({"payment": "found by its key"}, reference=None)
            if answer.status != CREATED:
                raise RuntimeError(f"status {answer.status}")
        return Revoked()

    def write(self, effect: Effect) -> tiers.Receipt:
        self._watch.reach("before", "Request")
        if self._declined:
            self._declined = False
            raise Rejected("card_declined", "the card was declined")
        effect.connection.execute(sa.insert(payments), {"effect": effect.id, "amount": ORDER["amount"]})
        self._watch.reach("after", "Request")
        while self._gate is not None and not self._gate.exists():
            time.sleep(POLL_S)
        self.before_commit()
        return {"payment": effect.id}


def _receipt(effect: Effect, answer: Answer) -> tiers.Receipt:
    match answer.status:
        case 201:
            effect.reference = str(answer.body["id"])
            return {"payment": effect.reference}
        case 402:
            raise Rejected("card_declined", "the card was declined", status=DECLINED)
        case 429:
            raise Throttled(RETRY_AFTER_S)
        case status:
            raise RuntimeError(f"status {status}")


# ---------------------------------------------------------------- living


def live(life: Life) -> None:
    """Live, and leave a record of what was told."""
    watch = Watch(life)
    watch.listen()
    clock = SharedClock(Path(life.clock))
    shop = Shop(life, watch)
    with ExitStack() as stack:
        trouble = Trouble(life, shop, stack)

        def observe(moment: str, step: str, tool: str, effect_id: str) -> None:
            trouble.observe(moment, step)
            watch.observe(moment, step, tool, effect_id)

        tool = tiers.BY_NAME[life.tier].declare(shop, faults.BY_NAME[life.fault].sends)
        executor = stack.enter_context(
            Executor(trouble.url, [tool], clock=clock, clock_margin_s=tiers.MARGIN_S, observer=observe)
        )
        trouble.begin(executor)
        match life.does:
            case "first" | "second":
                seen = executor.call("pay", ORDER)
                told = _told(seen)
                shop.answered.set()
                if faults.BY_NAME[life.fault].sends_last and life.does == "first":
                    _await_return(executor, str(seen.effect_id))
            case "look after":
                told = _look_after(executor, clock)
            case _:
                told = _audited(executor, clock)
    Path(life.out).write_text(json.dumps(told), "utf-8")


def _told(seen: Observation) -> dict[str, Any]:
    return {"code": seen.code, "verdict": str(seen.verdict), "proof": seen.proof and str(seen.proof)}


def _await_return(executor: Executor, effect_id: str) -> None:
    """Wait until the attempt of this process is on record as returned, after its caller has gone."""
    until = time.monotonic() + CLIENT_S
    while not any(one.attempt == 1 and one.event.startswith("returned") for one in executor.audit.history(effect_id)):
        assert time.monotonic() < until, "the late answer was never recorded"
        time.sleep(POLL_S)


def _look_after(executor: Executor, clock: SharedClock) -> dict[str, Any]:
    """Reconcile whenever something unknown is due, for an hour; then raise what nobody has settled, and revoke."""
    end = clock.wall_us() + HOUR_US
    while (row := _row(executor)) is not None and row.verdict is Verdict.EFFECT_UNKNOWN:
        due = max(row.look_at or end, row.lease_until + 1)
        if due >= end or row.tool not in executor._lookable():
            break
        clock.set(due)
        executor.reconcile()
    clock.set(end)
    executor.reconcile()
    row = _row(executor)
    if row is not None and row.verdict is Verdict.EFFECT_UNKNOWN and executor.tools["pay"].revoke_tool is not None:
        executor.revoke(row.id)
    return _standing(executor)


def _audited(executor: Executor, clock: SharedClock) -> dict[str, Any]:
    """Reconcile whenever anything is due, for a day: the looks after a closing by absence are among it."""
    end = clock.wall_us() + DAY_US
    while (row := _row(executor)) is not None and row.look_at is not None and row.look_at < end:
        clock.set(max(row.look_at, row.lease_until + 1))
        if executor.reconcile().looked == 0:
            break
    clock.set(end)
    return _standing(executor)


def _row(executor: Executor) -> Any:
    rows = [row for row in executor.audit.effects() if row.tool == "pay"]
    return rows[0] if rows else None


def _standing(executor: Executor) -> dict[str, Any]:
    row = _row(executor)
    if row is None:
        return {"code": None, "verdict": None, "proof": None}
    return {"code": row.code, "verdict": str(row.verdict), "proof": row.proof and str(row.proof)}


# ---------------------------------------------------------------- the ledger in trouble


class Trouble:
    """What the first process does to its own way to the ledger: real cuts of a server's connections, injected ones of a
    file's, which has no connection to cut."""

    def __init__(self, life: Life, shop: Shop, stack: ExitStack) -> None:
        self.url = life.ledger
        self._stack = stack
        self._own = faults.BY_NAME[life.fault].own if life.does == "first" else None
        self._joint = tiers.BY_NAME[life.tier].joint
        self._server = PostgresServer(Path(life.socket)) if life.ledger.startswith("postgresql") else None
        self._done = False
        self._cut: Callable[[], object] = lambda: None
        self._leave: Callable[[], object] = lambda: None
        if self._own in ("begin lost", "settle lost") and self._server is not None:
            proxy = stack.enter_context(proxy_before(self._server.socket))
            self.url = proxy.url(str(sa.make_url(life.ledger).database))
            self._cut = lambda: setattr(proxy, "fates", ["lost after"])
        elif self._own == "away" and (self._server is not None or not self._joint):
            access = stack.enter_context(access_to(life.ledger, self._server or PostgresServer(Path())))
            self.url = access.url

            def leave() -> None:
                access.take_away()
                threading.Timer(faults.AWAY_S, access.bring_back).start()

            self._leave = leave
        if self._own == "away" and self._joint:
            shop.before_commit = lambda: self._once(lambda: self._leave())

    def begin(self, executor: Executor) -> None:
        """The executor is open: from here on the trouble may come."""
        engine = executor._engine
        if self._own in ("begin lost", "settle lost") and self._server is None:
            plan: list[str] = []
            self._stack.enter_context(commits(engine, plan))
            self._cut = lambda: plan.append("lost after")
        elif self._own == "away" and self._server is None and self._joint:

            def leave() -> None:
                gone = ExitStack()
                gone.enter_context(away(engine))
                threading.Timer(faults.AWAY_S, gone.close).start()

            self._leave = leave

    def observe(self, moment: str, step: str) -> None:
        """Told of each step, before anybody dies at it."""
        place = ("before", {"begin lost": "Start", "settle lost": "Write:SettleReturned"}.get(str(self._own)))
        if self._joint:
            place = ("before", "Transact")
        if self._own in ("begin lost", "settle lost") and (moment, step) == place:
            self._once(self._cut)
        if self._own == "away" and not self._joint and (moment, step) == ("after", "Attempt"):
            self._once(self._leave)

    def _once(self, happens: Callable[[], object]) -> None:
        if not self._done:
            self._done = True
            happens()
