"""The tool `pay` of each tier, over one provider (with T5, over a table beside the ledger).

Owns what the tools declare and do. Every point that is the tool's own goes by the observer of its process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
from crash.life import CLIENT_S, RETENTION_S, TIMEOUT_S, TOOL, Life, Watch
from provider import Answer, Provider

from counterfoil import Absent, Effect, Found, KeyPolicy, Policy, Rejected, Revoked, Tool, Unclear, tool

# With T5 an effect is a row of this table in the ledger's database.
sales = sa.Table("sales", sa.MetaData(), sa.Column("reference", sa.Text), sa.Column("amount", sa.Integer))


class Shop:
    """The tool `pay` of each tier, over one provider."""

    def __init__(self, life: Life, watch: Watch) -> None:
        self._life = life
        self._watch = watch
        self._provider = Provider.at(life.provider)

    def tool(self) -> Tool[Any, Any]:
        if self._life.tier == "T5":
            return self._selling()
        function = self._pay_async if self._life.body == "coroutine" else self._pay
        declare = tool(key=("order",), name=TOOL, sends="marked", policy=self._policy())
        declared: Tool[Any, Any] = declare(cast(Callable[..., Any], function))
        if self._life.tier in ("T1", "T2"):
            declared.postcondition(self._paid)
        if self._life.tier == "T4":
            declared.revoke(sends="marked", policy=self._withdrawal())(self._withdraw)
        return declared

    def _selling(self) -> Tool[Any, Any]:
        timeout_s = self._life.detail.get("timeout_s", TIMEOUT_S) * self._life.slowness
        policy = Policy(timeout_s=timeout_s, patience_s=4.0 * self._life.slowness, wait_s=0.1)
        declared: Tool[Any, Any] = tool(key=("order",), name=TOOL, same_transaction=True, policy=policy)(self._sell)
        return declared

    def _withdrawal(self) -> Policy:
        return Policy(timeout_s=TIMEOUT_S * self._life.slowness, patience_s=2.0 * self._life.slowness)

    def _policy(self) -> Policy:
        slowness = self._life.slowness
        grace_s = self._life.grace_s if self._life.tier in ("T2", "T3") else None
        keys = KeyPolicy(retention_s=RETENTION_S, replays_refusals=True) if self._life.tier == "T3" else None
        patience_s = (0.6 if self._life.tier == "T1" else 4.0) * slowness
        timeout_s = TIMEOUT_S * slowness
        return Policy(timeout_s=timeout_s, grace_s=grace_s, key_policy=keys, patience_s=patience_s, wait_s=0.5)

    def _pay(self, effect: Effect, order: str, amount: int) -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        with effect.sending():
            self._watch.reach("before", "Request")
            answer = self._send(effect, order, amount)
            self._watch.reach("after", "Request")
        return _receipt(effect, answer)

    def _sell(self, effect: Effect, order: str, amount: int) -> str:
        """Sell one order. Use it when the customer has confirmed the total."""
        self._watch.reach("before", "Request")
        effect.connection.execute(sa.insert(sales), {"reference": effect.id, "amount": amount})
        self._watch.reach("after", "Request")
        return order

    def _withdraw(self, effect: Effect) -> Revoked | Found[str]:
        """Withdraw the payment of one order."""
        original = effect.original
        with effect.sending():
            self._watch.reach("before", "Revocation")
            there = self._provider.revoke(original.id, original.provider_keys)
            self._watch.reach("after", "Revocation")
        names = [str(one["id"]) for one in there]
        return Found(names[0], reference=names) if names else Revoked()

    async def _pay_async(self, effect: Effect, order: str, amount: int) -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        with effect.sending():
            self._watch.reach("before", "Request")
            answer = await asyncio.to_thread(self._send, effect, order, amount)
            self._watch.reach("after", "Request")
        return _receipt(effect, answer)

    def _send(self, effect: Effect, order: str, amount: int) -> Answer:
        refused = Path(self._life.refuse_once)
        there = Provider.at(f"http://127.0.0.1:{self._life.closed_port}") if refused.exists() else self._provider
        refused.unlink(missing_ok=True)
        body = {"order": order, "amount": amount}
        return there.send(effect.id, key=effect.provider_key, body=body, timeout_s=CLIENT_S * self._life.slowness)

    def _paid(self, effect: Effect) -> Found[str] | Absent | Unclear:
        answer = self._provider.look(effect.id)
        if answer.status != 200 or not isinstance(answer.body, list):
            return Unclear(f"status {answer.status}")
        names = [str(one["id"]) for one in answer.body]
        return Found(names[0], reference=names) if names else Absent()


def _receipt(effect: Effect, answer: Answer) -> str:
    if 400 <= answer.status < 500:
        raise Rejected("card_declined", "the card was declined", status=answer.status)
    if answer.status != 201:
        raise RuntimeError(f"status {answer.status}")
    effect.reference = str(answer.body["id"])
    return effect.reference
