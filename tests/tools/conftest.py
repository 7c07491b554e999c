"""Real servers for the tests of the shipped tools: one Stripe server and one CalDAV server for the whole session."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import stripe
from tools.world import Scripted

from counterfoil_tools import servers
from counterfoil_tools.faultproxy import FaultProxy
from counterfoil_tools.payments import stripe_client

POLL_S = 0.01


@pytest.fixture(scope="session")
def stripe_server() -> Iterator[servers.Server]:
    with servers.localstripe() as server:
        yield server


@pytest.fixture(scope="session")
def caldav_server() -> Iterator[servers.Server]:
    with servers.radicale() as server:
        yield server


@pytest.fixture
def stripe_proxy(stripe_server: servers.Server) -> Iterator[FaultProxy]:
    with FaultProxy(stripe_server.host, stripe_server.port) as proxy:
        yield proxy


@pytest.fixture
def caldav_proxy(caldav_server: servers.Server) -> Iterator[FaultProxy]:
    with FaultProxy(caldav_server.host, caldav_server.port) as proxy:
        yield proxy


@pytest.fixture
def payments(stripe_server: servers.Server) -> stripe.StripeClient:
    """Straight to the server, which is emptied first: what the provider itself counts."""
    assert stripe_server.ask("DELETE", "/_config/data") == 200
    return stripe_client("sk_test_counts", base_url=stripe_server.url, trust_env=False)


@pytest.fixture
def calendar(caldav_server: servers.Server) -> Iterator[httpx.Client]:
    """Straight to the server, whose calendar is made anew: what the provider itself counts."""
    assert caldav_server.ask("DELETE", servers.CALENDAR_PATH) == 200
    assert caldav_server.ask("MKCALENDAR", servers.CALENDAR_PATH) == 201
    with httpx.Client(base_url=caldav_server.url + servers.CALENDAR_PATH, trust_env=False) as client:
        yield client


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            provider.requests.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status, headers, text = provider.answers.pop(0)
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *args: Any) -> None:
            """Quiet."""

        do_GET = do_POST = do_PUT = do_PROPFIND = answer  # noqa: N815 - the library's names

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider = Scripted(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, args=(POLL_S,))
        thread.start()
        yield provider
        server.shutdown()
        thread.join()
