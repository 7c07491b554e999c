"""C31 (kind K07): integers above 2^53 collapse (margince/margince #1075, Rul1an/assay #2239)."""

from __future__ import annotations

import json

from cases.messages import assert_applied, assert_none
from cases.scene import post, sent
from provider import Provider

from counterfoil import ALL_ARGUMENTS, Effect, Executor, tool

LARGE = (2**53 + 1, 2**53, 10**30, 10**30 + 1)


def test_each_large_integer_is_an_action_of_its_own(ledger_url: str, provider: Provider) -> None:
    """One effect for each, found again by its digits, as text and as a number of Python; the ledger has every digit."""

    @tool(key=ALL_ARGUMENTS)
    def pay(effect: Effect, amount_minor: int) -> dict[str, str]:
        """Pay an amount."""
        return post(provider, effect, {"amount_minor": str(amount_minor)})

    with Executor(ledger_url, tools=[pay]) as executor:
        for amount in LARGE:
            assert_applied(executor.call("pay", f'{{"amount_minor": {amount}}}', task="t"), code="ok")
        for amount in LARGE:
            assert_applied(executor.call("pay", {"amount_minor": amount}, task="t"), code="replayed")
        kept = {json.loads(row.arguments)["amount_minor"] for row in executor.audit.effects()}
    assert kept == set(LARGE)
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == len(LARGE)


def test_a_refusal_shows_every_digit(ledger_url: str, provider: Provider) -> None:
    """A neighbouring amount under the same order is a conflict, and the echo tells the two apart."""

    @tool(key=("order",))
    def pay(effect: Effect, order: str, amount_minor: int) -> dict[str, str]:
        """Pay an order."""
        return post(provider, effect, {"order": order})

    with Executor(ledger_url, tools=[pay]) as executor:
        executor.call("pay", {"order": "A", "amount_minor": LARGE[0]})
        seen = executor.call("pay", {"order": "A", "amount_minor": LARGE[1]})
    assert_none(seen, code="key_conflict")
    assert f'"amount_minor":{LARGE[1]}' in str(seen.rejected_arguments)
    assert f"was {LARGE[0]}, now {LARGE[1]}" in seen.text


def test_floats_are_the_numbers_that_they_show(ledger_url: str, provider: Provider) -> None:
    """-0.0 is 0; 0.1 + 0.2 is not 0.3."""

    @tool(key=ALL_ARGUMENTS)
    def heat(effect: Effect, degrees: float) -> dict[str, str]:
        """Heat a room, in degrees Celsius."""
        return post(provider, effect, {"degrees": degrees})

    with Executor(ledger_url, tools=[heat]) as executor:
        told = [executor.call("heat", {"degrees": one}, task="t").code for one in (0, -0.0, 0.1 + 0.2, 0.3, 0.3)]
    assert told == ["ok", "replayed", "ok", "ok", "replayed"]
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 3
