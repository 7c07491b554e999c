"""Calls of every kind leave a ledger that is as it was sealed, also where a seal falls between them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from counterfoil import Budget, Effect, Executor, ManualClock, Policy, Rejected, Revoked, Tool, tool
from counterfoil.ledger.keeping import prune
from counterfoil.ledger.seals import seal
from counterfoil.ledger.verifying import verify

SECRET = b"a secret of a test, long enough"
DAY_S = 86_400
orders = sa.Table("orders", sa.MetaData(), sa.Column("number", sa.Text))


def tools() -> list[Tool[..., str]]:
    @tool(key=("order",), cost=lambda a: ("eur", a["cents"]), policy=Policy(timeout_s=5, patience_s=0.1, grace_s=5))
    def charge(effect: Effect, order: str, cents: int) -> str:
        """Charge the card for one order."""
        if order.startswith("declined"):
            raise Rejected("card_declined", "the card was declined")
        if order.startswith("lost"):
            raise TimeoutError
        return order

    @charge.compensation()
    def refund(effect: Effect) -> str:
        """Give the money back."""
        return "refunded"

    @charge.revoke()
    def withdraw(effect: Effect) -> Revoked:
        """Have the provider refuse it."""
        return Revoked()

    @tool(key=("number",), same_transaction=True, policy=Policy(timeout_s=5))
    def enter(effect: Effect, number: str) -> str:
        """Enter one order."""
        effect.connection.execute(sa.insert(orders), {"number": number})
        if number.startswith("bad"):
            raise ValueError(number)
        return number

    return [charge, enter]


@pytest.fixture
def executor(ledger_url: str) -> Iterator[Executor]:
    engine = sa.create_engine(ledger_url)
    orders.create(engine)
    engine.dispose()
    with Executor(ledger_url, tools(), clock=ManualClock(), budget=Budget(spend={"eur": 10_000})) as made:
        yield made


def rounds(executor: Executor, name: str) -> None:
    """One of everything: charged, declined, lost, taken back, over the budget, in the ledger's own transaction."""
    for order, cents in ((f"A-{name}", 5), (f"declined-{name}", 5), (f"lost-{name}", 5), (f"dear-{name}", 99_999)):
        seen = executor.call("charge", {"order": order, "cents": cents}, task="trip")
        if order.startswith("A"):
            executor.compensate(str(seen.effect_id))
        if order.startswith("lost"):
            executor.revoke(str(seen.effect_id))
    for number in (f"N-{name}", f"bad-{name}"):
        executor.call("enter", {"number": number}, task="trip")
    executor.call("charge", {"order": f"A-{name}", "cents": 5}, task="trip")


def test_calls_of_every_kind_raise_no_alarm(executor: Executor) -> None:
    """Budgets, refusals, doubts, compensations, revokes, T5 and prunes, with seals between: nothing is named."""
    ledger, clock = executor._ledger, executor._clock
    assert isinstance(clock, ManualClock)
    for name in ("one", "two", "three"):
        rounds(executor, name)
        assert verify(ledger.engine, [SECRET]).findings == []
        seal(ledger, SECRET)
        clock.advance(60)
        executor.reconcile()
        assert verify(ledger.engine, [SECRET]).findings == []
        clock.advance(20 * DAY_S)
        executor.reconcile()
        prune(ledger, 10 * DAY_S * 1_000_000, None, by="a person")
        assert verify(ledger.engine, [SECRET]).findings == []
    rounds(executor, "one")
    seal(ledger, SECRET)
    seen = verify(ledger.engine, [SECRET])
    assert (seen.findings, seen.unsealed, seen.pruned > 5) == ([], 0, True)
