"""What one process of a crash test is to do with its life, and where it dies or stands still.

Owns the orders that a process is given and the observer that kills or stops its own process. `shop` has the tools of
each tier, `living` does what was ordered. Judges nothing: `story` does.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import sqlalchemy as sa

TIMEOUT_S = 0.5
GRACE_S = 0.3
MARGIN_S = 0.1
CLIENT_S = 0.8  # longer than the attempt, so that a held answer makes the thread overrun
RETENTION_S = 60.0
ORDER = {"order": "A-1", "amount": 5}
TOOL = "pay"
POLL_S = 0.15
SWEEP_S = 0.02
BETWEEN_S = 5.0
WRITES = ("Start", "Transact", "Write:SettleReturned", "Write:SettleClosed", "Write:SettleLost", "Write:SettleLook")
ROW_WRITTEN = ("INSERT INTO effects", "UPDATE effects", "WITH born", "WITH written")
BEHIND = ("counterfoil-sightings", "counterfoil-overruns")

Tier: TypeAlias = Literal["T0", "T1", "T2", "T3", "T4", "T5"]
Verb: TypeAlias = Literal["call", "reconcile", "sweep", "watch", "resolve"]
Told: TypeAlias = dict[str, Any]
Body: TypeAlias = Literal["blocking", "coroutine", "blocking_in_loop"]


class Point(NamedTuple):
    """Where a process dies: at the `occurrence`-th time that `moment` of `step` is reached.

    Moments of every step: before, after. Of a step that writes also: sql (the effect's row is written; its entry is
    not, or by the same statement), commit (all is written, COMMIT is not sent), committed. The step `Request` is the
    tool's own: before it is sent (inside `effect.sending()`; with T5, before its row is written), and after it was
    answered. `Revocation` is the same of a tool's revoke.
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
    `settle_s` is over whatever happens; with "watch" it watches until the effect is settled. With "resolve" it is a
    person who decides once by what the provider has.
    With `slowness` every time that the tools declare is so many times as long.
    Each point that is passed is a line of `log` at once, if that is the name of a file. `part` is the module that plays
    this life, with what it wants to know in `detail`.
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
    grace_s: float = GRACE_S
    slowness: int = 1
    log: str = ""
    part: str = "crash.living"
    detail: Mapping[str, Any] = field(default_factory=dict)


# ---------------------------------------------------------------- dying


class Mortal(Protocol):
    """What says where a process ends: see `Life`."""

    @property
    def point(self) -> Point | None: ...

    @property
    def stop(self) -> bool: ...

    @property
    def marker(self) -> str: ...

    @property
    def log(self) -> str: ...


class Watch:
    """Sees every point of the process go by, and ends it at the one that was asked for."""

    def __init__(self, life: Mortal) -> None:
        self._life = life
        self._times: Counter[tuple[str, str]] = Counter()
        self._step = ""
        self._committing = False
        self._busy: set[int] = set()  # connections in use
        self._stopping = False
        self._changed = threading.Condition()
        self._log = os.open(life.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND) if life.log else None
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
        if self._log is not None:
            os.write(self._log, f"{point}\n".encode())
        if point == self._life.point:
            self._die(point)

    def _die(self, point: Point) -> None:
        with Path(self._life.marker).open("w") as marker:
            marker.write(str(point))
            marker.flush()
            os.fsync(marker.fileno())
        if not self._life.stop:
            os.kill(os.getpid(), signal.SIGKILL)
        elif point.moment in ("sql", "commit") or self._step == "Transact":
            _stop()
        else:
            self._stand_still()

    def _stand_still(self) -> None:
        """Stop when no other thread is in the middle of a transaction, whose locks everybody would wait for."""
        with self._changed:
            self._stopping = True
            self._changed.wait_for(lambda: not self._busy, BETWEEN_S)
            _stop()
            self._stopping = False
            self._changed.notify_all()

    def listen(self) -> None:
        """See into the ledger's transactions too, in this process alone."""
        sa.event.listen(sa.Engine, "after_cursor_execute", self._executed)
        sa.event.listen(sa.Engine, "commit", self._commits)
        sa.event.listen(sa.Pool, "checkout", self._checked_out)
        sa.event.listen(sa.Pool, "checkin", self._checked_in)

    def _in_write(self) -> bool:
        return self._step in WRITES and threading.current_thread().name not in BEHIND

    def _executed(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if self._in_write() and statement.startswith(ROW_WRITTEN):
            self.reach("sql", self._step)

    def _commits(self, _connection: Any) -> None:
        if self._in_write():
            self._committing = True
            self.reach("commit", self._step)

    def _checked_out(self, _: Any, record: Any, __: Any) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._stopping)
            self._busy.add(id(record))

    def _checked_in(self, _: Any, record: Any) -> None:
        with self._changed:
            self._busy.discard(id(record))
            self._changed.notify_all()
        if self._in_write() and self._committing:
            self._committing = False
            self.reach("committed", self._step)


def _stop() -> None:
    """Stop this process, and this thread at once: a signal to the process might reach another thread first, and this
    one would go on for a moment."""
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


# ---------------------------------------------------------------- for the nursery

IMPORTED = ("crash.living",)


def live(life: Life) -> None:
    """Live this life in the module that plays it."""
    importlib.import_module(life.part).live(life)


def from_json(line: str) -> Life:
    """The life in one line of JSON."""
    content = json.loads(line)
    point = content.pop("point")
    return Life(**content, point=None if point is None else Point(*point))
