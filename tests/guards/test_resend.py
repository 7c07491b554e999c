"""The budget and a resend: the same key goes out again for the same money."""

from __future__ import annotations

from guards.failing import Service
from outside import Make

from counterfoil import Budget, Effect, KeyPolicy, Policy, Tool, tool
from counterfoil.ledger.audit import Audit


def keyed_buy(service: Service) -> Tool[..., str]:
    """A purchase whose provider de-duplicates on its key: a lost answer is sent again within the call."""
    keys = KeyPolicy(retention_s=86_400, concurrent=True)

    @tool(key=("what",), cost=lambda a: ("eur", 100), policy=Policy(timeout_s=5, grace_s=1, key_policy=keys))
    def buy(effect: Effect, what: str) -> str:
        """Buy one thing once. Use it when it is wanted."""
        return service.answer(effect.provider_key)

    return buy


def test_a_resend_takes_no_money_anew(executor_of: Make) -> None:
    """Two answers are lost, the third comes: three attempts under one key, and the price was reserved once."""
    service = Service("lost", "lost")
    executor = executor_of(keyed_buy(service), budget=Budget(spend={"eur": 150}))
    assert executor.call("buy", {"what": "a"}, task="t").code == "ok"
    assert len(service.asked) == 3
    assert len(set(service.asked)) == 1
    assert [one["event"] for one in book(executor.audit)] == ["reserved", "spent"]
    assert executor.task("t").spent == {"eur": 100}


def book(audit: Audit) -> list[dict[str, object]]:
    """The book of the task."""
    return audit.spending("t")
