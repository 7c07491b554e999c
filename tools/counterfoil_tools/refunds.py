"""The refund of a charge in full: its compensation, once, and found again by its metadata.

Owns the two requests (create a refund, list refunds) and what their answers prove. Which payment is meant stands in the
ledger; where its value was not kept, the account's payments are searched for it. It sends once, as the charge does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from typing_extensions import TypedDict

from counterfoil import Absent, Effect, Forbidden, Found, Policy, Rejected, Tool, Unclear
from counterfoil_tools.provider import Unproven
from counterfoil_tools.stripe_answers import METADATA_KEY, Scan, planted, sdk, throttled

if TYPE_CHECKING:
    import stripe

# A refund in one of these has given nothing back, and never will.
_FAILED: Final = frozenset({"failed", "canceled"})
_REPORT: Final = "Do not ask for it again; report to a person that this payment has to be looked at by hand."


class Refund(TypedDict):
    """A payment that was given back. `amount_minor` is in the currency's smallest unit."""

    refund: str
    payment: str
    order: str
    amount_minor: int
    currency: str


def declare(charge: Tool[..., Any], client: stripe.StripeClient, policy: Policy, pages_max: int) -> None:
    """Make the full refund the compensation of `charge`."""

    @charge.compensation(sends="marked", policy=policy)
    def refund(effect: Effect) -> Refund:
        """Refund the payment of one order in full."""
        key = effect.provider_key
        payment = _payment_of(client, effect, pages_max)
        order = effect.original.arguments["order"]
        wanted = {"payment_intent": payment, "metadata": {METADATA_KEY: effect.id, "order": order}}
        made = _create(client, effect, wanted, key) or _ours_already(client, effect, payment, pages_max)
        if made.status in _FAILED:
            raise _refused(402)
        if made.status != "succeeded":
            raise Unproven(f"the refund is {made.status}")
        return _refund(made, effect)

    @refund.postcondition
    def refunded(effect: Effect) -> Found[Refund] | Absent | Unclear:
        names = _named(effect.original)
        scan = _refunds(client, effect, names[0] if len(names) == 1 else None, pages_max)
        matching = [made for made in scan if planted(made) == effect.id]
        given = [made for made in matching if made.status == "succeeded"]
        if given:
            return Found(_refund(given[0], effect), reference=[made.id for made in given])
        if any(made.status not in _FAILED for made in matching):
            return Unclear("the refund is there and not yet finished")
        return Absent() if scan.finished else Unclear("the scan of the refunds was not finished")


def _create(client: stripe.StripeClient, effect: Effect, wanted: Any, key: str) -> Any:
    """The one request that gives money back; None where the provider says that all of it was given back before."""
    stripe_sdk = sdk()
    try:
        with effect.sending():
            return client.v1.refunds.create(wanted, {"idempotency_key": key, "max_network_retries": 0})
    except stripe_sdk.RateLimitError as error:
        throttled(error)
    except stripe_sdk.InvalidRequestError as error:
        if error.code == "charge_already_refunded":
            return None
        raise _refused(error.http_status) from None
    except stripe_sdk.CardError as error:
        raise _refused(error.http_status) from None
    except (stripe_sdk.AuthenticationError, stripe_sdk.PermissionError):
        raise Forbidden("The payment account does not let this program refund") from None


def _refused(status: int | None) -> Rejected:
    return Rejected("refund_refused", "The payment provider does not refund this payment", hint=_REPORT, status=status)


def _ours_already(client: stripe.StripeClient, effect: Effect, payment: str, pages_max: int) -> Any:
    """The refund that made the provider say so, if it is this effect's own, from an earlier attempt.

    Raises:
        Unproven: it could not be seen whose it is.
    """
    scan = _refunds(client, effect, payment, pages_max)
    try:
        ours = [made for made in scan if planted(made) == effect.id]
    except Exception as error:  # noqa: BLE001 - whatever it was, it proves nothing
        raise Unproven(f"the refunds cannot be read: {type(error).__name__}") from None
    if ours:
        return ours[0]
    if not scan.finished:
        raise Unproven("the scan of the refunds was not finished")
    hint = "Tell the user that the money was given back before; nothing has to be refunded."
    raise Rejected("already_refunded", "This payment was refunded before, by another way", hint=hint, status=400)


def _payment_of(client: stripe.StripeClient, effect: Effect, pages_max: int) -> str:
    """The one payment that is refunded. Nothing has been sent yet.

    Raises:
        Rejected: there is none, or more than one.
        Unproven: the search for it was not finished.
    """
    names = _named(effect.original)
    if not names:
        scan = Scan(client.v1.payment_intents.list, effect, pages_max)
        mine = [intent for intent in scan if planted(intent) == effect.original.id]
        names = [intent.id for intent in mine if intent.status == "succeeded"]
        if not scan.finished and len(names) < 2:
            raise Unproven("the scan of the payments was not finished")
    if len(names) == 1:
        return names[0]
    if names:
        raise Rejected("several_payments", "This order was paid more than once", hint=_REPORT)
    raise Rejected("payment_not_found", "The payment is not in the provider's account", hint=_REPORT)


def _named(original: Effect) -> list[str]:
    """The payments of the effect, as the ledger knows them."""
    value = original.value
    kept = value.get("payment") if isinstance(value, dict) else None
    return list(dict.fromkeys([*([kept] if isinstance(kept, str) else []), *original.references]))


def _refunds(client: stripe.StripeClient, effect: Effect, payment: str | None, pages_max: int) -> Scan:
    return Scan(client.v1.refunds.list, effect, pages_max, {"payment_intent": payment} if payment else None)


def _refund(made: Any, effect: Effect) -> Refund:
    return Refund(
        refund=made.id,
        payment=str(made.payment_intent),
        order=effect.original.arguments["order"],
        amount_minor=made.amount,
        currency=made.currency,
    )
