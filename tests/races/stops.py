"""A process is stopped (SIGSTOP) at one point of a call, others go on without it, and then it goes on too (SIGCONT).

Owns how such a stop is played and what must hold at its end. Several are played at once: on PostgreSQL under tenants of
their own, on SQLite in files of their own, because there a stopped process may hold the lock of the whole file.
"""

from __future__ import annotations

import itertools
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import psycopg
import sqlalchemy as sa
from crash.life import GRACE_S, MARGIN_S, TIMEOUT_S, WRITES, Body, Life, Point, Tier, Told, Verb
from crash.nursery import Born, Nursery
from crash.story import SETTLE_S, SLOWER, Stage, Unreached, effect_id
from crash.truth import Story, expected
from provider import Provider

from counterfoil import Row, Verdict
from counterfoil.effect import MICROSECONDS

PAUSED_S = 40.0
RECOVERED_S = 15.0
SERVER_WAITS_S = 3.0
HELD_UP_S = 8.0
POLL_S = 0.01
ASKING_S = 0.05  # a question to the database costs more than a look at a file
AT_ONCE = 10
LONG_GRACE_S = 6.0  # so that a process which goes on soon after its lease does so within grace, on a busy machine too
# Who goes on meanwhile: somebody until it is settled and any grace is over; somebody who is still at it when the
# stopped process goes on, past its lease and within grace; a person who decides by what the provider has; or somebody
# whom the transaction of the stopped process holds up, until it goes on, or until the server ends what stands still.
Meanwhile: TypeAlias = Literal["past_grace", "within_grace", "operator", "held_up", "abandoned"]


@dataclass(frozen=True, slots=True)
class Stop:
    """What is played: the process of `first` (after one that died at `death`) stops at `point`."""

    tier: Tier
    fault: str
    point: Point
    meanwhile: Meanwhile
    body: Body = "blocking"
    verb: Verb = "call"
    death: Point | None = None
    own: Verb = "call"

    def __str__(self) -> str:
        who = f"{self.own} after {self.death} " if self.death else ""
        what = f"{self.tier} {self.fault:<12} {self.body:<16} {who}stops at {self.point!s:<28}"
        return f"{what} {self.meanwhile} {self.verb}"

    @property
    def breaks_grace(self) -> bool:
        """Stopped between the check of its deadline and its request for longer than grace: the condition of P4."""
        sends = self.tier == "T2" and self.fault != "refused" and self.meanwhile == "past_grace"
        return sends and (self.point.moment, self.point.step) == ("before", "Request")

    @property
    def misleads(self) -> bool:
        """A person looked while the request of the stopped process was still to be sent."""
        return self.meanwhile == "operator" and self.point == Point("before", "Request")


@dataclass(frozen=True, slots=True)
class Ended:
    """What came of it. `own` is what the stopped process was told, `told` what all were."""

    stop: Stop
    stage: Stage
    life: Life
    own: list[Told]
    told: list[Told]
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        heard = "/".join(dict.fromkeys(seen["code"] for seen in self.own))
        return f"{self.stop} -> {heard}" + "".join(f"\n    WRONG: {problem}" for problem in self.problems)


class Yard:
    """Where stops are played."""

    def __init__(self, url: str, template: Path | None, provider: Provider, nursery: Nursery, folder: Path, port: int):
        self.provider = provider
        self._url = url
        self._template = template
        self._nursery = nursery
        self._folder = folder
        self._port = port
        self._numbers = itertools.count(1)
        self._folders = itertools.count(1)
        self._stages = ExitStack()
        self._shared: Stage | None = None

    def close(self) -> None:
        self._stages.close()

    @property
    def is_sqlite(self) -> bool:
        return self._template is not None

    def stage(self, tier: Tier) -> Stage:
        """The stage of one stop."""
        if self._shared is None or self.is_sqlite:
            folder = self._folder / str(next(self._folders))
            folder.mkdir()
            url = self._url
            if self._template is not None:
                (folder / "ledger.db").write_bytes(self._template.read_bytes())
                url = f"sqlite:///{folder / 'ledger.db'}"
            self._shared = Stage(url, self.provider, self._nursery, folder, self._port, self._numbers)
            self._stages.callback(self._shared.close)
            self._shared.prepare(tier)
        return self._shared

    # ------------------------------------------------------------ playing

    def points(
        self, story: Story, steps: Iterable[str] = (), *, own: Verb = "call", most: int = 1, calls: int = 1
    ) -> list[Point]:
        """The points that the process passes which is going to be stopped; all `steps` are among them."""
        return self.stage(story.tier).rehearse(replace(story, verb=own), steps, most=most, calls=calls)

    def play(self, stops: Sequence[Stop]) -> list[Ended]:
        """Play them, several at once; wait until the provider is quiet, and judge each. Prints the table."""
        self.stage(stops[0].tier)
        with ThreadPoolExecutor(AT_ONCE) as threads:
            ended = list(threads.map(self._played, stops))
        self.provider.quiesce()
        for one in ended:
            one.problems.extend(_wrong(one))
        sys.stdout.write("\n".join([f"\n{len(ended)} stops", *map(str, ended), ""]))
        return ended

    def _played(self, stop: Stop) -> Ended:
        for slowness in SLOWER:
            with suppress(Unreached):
                return self._once(stop, slowness)
        raise AssertionError(f"never came to its point: {stop}")

    def _once(self, stop: Stop, slowness: int) -> Ended:
        stage = self.stage(stop.tier)
        life = replace(stage.life(Story(stop.tier, stop.fault, None, body=stop.body)), slowness=slowness)
        if stop.meanwhile == "within_grace":
            life = replace(life, grace_s=LONG_GRACE_S)
        if stop.meanwhile == "abandoned":
            life = replace(life, detail={"patience_s": SERVER_WAITS_S, "timeout_s": SERVER_WAITS_S})
        elif stop.meanwhile == "held_up" and not self.is_sqlite:  # longer than the test takes to see who waits
            life = replace(life, detail={"timeout_s": HELD_UP_S})
        if stop.death is not None:
            stage.perish(life, stop.death)
        own = replace(life, out=f"{life.out}-own", ledger=self._named(life, "own"), verb=stop.own)
        if stop.own != "call":
            own = replace(own, calls=0, settle_s=SETTLE_S[stop.tier])
        elif stop.death is not None:
            own = replace(own, settle_s=SETTLE_S[stop.tier])
        elif stop.point.step == "Sight":
            own = replace(own, calls=2)
        sleeper = stopped(stage, replace(own, point=stop.point, stop=True))
        try:
            told = _MEANWHILE[stop.meanwhile](self, stop, stage, life, sleeper)
        finally:
            sleeper.resume()
        assert sleeper.ended.result(PAUSED_S) == 0, Path(own.out).read_text("utf-8")
        heard = stage.record(own)["told"]
        if isinstance(told, Born):
            assert told.ended.result(PAUSED_S) == 0, Path(life.out).read_text("utf-8")
            told = stage.record(life)["told"]
        told = [*told, *heard]
        if stop.breaks_grace:
            self._await_alarm(stage, life)
        if stop.meanwhile != "operator":  # after a person's word a call may send again, and that word may be wrong
            last = replace(life, calls=2, settle_s=SETTLE_S[stop.tier], out=f"{life.out}-last")
            told += stage.survive(last)["told"]
        return Ended(stop, stage, life, heard, told)

    # ------------------------------------------------------------ meanwhile

    def past_grace(self, stop: Stop, stage: Stage, life: Life, sleeper: Born) -> list[Told]:
        """Another process settles it, by looking or by sending; then any grace passes."""
        if stop.tier in ("T0", "T1") and stage.row(life) is not None:
            _until(stage, life, lambda row: row.now > row.lease_until)
        patience_s = min(SETTLE_S[stop.tier], RECOVERED_S)
        told: list[Told] = stage.survive(replace(life, verb=stop.verb, calls=2, settle_s=patience_s))["told"]
        if any(seen["code"] == "ledger_unavailable" for seen in told):  # another thread of it stands in a transaction
            raise Unreached(str(stop))
        if stop.tier == "T2":
            _until(stage, life, _past_grace)
        _until(stage, life, lambda row: not row.live)
        assert state(sleeper.pid) == "T"
        return told

    def within_grace(self, stop: Stop, stage: Stage, life: Life, sleeper: Born) -> Born:
        """Another process is at it when the stopped one goes on, past its lease and within grace."""
        born = stage.nursery.begin(replace(life, verb=stop.verb, calls=1, settle_s=SETTLE_S[stop.tier]))
        row = _until(stage, life, lambda row: not row.live)
        assert state(sleeper.pid) == "T"
        if row.absent_from is not None and row.now > row.absent_from:
            sleeper.resume()
            born.ended.result(PAUSED_S)
            raise Unreached(str(stop))
        return born

    def operator(self, stop: Stop, stage: Stage, life: Life, sleeper: Born) -> list[Told]:
        """A person decides by what the provider has, as soon as no attempt may send any more as far as is known."""
        row = stage.row(life)
        if row is None:
            return []
        _until(stage, life, lambda row: row.now > row.sends_until + MARGIN_S * MICROSECONDS)
        told: list[Told] = stage.survive(replace(life, verb="resolve", calls=0, settle_s=RECOVERED_S))["told"]
        assert state(sleeper.pid) == "T"
        return told

    def held_up(self, stop: Stop, stage: Stage, life: Life, sleeper: Born) -> Born:
        """Another process waits for the transaction in which the stopped one stands: the database says so."""
        verb: Verb = "resolve" if stop.verb == "resolve" else "call"
        calls = 0 if verb == "resolve" else 1
        other = replace(
            life, ledger=self._named(life, "other"), log=f"{life.out}-log", verb=verb, calls=calls,
            settle_s=SETTLE_S[stop.tier],
        )  # fmt: skip
        stopped_at = Path(life.marker).stat().st_mtime
        while verb == "resolve" and time.time() < stopped_at + TIMEOUT_S * life.slowness + 2 * MARGIN_S:
            time.sleep(POLL_S)
        born = stage.nursery.begin(other)
        self._await_waiting(life, other, born)
        assert state(sleeper.pid) == "T"
        if stop.meanwhile == "abandoned":
            assert born.ended.result(PAUSED_S) == 0, Path(life.out).read_text("utf-8")
            assert state(sleeper.pid) == "T"
        else:
            while time.time() < stopped_at + TIMEOUT_S * life.slowness + MARGIN_S:  # past its deadline and its lease
                time.sleep(POLL_S)
            assert not born.ended.done()
        return born

    def _await_alarm(self, stage: Stage, life: Life) -> None:
        """Reconcile until an audit look has found a second effect: once a grace is over, looks are due again."""
        row, until = stage.row(life), time.monotonic() + PAUSED_S
        assert row is not None
        while not stage.alarms(row) and time.monotonic() < until:
            stage.survive(replace(life, verb="reconcile", calls=0))

    def _named(self, life: Life, name: str) -> str:
        """The URL of a ledger whose sessions carry a name."""
        if self.is_sqlite:
            return life.ledger
        url = sa.make_url(life.ledger).update_query_dict({"application_name": f"{life.tenant}-{name}"})
        return url.render_as_string(hide_password=False)

    def _await_waiting(self, life: Life, other: Life, born: Born) -> None:
        until = time.monotonic() + PAUSED_S
        while not self._waits(life, other):
            assert time.monotonic() < until, "nobody was held up"
            assert not born.ended.done(), f"was not held up: {Path(life.out).read_text('utf-8')}"
            time.sleep(ASKING_S)

    def _waits(self, life: Life, other: Life) -> bool:
        if self.is_sqlite:
            return _stands_before_a_write(Path(other.log)) and _locked(Path(str(sa.make_url(life.ledger).database)))
        url = sa.make_url(life.ledger)
        with psycopg.connect(host=str(url.query["host"]), user="postgres", dbname=url.database) as connection:
            names = (f"{life.tenant}-other", f"{life.tenant}-own")
            return connection.execute(_HELD_UP, names).fetchone() is not None


_MEANWHILE: dict[Meanwhile, Callable[[Yard, Stop, Stage, Life, Born], list[Told] | Born]] = {
    "past_grace": Yard.past_grace,
    "within_grace": Yard.within_grace,
    "operator": Yard.operator,
    "held_up": Yard.held_up,
    "abandoned": Yard.held_up,
}
_HELD_UP = """
SELECT 1 FROM pg_stat_activity AS waiter, pg_stat_activity AS holder, pg_locks AS lock
WHERE waiter.application_name = %s AND holder.application_name = %s
  AND waiter.wait_event_type = 'Lock' AND holder.pid = ANY (pg_blocking_pids(waiter.pid))
  AND lock.pid = waiter.pid AND NOT lock.granted AND holder.state = 'idle in transaction'
"""


def stopped(stage: Stage, life: Life) -> Born:
    """A process that has come to its point and stands still there.

    Raises:
        Unreached: it ended without coming there.
    """
    marker = Path(life.marker)
    marker.unlink(missing_ok=True)
    born = stage.nursery.begin(life)
    until = time.monotonic() + PAUSED_S
    while not (marker.exists() and state(born.pid) == "T"):
        assert time.monotonic() < until, "the process did not come to its point"
        if born.ended.done():
            assert born.ended.result() == 0, Path(life.out).read_text("utf-8")
            raise Unreached(str(life.point))
        time.sleep(POLL_S)
    assert marker.read_text("utf-8") == str(life.point)
    return born


def state(pid: int) -> str:
    """The kernel's letter for what a process does: T when it is stopped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


def _until(stage: Stage, life: Life, wanted: Callable[[Row], bool]) -> Row:
    """The row as soon as there is one that is like that by the ledger's clock."""
    until = time.monotonic() + PAUSED_S
    while True:
        row = stage.row(life)
        if row is not None and wanted(row):
            return row
        assert time.monotonic() < until
        time.sleep(ASKING_S)


def _past_grace(row: Row) -> bool:
    return row.now > row.sends_until + round((GRACE_S + MARGIN_S) * MICROSECONDS)


def _stands_before_a_write(log: Path) -> bool:
    """Whether the last point that a process passed is the one before it writes."""
    last = log.read_text("utf-8").splitlines()[-1:] if log.exists() else []
    return any(last == [f"before {step}"] for step in (*WRITES, "Resolve"))


def _locked(file: Path) -> bool:
    """Whether somebody holds the write lock of a SQLite file."""
    with closing(sqlite3.connect(file, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
        return False


# ---------------------------------------------------------------- what must hold


def _wrong(ended: Ended) -> Iterator[str]:
    stop, stage, life = ended.stop, ended.stage, ended.life
    row, effects = stage.row(life), stage.count(life)
    assert row is not None
    if not ended.own and stop.own == "call":
        yield "the stopped process was told nothing"
    requests = [one for one in stage.provider.requests() if one["reference"] == effect_id(life)]
    if sum(one["method"] == "POST" for one in requests) > row.attempts:
        yield f"more requests than the {row.attempts} attempts"
    if stop.breaks_grace:
        if effects != 2:
            yield f"{effects} effects, although it was stopped between its check and its request"
        if not any("applied_more_than_once" in alarm for alarm in stage.alarms(row)):
            yield f"two effects and no incident: {stage.alarms(row)}"
        return
    yield from _wrong_told(ended, row)
    if row.verdict is Verdict.EFFECT_APPLIED and effects < 1:
        yield "applied, and there is none"
    if stop.meanwhile == "operator":
        yield from _wrong_beside_operator(ended, row, effects)
    else:
        yield from _wrong_end(ended, row, effects)


def _wrong_told(ended: Ended, row: Row) -> Iterator[str]:
    """What was read before the stop may be told after it; otherwise a "no effect" was never so."""
    yield from (f"told {seen}" for seen in ended.told if seen["verdict"] == "effect_applied" and not seen["count"])
    if Verdict.NO_EFFECT not in ended.stage.verdicts(row):
        yield from (f"told {seen}" for seen in ended.told if seen["verdict"] == "no_effect")


def _wrong_end(ended: Ended, row: Row, effects: int) -> Iterator[str]:
    """One effect at most, a verdict that is so and as far as the tier must come, and nobody is alarmed."""
    if effects > 1:
        yield f"{effects} effects"
    if row.verdict is Verdict.NO_EFFECT and effects:
        yield "no effect, and there is one"
    if row.verdict not in expected(Story(ended.stop.tier, ended.stop.fault, None), effects):
        yield f"ended as {row.verdict}"
    yield from ended.stage.lies(row)
    yield from ended.stage.alarms(row)


def _wrong_beside_operator(ended: Ended, row: Row, effects: int) -> Iterator[str]:
    """Where nobody was misled there is no doubt and no alarm. Whoever was has it in the record, unless the process was
    gone before its last thread could say what it had done."""
    alarms = ended.stage.alarms(row)
    if not ended.stop.misleads:
        yield from alarms
        if effects > 1 or (row.verdict is Verdict.NO_EFFECT and effects):
            yield f"{effects} effects, ended as {row.verdict}"
        if row.verdict is Verdict.EFFECT_UNKNOWN and row.attempts == 1:  # after "no effect" it may be sent again
            yield "nothing was decided"
    elif ended.stop.fault == "none" and row.verdict is Verdict.EFFECT_APPLIED and not alarms:
        yield f"an effect came after a person's word that there is none, and nobody is told: {alarms}"
    if ended.stop.misleads and effects > row.attempts:
        yield f"{effects} effects"


def right(ended: Sequence[Ended]) -> bool:
    """True when nothing is wrong with any of them, and there are some."""
    return bool(ended) and not any(one.problems for one in ended)
