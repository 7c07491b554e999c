"""The provider's server: HTTP in front of `provider_world.World`.

Owns the connections: answering, losing, holding and resetting them, and knowing when none of them can still change
anything. Listens on the loopback address only. Standard library only. `provider.py` has the client and says what each
fault does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from provider import Answer, Fault
from provider_world import World, control


class Handler(BaseHTTPRequestHandler):
    """One connection. `server.busy` holds it from its first unread byte until what it asked for is decided."""

    server: Server
    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        select.select([self.connection], [], [])  # its bytes stay in the socket, where `unread` sees them
        with self.server.world.changed:
            self.server.busy.add(self.connection)
        try:
            super().handle_one_request()
        except (ConnectionError, json.JSONDecodeError, KeyError, TypeError):
            self.close_connection = True
        finally:
            self.decided()

    def decided(self) -> None:
        """Whatever still happens on this connection, it changes nothing in the world."""
        with self.server.world.changed:
            self.server.busy.discard(self.connection)
            self.server.world.changed.notify_all()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base class calls it so
        """Say nothing: `GET /requests` has it all."""

    # ------------------------------------------------------------ routes

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        match self.path:
            case "/effects":
                members = json.loads(content)
                request = {name: members.get(name) for name in ("reference", "key", "body")}
                self.effect(request, self.fault(False, request))
            case "/revocations":
                members = json.loads(content)
                self.answer(self.server.world.revoke(members["reference"], members["keys"]))
            case "/control":
                self.decided()
                self.answer(control(self.server.world, json.loads(content)))
            case _:
                self.answer(Answer(404, {"error": "no such path"}))

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        world, reference = self.server.world, query.get("reference")
        match address.path:
            case "/effects":
                self.look(reference, self.fault(True, {"reference": reference, "key": None, "body": None}))
            case "/truth" | "/count":
                with world.changed:
                    effects = world.matching(reference)
                self.answer(Answer(200, {"count": len(effects), "effects": effects}))
            case "/requests":
                with world.changed:
                    requests = list(world.requests)
                self.answer(Answer(200, {"requests": requests}))
            case "/quiet":
                self.decided()
                self.answer(Answer(200, self.server.quiet(float(query["wait_s"]))))
            case "/parked":
                self.decided()
                self.answer(Answer(200, self.server.parked(int(query["count"]), float(query["wait_s"]))))
            case _:
                self.answer(Answer(404, {"error": "no such path"}))

    def fault(self, looks: bool, request: dict[str, Any]) -> Fault | None:
        """What is to go wrong with this request: by its own header, or armed before; the request is written down."""
        own, world = self.headers.get("X-Fault"), self.server.world
        with world.changed:
            reference = request["reference"]
            armed = next((a.fault for a in world.armed if own is None and a.take(looks, reference)), None)
            fault = Fault(**json.loads(own)) if own else armed
            world.write("request", method=self.command, fault=fault.kind if fault else None, **request)
        return fault

    # ------------------------------------------------------------ effects

    def effect(self, request: dict[str, Any], fault: Fault | None) -> None:
        world = self.server.world
        match fault:
            case None:
                self.answer(world.arrive(request))
            case Fault(kind="ack_lost"):
                world.arrive(request)
                self.lose(fault)
            case Fault(kind="request_lost"):
                self.lose(fault)
            case Fault(kind="late", seconds=seconds, status=status, payload=payload):
                world.arrive_late(request, seconds)
                self.answer(Answer(status, payload)) if status else self.lose(fault)
            case Fault(kind="reset_after"):
                world.arrive(request)
                self.reset()
            case Fault(kind="reset_before"):
                self.reset()
            case Fault(kind="status", status=status, acts=acts, payload=payload):
                if acts:
                    world.arrive(request)
                self.answer(Answer(status or 500, payload))
            case Fault(kind="slow", seconds=seconds):
                self.answer(world.arrive(request, work_s=seconds))
            case Fault(kind="refuse", status=status, payload=payload):
                self.answer(world.arrive(request, refusal=Answer(status or 402, payload or {"error": "refused"})))
            case _:
                self.answer(Answer(400, {"error": f"{fault.kind} is for looks"}))

    def look(self, reference: str | None, fault: Fault | None) -> None:
        world = self.server.world
        with world.changed:
            found = world.matching(reference)
        match fault:
            case None:
                self.answer(Answer(200, found))
            case Fault(kind="stale"):
                self.answer(Answer(200, []))
            case Fault(kind="error", status=status, payload=payload):
                self.answer(Answer(status or 500, payload))
            case Fault(kind="hang"):
                self.lose(Fault("hang", mode="hold"))
            case Fault(kind="empty"):
                self.answer(Answer(200, None))
            case Fault(kind="double"):
                self.answer(Answer(200, [one | {"id": one["id"] + more} for one in found for more in ("", "_again")]))
            case Fault(kind="look_alike"):
                body = found[-1]["body"] if found else fault.payload
                alike = {"id": "ef_alike", "reference": f"alike-{reference}", "key": None, "body": body, "at": 0.0}
                self.answer(Answer(200, [alike]))
            case _:
                self.answer(Answer(400, {"error": f"{fault.kind} is for effects"}))

    # ------------------------------------------------------------ ends

    def answer(self, answer: Answer) -> None:
        content = b"" if answer.body is None else json.dumps(answer.body).encode()
        self.decided()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def lose(self, fault: Fault) -> None:
        """No answer: end the connection, or hold it until the client has gone or the next release."""
        self.decided()
        self.close_connection = True
        if fault.mode == "drop":
            return
        world = self.server.world
        with world.changed:
            release = world.releases
        with world.parking():
            while world.releases == release and not select.select([self.connection], [], [], 0.02)[0]:
                pass

    def reset(self) -> None:
        """The client sees ECONNRESET: a socket that closes without lingering, and without a FIN before."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.server.without_fin.add(self.connection)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, port: int, world: World) -> None:
        self.world = world
        self.open: set[socket.socket] = set()
        self.busy: set[socket.socket] = set()
        self.without_fin: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.world.changed:
            self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self.world.changed:
            self.open.discard(request)
            self.busy.discard(request)
        if request in self.without_fin:
            self.without_fin.discard(request)
            request.close()
        else:
            super().shutdown_request(request)

    def unread(self) -> Iterator[socket.socket]:
        """Connections whose request is still in the socket; the caller holds the lock."""
        for connection in self.open - self.busy:
            with contextlib.suppress(OSError):
                if connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    yield connection

    def quiet(self, wait_s: float) -> dict[str, Any]:
        """Connections are accepted in their order, so whoever connected before the asker is in `open` by now."""
        end = time.monotonic() + wait_s
        while True:
            with self.world.changed:
                at_work = len(self.busy) + sum(1 for _ in self.unread())
                quiet = at_work == 0 and self.world.late == 0
                if quiet or time.monotonic() >= end:
                    return {"quiet": quiet, "at_work": at_work, "late": self.world.late}
                self.world.changed.wait(0.01)

    def parked(self, count: int, wait_s: float) -> dict[str, Any]:
        with self.world.changed:
            enough = self.world.changed.wait_for(lambda: self.world.parked >= count, wait_s)
            return {"enough": enough, "parked": self.world.parked}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="provider")
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--follow-stdin", action="store_true", help="end when standard input ends")
    chosen = parser.parse_args(arguments)
    server = Server(chosen.port, World(chosen.state))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    if chosen.follow_stdin:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        sys.stdin.read()
    else:
        server.serve_forever()
