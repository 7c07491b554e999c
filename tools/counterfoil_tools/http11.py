"""As much of HTTP/1.1 framing as the fault proxy needs: where a request ends, and how to replace one header.

Owns the reading of one request from a stream. It interprets nothing beyond Content-Length and chunked coding, and keeps
the bytes as they came, so that what reaches the upstream is what the client sent.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

BODY_BYTES_MAX: Final = 64 * 1024 * 1024
_END: Final = b"\r\n\r\n"


class BadMessage(Exception):
    """What came is not HTTP/1.1, or larger than is served here."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request: `head` is the request line and the headers with the empty line, `body` as framed on the wire."""

    method: str
    target: str
    head: bytes
    body: bytes


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read one request; None when the client closes without asking anything.

    Raises:
        BadMessage: not HTTP/1.1, or too large.
        asyncio.IncompleteReadError: the client closed in the middle of a body.
    """
    try:
        head = await reader.readuntil(_END)
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BadMessage("the connection closed inside the headers") from None
        return None
    except asyncio.LimitOverrunError:
        raise BadMessage("the headers are too long") from None
    words = head.split(b"\r\n", 1)[0].split(b" ")
    if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
        raise BadMessage("not a request of HTTP/1.1")
    body = await _read_body(reader, head)
    return Request(words[0].decode("latin-1"), words[1].decode("latin-1"), head, body)


async def _read_body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if b"chunked" in header(head, "Transfer-Encoding").lower():
        return await _read_chunks(reader)
    length = header(head, "Content-Length") or b"0"
    if not length.isdigit() or int(length) > BODY_BYTES_MAX:
        raise BadMessage("the length of the body is unusable")
    return await reader.readexactly(int(length))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        body += line
        try:
            size = int(line.split(b";", 1)[0], 16)
        except ValueError:
            raise BadMessage("a chunk without a size") from None
        if size == 0:
            break
        if len(body) + size > BODY_BYTES_MAX:
            raise BadMessage("the body is too long")
        body += await reader.readexactly(size + 2)
    while (line := await reader.readuntil(b"\r\n")) != b"\r\n":
        body += line
    return bytes(body + line)


def header(message: bytes, name: str) -> bytes:
    """The first value of a header of a message, empty when there is none.

    Example:
        >>> header(b"GET / HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n", "host")
        b'here'
    """
    wanted = name.lower().encode()
    for line in message.split(_END, 1)[0].split(b"\r\n")[1:]:
        label, _, content = line.partition(b":")
        if label.strip().lower() == wanted:
            return content.strip()
    return b""


def with_header(message: bytes, name: str, value: str) -> bytes:
    """The message with this one value for the header, whatever it carried before.

    Example:
        >>> with_header(b"GET / HTTP/1.1\\r\\nConnection: keep-alive\\r\\n\\r\\n", "Connection", "close")
        b'GET / HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n'
    """
    head, end, body = message.partition(_END)
    first, *lines = head.split(b"\r\n")
    wanted = name.lower().encode()
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() != wanted]
    return b"\r\n".join([first, *kept, f"{name}: {value}".encode()]) + end + body


def respond(status: int, body: bytes, *, content_type: str = "text/plain") -> bytes:
    """A whole answer of our own.

    Example:
        >>> respond(502, b"gone").splitlines()[0]
        b'HTTP/1.1 502 Bad Gateway'
    """
    lines = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join(lines).encode() + _END + body
