"""The fault proxy in front of a small HTTP server that runs in another process and keeps a list of what reached it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import httpx
import pytest

from counterfoil_tools.faultproxy import Fault, FaultKind, FaultProxy
from counterfoil_tools.http11 import header, with_header

UPSTREAM = """
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    reached = []
    def serve(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size).decode()
                self.rfile.readline()
            self.rfile.readline()
        if self.path != "/reached":
            self.reached.append([self.command, self.path, body])
        answer = json.dumps(self.reached).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    do_GET = do_POST = do_PUT = serve
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""

WAIT_S = 0.3
LONG_S = 10.0


class Upstream:
    def __init__(self, port: int) -> None:
        self.port = port

    def reached(self) -> list[list[str]]:
        answer: list[list[str]] = httpx.get(f"http://127.0.0.1:{self.port}/reached", trust_env=False).json()
        return answer


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    process = subprocess.Popen([sys.executable, "-c", UPSTREAM], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Upstream(int(process.stdout.readline()))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture
def proxy(upstream: Upstream) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", upstream.port) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: FaultProxy) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=proxy.url, timeout=WAIT_S, trust_env=False) as client:
        yield client


def test_without_a_fault_requests_and_answers_pass_unchanged(
    proxy: FaultProxy, client: httpx.Client, upstream: Upstream
) -> None:
    """Bodies of both framings reach the upstream whole, the answer comes back whole, and each is counted once."""
    assert client.post("/pay", content=b"x" * 100_000).status_code == 200
    assert client.put("/pay", content=iter([b"in ", b"chunks"])).json()[-1] == ["PUT", "/pay", "in chunks"]
    assert upstream.reached() == [["POST", "/pay", "x" * 100_000], ["PUT", "/pay", "in chunks"]]
    counts = proxy.counts()
    assert counts.seen == counts.forwarded == counts.acted == {"POST": 1, "PUT": 1}
    assert counts.fired == {}


def test_lose_answer_acts_and_never_answers(proxy: FaultProxy, client: httpx.Client, upstream: Upstream) -> None:
    """The upstream acts, the client waits in vain; the fault hits as many requests as were asked for, then none."""
    proxy.arm(Fault("lose_answer", method="POST", path="/pay", count=2))
    for _ in range(2):
        with pytest.raises(httpx.ReadTimeout):
            client.post("/pay", content=b"1")
    assert client.post("/pay", content=b"2").status_code == 200
    assert upstream.reached() == [["POST", "/pay", "1"], ["POST", "/pay", "1"], ["POST", "/pay", "2"]]
    assert proxy.counts().acted == {"POST": 3}
    assert proxy.counts().fired == {"lose_answer": 2}


def test_reset_after_acts_and_resets(proxy: FaultProxy, upstream: Upstream) -> None:
    """The upstream acts, and the client's socket gets a reset (RST), not an orderly end."""
    proxy.arm(Fault("reset_after"))
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=LONG_S) as raw:
        raw.sendall(b"POST /pay HTTP/1.1\r\nHost: here\r\nContent-Length: 1\r\n\r\n1")
        with pytest.raises(ConnectionResetError):
            raw.recv(1)
    assert upstream.reached() == [["POST", "/pay", "1"]]


@pytest.mark.parametrize(("kind", "error"), [("swallow", httpx.ReadTimeout), ("reset_before", httpx.ReadError)])
def test_what_never_arrives_never_arrives(
    proxy: FaultProxy, client: httpx.Client, upstream: Upstream, kind: FaultKind, error: type[Exception]
) -> None:
    """A swallowed or refused request is seen by the proxy and by nobody else."""
    proxy.arm(Fault(kind, method="POST"))
    with pytest.raises(error):
        client.post("/pay", content=b"1")
    assert upstream.reached() == []
    counts = proxy.counts()
    assert (counts.seen, counts.forwarded, counts.acted, counts.fired) == ({"POST": 1}, {}, {}, {kind: 1})


def test_delay_lands_after_the_client_has_gone(proxy: FaultProxy, client: httpx.Client, upstream: Upstream) -> None:
    """A delayed request reaches the upstream although its client gave up long before."""
    proxy.arm(Fault("delay", seconds=2 * WAIT_S))
    with pytest.raises(httpx.ReadTimeout):
        client.post("/pay", content=b"late")
    assert upstream.reached() == []
    assert proxy.wait(lambda counts: counts.acted.get("POST") == 1, timeout_s=LONG_S)
    assert upstream.reached() == [["POST", "/pay", "late"]]


def test_a_fault_hits_only_what_it_names(proxy: FaultProxy, client: httpx.Client) -> None:
    """Another method and another path pass while a fault waits; disarmed, it hits nothing."""
    proxy.arm(Fault("swallow", method="POST", path="/pay"))
    assert client.get("/pay").status_code == 200
    assert client.post("/other").status_code == 200
    proxy.disarm()
    assert client.post("/pay").status_code == 200


def test_another_process_can_arm_and_count(proxy: FaultProxy, client: httpx.Client) -> None:
    """Over the control address: a fault is armed by JSON, refused with the reason if wrong, counted, disarmed."""
    with httpx.Client(base_url=proxy.control_url, trust_env=False) as control:
        wrong = control.post("/", content=json.dumps({"kind": "explode"}))
        assert (wrong.status_code, "lose_answer" in wrong.text) == (400, True)
        assert control.post("/", content=json.dumps({"kind": "swallow", "method": "PUT"})).status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            client.put("/pay")
        assert control.get("/").json()["fired"] == {"swallow": 1}
        control.post("/", content=json.dumps({"kind": "swallow"}))
        assert control.delete("/").status_code == 200
        assert client.put("/pay").status_code == 200


def test_wait_says_that_the_upstream_has_acted(proxy: FaultProxy, upstream: Upstream) -> None:
    """While the client still waits for its answer, another thread learns that the request has been acted upon."""
    proxy.arm(Fault("lose_answer"))
    heard: list[Exception] = []

    def ask() -> None:
        try:
            httpx.post(proxy.url + "/pay", timeout=LONG_S, trust_env=False)
        except httpx.HTTPError as error:
            heard.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert proxy.wait(lambda counts: counts.fired.get("lose_answer") == 1, timeout_s=LONG_S)
    assert upstream.reached() == [["POST", "/pay", ""]]
    assert asking.is_alive()
    proxy.stop()
    asking.join(LONG_S)
    assert isinstance(heard[0], httpx.RemoteProtocolError)


def test_stop_ends_ports_and_thread(upstream: Upstream) -> None:
    """After `stop` nobody listens and no thread of the proxy lives, also when it is stopped twice."""
    proxy = FaultProxy("127.0.0.1", upstream.port).start()
    proxy.stop()
    proxy.stop()
    for port in (proxy.port, proxy.control_port):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=LONG_S)
    assert "faultproxy" not in [thread.name for thread in threading.enumerate()]


def test_an_upstream_that_is_gone_is_a_bad_gateway(client: httpx.Client, proxy: FaultProxy) -> None:
    """Without an upstream the client hears 502, and nothing counts as acted upon."""
    with FaultProxy("127.0.0.1", 1) as lonely:
        assert httpx.post(lonely.url, trust_env=False).status_code == 502
        assert lonely.counts().acted == {}


def test_nonsense_ends_its_own_connection_only(proxy: FaultProxy, client: httpx.Client) -> None:
    """What is no HTTP gets its connection closed, and the next client is served."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=LONG_S) as raw:
        raw.sendall(b"\x16\x03\x01 not http\r\n\r\n")
        assert raw.recv(1) == b""
    assert client.get("/pay").status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [{"kind": "explode"}, {"kind": "swallow", "count": 0}, {"kind": "delay"}, {"kind": "swallow", "seconds": 1.0}],
)
def test_a_wrong_fault_is_refused(wrong: dict[str, object]) -> None:
    """A fault that cannot be meant is refused when it is made, with the reason."""
    with pytest.raises(ValueError, match=r"(?i)fault"):
        Fault(**wrong)  # type: ignore[arg-type]


def test_one_header_is_replaced_whatever_its_case() -> None:
    """Replacing a header leaves one of it, and neither body nor other headers change."""
    message = b"POST / HTTP/1.1\r\nCONNECTION: keep-alive\r\nHost: a\r\nconnection: x\r\n\r\nConnection: body"
    changed = with_header(message, "Connection", "close")
    assert changed == b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nConnection: body"
    assert header(changed, "connection") == b"close"
