"""Runs one cell of the fault table: real processes, one after the other or at once, and a provider in another process.

Owns the order of things and the reading of the ends. What a process does is `life`'s.
"""

from __future__ import annotations

import itertools
import json
import shutil
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from crash.nursery import Nursery
from faults import life as lives
from faults.faults import Cell
from faults.life import Life, SharedClock, payments
from faults.tiers import MARGIN_S, RETENTION_S, TIMEOUT_S
from postgres import PostgresServer
from provider import Provider

from counterfoil.ledger.audit import Audit
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger

LIVES: Final = "faults.life"
KILLED: Final = "killed"
LEASE_S: Final = TIMEOUT_S + MARGIN_S


@dataclass(frozen=True, slots=True)
class Told:
    """What a call told, or how the effect stands in the ledger (`code` is then the row's)."""

    code: str | None
    verdict: str | None
    proof: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a cell came to. `first`: what the first call was told, then the call that came meanwhile, if one did.

    `settled` is how the effect stood after an hour of looking, `again` what a second identical call was told then,
    `ended` how the effect stands at last. Effects, looks and requests are the provider's own counts. `untrue` is what
    was told or stood on record and was not so at that moment.
    """

    first: tuple[Told, ...]
    settled: Told
    again: Told
    ended: Told
    effects: int
    looks: int
    requests: int
    attempts: int
    incidents: tuple[str, ...]
    untrue: tuple[str, ...] = ()


@dataclass(frozen=True)
class Theatre:
    """What all cells share. `templates` are the ledgers to copy: a file, and the name of a server's database."""

    nursery: Nursery
    server: PostgresServer
    templates: tuple[Path, str]
    folder: Path
    closed_port: int
    numbers: Iterator[int] = field(default_factory=itertools.count)
    copying: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def ledger(self, database: str, folder: Path) -> Iterator[str]:
        """The URL of a new ledger."""
        if database == "sqlite":
            shutil.copyfile(self.templates[0], folder / "ledger.db")
            yield f"sqlite:///{folder / 'ledger.db'}"
        else:
            with self.copying:
                name = self.server.create(template=self.templates[1])
            yield self.server.url(name)
            self.server.drop(name)


def played(cell: Cell, database: str, at: Theatre) -> Ending:
    """Run a cell on that database ("sqlite" or "postgresql"): its ending."""
    folder = at.folder / f"{database}-{next(at.numbers)}"
    folder.mkdir()
    with ExitStack() as stack:
        url = stack.enter_context(at.ledger(database, folder))
        provider = stack.enter_context(Provider.start(folder / "provider.jsonl"))
        clock = SharedClock.create(folder / "clock")
        engine = open_engine(url)
        stack.callback(engine.dispose)
        payments.create(engine)
        first = Life(
            does="first",
            tier=cell.tier.name,
            fault=cell.fault.name,
            ledger=url,
            socket=str(at.server.socket),
            provider=provider.url,
            closed_port=at.closed_port,
            clock=str(folder / "clock"),
            out=str(folder / "first"),
            marker=str(folder / "marker"),
            gate=str(folder / "gate"),
            point=cell.fault.joint if cell.tier.joint else cell.fault.point,
            stop=cell.fault.stop,
        )
        return _Play(cell, at.nursery, provider, clock, engine, first).ending()


class _Play:
    """One run of one cell."""

    def __init__(
        self, cell: Cell, nursery: Nursery, provider: Provider, clock: SharedClock, engine: sa.Engine, first: Life
    ) -> None:
        self._cell = cell
        self._nursery = nursery
        self._provider = provider
        self._clock = clock
        self._engine = engine
        self._first = first
        self._calm = replace(first, point=None, stop=False)
        self._untrue: list[str] = []

    def ending(self) -> Ending:
        fault, provider = self._cell.fault, self._provider
        if self._cell.tier.remembers:
            provider.dedupe(RETENTION_S)
        self._arm()
        first = self._first_calls()
        for one in first:
            self._check(one)
        if not fault.look_lasts:
            provider.disarm()
        if fault.lands == "after the answer":
            provider.release()
            provider.quiesce()
        settled = self._lived(replace(self._calm, does="look after", out=f"{self._first.out}-looks"))
        self._check(settled)
        again = self._lived(replace(self._calm, does="second", out=f"{self._first.out}-again"))
        self._check(again)
        if fault.lands == "at last":
            provider.release()
            provider.quiesce()
            self._lived(replace(self._calm, does="audit", out=f"{self._first.out}-audit"))
        provider.quiesce()
        return self._read(first, settled, again)

    def _arm(self) -> None:
        fault = self._cell.fault
        if fault.request is not None and not self._cell.tier.joint:
            self._provider.arm(fault.request.kind, status=fault.request.status, acts=fault.request.acts)
        if fault.look is not None:
            self._provider.arm(fault.look.kind, times=None, status=fault.look.status, payload=lives.ORDER)

    # ------------------------------------------------------------ the calls that meet the fault

    def _first_calls(self) -> tuple[Told, ...]:
        fault = self._cell.fault
        if fault.at_once:
            return self._at_once()
        if fault.stop:
            return self._stopped()
        code = self._nursery.live(self._first)
        if self._first.point is None:
            assert code == 0, self._left(self._first)
            return (self._told(self._first),)
        assert code == -signal.SIGKILL, f"it did not come to its point: {code} {self._left(self._first)}"
        return (Told(KILLED, None, None),)

    def _stopped(self) -> tuple[Told, ...]:
        """The first process stands still past its lease while another one calls."""
        sleeper = self._nursery.begin(self._first)
        sleeper.await_stopped(Path(self._first.marker))
        self._clock.advance(LEASE_S + 1)
        other = self._lived(replace(self._calm, does="second", out=f"{self._first.out}-other"))
        sleeper.resume()
        assert sleeper.ended.result(lives.CLIENT_S) == 0, self._left(self._first)
        return (self._told(self._first), other)

    def _at_once(self) -> tuple[Told, ...]:
        """Two processes call; one of them is carried out, and is held until the other has been answered."""
        both = [replace(self._calm, out=f"{self._first.out}-{number}") for number in (1, 2)]
        born = {one.out: self._nursery.begin(one) for one in both}
        if not self._cell.tier.joint:
            self._provider.await_parked()
        outs = {one.ended: out for out, one in born.items()}
        waiter = outs[next(as_completed(outs))]
        Path(self._first.gate).touch()
        self._provider.release()
        for one in both:
            assert born[one.out].ended.result(lives.CLIENT_S) == 0, self._left(one)
        told = {one.out: self._told(one) for one in both}
        return (told.pop(next(out for out in told if out != waiter)), told[waiter])

    # ------------------------------------------------------------ reading

    def _lived(self, life: Life) -> Told:
        assert self._nursery.live(life) == 0, self._left(life)
        return self._told(life)

    def _told(self, life: Life) -> Told:
        return Told(**json.loads(Path(life.out).read_text("utf-8")))

    def _left(self, life: Life) -> str:
        out = Path(life.out)
        return out.read_text("utf-8") if out.exists() else "it left nothing"

    def _read(self, first: tuple[Told, ...], settled: Told, again: Told) -> Ending:
        audit = Audit(Ledger(self._engine))
        (row,) = (one for one in audit.effects() if one.tool == "pay")
        requests = [one for one in self._provider.requests() if one["reference"] == row.id]
        return Ending(
            first=first,
            settled=settled,
            again=again,
            ended=Told(row.code, str(row.verdict), row.proof and str(row.proof)),
            effects=self._effects(),
            looks=sum(one["method"] == "GET" for one in requests),
            requests=sum(one["method"] == "POST" for one in requests),
            attempts=row.attempts,
            incidents=tuple(sorted(one.kind for one in audit.incidents())),
            untrue=tuple(self._untrue),
        )

    def _effects(self) -> int:
        """How many payments there are now, stones aside."""
        if not self._cell.tier.joint:
            return sum(one["body"] == lives.ORDER for one in self._provider.effects())
        with self._engine.connect() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(payments)).scalar_one()

    def _check(self, told: Told) -> None:
        """Compare what is said with what is there."""
        effects = self._effects()
        if (told.verdict, effects > 0) in {("no_effect", True), ("effect_applied", False)}:
            self._untrue.append(f"{told.code}, {told.verdict}, and there are {effects}")


def wrong(cell: Cell, ending: Ending) -> Iterator[str]:
    """What may never be: more than one effect, where nobody broke his word, or a verdict that is not so."""
    if ending.effects > 1 and not cell.fault.breaks_word:
        yield f"{ending.effects} effects"
    if ending.effects > 1 and "applied_more_than_once" not in ending.incidents:
        yield "more than one effect, and no incident"
    if ending.ended.verdict == "no_effect" and ending.effects:
        yield "no effect, and there is one"
    if ending.ended.verdict == "effect_applied" and not ending.effects:
        yield "applied, and there is none"
    if ending.requests > ending.attempts:
        yield f"{ending.requests} requests in {ending.attempts} attempts"
    yield from ending.untrue
