"""Key policies of providers, as their public pages state them. Data alone: no client and no request.

Each preset says no more than its source does. What a page leaves open has the careful value: `concurrent=False` makes a
resend wait until no earlier request can be under way, `replays_refusals=False` lets a refusal speak for its own request
alone. Contracts and API versions differ: read the page before you rely on it, and say what differs:

    >>> from dataclasses import replace
    >>> replace(PAYPAL_ORDERS, retention_s=72 * HOUR_S).retention_s
    259200
"""

from __future__ import annotations

from typing import Final

from counterfoil import KeyPolicy

MINUTE_S: Final = 60
HOUR_S: Final = 60 * MINUTE_S
DAY_S: Final = 24 * HOUR_S

# https://docs.stripe.com/api/idempotent_requests (API v1): keys may be removed once they are at least 24 hours old;
# the saved status and body of the first request are replayed, whether it succeeded or failed, 500 included; other
# parameters are an error; a request that conflicts with one under way is answered as a conflict and not saved.
STRIPE: Final = KeyPolicy(retention_s=DAY_S, concurrent=True, replays_refusals=True, compares_body=True)

# https://docs.adyen.com/development-resources/api-idempotency: valid for at least 31 days after the first submission;
# the response to the first attempt is returned. It says nothing that holds back a second request under way for sure.
ADYEN: Final = KeyPolicy(retention_s=31 * DAY_S)

# https://www.checkout.com/docs/payments/manage-payments/idempotency: 24 hours by default; only a 2xx answer is saved,
# after a 4xx or 5xx the payment is attempted again. What it says of concurrent requests is not relied on here.
CHECKOUT_COM: Final = KeyPolicy(retention_s=DAY_S)

# https://developer.paypal.com/api/orders/v2/orders-authorize: PayPal-Request-Id is stored for 6 hours, and on request
# for up to 72. https://developer.paypal.com/api/rest/reference/idempotency: of two simultaneous requests the first is
# processed and the second "might" fail, which is no promise; a repeat gets the latest status of the first.
PAYPAL_ORDERS: Final = KeyPolicy(retention_s=6 * HOUR_S)

# https://docs.truelayer.com/docs/idempotency-for-payment-requests: valid for 30 days from creation; another payload
# under a valid key is an error.
TRUELAYER: Final = KeyPolicy(retention_s=30 * DAY_S, compares_body=True)

# https://apireference.connect.worldline-solutions.com/s2sapi/v1/en_US/go/idempotent-requests.html: 24 hours; a second
# request is answered 409 while the first is not finished, and with the first one's response afterwards.
WORLDLINE_CONNECT: Final = KeyPolicy(retention_s=DAY_S, concurrent=True)

# https://developer.payone.com/en/integration/api-developer-guide/idempotent-requests: at least 24 hours; 409 while the
# first is under way; afterwards its outcome, also for a different payload.
PAYONE: Final = KeyPolicy(retention_s=DAY_S, concurrent=True)

# https://docs.qonto.com/get-started/general/idempotent-requests: 30 minutes; successful responses are cached, and are
# returned even if the request body differs.
QONTO: Final = KeyPolicy(retention_s=30 * MINUTE_S)

# https://docs.nuvei.com/documentation/additional-links/rest-2-0/features/idempotency-support: the response is retained
# for fifteen minutes.
NUVEI: Final = KeyPolicy(retention_s=15 * MINUTE_S)
