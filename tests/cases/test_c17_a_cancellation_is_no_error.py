"""C17: a cancellation is swallowed, and the action is tried again (https://github.com/jd/tenacity/issues/529).

A rule "retry on everything but this error" also matched cancellations and interrupts, so that what its caller had
given up was started again in the background. Here a tool that may be tried three times is stopped before it sends, and
after.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import httpx
import pytest
from cases.messages import assert_applied, assert_none
from cases.processes import playing, say
from cases.scene import AMPLE_S, details, find, incidents, looked, sent, story
from provider import Provider

from counterfoil import AsyncExecutor, Effect, Executor, Policy, Proof, Tool, Verdict, tool

BEFORE, AFTER = {"to": "before"}, {"to": "after"}
POLICY = Policy(timeout_s=20.0, grace_s=60.0, patience_s=5.0, wait_s=0.01, attempts_max=3)
INTERRUPTS: dict[str, type[BaseException]] = {"KeyboardInterrupt": KeyboardInterrupt, "SystemExit": SystemExit}


def async_tool(provider: Provider, waiting: asyncio.Event, goes: asyncio.Event) -> Tool[..., Any]:
    """It says that it waits, and sends once it may."""

    @tool(key=("to",), sends="marked", policy=POLICY)
    async def send(effect: Effect, to: str) -> dict[str, str]:
        """Send a message."""
        waiting.set()
        await goes.wait()
        with effect.sending():
            body = {"reference": effect.id, "key": None, "body": {"to": to}}
            async with httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=AMPLE_S) as client:
                answer = await client.post(f"{provider.url}/effects", json=body)
        return {"payment": answer.raise_for_status().json()["id"]}

    send.postcondition(lambda effect: find(provider, effect))
    return send


def check_nothing_was_sent(executor: Executor | AsyncExecutor, provider: Provider) -> str:
    """(a): no effect, by the one attempt that was given up."""
    (row,) = executor.audit.effects(where=BEFORE)
    assert (row.verdict, row.proof, row.attempts, row.live) == (Verdict.NO_EFFECT, Proof.NEVER_SENT, 1, False)
    begun, closed = executor.audit.history(row.id)
    assert (begun.event, closed.event, closed.attempt) == ("begun", "closed", 1)
    assert provider.count(row.id) == 0
    return row.id


def check_it_is_in_doubt(executor: Executor | AsyncExecutor, provider: Provider) -> str:
    """(b): unknown, and nobody works on it."""
    (row,) = executor.audit.effects(where=AFTER)
    assert (row.verdict, row.proof, row.attempts, row.live) == (Verdict.EFFECT_UNKNOWN, None, 1, False)
    begun, lost = executor.audit.history(row.id)
    assert (begun.event, lost.event, lost.attempt) == ("begun", "lost", 1)
    assert provider.count(row.id) == 1
    return row.id


def check_the_next_calls(executor: Executor, provider: Provider) -> None:
    """The next calls get the true state: what landed is found, what was not sent is sent now; nothing twice."""
    assert_none(
        executor.call("check_effect", {"effect_id": check_nothing_was_sent(executor, provider)}), code="unavailable"
    )
    assert len(sent(provider)) == 1
    found = executor.call("send", AFTER)
    assert_applied(found, code="verified")
    assert story(executor, found.effect_id) == [("begun", 1), ("lost", 1), ("found", 0)]
    assert len(sent(provider)) == looked(provider) == 1
    done = executor.call("send", BEFORE)
    assert_applied(done, code="ok")
    assert story(executor, done.effect_id) == [("begun", 1), ("closed", 1), ("begun", 2), ("returned", 2)]
    assert incidents(executor) == []
    provider.quiesce()
    assert provider.count(found.effect_id) == provider.count(done.effect_id) == 1
    assert len(sent(provider)) == 2


def test_a_coroutine_is_cancelled(ledger_url: str, provider: Provider) -> None:
    """Cancelled before it sends: no effect. Cancelled while it awaits the answer: unknown, until a look finds it. Both
    times the cancellation reaches the caller, and no attempt starts after it."""

    async def play() -> None:
        waiting, goes = asyncio.Event(), asyncio.Event()
        executor = AsyncExecutor(ledger_url, [async_tool(provider, waiting, goes)])
        early = asyncio.create_task(executor.call("send", BEFORE))
        await waiting.wait()
        early.cancel()
        with pytest.raises(asyncio.CancelledError):
            await early
        effect_id = check_nothing_was_sent(executor, provider)
        assert "cancel" in executor.audit.history(effect_id)[1].detail["reason"].lower()

        goes.set()
        provider.arm("ack_lost", mode="hold")
        late = asyncio.create_task(executor.call("send", AFTER))
        await asyncio.to_thread(provider.await_parked)
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await late
        effect_id = check_it_is_in_doubt(executor, provider)
        assert "cancel" in executor.audit.history(effect_id)[1].detail["reason"].lower()
        await executor.close()

    asyncio.run(play())
    provider.release()
    with Executor(ledger_url, [sync_tool(provider)]) as executor:
        check_the_next_calls(executor, provider)


def sync_tool(
    provider: Provider,
    raises: type[BaseException] | None = None,
    waits: threading.Event | None = None,
) -> Tool[..., Any]:
    """`raises`: at its point, before the sending or after it. `waits`: before the sending it waits for ever."""

    @tool(key=("to",), sends="marked", policy=POLICY)
    def send(effect: Effect, to: str) -> dict[str, str]:
        """Send a message."""
        if to == "before" and waits is not None:
            say("waiting")
            waits.wait()
        if to == "before" and raises is not None:
            raise raises
        with effect.sending():
            answer = provider.send(effect.id, body={"to": to}, timeout_s=AMPLE_S)
        if raises is not None:
            raise raises
        return {"payment": answer.body["id"]}

    send.postcondition(lambda effect: find(provider, effect))
    return send


@pytest.mark.parametrize("name", INTERRUPTS)
def test_a_blocking_tool_raises_an_interrupt(ledger_url: str, provider: Provider, name: str) -> None:
    """An interrupt out of the tool's function is no error to be tried again: recorded by what was sent, then raised."""
    interrupt = INTERRUPTS[name]
    with Executor(ledger_url, [sync_tool(provider, interrupt)]) as executor:
        with pytest.raises(interrupt):
            executor.call("send", BEFORE)
        check_nothing_was_sent(executor, provider)
        with pytest.raises(interrupt):
            executor.call("send", AFTER)
        effect_id = check_it_is_in_doubt(executor, provider)
        assert details(executor, effect_id, "lost")[0]["reason"] == name
    with Executor(ledger_url, [sync_tool(provider)]) as executor:
        check_the_next_calls(executor, provider)


def interrupted(ledger: str, provider: str) -> list[str]:
    """The play: two calls, each of which is ended by Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ended: list[str] = []
    with Executor(ledger, [sync_tool(Provider.at(provider), waits=threading.Event())]) as executor:
        for arguments in (BEFORE, AFTER):
            try:
                executor.call("send", arguments)
            except KeyboardInterrupt:
                ended.append("KeyboardInterrupt")
                say("interrupted")
    return ended


def test_ctrl_c_in_a_blocking_call(ledger_url: str, provider: Provider) -> None:
    """A real SIGINT while the caller waits for the tool's thread: the same, before the sending and after it."""
    provider.arm("ack_lost", mode="hold")
    with playing(interrupted, ledger=ledger_url, provider=provider.url) as child:
        assert child.heard() == "waiting"
        child.send_signal(signal.SIGINT)
        assert child.heard() == "interrupted"
        provider.await_parked()
        child.send_signal(signal.SIGINT)
        assert child.heard() == "interrupted"
        assert child.result() == ["KeyboardInterrupt"] * 2
    provider.release()
    with Executor(ledger_url, [sync_tool(provider)]) as executor:
        check_it_is_in_doubt(executor, provider)
        check_the_next_calls(executor, provider)
