"""C24 (kind K06). The same key with other parameters is told as a conflict of its own, with what differs, and not as
one more invalid request."""

from __future__ import annotations

from typing import Annotated

import pytest
from cases.messages import assert_applied, assert_well_formed
from cases.scene import named, story

from counterfoil import Content, Effect, Executor, Observation, Policy, Secret, Tool, Verdict, tool

CARD, OTHER_CARD = "4242-secret-card", "5555-other-card"


def pay_tool(paid: list[str]) -> Tool[..., str]:
    @tool(key=("payee",), policy=Policy(patience_s=0.1))
    def pay(
        effect: Effect, payee: str, amount: int, note: Annotated[str, Content] = "", card: Annotated[str, Secret] = ""
    ) -> str:
        """Pay an amount, in cents. Use it when the user has confirmed it."""
        paid.append(effect.id)
        return "paid"

    return pay


def assert_conflict(seen: Observation) -> None:
    assert (seen.verdict, seen.code, seen.ok) == (Verdict.NO_EFFECT, "key_conflict", False)
    assert (seen.category, seen.retry, seen.value) == ("recoverable", "change_arguments", None)
    assert "Use another" in seen.next_action
    assert_well_formed(seen)


@pytest.mark.parametrize("explicit", [True, False], ids=["the caller's key", "the tool's key"])
def test_a_key_that_was_used_with_other_parameters(ledger_url: str, explicit: bool) -> None:
    """1 is applied; 2, another amount, is a conflict that shows old and new; 3, another note alone, and 4 are the
    stored result. One effect, its record unchanged, and the conflict is on record without a dispatch."""
    paid: list[str] = []
    key = "k" if explicit else None
    with Executor(ledger_url, [pay_tool(paid)], secret=b"s" * 32) as executor:
        first = executor.call("pay", {"payee": "club", "amount": 10}, key=key)
        before = executor.audit.effect(named(first.effect_id))
        second = executor.call("pay", {"payee": "club", "amount": 12, "note": "y"}, key=key, call_id="call_2")
        third = executor.call("pay", {"payee": "club", "amount": 10, "note": "x"}, key=key)
        fourth = executor.call("pay", '{"payee": "club", "amount": 10.0}', key=key)
    with Executor(ledger_url, secret=b"s" * 32) as reader:
        after = reader.audit.effect(named(first.effect_id))
        sightings = reader.audit.sightings(named(first.effect_id))
        assert story(reader, first.effect_id) == [("begun", 1), ("returned", 1)]
    assert_applied(first, code="ok")
    assert_conflict(second)
    assert second.details == ({"field": "amount", "problem": "was 10, now 12"},)
    assert "amount was 10, now 12." in second.text
    assert "note" not in second.text.partition("Rejected arguments")[0], "what does not identify is no difference"
    assert second.rejected_arguments == '{"payee":"club","amount":12,"note":"y"}'
    for seen in (third, fourth):
        assert_applied(seen, code="replayed")
        assert seen.value == "paid"
    assert len(paid) == 1
    assert after.version == before.version
    assert (after.echo, after.fingerprint) == (before.echo, before.fingerprint)
    assert [one["code"] for one in sightings if one["call_id"] == "call_2"] == ["key_conflict"]


def test_a_secret_that_differs_is_said_and_not_shown(ledger_url: str) -> None:
    """Where only a secret differs, the conflict says so; neither the old nor the new one stands in it."""
    with Executor(ledger_url, [pay_tool([])], secret=b"s" * 32) as executor:
        executor.call("pay", {"payee": "club", "amount": 10, "card": CARD})
        seen = executor.call("pay", {"payee": "club", "amount": 10, "card": OTHER_CARD})
    assert_conflict(seen)
    assert "What differs is secret." in seen.text
    assert CARD not in str(seen.as_dict())
    assert OTHER_CARD not in str(seen.as_dict())


def test_a_huge_difference_stays_short(ledger_url: str) -> None:
    """An argument of 50 kB that differs is cut, and the message stays within its cap."""
    with Executor(ledger_url, [pay_tool([])], secret=b"s" * 32) as executor:
        executor.call("pay", {"payee": "club" * 9_000, "amount": 10}, key="k")
        seen = executor.call("pay", {"payee": "clubs" * 9_000, "amount": 10}, key="k")
    assert_conflict(seen)
    assert "characters)" in seen.text
