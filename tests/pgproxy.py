"""A proxy before a PostgreSQL server that understands enough of the protocol to see a COMMIT and its answer.

Owns what happens to connections: cut at COMMIT before, while or after the server has carried it out, the server taken
away and brought back, or silent. Bridges TCP on the loopback to the server's UNIX socket. Knows nothing of Counterfoil.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypeAlias

# counts: passed on. lost before: the server never sees it. lost meanwhile: the server gets it while the client's
# connection ends. lost after: carried out, the answer is lost.
Fate: TypeAlias = Literal["counts", "lost before", "lost meanwhile", "lost after"]
_ENCRYPTION = (80877103, 80877104)


class PostgresProxy:
    """A listening proxy. `fates` is what happens to the next COMMITs, one after the other; then all count.

    `happened` tells what became of each COMMIT that arrived.
    """

    def __init__(self, upstream: Path) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.fates: list[Fate] = []
        self.happened: list[Fate] = []
        self.when_lost: Callable[[], None] = lambda: None  # done before a client hears that its COMMIT was lost
        self._lock = threading.Lock()
        self._pairs: list[_Pair] = []
        self._is_away = False
        self._ended = False
        threading.Thread(target=self._accept, name="pgproxy", daemon=True).start()

    def url(self, database: str) -> str:
        """What SQLAlchemy connects to, through this proxy."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{database}"

    def take_away(self) -> None:
        """End every connection, and every new one at once, as when the server is gone."""
        with self._lock:
            self._is_away = True
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            pair.end()

    def bring_back(self) -> None:
        """Let new connections through again."""
        with self._lock:
            self._is_away = False

    def close(self) -> None:
        """End everything."""
        self._ended = True
        self._listener.close()
        self.take_away()

    def fate(self) -> Fate:
        """What happens to the COMMIT that has just arrived."""
        with self._lock:
            fate: Fate = self.fates.pop(0) if self.fates else "counts"
            self.happened.append(fate)
            return fate

    def _accept(self) -> None:
        while not self._ended:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                away = self._is_away
            if away:
                client.close()
                continue
            server = socket.socket(socket.AF_UNIX)
            server.connect(str(next(self._upstream.glob(".s.PGSQL.*[0-9]"))))
            pair = _Pair(self, client, server)
            with self._lock:
                self._pairs.append(pair)
            pair.start()


class _Pair:
    """One client's connection and the server's."""

    def __init__(self, proxy: PostgresProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._swallow_answer = False

    def start(self) -> None:
        back = threading.Thread(target=self._until_end, args=(self._from_server,), name="pgproxy-back", daemon=True)

        def forth() -> None:
            with self._client, self._server:
                self._until_end(self._from_client)
                back.join()

        back.start()
        threading.Thread(target=forth, name="pgproxy-forth", daemon=True).start()

    def end(self) -> None:
        for one in (self._client, self._server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _until_end(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(OSError, EOFError):
            work()
        self.end()

    def _from_client(self) -> None:
        while True:  # what comes first has no letter: asking for encryption, then the start
            head = _exactly(self._client, 8)
            length, code = struct.unpack("!II", head)
            self._server.sendall(head + _exactly(self._client, length - 8))
            if code not in _ENCRYPTION:
                break
        while True:
            letter, body = _message(self._client)
            if letter in b"QP" and _is_commit(letter, body):
                match self._proxy.fate():
                    case "lost before":
                        return
                    case "lost meanwhile":
                        self._server.sendall(_packed(letter, body))
                        self._client.shutdown(socket.SHUT_RDWR)
                        return
                    case "lost after":
                        self._swallow_answer = True
                    case _:
                        pass
            self._server.sendall(_packed(letter, body))

    def _from_server(self) -> None:
        while data := self._server.recv(65536):
            if self._swallow_answer and b"COMMIT\0" in data:
                self._proxy.when_lost()
                return
            self._client.sendall(data)


def _is_commit(letter: bytes, body: bytes) -> bool:
    text = body if letter == b"Q" else body.split(b"\0", 1)[1]
    return text.upper().startswith(b"COMMIT")


def _packed(letter: bytes, body: bytes) -> bytes:
    return letter + struct.pack("!I", len(body) + 4) + body


def _message(connection: socket.socket) -> tuple[bytes, bytes]:
    letter, length = struct.unpack("!cI", _exactly(connection, 5))
    return letter, _exactly(connection, length - 4)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


@contextlib.contextmanager
def proxy_before(upstream: Path) -> Iterator[PostgresProxy]:
    """A proxy before the server whose UNIX socket is in the folder `upstream`."""
    proxy = PostgresProxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
