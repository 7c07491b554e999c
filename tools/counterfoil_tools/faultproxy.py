"""A small HTTP/1.1 proxy on the loopback that loses things on demand, in front of one upstream server.

Owns the faults: when they fire, what the client sees, and the counts of what really reached the upstream. It must not
know what the requests mean, and it never repeats one. Every request gets its own connection to the upstream, and every
client connection carries one request (`Connection: close` both ways), so that a fault hits what it was meant for. For
tests and demonstrations only: it has no TLS, no limits per client and no access control but the loopback.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias, assert_never, get_args

from counterfoil_tools.http11 import BadMessage, Request, read_request, respond, with_header

FaultKind: TypeAlias = Literal["lose_answer", "reset_after", "reset_before", "swallow", "delay"]

LOOPBACK: Final = "127.0.0.1"
ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
STOP_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the next `count` requests that match `method` ("*" is any) and begin with `path`.

    Kinds:
        lose_answer: the upstream acts, its answer never comes; the connection stays open until the client gives up.
        reset_after: the upstream acts, then the client's connection is reset (RST).
        reset_before: the connection is reset and the upstream hears nothing.
        swallow: the upstream hears nothing, and the client hears nothing either.
        delay: the request reaches the upstream `seconds` late, also when the client has gone meanwhile.

    Raises:
        ValueError: an unknown kind, a count below 1, or a delay without seconds.

    Example:
        >>> Fault("lose_answer", method="POST", path="/v1/payment_intents").count
        1
    """

    kind: FaultKind
    method: str = "*"
    path: str = "/"
    count: int = 1
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise ValueError(f"no fault is called {self.kind!r}; there are: {', '.join(get_args(FaultKind))}")
        if self.count < 1:
            raise ValueError("Fault(count=...) is the number of requests it hits, 1 or more")
        if (self.kind == "delay") != (self.seconds > 0):
            raise ValueError("Fault(seconds=...) is above 0 for a delay, and for nothing else")

    def matches(self, request: Request) -> bool:
        return self.method in ("*", request.method) and request.target.startswith(self.path)


@dataclass(slots=True)
class _Armed:
    fault: Fault
    left: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What passed, by HTTP method. `acted` are the requests that the upstream has answered; `fired` counts by fault."""

    seen: dict[str, int]
    forwarded: dict[str, int]
    acted: dict[str, int]
    fired: dict[str, int]


@dataclass(slots=True)
class _Book:
    """The proxy's state, under one condition: the loop's thread writes it, any thread waits for it."""

    armed: list[_Armed] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    forwarded: Counter[str] = field(default_factory=Counter)
    acted: Counter[str] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    changed: threading.Condition = field(default_factory=threading.Condition)  # its lock may be taken again inside

    def note(self, counter: Counter[str], name: str) -> None:
        with self.changed:
            counter[name] += 1
            self.changed.notify_all()

    def take(self, request: Request) -> Fault | None:
        with self.changed:
            self.seen[request.method] += 1
            hit = next((armed for armed in self.armed if armed.fault.matches(request)), None)
            if hit is not None:
                hit.left -= 1
                if hit.left == 0:
                    self.armed.remove(hit)
            self.changed.notify_all()
            return hit.fault if hit is not None else None


class FaultProxy:
    """The proxy, running in a thread of its own between `start` and `stop` (or in a `with` block).

    Args:
        host: where the upstream listens.
        port: the upstream's port.

    Raises:
        OSError: no port is free.

    Example:
        >>> with FaultProxy("127.0.0.1", 9) as proxy:
        ...     proxy.arm(Fault("swallow", method="POST"))
        ...     proxy.counts().seen
        {}
    """

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._book = _Book()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self.port = 0
        self.control_port = 0

    @property
    def url(self) -> str:
        """The address to give to a client in place of the upstream's."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def control_url(self) -> str:
        """For another process: GET reads the counts, POST arms one fault given as JSON, DELETE disarms all."""
        return f"http://{LOOPBACK}:{self.control_port}"

    def arm(self, fault: Fault) -> None:
        """Let `fault` hit the next matching requests. Faults armed earlier are served first."""
        with self._book.changed:
            self._book.armed.append(_Armed(fault, fault.count))

    def disarm(self) -> None:
        """Forget every fault that has not fired yet."""
        with self._book.changed:
            self._book.armed.clear()

    def counts(self) -> Counts:
        """The counts at this moment."""
        book = self._book
        with book.changed:
            return Counts(dict(book.seen), dict(book.forwarded), dict(book.acted), dict(book.fired))

    def wait(self, reached: Callable[[Counts], bool], *, timeout_s: float) -> bool:
        """Wait until `reached(counts)` holds, at most `timeout_s` seconds; says whether it does.

        Example:
            >>> with FaultProxy("127.0.0.1", 9) as proxy:
            ...     proxy.wait(lambda counts: counts.fired.get("swallow", 0) == 0, timeout_s=1)
            True
        """
        with self._book.changed:
            return self._book.changed.wait_for(lambda: reached(self.counts()), timeout_s)

    def start(self) -> FaultProxy:
        """Listen on two free loopback ports and serve from a daemon thread."""
        sockets = [_listening(), _listening()]
        self.port, self.control_port = (listener.getsockname()[1] for listener in sockets)
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(sockets, ready), name="faultproxy", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def stop(self) -> None:
        """Close everything, held connections included, and end the thread. A second call does nothing."""
        thread, loop = self._thread, self._loop
        if thread is None or loop is None:
            return
        self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join(STOP_S)

    def __enter__(self) -> FaultProxy:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ------------------------------------------------------------ the loop's thread

    def _run(self, sockets: list[socket.socket], ready: threading.Event) -> None:
        loop = self._loop = asyncio.new_event_loop()
        try:
            for listener, handler in zip(sockets, (self._serve, self._control), strict=True):
                loop.run_until_complete(self._listen(listener, handler))
            loop.call_soon(ready.set)
            loop.run_forever()
        finally:
            ready.set()
            loop.run_until_complete(self._close())
            loop.close()

    async def _listen(self, listener: socket.socket, handler: _Handler) -> None:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(_guarded(handler, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self._servers.append(await asyncio.start_server(accept, sock=listener))

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # closed transports leave the loop in its next turn

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if request is None:
            return
        fault = self._book.take(request)
        if fault is None:
            await _answer(writer, await self._forward(request))
            return
        if fault.kind in ("lose_answer", "reset_after"):
            await self._forward(request)
        self._book.note(self._book.fired, fault.kind)
        match fault.kind:
            case "lose_answer" | "swallow":
                await _until_gone(reader)
            case "reset_after" | "reset_before":
                _reset(writer)
            case "delay":
                await asyncio.sleep(fault.seconds)
                await _answer(writer, await self._forward(request))
            case _:
                assert_never(fault.kind)

    async def _forward(self, request: Request) -> bytes:
        """Send the request on, read the whole answer; an upstream that is not there is answered 502."""
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_connection(*self._upstream)
            writer.write(with_header(request.head, "Connection", "close") + request.body)
            await writer.drain()
            self._book.note(self._book.forwarded, request.method)
            answer = await _read_answer(reader)
        except OSError:
            return respond(502, b"the upstream cannot be reached")
        finally:
            if writer is not None:
                writer.close()
        if not answer:
            return respond(502, b"the upstream closed the connection without an answer")
        self._book.note(self._book.acted, request.method)
        return with_header(answer, "Connection", "close")

    async def _control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if request is None:
            return
        try:
            answer = respond(200, json.dumps(self._ordered(request)).encode(), content_type="application/json")
        except (TypeError, ValueError) as error:
            answer = respond(400, str(error).encode())
        await _answer(writer, answer)

    def _ordered(self, request: Request) -> dict[str, Any]:
        match request.method:
            case "POST":
                self.arm(Fault(**json.loads(request.body)))
            case "DELETE":
                self.disarm()
            case "GET":
                pass
            case _:
                raise ValueError("GET reads the counts, POST arms a fault, DELETE disarms all")
        counts = self.counts()
        return {"seen": counts.seen, "forwarded": counts.forwarded, "acted": counts.acted, "fired": counts.fired}


_Handler: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]


async def _guarded(handler: _Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A client that goes away or speaks nonsense ends its own connection and nothing else."""
    try:
        with suppress(ConnectionError, BadMessage, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await handler(reader, writer)
    finally:
        writer.close()


def _listening() -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind((LOOPBACK, 0))
    return listener


async def _answer(writer: asyncio.StreamWriter, answer: bytes) -> None:
    writer.write(answer)
    await writer.drain()


async def _read_answer(reader: asyncio.StreamReader) -> bytes:
    """All until the upstream closes: it was asked to, and an answer's end needs no other rule then."""
    read = bytearray()
    while part := await reader.read(65536):
        read += part
        if len(read) > ANSWER_BYTES_MAX:
            raise BadMessage("the answer is too long")
    return bytes(read)


async def _until_gone(reader: asyncio.StreamReader) -> None:
    while await reader.read(65536):
        pass


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with RST in place of FIN: a linger of zero seconds discards what is unsent and says so to the peer."""
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
