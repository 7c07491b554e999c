"""C28: 1.0 and 1 give different hashes (erpipe-org/mcp-odoo #48).

A model (or a transport written in another language) spells one number in several ways between two calls.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from cases.messages import assert_applied, assert_none, assert_unknown
from cases.scene import find, incidents, post, sent, story, until_free
from provider import Provider

from counterfoil import ALL_ARGUMENTS, Effect, Executor, Policy, Tool, tool
from counterfoil.arguments import Arguments, Valid
from counterfoil.identity import identify

ONE = ("1", "1.0", "1e0", "10e-1")
ANOTHER = ("1.5", "-1", "10")
ONE_IN_PYTHON = (1, 1.0, Decimal(1), Decimal("1.00"))


def with_decimals(amount: Decimal, parts: list[Decimal], by: dict[str, dict[str, Decimal]]) -> None: ...


def with_floats(amount: float, parts: list[float], by: dict[str, dict[str, float]]) -> None: ...


def with_anything(amount: Any, parts: list[Any], by: dict[str, Any]) -> None: ...


SIGNATURES = (with_decimals, with_floats, with_anything)


def fingerprint(arguments: Arguments, raw: str | dict[str, Any]) -> bytes:
    valid = arguments.validate(raw)
    assert isinstance(valid, Valid), valid
    return identify(tenant="", tool="pay", task="", names=ALL_ARGUMENTS, identity_arguments=valid.identity).fingerprint


def spelt(number: str) -> str:
    """JSON text with the number at the top, in a list, and in an object in an object."""
    return f'{{"amount": {number}, "parts": [{number}, 2], "by": {{"net": {{"eur": {number}}}}}}}'


@pytest.mark.parametrize("signature", SIGNATURES)
def test_one_number_has_one_fingerprint_however_it_is_spelt(signature: Any) -> None:
    """All spellings of one are one, as text and as Python values, nested or not; 1.5 is another, and so is -1."""
    arguments = Arguments(signature)
    texts = {fingerprint(arguments, spelt(number)) for number in ONE}
    values = {
        fingerprint(arguments, {"amount": one, "parts": [one, 2], "by": {"net": {"eur": one}}}) for one in ONE_IN_PYTHON
    }
    assert len(texts | values) == 1
    others = {fingerprint(arguments, spelt(number)) for number in ANOTHER}
    assert len(others) == len(ANOTHER)
    assert not others & texts


def payment_of(provider: Provider, key: Any) -> Tool[..., Any]:
    policy = Policy(timeout_s=20.0, grace_s=60.0, patience_s=0.05, wait_s=0.5)

    @tool(key=key, sends="once", policy=policy)
    def pay(effect: Effect, order: str, amount: Decimal, parts: list[Decimal]) -> dict[str, str]:
        """Pay an order in parts."""
        return post(provider, effect, {"order": order, "amount": str(amount)})

    pay.postcondition(lambda effect: find(provider, effect))
    return pay


@pytest.mark.parametrize("key", [("order",), ALL_ARGUMENTS], ids=["by order", "by all arguments"])
def test_the_retry_that_says_1_is_recognised(ledger_url: str, provider: Provider, key: Any) -> None:
    """Sent with 1.0 and lost, asked again with 1: it is the same effect, found and not sent again."""
    provider.arm("ack_lost")
    provider.arm("stale")
    first_text = '{"order": "A", "amount": 1.0, "parts": [1e0, 2.50]}'
    with Executor(ledger_url, tools=[payment_of(provider, key)], clock_margin_s=0.1) as executor:
        first = executor.call("pay", first_text, task="t")
        assert_unknown(first)
        until_free(executor)
        second = executor.call("pay", '{"order": "A", "amount": 1, "parts": [1, 2.5]}', task="t")
        assert_applied(second, code="verified")
        assert second.effect_id == first.effect_id
        (effect,) = executor.audit.effects()
        assert story(executor, effect.id) == [("begun", 1), ("lost", 1), ("looked", 0), ("found", 0)]
        assert incidents(executor) == []

        assert effect.echo.replace(" ", "") == first_text.replace(" ", ""), "the first spelling is kept as it was sent"
        kept = json.loads(effect.arguments, parse_float=Decimal, parse_int=Decimal)
        assert kept == {"order": "A", "amount": Decimal(1), "parts": [Decimal(1), Decimal("2.5")]}
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def test_what_is_rejected_is_shown_as_it_was_sent(ledger_url: str, provider: Provider) -> None:
    """Another amount under the same order is refused before anything is sent; 2.0 is shown as 2.0."""
    with Executor(ledger_url, tools=[payment_of(provider, ("order",))], clock_margin_s=0.1) as executor:
        executor.call("pay", '{"order": "A", "amount": 1.0, "parts": []}')
        seen = executor.call("pay", '{"order": "A", "amount": 2.0, "parts": [3e0]}')
        assert_none(seen, code="key_conflict")
        shown = seen.rejected_arguments or ""
        assert shown.replace(" ", "") == '{"order":"A","amount":2.0,"parts":[3e0]}'
        assert f"Rejected arguments: {shown}" in seen.text
        (effect,) = executor.audit.effects()
        assert story(executor, effect.id) == [("begun", 1), ("returned", 1)], "the conflict leaves the effect alone"
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
