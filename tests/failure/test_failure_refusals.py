"""When a refusal is one, what of it arrives, and what the gate of an attempt adds to any exception."""

from __future__ import annotations

import asyncio
import concurrent.futures
import http.client
import smtplib
import socket
import ssl
import subprocess
from collections.abc import Callable
from typing import Any, cast

import aiohttp
import anyio
import botocore.exceptions  # type: ignore[import-untyped]
import httpx
import httpx2
import psycopg
import pytest
import requests
import sqlalchemy.exc
import stripe
import tenacity
import urllib3
from failure.failure_errors import SECRET, STRIPE, ShopError, judge, raised_from, refusal

from counterfoil.attempt import Effect, Gate, GateState
from counterfoil.effect import Lost, NeverSent, Refused, Sends
from counterfoil.errors import DeadlinePassed, Forbidden, Rejected, Throttled, ToolRefusal
from counterfoil.failure import CANDIDATES_MAX, CODE_MAX, TEXT_MAX, name_of

# ---------------------------------------------------------------- refusals


LOST_CAUSES: list[Callable[[], BaseException]] = [
    TimeoutError, ConnectionResetError, ConnectionRefusedError, BrokenPipeError, OSError, ssl.SSLError,
    ssl.SSLCertVerificationError, socket.gaierror, asyncio.TimeoutError, asyncio.CancelledError,
    concurrent.futures.TimeoutError, concurrent.futures.CancelledError, KeyboardInterrupt, SystemExit,
    lambda: smtplib.SMTPServerDisconnected(SECRET), lambda: smtplib.SMTPConnectError(554, SECRET),
    lambda: http.client.RemoteDisconnected(""), lambda: http.client.IncompleteRead(b""),
    lambda: http.client.BadStatusLine(SECRET), lambda: asyncio.IncompleteReadError(b"", 1),
    lambda: subprocess.TimeoutExpired(SECRET, 1),
    lambda: httpx.ReadTimeout(SECRET), lambda: httpx.DecodingError(SECRET), lambda: httpx.TooManyRedirects(SECRET),
    lambda: requests.ReadTimeout(SECRET), lambda: requests.ConnectionError(SECRET), requests.TooManyRedirects,
    lambda: requests.exceptions.ChunkedEncodingError(SECRET), lambda: STRIPE.APIConnectionError(SECRET),
    aiohttp.ServerDisconnectedError, lambda: aiohttp.ClientPayloadError(SECRET),
    lambda: botocore.exceptions.ReadTimeoutError(endpoint_url=SECRET), lambda: STRIPE.APIError(SECRET, http_status=504),
    lambda: tenacity.RetryError(tenacity.Future(1)), DeadlinePassed,
    anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, concurrent.futures.BrokenExecutor,
    lambda: httpx2.DecodingError(SECRET), lambda: urllib3.exceptions.DecodeError(SECRET), aiohttp.ClientError,
    lambda: aiohttp.TooManyRedirects(cast("Any", None), ()), lambda: botocore.exceptions.HTTPClientError(error=SECRET),
    psycopg.OperationalError, psycopg.InterfaceError, lambda: sqlalchemy.exc.OperationalError(SECRET, None, KeyError()),
    lambda: sqlalchemy.exc.InterfaceError(SECRET, None, KeyError()),
    type("RpcError", (Exception,), {"__module__": "grpc"}),
    type("ReadTimeoutInAnUnknownClient", (Exception,), {}), type("TransportError", (Exception,), {}),
]  # fmt: skip


@pytest.mark.parametrize("cause", LOST_CAUSES, ids=lambda make: type(make()).__name__)
def test_a_refusal_from_a_lost_answer_is_lost(cause: Callable[[], BaseException]) -> None:
    """However deep it stands in the explicit chain or in a group, no answer means no refusal, raised or listed."""
    lost = cause()
    for exc in (
        raised_from(refusal(), lost),
        raised_from(refusal(), ShopError(SECRET), KeyError(SECRET), lost),
        raised_from(refusal(), BaseExceptionGroup(SECRET, [ShopError(SECRET), lost])),
        raised_from(ShopError(SECRET), lost),
    ):
        outcome = judge(exc, ShopError, sends="anywhere")
        assert isinstance(outcome, Lost)
        assert outcome.reason.startswith(name_of(type(exc)))
    assert isinstance(judge(lost, BaseException, sends="anywhere"), Lost)


ANSWERS: list[BaseException] = [
    ValueError(SECRET), KeyError(SECRET), FileExistsError(17, SECRET), FileNotFoundError(2, SECRET),
    IsADirectoryError(21, SECRET), NotADirectoryError(20, SECRET), PermissionError(13, SECRET), ShopError(SECRET),
    STRIPE.CardError(SECRET, None, "card_declined", http_status=402), STRIPE.InvalidRequestError(SECRET, None),
    STRIPE.APIError(SECRET, http_status=500), requests.HTTPError(SECRET), smtplib.SMTPDataError(552, SECRET),
    httpx2.HTTPStatusError(SECRET, request=cast("Any", None), response=cast("Any", None)),
    smtplib.SMTPNotSupportedError(SECRET), smtplib.SMTPRecipientsRefused({}),
    botocore.exceptions.ClientError({}, SECRET),
    botocore.exceptions.ParamValidationError(report=SECRET),
]  # fmt: skip


@pytest.mark.parametrize("cause", ANSWERS, ids=lambda exc: type(exc).__name__)
def test_a_refusal_from_an_answer_stands(cause: BaseException) -> None:
    """A refusal made from the provider's own error, or from an ordinary one, is Refused; unlisted the same is Lost."""
    outcome = judge(raised_from(refusal(), cause), sends="anywhere")
    assert isinstance(outcome, Refused)
    assert (outcome.code, outcome.reason) == ("declined", "the provider declined")
    assert judge(cause) == Lost(name_of(type(cause)), status=getattr(cause, "http_status", None))
    listed = judge(cause, type(cause), sends="anywhere")
    assert isinstance(listed, Refused)
    assert (listed.code, listed.reason) == ("rejected", name_of(type(cause)))


def test_an_answer_proves_nothing_by_what_it_was_raised_from() -> None:
    """Where an answer came, something was sent, whatever failed to connect around it."""
    for answer in (
        STRIPE.CardError(SECRET, None, None),
        botocore.exceptions.ClientError({}, SECRET),
        requests.HTTPError(SECRET),
        smtplib.SMTPDataError(552, SECRET),
    ):
        assert isinstance(judge(raised_from(answer, httpx.ConnectError(SECRET))), Lost)


def test_the_fields_of_a_refusal_arrive() -> None:
    """What a tool says in its refusal is what the outcome holds, each kind with its own code and status."""
    said = Rejected("full", "no seat", field="day", hint="try Monday", candidates=["Mon", "Tue"], status=409)
    assert judge(said) == Refused("full", "no seat", "day", "try Monday", ("Mon", "Tue"), None, 409)
    assert judge(Throttled(2.5)) == Refused("rate_limited", "too many requests", retry_after_s=2.5, status=429)
    assert judge(Forbidden("not yours")) == Refused("forbidden", "not yours", status=403)


def test_the_fields_of_a_refusal_are_capped() -> None:
    """Nothing that a tool puts in makes the outcome large, and what is of the wrong kind is left out."""
    long = "x" * 10_000
    big = judge(Rejected(long, long, field=long, hint=long, candidates=[long] * 100))
    assert isinstance(big, Refused)
    assert len(big.code) == CODE_MAX
    assert {len(text) for text in (big.reason, big.field or "", big.hint or "")} == {TEXT_MAX}
    assert big.candidates == (long[:TEXT_MAX],) * CANDIDATES_MAX
    upstream: Any = ValueError(SECRET)
    assert judge(Rejected(upstream, upstream, hint=upstream)) == Refused("rejected", name_of(Rejected))
    for after in (-1.0, float("nan"), float("inf"), 10**400):
        assert judge(Throttled(after)) == Refused("rate_limited", "too many requests", status=429)


def test_a_refusal_without_its_fields_is_still_one() -> None:
    """A subclass that does not call its parent's constructor is a refusal under the default code."""

    class Sparse(ToolRefusal):
        def __init__(self) -> None:
            Exception.__init__(self)

    assert judge(Sparse()) == Refused("rejected", name_of(Sparse))


def test_a_gateway_status_is_no_refusal() -> None:
    """`status=504` says that the answer was lost, whatever the class around it says; 503 is the tool's to declare."""
    assert isinstance(judge(Rejected("down", "closed", status=504)), Lost)
    assert judge(Rejected("down", "closed", status=503)) == Refused("down", "closed", status=503)


def test_a_refusal_knows_the_status_of_its_cause() -> None:
    """409, 422 and 429 never speak for earlier attempts, so the status must not get lost on the way."""
    idempotency = STRIPE.IdempotencyError(SECRET, http_status=409)
    assert judge(raised_from(refusal(), idempotency)) == Refused("declined", "the provider declined", status=409)
    conflict = botocore.exceptions.ClientError({"ResponseMetadata": {"HTTPStatusCode": 409}}, "Put")
    assert judge(conflict, botocore.exceptions.ClientError) == Refused(
        "rejected", "botocore.exceptions.ClientError", status=409
    )


def test_a_listed_error_proves_only_what_was_listed() -> None:
    """429 and other answers prove nothing until they are declared, and then by their own class or a parent's."""
    throttled = STRIPE.RateLimitError(SECRET, http_status=429)
    assert isinstance(judge(throttled, stripe.CardError), Lost)
    assert judge(throttled, stripe.StripeError) == Refused("rejected", "stripe.RateLimitError", status=429)


# ---------------------------------------------------------------- the gate


def an_effect(remaining_s: float) -> tuple[Effect, Gate]:
    gate = Gate(lambda: remaining_s)
    return Effect(id="cf-1", attempt=1, gate=gate), gate


@pytest.mark.parametrize("shut", [False, True])
def test_a_deadline_that_passed_before_the_gate(shut: bool) -> None:
    """What `effect.sending()` raises proves never_sent for tools that declare how they send, and is not tried again."""
    effect, gate = an_effect(remaining_s=1.0 if shut else 0.0)
    if shut:
        gate.shut()
    with pytest.raises(DeadlinePassed) as caught, effect.sending():
        raise AssertionError("the block must not run")
    proven = NeverSent("counterfoil.errors.DeadlinePassed", retryable=False)
    assert judge(caught.value, sends="marked", gate=gate.state) == proven
    assert judge(caught.value, sends="once", gate=gate.state) == proven
    assert isinstance(judge(caught.value, sends="anywhere", gate=gate.state), Lost)


def test_a_block_that_failed_once() -> None:
    """A connect error that left the block proves; one after a block that ended well, or from a second one, does not."""
    inside, gate = an_effect(remaining_s=1.0)
    with pytest.raises(httpx.ConnectError) as caught, inside.sending():
        raise httpx.ConnectError(SECRET)
    assert isinstance(judge(caught.value, sends="marked", gate=gate.state), NeverSent)
    assert isinstance(judge(httpx.ReadTimeout(SECRET), sends="marked", gate=gate.state), Lost)
    with pytest.raises(httpx.ConnectError) as again, inside.sending():
        raise httpx.ConnectError(SECRET)
    assert isinstance(judge(again.value, sends="marked", gate=gate.state), Lost)
    after, gate = an_effect(remaining_s=1.0)
    with after.sending():
        pass
    assert isinstance(judge(httpx.ConnectError(SECRET), sends="marked", gate=gate.state), Lost)


@pytest.mark.parametrize("gate", [GateState.SENDING, GateState.SENT])
@pytest.mark.parametrize("sends", ["anywhere", "once", "marked"])
def test_a_deadline_that_passed_after_the_gate(sends: Sends, gate: GateState) -> None:
    """A second `sending()` that comes too late says nothing about the first."""
    assert isinstance(judge(DeadlinePassed(), sends=sends, gate=gate), Lost)


@pytest.mark.parametrize(
    "exc", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(502), GeneratorExit()], ids=repr
)
def test_a_cancellation_follows_the_same_rules(exc: BaseException) -> None:
    """It proves never_sent before the mark, nothing elsewhere, and can be declared a refusal nowhere."""
    for gate in (GateState.UNTOUCHED, GateState.SHUT):
        assert judge(exc, sends="marked", gate=gate) == NeverSent(name_of(type(exc)), retryable=False)
    for gate in (GateState.SENDING, GateState.SENT):
        assert judge(exc, sends="marked", gate=gate) == Lost(name_of(type(exc)))
    for sends in ("anywhere", "once"):
        assert isinstance(judge(exc, BaseException, sends=sends), Lost)


def test_before_the_mark_a_refusal_keeps_its_words_and_nothing_else_does() -> None:
    """A tool's own `Rejected` tells the model what to change; a listed error or a lost look-up is only never_sent."""
    assert judge(refusal(), sends="marked") == Refused("declined", "the provider declined")
    assert isinstance(judge(raised_from(refusal(), TimeoutError()), sends="marked"), NeverSent)
    assert isinstance(judge(ShopError(SECRET), ShopError, sends="marked"), NeverSent)


@pytest.mark.parametrize(
    ("exc", "retryable"),
    [
        (TimeoutError(), True), (httpx.ReadError(SECRET), True), (STRIPE.APIError(SECRET, http_status=503), True),
        (STRIPE.APIError(SECRET, http_status=404), False), (KeyError(SECRET), False), (ShopError(SECRET), False),
        (ssl.SSLCertVerificationError(1, SECRET), False), (asyncio.CancelledError(), False),
    ],
    ids=repr,
)  # fmt: skip
def test_what_may_work_in_a_moment(exc: BaseException, retryable: bool) -> None:
    """The transport's faults and a busy provider pass; a bug, a wrong certificate and a cancellation do not."""
    assert judge(exc, sends="marked") == NeverSent(name_of(type(exc)), retryable=retryable)
