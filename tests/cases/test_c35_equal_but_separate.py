"""C35: two real payments of the same amount are equal but separate (otherworld-dev/Budget #276).

Two members pay the same fee to the same club on one day. The second request is lost on its way and never lands. The
provider's list shows payment 1 to anyone who searches by recipient and amount.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Self

import pytest
import sqlalchemy as sa
from cases.messages import assert_applied, assert_none, assert_unknown
from cases.scene import AMPLE_S, Evidence, database, details, find, incidents, post, sent, story
from provider import Provider

from counterfoil import ALL_ARGUMENTS, Absent, Effect, Executor, Found, ManualClock, Policy, Proof, Tool, tool

FEE = {"to": "club", "amount": 9}
POLICY = Policy(timeout_s=5.0, grace_s=30.0, patience_s=0.1, wait_s=0.5)
Search = Callable[[Provider, Effect], Evidence]


def same_body(provider: Provider, effect: Effect) -> list[str]:
    """The ids of all that has this recipient and this amount, whoever made it."""
    listed = provider.look(timeout_s=AMPLE_S).body
    return [one["id"] for one in listed if one["body"] == dict(effect.arguments)]


def as_a_look_alike(provider: Provider, effect: Effect) -> Evidence:
    """The weak look of an author who says that it is weak."""
    ids = same_body(provider, effect)
    return Found({"payment": ids[0]}, reference=ids, matches="look_alike") if ids else Absent()


def as_its_own(provider: Provider, effect: Effect) -> Evidence:
    """The weak look of an author who takes the last of all that is similar for the effect's own."""
    ids = same_body(provider, effect)
    return Found({"payment": ids[-1]}, reference=ids[-1]) if ids else Absent()


def fee_tool(provider: Provider, search: Search, *, tells_reference: bool = True) -> Tool[..., Any]:
    @tool(key=ALL_ARGUMENTS, sends="once", repeatable=True, policy=POLICY)
    def pay(effect: Effect, to: str, amount: int) -> dict[str, str]:
        """Pay a fee."""
        paid = post(provider, effect, {"to": to, "amount": amount})
        effect.reference = paid["payment"] if tells_reference else None
        return paid

    pay.postcondition(lambda effect: search(provider, effect))
    return pay


class Fees:
    """The club's evening: member 1 has paid, member 2's request is lost."""

    def __init__(self, ledger: str, provider: Provider, search: Search, **settings: bool) -> None:
        self.clock = ManualClock()
        self.provider = provider
        self.executor = Executor(ledger, tools=[fee_tool(provider, search, **settings)], clock=self.clock)

    def __enter__(self) -> Self:
        self.first = self.pay("member-1")
        assert_applied(self.first, code="ok")
        self.provider.arm("request_lost")
        self.second = self.pay("member-2")
        return self

    def __exit__(self, *_: object) -> None:
        self.executor.close()

    def pay(self, member: str) -> Any:
        return self.executor.call("pay", FEE, task="fees", occurrence=member)

    def after_the_grace(self) -> None:
        self.clock.advance(3600)

    def check_payment_1_is_its_own(self) -> None:
        """Payment 1 belongs to member 1, and to nobody else."""
        (entered,) = self.provider.effects(self.first.effect_id)
        effect = self.executor.audit.effect(self.first.effect_id)
        assert (effect.count, effect.references) == (1, (entered["id"],))


def test_a_look_alike_that_nobody_owns_is_no_proof(ledger_url: str, provider: Provider) -> None:
    """Nothing tells whose payment 1 is: member 2's stays unknown for ever, and is neither applied nor sent again."""
    with Fees(ledger_url, provider, as_a_look_alike, tells_reference=False) as fees:
        assert fees.first.effect_id != fees.second.effect_id
        assert_unknown(fees.second, code="look_alike")
        fees.after_the_grace()
        again = fees.pay("member-2")
        assert_unknown(again, code="look_alike")
        told = story(fees.executor, again.effect_id)
        assert told == [("begun", 1), ("lost", 1), ("looked", 0), ("looked", 0)]
        unclear = details(fees.executor, again.effect_id, "looked")
        assert [one["evidence"] for one in unclear] == ["unclear"] * 2
    provider.quiesce()
    assert provider.count() == 1
    assert len(sent(provider)) == 2


def test_payment_1_cannot_prove_payment_2(ledger_url: str, provider: Provider) -> None:
    """A look that hands out payment 1 as member 2's own contradicts the ledger: unknown; 1 keeps what is its own."""
    with Fees(ledger_url, provider, as_its_own) as fees:
        assert_unknown(fees.second, code="look_alike")
        fees.after_the_grace()
        assert_unknown(fees.pay("member-2"), code="look_alike")
        fees.after_the_grace()
        assert fees.executor.reconcile().unknown == 1
        assert fees.executor.audit.effect(fees.second.effect_id).references == ()
        fees.check_payment_1_is_its_own()
    provider.quiesce()
    assert provider.count() == 1


@pytest.mark.parametrize("search", [as_a_look_alike, as_its_own])
def test_the_message_says_that_similar_is_no_proof(ledger_url: str, provider: Provider, search: Search) -> None:
    """Who is told unknown because of something similar hears that it exists and proves nothing."""
    with Fees(ledger_url, provider, search, tells_reference=search is as_its_own) as fees:
        checked = fees.executor.call("check_effect", {"effect_id": fees.second.effect_id})
        for seen in (fees.second, checked, fees.pay("member-2")):
            assert_unknown(seen, code=seen.code)
            assert re.search(r"similar", seen.reason), seen.reason
            assert re.search(r"\b(no|not) proof\b|proves nothing", seen.reason), seen.reason


def test_a_look_alike_that_another_owns_is_taken_away(ledger_url: str, provider: Provider) -> None:
    """Payment 1 is member 1's, so nothing is left that could be 2's: after the grace that is absence, and 2 is paid."""
    with Fees(ledger_url, provider, as_a_look_alike) as fees:
        assert_unknown(fees.second)
        fees.after_the_grace()
        again = fees.pay("member-2")
        check_the_second_is_paid(fees, again)


def test_a_look_by_reference_tells_them_apart(ledger_url: str, provider: Provider) -> None:
    """The look by `effect.id`: no effect after the grace, and then the retry is applied; two payments at the end."""
    with Fees(ledger_url, provider, find) as fees:
        assert_unknown(fees.second)
        fees.after_the_grace()
        checked = fees.executor.call("check_effect", {"effect_id": fees.second.effect_id})
        assert_none(checked, code="unavailable")
        assert checked.proof is Proof.ABSENT_AFTER_GRACE
        check_the_second_is_paid(fees, fees.pay("member-2"))


def check_the_second_is_paid(fees: Fees, again: Any) -> None:
    assert_applied(again, code="ok")
    assert again.effect_id == fees.second.effect_id
    told = [one for one in story(fees.executor, again.effect_id) if one[0] != "looked"]
    assert told == [("begun", 1), ("lost", 1), ("absent", 0), ("begun", 2), ("returned", 2)]
    fees.check_payment_1_is_its_own()
    own = {row.references for row in fees.executor.audit.effects()}
    assert own == {(one["id"],) for one in fees.provider.effects()}
    assert incidents(fees.executor) == []
    fees.provider.quiesce()
    assert fees.provider.count(fees.first.effect_id) == fees.provider.count(again.effect_id) == 1
    assert fees.provider.count() == 2


@pytest.mark.parametrize("how", ["returned", "found"])
def test_a_reference_proves_one_effect_only(ledger_url: str, provider: Provider, how: str) -> None:
    """Once a provider's reference is one effect's, it is no other's: by constraint, and with an incident where told."""
    with Fees(ledger_url, provider, as_its_own) as fees:
        with database(ledger_url) as engine:
            unique = sa.inspect(engine).get_pk_constraint("references")["constrained_columns"]
        assert unique == ["tenant", "tool", "reference"]
        if how == "found":
            assert fees.executor.call("check_effect", {"effect_id": fees.second.effect_id}).code == "look_alike"
            assert incidents(fees.executor) == []
        else:
            (one,) = provider.effects()

            @tool(key=("member",), name="pay", policy=POLICY)
            def pay(effect: Effect, member: str) -> str:
                """Pay a fee, and tell the same reference each time."""
                effect.reference = str(one["id"])
                return effect.reference

            with Executor(ledger_url, tools=[pay], clock=fees.clock) as other:
                third = other.call("pay", {"member": "3"})
                assert_applied(third, code="ok")  # a success always latches
                shared = other.audit.incidents()
            assert {incident.kind for incident in shared} == {"reference_shared"}
            assert {incident.effect_id for incident in shared} == {fees.first.effect_id, third.effect_id}
        fees.check_payment_1_is_its_own()
