"""A Stripe client that sends each request once, and no longer than the attempt lasts.

Owns the HTTP behaviour that `sends="marked"` of the payment tool rests on: no retries, no redirects, no request that
outlives its deadline. It must not know what is paid.
"""

from __future__ import annotations

from typing import Any, Final

import requests
import stripe

from counterfoil.attempt import current_effect
from counterfoil.errors import DeadlinePassed, UsageError
from counterfoil_tools.provider import wait_s

_MENDING: Final = (
    "a payment may be sent once per attempt, and the executor alone decides about sending again. "
    "Build the client with counterfoil_tools.payments.stripe_client(api_key)"
)


class OneRequestSession(requests.Session):
    """A session of `requests` that follows no redirect and cuts each wait to what is left of the present attempt."""

    def __init__(self) -> None:
        super().__init__()
        self.max_redirects = 0

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """As the parent's; `timeout` is in seconds and never above the seconds left of the attempt.

        Raises:
            DeadlinePassed: nothing is left of it.
        """
        left = _seconds_left()
        if left is not None:
            if left <= 0:
                raise DeadlinePassed("the deadline of this attempt is over: nothing may be sent any more")
            timeout = kwargs.get("timeout")
            kwargs["timeout"] = left if timeout is None else min(timeout, left)
        return super().request(*args, **kwargs)


def build(api_key: str, *, base_url: str | None, timeout_s: float, trust_env: bool) -> stripe.StripeClient:
    session = OneRequestSession()
    session.trust_env = trust_env
    http = stripe.RequestsClient(timeout=timeout_s, session=session)
    if base_url is None:
        return stripe.StripeClient(api_key, http_client=http, max_network_retries=0)
    return stripe.StripeClient(api_key, http_client=http, max_network_retries=0, base_addresses={"api": base_url})


def check_single(client: stripe.StripeClient) -> None:
    """Refuse a client that could send one payment twice.

    Raises:
        UsageError: its own retries are on, or its HTTP client follows redirects.
    """
    requestor = getattr(client, "_requestor", None)
    retries = getattr(getattr(requestor, "_options", None), "max_network_retries", None)
    if retries is None:
        retries = stripe.max_network_retries
    if retries != 0:
        raise UsageError(f"this StripeClient retries by itself ({retries} times): {_MENDING}, or max_network_retries=0")
    http = getattr(requestor, "_client", None)
    if isinstance(http, stripe.UrllibClient) or (isinstance(http, stripe.RequestsClient) and not _plain(http)):
        raise UsageError(f"the HTTP client of this StripeClient follows redirects or retries: {_MENDING}")


def _plain(http: stripe.RequestsClient) -> bool:
    session = getattr(http, "_session", None)
    if session is None or session.max_redirects != 0:
        return False
    return all(adapter.max_retries.total == 0 for adapter in session.adapters.values())


def _seconds_left() -> float | None:
    """None outside an attempt: a client may be used for other things too."""
    try:
        return wait_s(current_effect())
    except UsageError:
        return None
