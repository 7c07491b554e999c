"""C16: one parallel tool fails, and the outcomes of its siblings vanish (https://github.com/openai/openai-agents-python/pull/2584).

One error in a parallel turn collapsed the turn: finished results were lost, calls under way were cancelled and told as
errors, and the model repeated harmless ones. Here the host cancels a batch of four as soon as the second has failed.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Any

import httpx
import pytest
from cases.messages import assert_applied, assert_none, assert_unknown
from cases.scene import AMPLE_S, find, sent
from provider import Fault, Provider

from counterfoil import AsyncExecutor, Effect, Observation, Policy, Proof, Tool, tool

TASK = "batch-9"


class InvalidAmount(Exception):
    """The tool's own validation error, raised before anything is sent."""


def pay_tool(provider: Provider) -> Tool[..., Any]:
    """Order 2 is not valid; order 3 is under way at the provider until it is released."""

    @tool(
        key=("order",),
        sends="once",
        rejects=(InvalidAmount,),
        policy=Policy(timeout_s=20.0, grace_s=60.0, patience_s=0.1),
    )
    async def pay(effect: Effect, order: int) -> dict[str, str]:
        """Pay one order."""
        if order == 2:
            raise InvalidAmount
        headers = {"X-Fault": json.dumps(asdict(Fault("slow")))} if order == 3 else {}
        body = {"reference": effect.id, "key": None, "body": {"order": order}}
        async with httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=AMPLE_S) as client:
            answer = await client.post(f"{provider.url}/effects", json=body, headers=headers)
        effect.reference = answer.raise_for_status().json()["id"]
        return {"payment": answer.json()["id"]}

    @pay.postcondition
    async def paid(effect: Effect) -> Any:
        return await asyncio.to_thread(find, provider, effect)

    return pay


class Host:
    """Runs a batch in parallel, and cancels all of it once a call has failed. `queued`: the fourth still waits for its
    turn then; otherwise it has just begun, and its function has not been called."""

    def __init__(self, ledger: str, provider: Provider, *, queued: bool) -> None:
        self.executor = AsyncExecutor(ledger, [pay_tool(provider)], observer=self._observe, clock_margin_s=0.1)
        self.provider = provider
        self.calls: dict[int, asyncio.Task[Observation]] = {}
        self._queued = queued

    def _observe(self, moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("before", "Start") and asyncio.current_task() is self.calls.get(4):
            self._cancel()

    def _cancel(self) -> None:
        for one in self.calls.values():
            one.cancel()

    async def _call(self, order: int, turn: asyncio.Event | None = None) -> Observation:
        if turn is not None:
            await turn.wait()
        return await self.executor.call("pay", {"order": order}, task=TASK)

    async def run(self) -> None:
        """1 is done and 3 is in flight when 2 fails."""
        self.calls = {order: asyncio.create_task(self._call(order)) for order in (1, 3)}
        await self.calls[1]
        await asyncio.to_thread(self.provider.await_parked)
        if self._queued:
            self.calls[4] = asyncio.create_task(self._call(4, turn=asyncio.Event()))
        self.calls[2] = asyncio.create_task(self._call(2))
        await self.calls[2]
        if self._queued:
            self._cancel()
        else:
            self.calls[4] = asyncio.create_task(self._call(4))
        await asyncio.wait(self.calls.values())
        assert {order for order, one in self.calls.items() if one.cancelled()} == {3, 4}

    def ids(self) -> dict[int, str]:
        """The orders of the batch that the ledger has a record of."""
        return {json.loads(row.echo)["order"]: row.id for row in self.executor.audit.effects(task=TASK)}

    async def asked(self) -> dict[int, Observation]:
        """What is known of each of them, asked one by one."""
        return {
            order: await self.executor.call("check_effect", {"effect_id": effect_id})
            for order, effect_id in sorted(self.ids().items())
        }


@pytest.mark.parametrize("fourth", ["begun", "queued"])
def test_each_call_of_the_batch_has_its_own_end(ledger_url: str, provider: Provider, fourth: str) -> None:
    """1 is applied and 2 is no effect, as they were told. 3 is unknown until it has landed, then applied; nobody holds
    it any more. 4 was not started, so it is no effect; one that only the host knew of has no record."""

    async def play() -> None:
        host = Host(ledger_url, provider, queued=fourth == "queued")
        await host.run()
        seen = await host.asked()
        assert set(seen) == ({1, 2, 3} if fourth == "queued" else {1, 2, 3, 4})
        check_the_messages(seen, {order: host.calls[order].result() for order in (1, 2)})
        rows = {row.id: row for row in host.executor.audit.effects()}
        assert not any(row.live for row in rows.values()), "nothing is left in a started state"
        provider.release()
        await asyncio.to_thread(provider.quiesce)
        third = (await host.asked())[3]
        assert_applied(third, code="verified")
        assert third.value == {"payment": provider.effects(third.effect_id)[0]["id"]}
        again = await host.executor.call("pay", {"order": 3}, task=TASK)
        assert_applied(again, code="replayed")
        check_the_records(host.executor, host.ids())
        await host.executor.close()

    asyncio.run(play())
    assert sorted(one["body"]["order"] for one in provider.effects()) == [1, 3]
    assert len(sent(provider)) == 2


def check_the_messages(seen: dict[int, Observation], told: dict[int, Observation]) -> None:
    """Four separate results; none of them is the fate of another call."""
    assert_applied(told[1], code="ok")
    assert_none(told[2], code="rejected")
    assert_applied(seen[1], code="replayed")
    assert seen[1].value == told[1].value
    assert_none(seen[2], code="rejected")
    assert_unknown(seen[3])
    if 4 in seen:
        assert_none(seen[4], code="unavailable")
        assert seen[4].proof is Proof.NEVER_SENT
    for one in seen.values():
        assert "cancel" not in one.text.lower()
    assert len({(one.effect_id, one.text) for one in seen.values()}) == len(seen)


def check_the_records(executor: AsyncExecutor, ids: dict[int, str]) -> None:
    stories = {
        order: [(entry.event, entry.attempt) for entry in executor.audit.history(effect_id) if entry.event != "looked"]
        for order, effect_id in ids.items()
    }
    wanted = {
        1: [("begun", 1), ("returned", 1)],
        2: [("begun", 1), ("closed", 1)],
        3: [("begun", 1), ("lost", 1), ("found", 0)],
        4: [("begun", 1), ("closed", 1)],
    }
    assert stories == {order: wanted[order] for order in ids}
    assert executor.audit.incidents() == []
