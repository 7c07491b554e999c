"""The rules of proof on exceptions made by hand: causes, contexts, groups, strange shapes and names."""

from __future__ import annotations

import ast
import asyncio
import concurrent.futures
import http.client
import re
import smtplib
import socket
import ssl
import subprocess
import sys
import urllib.error
from collections.abc import Callable
from typing import Any, cast

import aiohttp
import botocore.exceptions  # type: ignore[import-untyped]
import httpcore
import httpcore2
import httpx
import httpx2
import psycopg
import pytest
import requests
import stripe
import urllib3
from failure.failure_errors import SECRET, STRIPE, ShopError, judge, raised_from, refusal
from hypothesis import given
from hypothesis import strategies as st

from counterfoil import failure
from counterfoil.attempt import GateState
from counterfoil.effect import Lost, NeverSent, Refused, Sends
from counterfoil.errors import DeadlinePassed, Rejected, Throttled
from counterfoil.failure import is_timeout_class, name_of

# ---------------------------------------------------------------- causes and contexts


def handle_by_raising(first: Exception, second: Exception) -> None:
    try:
        raise first
    except Exception:  # noqa: BLE001 - whatever it is
        raise second  # noqa: B904 - the missing `from` is what is tested


def test_a_connect_error_that_is_only_context_proves_nothing() -> None:
    """`__context__` says that one error came after another, not that it speaks of the same request."""
    with pytest.raises(ShopError) as caught:
        handle_by_raising(httpx.ConnectError(SECRET), ShopError(SECRET))
    assert isinstance(caught.value.__context__, httpx.ConnectError)
    assert judge(caught.value) == Lost(name_of(ShopError))


def test_a_connect_error_as_explicit_cause_proves() -> None:
    """A tool may wrap the client's error in its own, when it says `from`."""
    exc = raised_from(ShopError(SECRET), KeyError(SECRET), httpx.ConnectError(SECRET))
    assert judge(exc) == NeverSent(f"{name_of(ShopError)} from httpx.ConnectError")
    assert isinstance(judge(exc, sends="anywhere"), Lost)


def test_a_timeout_that_is_only_context_does_not_undo_a_refusal() -> None:
    """A tool that asked the provider after a timeout and then was told no may say so."""
    with pytest.raises(Rejected) as caught:
        handle_by_raising(httpx.ReadTimeout(SECRET), refusal())
    assert isinstance(caught.value.__context__, httpx.ReadTimeout)
    assert judge(caught.value) == Refused("declined", "the provider declined")


def test_a_connect_error_raised_from_a_lost_answer_proves_nothing() -> None:
    """A layer that sends again and then finds nobody has sent before, and says so by `from`."""
    exc = raised_from(httpx.ConnectError(SECRET), ShopError(SECRET), httpx.ReadTimeout(SECRET))
    assert isinstance(judge(exc), Lost)
    assert isinstance(judge(raised_from(httpx.ConnectError(SECRET), TimeoutError(SECRET))), NeverSent)


@pytest.mark.parametrize(
    "exc",
    [
        requests.ConnectionError(),
        requests.ConnectionError(SECRET),
        requests.ConnectionError(urllib3.exceptions.ProtocolError("Connection aborted.", ConnectionResetError())),
        urllib3.exceptions.SSLError(ssl.SSLError(1, SECRET)),
        urllib.error.URLError(SECRET),
        urllib.error.URLError(BrokenPipeError()),
        STRIPE.APIConnectionError(SECRET),
        ShopError(httpx.ConnectError(SECRET)),
    ],
    ids=repr,
)
def test_a_carrier_proves_only_by_what_it_carries(exc: BaseException) -> None:
    """Empty, or with something ambiguous in it, a carrier proves nothing; an unknown class carries nothing."""
    assert isinstance(judge(exc), Lost)


@pytest.mark.parametrize(
    "exc",
    [
        TimeoutError(), ConnectionResetError(), ConnectionAbortedError(), BrokenPipeError(), ssl.SSLError(1, SECRET),
        OSError(113, SECRET), http.client.RemoteDisconnected(""),
        http.client.IncompleteRead(b""), aiohttp.ServerDisconnectedError(), aiohttp.ClientConnectionError(),
        httpx.WriteError(SECRET), httpx.WriteTimeout(SECRET), httpx2.ReadError(SECRET),
        ShopError(SECRET), KeyError(SECRET),
    ],
    ids=repr,
)  # fmt: skip
def test_what_may_come_after_the_request_proves_nothing(exc: BaseException) -> None:
    """Resets, broken pipes, bare timeouts, other TLS errors and unknown classes are Lost, under the barest of names."""
    assert judge(exc) == Lost(name_of(type(exc)))


@pytest.mark.parametrize(
    "exc",
    [
        ConnectionRefusedError(), socket.gaierror(), ssl.SSLCertVerificationError(), smtplib.SMTPConnectError(1, ""),
        httpx.ProxyError(SECRET), httpx2.PoolTimeout(SECRET), httpx2.ProxyError(SECRET), httpcore.ProxyError(),
        httpcore.PoolTimeout(), httpcore2.PoolTimeout(), httpcore2.ProxyError(), psycopg.errors.ConnectionTimeout(),
    ],
    ids=repr,
)  # fmt: skip
def test_what_comes_before_a_connection_proves(exc: BaseException) -> None:
    """Classes that their libraries raise only where no connection was had prove it by themselves."""
    outcome = judge(exc)
    assert isinstance(outcome, NeverSent)
    assert outcome.reason == name_of(type(exc))
    assert isinstance(judge(exc, sends="anywhere"), Lost)


def test_a_carrier_proves_by_a_proof_that_it_carries() -> None:
    """Wherever its library keeps the wrapped error, with `from` or without: arguments, reason, message values."""
    nobody = urllib3.exceptions.NewConnectionError(cast("Any", None), SECRET)
    tried = urllib3.exceptions.MaxRetryError(cast("Any", None), "/", nobody)
    proxy = urllib3.exceptions.ProxyError(SECRET, nobody)
    for exc in (
        tried,
        requests.ConnectionError(tried),
        urllib.error.URLError(ConnectionRefusedError()),
        botocore.exceptions.ProxyConnectionError(proxy_url=SECRET, error=proxy),
        raised_from(STRIPE.APIConnectionError(SECRET), requests.ConnectionError(tried)),
    ):
        assert isinstance(judge(exc), NeverSent), repr(exc)


class ShopConnectError(httpx.ConnectError):
    """A subclass of a class that proves."""


class ShopTimeout(stripe.CardError):
    """A timeout that dresses as an answer."""


class TwoFaced(httpx.ConnectError, httpx.ReadError):
    """Derives from a proof and from a lost answer."""


def test_a_subclass_means_what_its_parents_mean() -> None:
    """Known parents decide, and one lost answer among them decides against the proof."""
    assert isinstance(judge(ShopConnectError(SECRET)), NeverSent)
    assert isinstance(judge(TwoFaced(SECRET)), Lost)
    dressed: BaseException = cast("Any", ShopTimeout)(SECRET, None, None)
    assert isinstance(judge(dressed, stripe.CardError), Lost)


# ---------------------------------------------------------------- groups


def test_a_group_is_proven_when_every_leaf_is() -> None:
    """One leaf in doubt leaves the whole in doubt, however deep; a refusal among proofs is what the model hears."""
    connect, lost = httpx.ConnectError(SECRET), httpx.ReadTimeout(SECRET)
    deep = ExceptionGroup(SECRET, [connect, ExceptionGroup(SECRET, [ConnectionRefusedError()])])
    assert judge(deep) == NeverSent("ExceptionGroup of httpx.ConnectError")
    assert judge(ExceptionGroup(SECRET, [deep, lost])) == Lost("ExceptionGroup of httpx.ReadTimeout")
    assert judge(ExceptionGroup(SECRET, [deep, refusal()])) == Refused("declined", "the provider declined")
    assert isinstance(judge(ExceptionGroup(SECRET, [refusal(), lost])), Lost)
    assert isinstance(judge(BaseExceptionGroup(SECRET, [refusal(), KeyboardInterrupt()])), Lost)
    assert isinstance(judge(ExceptionGroup(SECRET, [refusal(), ShopError(SECRET)])), Lost)
    assert isinstance(judge(deep, sends="anywhere"), Lost)
    assert isinstance(judge(raised_from(ExceptionGroup(SECRET, [refusal()]), lost)), Lost)


def test_a_group_before_the_mark_is_never_sent() -> None:
    """Nothing passed the gate, so no leaf needs a proof of its own; it may pass only if all of them may."""
    group = ExceptionGroup(SECRET, [TimeoutError(), KeyError(SECRET)])
    assert judge(group, sends="marked") == NeverSent("ExceptionGroup of TimeoutError", retryable=False)
    assert isinstance(judge(group, sends="marked", gate=GateState.SENDING), Lost)


def test_a_group_raised_as_a_cause_proves_as_one() -> None:
    """A wrapper around a group proves when every leaf proves."""
    refused = [ConnectionRefusedError(), ConnectionRefusedError()]
    assert isinstance(judge(raised_from(ShopError(SECRET), ExceptionGroup(SECRET, refused))), NeverSent)
    for other in (TimeoutError(), ShopError(SECRET)):
        mixed = ExceptionGroup(SECRET, [ConnectionRefusedError(), other])
        assert isinstance(judge(raised_from(ShopError(SECRET), mixed)), Lost)


# ---------------------------------------------------------------- strange shapes


def test_circles_and_depth_do_no_harm() -> None:
    """A chain that bites its tail, and one deeper than the interpreter's stack, are judged like any other."""
    first, second = ShopError(SECRET), ShopError(SECRET)
    raised_from(first, second, first)
    assert isinstance(judge(first), Lost)
    deep = raised_from(ShopError(SECRET), *(ShopError(SECRET) for _ in range(5_000)), httpx.ConnectError(SECRET))
    assert isinstance(judge(deep), NeverSent)
    nested: Exception = refusal()
    for _ in range(5_000):
        nested = ExceptionGroup(SECRET, [nested])
    assert isinstance(judge(nested), Refused)
    while isinstance(nested, ExceptionGroup):  # taken apart by hand: the interpreter's own way down is not so deep
        nested = nested.exceptions[0]


def test_an_error_whose_properties_raise_is_judged_all_the_same() -> None:
    """Another library's property may raise anything when it is read; then it says nothing."""

    class Spiteful(Exception):
        @property
        def response(self) -> object:
            raise RuntimeError(SECRET)

        status = code = response

    assert isinstance(judge(Spiteful(), Spiteful), Refused)
    assert isinstance(judge(raised_from(refusal(), Spiteful())), Refused)


NODES: list[Callable[[], BaseException]] = [
    lambda: ShopError(SECRET), lambda: KeyError(SECRET), refusal, ConnectionRefusedError, TimeoutError,
    lambda: httpx.ConnectError(SECRET), lambda: httpx.ReadTimeout(SECRET), lambda: requests.ConnectionError(SECRET),
    lambda: STRIPE.APIConnectionError(SECRET), lambda: STRIPE.CardError(SECRET, None, None, http_status=402),
    lambda: ExceptionGroup(SECRET, [ShopError(SECRET)]), lambda: ExceptionGroup(SECRET, [httpx.ReadTimeout(SECRET)]),
    lambda: ExceptionGroup(SECRET, [httpx.ConnectError(SECRET)]), asyncio.CancelledError, DeadlinePassed,
]  # fmt: skip


@given(
    st.lists(st.sampled_from(NODES), min_size=1, max_size=5),
    st.sampled_from(["anywhere", "once", "marked"]),
    st.sampled_from([*GateState]),
    st.lists(st.sampled_from([ShopError, stripe.CardError, Exception, BaseException]), max_size=2),
)
def test_whatever_is_raised(
    chain: list[Callable[[], BaseException]], sends: Sends, gate: GateState, rejects: list[type[BaseException]]
) -> None:
    """No chain makes the judge fail or quote; anywhere never proves never_sent; a lost answer below undoes all."""
    nodes = [make() for make in chain]
    exc = raised_from(*nodes)
    outcome = judge(exc, *rejects, sends=sends, gate=gate)
    assert SECRET not in repr(outcome)
    assert sends != "anywhere" or not isinstance(outcome, NeverSent)
    raised_from(nodes[-1], httpx.ReadTimeout(SECRET))
    before_the_mark = sends == "marked" and gate in (GateState.UNTOUCHED, GateState.SHUT)
    too_late = isinstance(exc, DeadlinePassed) and sends == "once" and gate in (GateState.UNTOUCHED, GateState.SHUT)
    darker = judge(exc, *rejects, sends=sends, gate=gate)
    assert isinstance(darker, NeverSent if before_the_mark or too_late else Lost)


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    "cls",
    [
        TimeoutError, socket.timeout, asyncio.TimeoutError, concurrent.futures.TimeoutError, subprocess.TimeoutExpired,
        httpx.TimeoutException, httpx.ConnectTimeout, httpx.PoolTimeout, httpx2.ReadTimeout, requests.Timeout,
        requests.ConnectTimeout, urllib3.exceptions.TimeoutError, urllib3.exceptions.ReadTimeoutError,
        aiohttp.ServerTimeoutError, aiohttp.ConnectionTimeoutError, botocore.exceptions.ReadTimeoutError,
        botocore.exceptions.ConnectTimeoutError, DeadlinePassed, type("DeadlineExceeded", (Exception,), {}),
        type("Slow", (httpx.ReadTimeout,), {}),
    ],
)  # fmt: skip
def test_a_timeout_is_known_by_its_name(cls: type) -> None:
    """Registration must refuse each of these among `rejects`: a timeout is never a refusal."""
    assert is_timeout_class(cls)


@pytest.mark.parametrize(
    "cls",
    [
        Exception, OSError, ConnectionResetError, ValueError, httpx.HTTPStatusError, httpx.ConnectError, Rejected,
        stripe.CardError, stripe.RateLimitError, requests.HTTPError, botocore.exceptions.ClientError, Throttled,
        aiohttp.ClientResponseError, smtplib.SMTPRecipientsRefused,
    ],
)  # fmt: skip
def test_other_errors_are_no_timeouts(cls: type) -> None:
    """A refusal of a provider, and a class that merely has timeouts among its children, may be listed."""
    assert not is_timeout_class(cls)


def test_names_are_short_and_public() -> None:
    """A name has no private module and no function in it, keeps a private class's own name, and has an end."""
    assert name_of(stripe.CardError) == "stripe.CardError"
    assert name_of(httpx.ReadTimeout) == "httpx.ReadTimeout"
    assert name_of(KeyboardInterrupt) == "KeyboardInterrupt"
    hidden = type("_Hidden", (Exception,), {"__module__": "_shop._inner"})
    assert name_of(hidden) == "_Hidden"

    class Local(Exception):
        pass

    assert re.fullmatch(r"[\w.]*test_failure\.test_names_are_short_and_public\.Local", name_of(Local))
    assert len(name_of(type("X" * 500, (), {}))) == 120


def test_no_client_library_is_imported() -> None:
    """The classifier knows other people's errors by name alone: it imports the standard library and its own package."""
    with open(failure.__file__, encoding="utf-8") as file:  # noqa: PTH123 - a module's path is a string
        tree = ast.parse(file.read())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    outside = {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names}
    assert outside == {"counterfoil.attempt", "counterfoil.effect", "counterfoil.errors", "counterfoil.text"}
    assert not names & {"http.client", "smtplib", "socket", "ssl", "urllib.error"}
