"""Card payments with the official Stripe SDK: charge once per order, and find a charge again by its metadata.

Owns the two requests (create, list) and what their answers prove; the refund of a charge is in `refunds`. It sends
once: a client with retries or redirects of its own is refused. Upstream texts go no further than this module; the model
reads ours.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field
from typing_extensions import TypedDict

from counterfoil import (
    Absent,
    Content,
    Effect,
    Forbidden,
    Found,
    KeyPolicy,
    Policy,
    Rejected,
    Tool,
    Unclear,
    tool,
)
from counterfoil_tools import refunds
from counterfoil_tools.provider import Unproven
from counterfoil_tools.stripe_answers import METADATA_KEY, Scan, planted, sdk, throttled

if TYPE_CHECKING:
    import stripe

Order = Annotated[str, Field(min_length=1, max_length=200, description="the order that is paid, as the shop names it")]
AmountMinor = Annotated[int, Field(gt=0, description="the amount in the currency's smallest unit: 1250 is 12.50 EUR")]
Currency = Annotated[str, Field(pattern="^[a-z]{3}$", description="three small letters, for example eur")]
# Which card pays does not say which payment it is: after a decline the same order is paid with another card.
Method = Annotated[str, Content, Field(min_length=1, description="the id of a stored payment method, pm_...")]
Customer = Annotated[
    str | None, Field(description="the id of the customer that the payment method belongs to, cus_...")
]

# An intent in one of these has taken nothing, and nobody goes on with it: its secret never leaves this module.
_FAILED: Final = frozenset({"requires_payment_method", "canceled"})
_ANOTHER_CARD: Final = "Ask the customer for another card, then charge the same order with that payment_method."
_DECLINES: Final = {
    "expired_card": "The card has expired",
    "incorrect_cvc": "The card's security code is wrong",
    "insufficient_funds": "The card has not enough funds",
    "authentication_required": "The bank wants the customer to confirm this payment in person",
}
_FIELDS: Final = {
    "amount": "amount_minor",
    "currency": "currency",
    "payment_method": "payment_method",
    "customer": "customer",
}


class Payment(TypedDict):
    """A payment that was taken. `amount_minor` is in the currency's smallest unit."""

    payment: str
    order: str
    amount_minor: int
    currency: str


def stripe_client(
    api_key: str, *, base_url: str | None = None, timeout_s: float = 30.0, trust_env: bool = True
) -> stripe.StripeClient:
    """A StripeClient that sends each request once: no retries, no redirects, no waiting beyond the attempt's deadline.

    Args:
        api_key: the secret key of the account.
        base_url: another server than Stripe's own, for tests.
        timeout_s: seconds to wait for each answer; less when the attempt has less left.
        trust_env: False ignores the proxies that the environment names.

    Raises:
        UsageError: the SDK is not installed.

    Example:
        >>> client = stripe_client("sk_test_1", base_url="http://127.0.0.1:8420")
    """
    sdk()
    from counterfoil_tools import stripe_http

    return stripe_http.build(api_key, base_url=base_url, timeout_s=timeout_s, trust_env=trust_env)


def stripe_tools(
    client: stripe.StripeClient,
    *,
    grace_s: float | None,
    key_policy: KeyPolicy | None = None,
    timeout_s: float = 30.0,
    patience_s: float = 10.0,
    pages_max: int = 200,
    payment_method_types: tuple[str, ...] = ("card",),
    twin_window_s: float | None = 600.0,
) -> list[Tool[..., Any]]:
    """The tools of a Stripe account: `charge`, with a full refund as its compensation.

    Args:
        client: from `stripe_client`, or one that neither retries nor follows redirects.
        grace_s: seconds after the last possible send from which on a full scan without the payment proves that there is
            none; None: absence never proves.
        key_policy: how the server de-duplicates; None for one that ignores keys. Stripe keeps a key for 24 hours at
            least: `counterfoil_tools.providers.STRIPE`.
        timeout_s: seconds for one attempt.
        patience_s: seconds for which a call goes on looking after a lost answer.
        pages_max: pages of 100 payments that one look reads at most; a longer account is unclear, never absent.
        payment_method_types: what the account accepts for such a payment.
        twin_window_s: seconds for which the same payment under another key is held, and the user is asked; None: never.

    Raises:
        UsageError: the SDK is not installed, or the client could send a payment twice.

    Example:
        >>> client = stripe_client("sk_test_1", base_url="http://127.0.0.1:8420")
        >>> [each.name for each in stripe_tools(client, grace_s=60)]
        ['charge']
    """
    sdk()
    from counterfoil_tools import stripe_http

    stripe_http.check_single(client)
    policy = Policy(timeout_s=timeout_s, grace_s=grace_s, patience_s=patience_s, key_policy=key_policy)
    charge = _charge_tool(client, replace(policy, twin_window_s=twin_window_s), pages_max, payment_method_types)
    refunds.declare(charge, client, policy, pages_max)
    return [charge]


def _charge_tool(
    client: stripe.StripeClient, policy: Policy, pages_max: int, payment_method_types: tuple[str, ...]
) -> Tool[..., Any]:
    @tool(key=("order",), sends="marked", policy=policy)
    def charge(
        effect: Effect,
        order: Order,
        amount_minor: AmountMinor,
        currency: Currency,
        payment_method: Method,
        customer: Customer = None,
    ) -> Payment:
        """Charge the customer's card once for one order. Use it after the customer has confirmed the total."""
        wanted: dict[str, Any] = {
            "amount": amount_minor,
            "currency": currency,
            "payment_method": payment_method,
            "payment_method_types": list(payment_method_types),
            "confirm": True,
            "off_session": True,
            "metadata": {METADATA_KEY: effect.id, "order": order},
        }
        if customer is not None:
            wanted["customer"] = customer
        intent = _create(client, effect, wanted)
        if intent.status in _FAILED:
            raise _declined(None)
        if intent.status != "succeeded":
            raise Unproven(f"the payment is {intent.status}")
        return _payment(intent, order)

    @charge.postcondition
    def charged(effect: Effect) -> Found[Payment] | Absent | Unclear:
        scan = Scan(client.v1.payment_intents.list, effect, pages_max)
        matching = [intent for intent in scan if planted(intent) == effect.id]
        taken = [intent for intent in matching if intent.status == "succeeded"]
        if taken:
            return Found(_payment(taken[0], effect.arguments["order"]), reference=[intent.id for intent in taken])
        if any(intent.status not in _FAILED for intent in matching):
            return Unclear("the payment is there and not yet finished")
        return Absent() if scan.finished else Unclear("the scan of the payments was not finished")

    return charge


def _create(client: stripe.StripeClient, effect: Effect, wanted: Any) -> stripe.PaymentIntent:
    """The one request that takes money. What surely took none is raised as a refusal; all else is left as it is."""
    stripe_sdk = sdk()
    key = effect.provider_key
    try:
        with effect.sending():
            return client.v1.payment_intents.create(wanted, {"idempotency_key": key, "max_network_retries": 0})
    except stripe_sdk.CardError as error:
        raise _declined(_decline(error)) from None
    except stripe_sdk.RateLimitError as error:
        throttled(error)
    except stripe_sdk.InvalidRequestError as error:
        field = _FIELDS.get(str(error.param))
        hint = f"Check {field or 'payment_method, customer and currency'} against the account, then call again."
        reason = "The payment provider does not accept these arguments"
        raise Rejected("invalid_payment", reason, field=field, hint=hint, status=error.http_status) from None
    except (stripe_sdk.AuthenticationError, stripe_sdk.PermissionError):
        raise Forbidden("The payment account does not let this program charge") from None


def _decline(error: stripe.CardError) -> str | None:
    details = error.error
    finer = getattr(details, "decline_code", None) if details is not None else None
    return finer if finer in _DECLINES else error.code


def _declined(code: str | None) -> Rejected:
    reason = _DECLINES.get(code or "", "The card was declined")
    name = "authentication_required" if code == "authentication_required" else "card_declined"
    return Rejected(name, reason, field="payment_method", hint=_ANOTHER_CARD, status=402)


def _payment(intent: stripe.PaymentIntent, order: str) -> Payment:
    return Payment(payment=intent.id, order=order, amount_minor=intent.amount, currency=intent.currency)
