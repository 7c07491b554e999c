"""Group commit: what callers ask of the ledger at the same moment goes to the database as one.

Owns the queue, and who serves it. Who asks while nobody else does is served in its own thread, without a wait and
without a change of threads. While that goes on, the others wait in a queue, which one daemon thread serves: all that
waits, each key once, in one go. An answer is given when the whole batch has been committed, never before. What a batch
could not do is done by each caller for itself, with what is left of its patience.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

from counterfoil.errors import LedgerUnavailable, UsageError
from counterfoil.host import Host, Thread

Q = TypeVar("Q")
A = TypeVar("A")

BATCH_MOST: Final = 256
WAITING_MOST: Final = 10_000
IDLE_S: Final = 5.0
SWITCH: Final = "COUNTERFOIL_GROUP_COMMIT"
CROWDED: Final = "too many calls wait for the ledger"


def is_grouped() -> bool:
    """Whether ledgers of this process group commits: yes, unless `COUNTERFOIL_GROUP_COMMIT=off`.

    Raises:
        UsageError: the variable says something else.
    """
    word = os.environ.get(SWITCH, "on")
    if word not in ("on", "off"):
        raise UsageError(f"{SWITCH} is on or off: unset it, and commits are grouped")
    return word == "on"


class Fell(Exception):
    """A batch came to nothing as a whole; `in_doubt`: or it may have counted. Each does its part for itself, and has
    waited for `waited_s` already."""

    def __init__(self, *, in_doubt: bool, waited_s: float = 0.0) -> None:
        super().__init__("in doubt" if in_doubt else "nothing")
        self.in_doubt = in_doubt
        self.waited_s = waited_s


class Ticket(Generic[Q, A]):
    """Somebody who waits in the queue: a thread, or a coroutine of `loop`."""

    __slots__ = ("answer", "event", "future", "question", "since")

    def __init__(self, question: Q, since: float) -> None:
        self.question = question
        self.since = since
        self.event: threading.Event | None = None
        self.future: asyncio.Future[A | BaseException] | None = None
        self.answer: A | BaseException = Fell(in_doubt=True)


class _Here(threading.local):
    """What the present thread is to a queue: whether it serves it, and whether another has been put in its place."""

    serves = False
    aside = False


class Writer(Generic[Q, A]):
    """Serves callers together. It may as well read: what it does is `alone` and `together`.

    Args:
        name: of its thread.
        key: what may be in a batch only once; None: anything goes together.
        alone: serves one question in the caller's thread.
        together: calls what it is given, once, as late as it can, for the tickets' questions, and answers each.
            Raises `Fell`: nobody is served; anything else is each caller's answer.
        direct: how many are served in their own threads at once before others wait.
        places: how many may wait; who comes then is refused, so that nobody waits without end.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        *,
        key: Callable[[Q], bytes] | None,
        alone: Callable[[Q], A],
        together: Callable[[Callable[[], Sequence[Q]]], Sequence[A | BaseException]],
        direct: int,
        places: int = WAITING_MOST,
    ) -> None:
        self._host = host
        self._name = name
        self._key = key
        self._alone = alone
        self._together = together
        self._direct_most = direct
        self._direct = 0
        self._places = places
        self._serving = False
        self._lock = threading.Lock()
        self._waiting: deque[Ticket[Q, A]] = deque()
        self._wake = host.event()
        self._thread: Thread | None = None
        self._closed = False
        self._here = _Here()

    def ask(self, question: Q) -> A | Fell:
        """Be served. `Fell`: the caller is to do it alone.

        Raises:
            LedgerUnavailable: too many wait.
        """
        ticket: Ticket[Q, A] | None = None
        mine = False
        try:
            with self._lock:
                if self._may_go_direct():
                    self._direct += 1
                    mine = True
                else:
                    ticket = Ticket(question, self._host.monotonic())
                    ticket.event = self._host.event()
                    self._enter(ticket)
            if ticket is None:
                return self._alone(question)
        finally:
            if mine:
                with self._lock:
                    self._direct -= 1
        assert ticket.event is not None
        ticket.event.wait()
        if isinstance(ticket.answer, Fell):
            return ticket.answer
        if isinstance(ticket.answer, BaseException):
            raise ticket.answer
        return ticket.answer

    def submit(self, question: Q, loop: asyncio.AbstractEventLoop) -> asyncio.Future[A | BaseException]:
        """Be served while the loop goes on; the future has the answer, `Fell`, or what was raised.

        Raises:
            LedgerUnavailable: too many wait.
        """
        ticket: Ticket[Q, A] = Ticket(question, self._host.monotonic())
        ticket.future = loop.create_future()
        with self._lock:
            self._enter(ticket)
        return ticket.future

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return len(self._waiting)

    def close(self) -> None:
        """Let the thread end once nobody waits. Whoever asks later is served alone."""
        with self._lock:
            self._closed = True
        self._wake.set()

    def stand_aside(self) -> None:
        """In the thread that serves: let others be served while somebody else's code runs here, which may wait for
        them. Answers that are ready are given after it."""
        if not self._here.serves or self._here.aside:
            return
        with self._lock:
            try:
                follows = self._host.start(self._work, self._name) if self._waiting else None
            except RuntimeError:  # the system gives no thread: it stays this one
                return
            self._here.aside = True
            self._serving, self._thread = bool(self._waiting), follows
            self._wake.set()

    def _may_go_direct(self) -> bool:
        if self._closed or self._here.serves:  # who asks while it serves others cannot wait for itself
            return True
        return not self._serving and not self._waiting and self._direct < self._direct_most

    def _enter(self, ticket: Ticket[Q, A]) -> None:
        if len(self._waiting) >= self._places:
            raise LedgerUnavailable(CROWDED, certain=True)
        if self._thread is None or not self._thread.is_alive():
            try:
                self._thread = self._host.start(self._work, self._name)
            except RuntimeError:  # the system gives no thread
                raise LedgerUnavailable(CROWDED, certain=True) from None
        self._waiting.append(ticket)
        self._wake.set()

    # ------------------------------------------------------------ in the thread

    def _work(self) -> None:
        self._here.serves = True
        while True:
            woken = self._wake.wait(IDLE_S)
            self._wake.clear()
            while self._has_more():
                self._serve()
                if self._here.aside:
                    return
            with self._lock:
                if not self._waiting and (self._closed or not woken):
                    self._thread = None
                    return

    def _has_more(self) -> bool:
        with self._lock:
            self._serving = bool(self._waiting)
            return self._serving

    def _serve(self) -> None:
        tickets: list[Ticket[Q, A]] = []

        def taken() -> list[Q]:
            if not tickets:
                tickets.extend(self._taken())
            return [ticket.question for ticket in tickets]

        try:
            answers: Sequence[A | BaseException] = self._together(taken)
        except Exception as trouble:  # noqa: BLE001 - it is the callers', who would wait for ever
            taken()
            answers = [trouble] * len(tickets)
        except BaseException:  # noqa: BLE001 - so it is here, and this thread would leave them
            taken()
            answers = [Fell(in_doubt=True)] * len(tickets)  # it may have come after COMMIT
        now = self._host.monotonic()
        for ticket, answer in zip(tickets, answers, strict=True):
            if isinstance(answer, Fell):
                ticket.answer = Fell(in_doubt=answer.in_doubt, waited_s=now - ticket.since)
            else:
                ticket.answer = answer
        _tell(tickets)

    def _taken(self) -> list[Ticket[Q, A]]:
        """All that waits, oldest first, each key once."""
        taken: list[Ticket[Q, A]] = []
        left: list[Ticket[Q, A]] = []
        seen: set[bytes] = set()
        with self._lock:
            while self._waiting and len(taken) < BATCH_MOST:
                ticket = self._waiting.popleft()
                key = None if self._key is None else self._key(ticket.question)
                if key is not None and key in seen:
                    left.append(ticket)
                    continue
                taken.append(ticket)
                if key is not None:
                    seen.add(key)
            self._waiting.extendleft(reversed(left))
        return taken


def _tell(tickets: Sequence[Ticket[Q, A]]) -> None:
    """Wake all who wait; the coroutines of one loop by one call."""
    loops: dict[asyncio.AbstractEventLoop, list[Ticket[Q, A]]] = {}
    for ticket in tickets:
        if ticket.event is not None:
            ticket.event.set()
        elif ticket.future is not None:
            loops.setdefault(ticket.future.get_loop(), []).append(ticket)
    for loop, mine in loops.items():
        with suppress(RuntimeError):  # the loop is closed: its callers are gone
            loop.call_soon_threadsafe(_resolve, mine)


def _resolve(tickets: Sequence[Ticket[Q, A]]) -> None:
    for ticket in tickets:
        if ticket.future is not None and not ticket.future.done():
            ticket.future.set_result(ticket.answer)
