"""Loopback servers that fail in one way each, for the tests that drive real clients into real failures.

Owns the sockets and what arrived on them. `received` holds each request that was read whole: where it is not empty, the
world may have changed whatever the client says.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import re
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LOOPBACK = "127.0.0.1"
RESET = struct.pack("ii", 1, 0)  # SO_LINGER that makes close() send a reset


class Server:
    """Answers every connection by `fault`: see the methods of that name. One thread, one connection at a time."""

    def __init__(self, fault: str, *, answer: bytes = b"", certificate: Path | None = None) -> None:
        self.received: list[bytes] = []
        self.arrived = threading.Event()
        self._serve = getattr(self, f"_{fault}")
        self._answer = answer
        self._certificate = certificate
        self._held: list[socket.socket] = []
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop_listening()
        self._thread.join(5)
        assert not self._thread.is_alive()
        for held in self._held:
            held.close()

    def _stop_listening(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.settimeout(5)
            with contextlib.suppress(OSError):  # the client may leave at any time
                self._serve(connection)
            if connection not in self._held:
                connection.close()

    def _read_request(self, connection: socket.socket) -> None:
        request = b""
        while b"\r\n\r\n" not in request:
            request += (got := connection.recv(65_536))
            if not got:
                raise ConnectionError
        head, _, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        while length and len(body) < int(length[1]):
            body += connection.recv(65_536)
        self._note(head + b"\r\n\r\n" + body)

    def _note(self, request: bytes) -> None:
        self.received.append(request)
        self.arrived.set()

    def _read_timeout(self, connection: socket.socket) -> None:
        """Reads the request and never answers."""
        self._held.append(connection)
        self._read_request(connection)

    def _reset(self, connection: socket.socket) -> None:
        """Reads the request, then resets the connection."""
        self._read_request(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def _closed(self, connection: socket.socket) -> None:
        """Reads the request, then closes without an answer."""
        self._read_request(connection)

    def _closed_for_good(self, connection: socket.socket) -> None:
        """Reads the request, then goes away altogether: who sends again finds nobody."""
        self._read_request(connection)
        self._stop_listening()

    def _answers(self, connection: socket.socket) -> None:
        """Reads the request and gives the prepared answer."""
        self._read_request(connection)
        connection.sendall(self._answer)

    def _no_tls(self, connection: socket.socket) -> None:
        """Speaks plain HTTP to a client that wants TLS."""
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")

    def _certificate_unknown(self, connection: socket.socket) -> None:
        """Shows a certificate that nobody has signed."""
        assert self._certificate is not None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate)
        with context.wrap_socket(connection, server_side=True) as secured:
            self._read_request(secured)


class MailServer(Server):
    """Plays the server's half of an SMTP dialogue: one line per line of the client, then closes the connection.

    After a line that begins with 354 it reads the whole message, which then counts as received.
    """

    def __init__(self, *lines: str, silent: bool = False) -> None:
        self._lines = lines
        self._silent = silent
        super().__init__("dialogue")

    def _dialogue(self, connection: socket.socket) -> None:
        if self._silent:
            self._held.append(connection)
            return
        for line in self._lines:
            connection.sendall(line.encode() + b"\r\n")
            end = b"\r\n.\r\n" if line.startswith("354") else b"\r\n"
            got = b""
            while not got.endswith(end):
                got += (part := connection.recv(65_536))
                if not part:
                    return
            if line.startswith("354"):
                self._note(got)


@contextlib.contextmanager
def served(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses: it is taken, so nobody else gets it, but nobody listens."""
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        yield taken.getsockname()[1]


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """A port that lets nobody in and says nothing: its queue is full, so further packets are dropped."""
    with socket.socket() as listener, socket.socket() as filling:
        listener.bind((LOOPBACK, 0))
        listener.listen(0)
        filling.connect(listener.getsockname())
        yield listener.getsockname()[1]


def self_signed(file: Path) -> Path:
    """Write a certificate for the loopback address, signed by itself, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, LOOPBACK)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOOPBACK))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
    return file
