"""Real clients, each making one POST that neither resends nor follows redirects, unless its name says otherwise.

Owns how each library is told so, and nothing about what its failures mean. A client takes a base URL
(`http://127.0.0.1:8080`) and its timeout in seconds, and returns only when it was answered well.
"""

from __future__ import annotations

import asyncio
import functools
import http.client
import ssl
import urllib.request
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import aiohttp
import botocore.session  # type: ignore[import-untyped]
import httpcore
import httpcore2
import httpx
import httpx2
import requests
import stripe
import urllib3
from botocore.config import Config  # type: ignore[import-untyped]

SHORT_S = 0.2  # where the timeout is the fault
AMPLE_S = 10.0  # where it must not be, on a busy machine
BODY = b"amount=1"

Client: TypeAlias = Callable[[str, float], object]


def with_requests(url: str, timeout_s: float, *, follow: bool = False) -> None:
    response = requests.post(url, data=BODY, timeout=timeout_s, allow_redirects=follow)
    response.raise_for_status()


def with_urllib3(url: str, timeout_s: float, retries: urllib3.Retry | bool = False) -> None:
    with urllib3.PoolManager(retries=retries, timeout=timeout_s) as pool:
        pool.request("POST", url, body=BODY)


def with_httpx(url: str, timeout_s: float, *, follow: bool = False) -> None:
    httpx.post(url, content=BODY, timeout=timeout_s, follow_redirects=follow).raise_for_status()


def with_httpx_async(url: str, timeout_s: float) -> None:
    async def post() -> None:
        async with httpx.AsyncClient(timeout=timeout_s) as client:
            (await client.post(url, content=BODY)).raise_for_status()

    asyncio.run(post())


def with_httpx2(url: str, timeout_s: float, *, follow: bool = False) -> None:
    httpx2.post(url, content=BODY, timeout=timeout_s, follow_redirects=follow).raise_for_status()


def with_httpcore(url: str, timeout_s: float, library: Any = httpcore) -> None:
    limits = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)}
    with library.ConnectionPool(ssl_context=ssl.create_default_context()) as pool:
        pool.request("POST", url, content=BODY, extensions=limits)


def with_aiohttp(url: str, timeout_s: float, *, follow: bool = False) -> None:
    async def post() -> None:
        timeout = aiohttp.ClientTimeout(sock_connect=timeout_s, sock_read=timeout_s)
        async with (
            aiohttp.ClientSession(timeout=timeout, raise_for_status=True) as session,
            session.post(url, data=BODY, allow_redirects=follow) as response,
        ):
            await response.read()

    asyncio.run(post())


def with_urllib(url: str, timeout_s: float) -> None:
    with urllib.request.urlopen(url, data=BODY, timeout=timeout_s) as response:  # noqa: S310 - http and https only
        response.read()


def with_http_client(url: str, timeout_s: float) -> None:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.request("POST", "/", BODY)
        connection.getresponse()
    finally:
        connection.close()


@functools.cache
def _boto_session() -> Any:
    return botocore.session.Session()


def with_botocore(url: str, timeout_s: float) -> None:
    once = Config(connect_timeout=timeout_s, read_timeout=timeout_s, retries={"total_max_attempts": 1})
    client = _boto_session().create_client(
        "sqs",
        endpoint_url=url,
        region_name="eu-west-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",  # noqa: S106 - there is nothing that it opens
        config=once,
    )
    try:
        client.send_message(QueueUrl=f"{url}/1/queue", MessageBody="amount=1")
    finally:
        client.close()


def with_stripe(url: str, timeout_s: float) -> None:
    transport: Any = stripe.RequestsClient(timeout=timeout_s)  # closing it has no annotations
    try:
        _stripe(url, transport).v1.payment_intents.create({"amount": 1, "currency": "eur"})
    finally:
        transport.close()


def with_stripe_async(url: str, timeout_s: float) -> None:
    async def create() -> None:
        transport: Any = stripe.HTTPXClient(timeout=timeout_s)
        try:
            # The SDK calls httpx in a way that httpx deprecates, and would report a warning-turned-error as its own.
            warnings.filterwarnings("ignore", "Use 'content=", DeprecationWarning)
            await _stripe(url, transport).v1.payment_intents.create_async({"amount": 1, "currency": "eur"})
        finally:
            await transport.close_async()

    with warnings.catch_warnings():
        asyncio.run(create())


def _stripe(url: str, transport: stripe.HTTPClient) -> stripe.StripeClient:
    return stripe.StripeClient(
        "sk_test_none", base_addresses={"api": url}, max_network_retries=0, http_client=transport
    )


CLIENTS: dict[str, Client] = {
    "requests": with_requests,
    "urllib3": with_urllib3,
    "urllib3-retry-0": functools.partial(with_urllib3, retries=urllib3.Retry(0)),
    "httpx": with_httpx,
    "httpx-async": with_httpx_async,
    "httpx2": with_httpx2,
    "httpcore": with_httpcore,
    "httpcore2": functools.partial(with_httpcore, library=httpcore2),
    "aiohttp": with_aiohttp,
    "urllib": with_urllib,
    "http.client": with_http_client,
    "botocore": with_botocore,
    "stripe": with_stripe,
    "stripe-async": with_stripe_async,
}

FOLLOWING: dict[str, Client] = {
    "requests": functools.partial(with_requests, follow=True),
    "httpx": functools.partial(with_httpx, follow=True),
    "httpx2": functools.partial(with_httpx2, follow=True),
    "aiohttp": functools.partial(with_aiohttp, follow=True),
    "urllib": with_urllib,
}


def failure_of(client: Client, url: str, timeout_s: float = AMPLE_S) -> BaseException:
    """What `client` raises at `url`; it must raise."""
    try:
        client(url, timeout_s)
    except Exception as exc:  # noqa: BLE001 - whatever it is, is what the tests are about
        return exc
    raise AssertionError("the client was answered well, but the server should have failed it")
