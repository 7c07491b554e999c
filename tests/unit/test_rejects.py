"""What may be declared as a refusal: never a class that a lost answer can come under."""

from __future__ import annotations

from typing import Any

import botocore.exceptions  # type: ignore[import-untyped]
import httpx
import httpx2
import pytest
import requests
import stripe
import urllib3.exceptions

from counterfoil.errors import UsageError
from counterfoil.tool import AnyTool, tool


class CardError(Exception):
    """A refusal of some provider."""


class ProviderError(Exception):
    """Everything that some provider's client raises."""


class ProviderTimeout(ProviderError):
    """A lost answer of that client."""


def declare(*, rejects: Any) -> AnyTool:
    """A tool with these refusals."""

    @tool(key=("order",), rejects=rejects)
    def charge(order: str) -> None:
        """Charge the customer's card once for one order."""

    return charge


LOST: list[type[BaseException]] = [
    TimeoutError,
    OSError,
    ProviderTimeout,
    ProviderError,
    httpx.ReadTimeout,
    httpx.TimeoutException,
    httpx.TransportError,
    httpx.HTTPError,
    httpx2.ReadTimeout,
    httpx2.HTTPError,
    requests.Timeout,
    requests.ConnectTimeout,
    requests.RequestException,
    urllib3.exceptions.ReadTimeoutError,
    urllib3.exceptions.HTTPError,
    botocore.exceptions.ReadTimeoutError,
    botocore.exceptions.BotoCoreError,
    stripe.APIConnectionError,
    stripe.StripeError,
    Exception,
    BaseException,
    KeyboardInterrupt,
]


@pytest.mark.parametrize("listed", LOST, ids=lambda one: f"{one.__module__}.{one.__name__}")
def test_a_lost_answer_cannot_be_declared_as_a_refusal(listed: type[BaseException]) -> None:
    """A timeout, a class that covers one in its own library, and what is as wide as Exception: all refused."""
    with pytest.raises(UsageError, match="list "):
        declare(rejects=(CardError, listed))


REFUSALS: list[type[Exception]] = [
    CardError,
    ValueError,
    httpx.HTTPStatusError,
    httpx2.HTTPStatusError,
    requests.HTTPError,
    botocore.exceptions.ClientError,
    stripe.CardError,
    stripe.InvalidRequestError,
]


def test_refusals_of_known_clients_can_be_declared() -> None:
    """The classes with which clients report an answer are taken."""
    assert declare(rejects=tuple(REFUSALS)).rejects == tuple(REFUSALS)


@pytest.mark.parametrize("listed", [CardError, [CardError], (CardError("x"),), ("CardError",), (int,)])
def test_rejects_is_a_tuple_of_exception_classes(listed: Any) -> None:
    """Anything else is refused, the forgotten comma included."""
    with pytest.raises(UsageError, match=r"list exception classes|with the comma"):
        declare(rejects=listed)
