"""Real clients against real failures: what each exception proves, for each way in which a tool may send."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import botocore.exceptions  # type: ignore[import-untyped]
import httpx
import pytest
import requests
import stripe
import urllib3
from failure.failure_clients import AMPLE_S, BODY, CLIENTS, FOLLOWING, SHORT_S, Client, failure_of, with_urllib3
from failure.failure_errors import anywhere, once
from failure.failure_faults import LOOPBACK, Server, closed_port, full_port, self_signed, served

from counterfoil.attempt import GateState
from counterfoil.effect import Lost, NeverSent, Refused
from counterfoil.errors import Rejected
from counterfoil.failure import classify

EVERY = frozenset(CLIENTS)
OWN_CLASS_FOR_HANDSHAKES = {"httpx", "httpx-async", "httpx2", "httpcore", "httpcore2", "aiohttp", "stripe-async"}

# fault -> the clients whose exception proves that no connection was had, so nothing was sent
PROVING: dict[str, frozenset[str] | set[str]] = {
    "refused": EVERY,
    "dns": EVERY,
    "certificate_unknown": EVERY,
    "no_tls": OWN_CLASS_FOR_HANDSHAKES,  # elsewhere an ssl.SSLError, which may as well come after the request
    "connect_timeout": EVERY - {"urllib", "http.client"},  # there a bare TimeoutError
    "read_timeout": frozenset(),
    "reset": frozenset(),
    "closed": frozenset(),
}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients must reach the servers of the test, not a proxy of the machine."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls") / "self-signed.pem")


@contextlib.contextmanager
def faulty(fault: str, certificate: Path) -> Iterator[tuple[str, Server | None]]:
    """The URL that fails by `fault`, and the server behind it."""
    if fault == "dns":
        yield "http://counterfoil.invalid", None
    elif fault in ("refused", "connect_timeout"):
        with closed_port() if fault == "refused" else full_port() as port:
            yield f"http://{LOOPBACK}:{port}", None
    else:
        with served(Server(fault, certificate=certificate)) as server:
            scheme = "https" if fault in ("no_tls", "certificate_unknown") else "http"
            yield f"{scheme}://{LOOPBACK}:{server.port}", server


@pytest.mark.parametrize("fault", PROVING)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_failure_proves_no_more_than_it_knows(client: str, fault: str, certificate: Path) -> None:
    """A connect-class failure proves never_sent under once, or marked and in the block; every other one proves nothing.

    Under anywhere nothing proves; before the mark everything does; after the block nothing. A refusal that rests on any
    of these failures is none, raised or listed. No text of the error leaks.
    """
    with faulty(fault, certificate) as (url, server):
        exc = failure_of(CLIENTS[client], url, SHORT_S if fault.endswith("_timeout") else AMPLE_S)
        if fault in ("read_timeout", "reset", "closed"):
            assert server is not None
            assert server.arrived.wait(AMPLE_S)
        else:
            assert server is None or not server.received
    proven = NeverSent if client in PROVING[fault] else Lost
    refusal = Rejected("card_declined", "the card was declined")
    refusal.__cause__ = exc
    outcomes = {
        "anywhere": anywhere(exc),
        "once": once(exc),
        "once, after the block": classify(exc, sends="once", rejects=(), gate=GateState.SENT),
        "marked, before": classify(exc, sends="marked", rejects=(), gate=GateState.UNTOUCHED),
        "marked, shut": classify(exc, sends="marked", rejects=(), gate=GateState.SHUT),
        "marked, inside": classify(exc, sends="marked", rejects=(), gate=GateState.SENDING),
        "marked, after": classify(exc, sends="marked", rejects=(), gate=GateState.SENT),
        "anywhere, listed": anywhere(exc, Exception),
        "once, listed": once(exc, Exception),
        "anywhere, refusal": anywhere(refusal),
        "once, refusal": once(refusal),
        "marked, refusal after": classify(refusal, sends="marked", rejects=(), gate=GateState.SENT),
    }
    assert {name: type(outcome) for name, outcome in outcomes.items()} == {
        "anywhere": Lost,
        "once": proven,
        "once, after the block": Lost,
        "marked, before": NeverSent,
        "marked, shut": NeverSent,
        "marked, inside": proven,
        "marked, after": Lost,
        "anywhere, listed": Lost,
        "once, listed": proven,
        "anywhere, refusal": Lost,
        "once, refusal": proven,
        "marked, refusal after": Lost,
    }, repr(exc)
    passing = fault != "certificate_unknown"
    for outcome in outcomes.values():
        assert re.fullmatch(r"[A-Za-z_][\w.]*( from [A-Za-z_][\w.]*)?", outcome.reason)
        assert not isinstance(outcome, NeverSent) or outcome.retryable is passing


@pytest.mark.parametrize("client", FOLLOWING)
def test_a_redirect_to_nowhere_looks_like_no_connection(client: str) -> None:
    """A POST that landed and was redirected to a closed port ends in the class of a refused connection.

    So nothing can tell the two apart, and under the default nothing is proven.
    """
    with closed_port() as port:
        direct = failure_of(FOLLOWING[client], f"http://{LOOPBACK}:{port}")
        seen_other = f"HTTP/1.1 303 See Other\r\nlocation: http://{LOOPBACK}:{port}/\r\ncontent-length: 0\r\n\r\n"
        with served(Server("answers", answer=seen_other.encode())) as server:
            redirected = failure_of(FOLLOWING[client], f"http://{LOOPBACK}:{server.port}")
            assert len(server.received) == 1
    assert type(redirected) is type(direct)
    assert isinstance(once(direct), NeverSent)
    assert isinstance(once(redirected), NeverSent), "which is why once must not be declared for a client that follows"
    assert isinstance(anywhere(redirected), Lost)


def test_a_resend_that_finds_nobody_looks_like_no_connection() -> None:
    """urllib3 sends again after a lost answer and then reports only that nobody listens: the default proves nothing."""
    with served(Server("closed_for_good")) as server:
        resends = urllib3.Retry(total=1, allowed_methods=None)
        exc = failure_of(
            lambda url, timeout_s: with_urllib3(url, timeout_s, resends), f"http://{LOOPBACK}:{server.port}"
        )
        assert len(server.received) == 1
    assert isinstance(exc, urllib3.exceptions.MaxRetryError)
    assert isinstance(exc.reason, urllib3.exceptions.NewConnectionError)
    assert isinstance(anywhere(exc), Lost)
    assert isinstance(once(exc), NeverSent), "which is why once must not be declared for a client that resends"


# ---------------------------------------------------------------- pools and proxies


def test_a_pool_that_gives_no_connection_proves_never_sent() -> None:
    """Who waited in vain for a connection of the pool has sent nothing: httpx, urllib3 and aiohttp say so by class."""
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"  # the body never comes, so the connection stays taken
    failures: list[BaseException] = []
    with served(Server("answers", answer=answer)) as server:
        url = f"http://{LOOPBACK}:{server.port}"
        only_one = httpx.Limits(max_connections=1)
        short_of = httpx.Timeout(AMPLE_S, pool=SHORT_S)
        with httpx.Client(limits=only_one, timeout=short_of) as client, client.stream("POST", url, content=BODY):
            failures.append(failure_of(lambda *_: client.post(url, content=BODY), url))
        with urllib3.HTTPConnectionPool(LOOPBACK, server.port, maxsize=1, block=True, timeout=AMPLE_S) as pool:
            taken = pool.request("POST", "/", body=BODY, preload_content=False)
            failures.append(failure_of(lambda *_: pool.urlopen("POST", "/", body=BODY, pool_timeout=0), url))
            taken.close()
        failures.append(asyncio.run(_aiohttp_pool_failure(url)))
        assert len(server.received) == len(failures) == 3
    names = [type(exc).__name__ for exc in failures]
    assert names == ["PoolTimeout", "EmptyPoolError", "ConnectionTimeoutError"]
    assert [type(once(exc)) for exc in failures] == [NeverSent] * 3
    assert [type(anywhere(exc)) for exc in failures] == [Lost] * 3


async def _aiohttp_pool_failure(url: str) -> BaseException:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session,
        session.post(url, data=BODY),
    ):
        try:
            await session.post(url, data=BODY, timeout=aiohttp.ClientTimeout(connect=SHORT_S))
        except Exception as exc:  # noqa: BLE001 - whatever it is, is what the test is about
            return exc
    raise AssertionError("the pool had a second connection")


def _httpx_through(proxy: str, timeout_s: float) -> None:
    with httpx.Client(proxy=proxy, timeout=timeout_s) as client:
        client.post("https://counterfoil.invalid", content=BODY)


def _requests_through(proxy: str, timeout_s: float) -> None:
    requests.post("https://counterfoil.invalid", data=BODY, proxies={"https": proxy}, timeout=timeout_s)


def _aiohttp_through(proxy: str, timeout_s: float) -> None:
    async def post() -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(timeout_s)) as session:
            await session.post("https://counterfoil.invalid", data=BODY, proxy=proxy)

    asyncio.run(post())


@pytest.mark.parametrize(
    ("client", "proven"), [(_httpx_through, NeverSent), (_requests_through, Lost), (_aiohttp_through, NeverSent)]
)
def test_a_proxy_that_refuses_the_tunnel(client: Client, proven: type) -> None:
    """A refused CONNECT has a class of its own in httpx and aiohttp; in requests it is an OSError: no proof."""
    forbidden = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    with served(Server("answers", answer=forbidden)) as server:
        exc = failure_of(client, f"http://{LOOPBACK}:{server.port}")
        assert server.received[0].startswith(b"CONNECT counterfoil.invalid:443")
    assert type(once(exc)) is proven, repr(exc)


@pytest.mark.parametrize("client", [_httpx_through, _requests_through, _aiohttp_through])
def test_a_proxy_that_is_not_there_proves_never_sent(client: Client) -> None:
    """Without a connection to the proxy nothing can have left."""
    with closed_port() as port:
        exc = failure_of(client, f"http://{LOOPBACK}:{port}")
    assert isinstance(once(exc), NeverSent), repr(exc)
    assert isinstance(anywhere(exc), Lost)


# ---------------------------------------------------------------- answers


STATUS_ERRORS: dict[str, type[BaseException]] = {
    "requests": requests.HTTPError,
    "httpx": httpx.HTTPStatusError,
    "aiohttp": aiohttp.ClientResponseError,
    "urllib": urllib.error.HTTPError,
    "botocore": botocore.exceptions.ClientError,
    "stripe": stripe.StripeError,
    "stripe-async": stripe.StripeError,
}


def _answered(client: str, status: int) -> BaseException:
    body = json.dumps({"error": {"type": "card_error", "code": "card_declined", "message": "secret words"}})
    head = f"HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    answer = f"{head}connection: close\r\n\r\n{body}"
    with served(Server("answers", answer=answer.encode())) as server:
        exc = failure_of(CLIENTS[client], f"http://{LOOPBACK}:{server.port}")
        if hasattr(exc, "close"):
            exc.close()  # urllib's error holds the connection
    return exc


@pytest.mark.parametrize("client", STATUS_ERRORS)
def test_an_answer_is_a_refusal_only_when_declared(client: str) -> None:
    """A 402 proves nothing by itself; listed, or under a raised Rejected, it is Refused with its status and no text."""
    exc = _answered(client, 402)
    assert isinstance(once(exc), Lost)
    listed = once(exc, STATUS_ERRORS[client])
    assert isinstance(listed, Refused), repr(exc)
    assert (listed.code, listed.status) == ("rejected", 402)
    assert listed.reason.endswith(type(exc).__name__)
    assert "secret" not in repr(listed)
    refusal = Rejected("card_declined", "the card was declined")
    refusal.__cause__ = exc
    assert anywhere(refusal) == Refused("card_declined", "the card was declined", status=402)


@pytest.mark.parametrize("client", STATUS_ERRORS)
def test_a_gateway_that_lost_the_answer_is_no_refusal(client: str) -> None:
    """504 is a timeout under another name: neither a listed error nor a raised Rejected turns it into a refusal."""
    exc = _answered(client, 504)
    assert isinstance(once(exc, STATUS_ERRORS[client]), Lost), repr(exc)
    refusal = Rejected("unavailable", "the provider is closed")
    refusal.__cause__ = exc
    assert isinstance(anywhere(refusal), Lost)


def test_an_answer_that_cannot_be_read_is_still_an_answer() -> None:
    """A refusal raised while an answer was parsed stands: requests' JSON error is an OSError, but no lost answer."""
    with served(Server("answers", answer=b"HTTP/1.1 402 No\r\ncontent-length: 2\r\n\r\nno")) as server:
        exc = failure_of(
            lambda url, timeout_s: requests.post(url, data=BODY, timeout=timeout_s).json(),
            f"http://{LOOPBACK}:{server.port}",
        )
    assert isinstance(exc, OSError)
    refusal = Rejected("declined", "the provider declined")
    refusal.__cause__ = exc
    assert isinstance(anywhere(refusal), Refused)
