"""C06: a blocking tool overruns its deadline, and its thread cannot be stopped (https://github.com/pydantic/pydantic-ai/pull/7557).

The call returned at the deadline and told the model to try again, while the thread went on and its effect landed later.
Here the thread stands still before it books until the scripted model has called again twice, so no test has to sleep.
"""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.scene import WAIT_S, details, find, incidents, looked, named, post, sent, story, until
from provider import Provider

from counterfoil import AsyncExecutor, Effect, Executor, Observation, Policy, Proof, Tool, tool

CALL = {"room": "blue", "day": "2027-03-04"}


def room_tool(provider: Provider, go_on: threading.Event) -> Tool[..., Any]:
    @tool(key=("room", "day"), policy=Policy(timeout_s=0.5, grace_s=5.0, patience_s=0.1, wait_s=0.5))
    def book_room(effect: Effect, room: str, day: str) -> dict[str, str]:
        """Book a room for a day."""
        assert go_on.wait(WAIT_S)
        return post(provider, effect, {"room": room, "day": day})

    book_room.postcondition(lambda effect: find(provider, effect))
    return book_room


def check_the_doubt(provider: Provider, seen: list[Observation]) -> str:
    """The call, and two repeats within the window whose looks found nothing: unknown, and nobody may try again."""
    for one in seen:
        assert_unknown(one)
        assert "answer was lost" in one.reason
        assert "may still be" in one.reason
        assert "Do not call book_room for this again, in any wording." in one.next_action
        assert "check_effect" in one.next_action
    assert looked(provider) >= 2
    assert provider.count() == len(sent(provider)) == 0
    return named(seen[0].effect_id)


def check_the_end(executor: Executor | AsyncExecutor, provider: Provider, effect_id: str, last: Observation) -> None:
    """One dispatch; what the thread said at last is its attempt's own end, with the true result."""
    assert_applied(last, code="replayed")
    assert (last.value, last.proof) == ({"payment": provider.effects()[0]["id"]}, Proof.RETURNED)
    told = [entry for entry in executor.audit.history(effect_id) if entry.event not in ("looked", "overrun")]
    assert [(entry.event, entry.attempt) for entry in told] == [("begun", 1), ("lost", 1), ("returned", 1)]
    assert told[2].actor == told[0].actor
    assert told[2].detail["reference"] == provider.effects()[0]["id"]


def is_recorded(executor: Executor | AsyncExecutor, effect_id: str) -> bool:
    return any(entry.event == "returned" for entry in executor.audit.history(effect_id))


@pytest.mark.parametrize("shell", ["blocking", "asynchronous"])
def test_the_thread_books_after_the_deadline(ledger_url: str, provider: Provider, shell: str) -> None:
    """Unknown at the deadline and at two repeats; the thread books later, and it is applied, by the one dispatch."""
    go_on = threading.Event()
    tools = [room_tool(provider, go_on)]
    if shell == "blocking":
        with Executor(ledger_url, tools, clock_margin_s=0.1) as executor:
            effect_id = check_the_doubt(provider, [executor.call("book_room", CALL) for _ in range(3)])
            overruns = details(executor, effect_id, "overrun")
            assert executor.audit.effect(effect_id).sends_until >= overruns[0]["sends_until"]
            go_on.set()
            until(lambda: is_recorded(executor, effect_id), "what the thread said late is recorded")
            check_the_end(executor, provider, effect_id, executor.call("book_room", CALL))
            assert incidents(executor) == []
    else:
        asyncio.run(in_a_loop(AsyncExecutor(ledger_url, tools, clock_margin_s=0.1), provider, go_on))
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


async def in_a_loop(executor: AsyncExecutor, provider: Provider, go_on: threading.Event) -> None:
    seen = [await executor.call("book_room", CALL) for _ in range(3)]
    effect_id = check_the_doubt(provider, seen)
    go_on.set()
    await asyncio.to_thread(until, lambda: is_recorded(executor, effect_id), "what the thread said late is recorded")
    check_the_end(executor, provider, effect_id, await executor.call("book_room", CALL))
    assert executor.audit.incidents() == []
    await executor.close()


def test_the_window_begins_anew_while_the_thread_lives(ledger_url: str, provider: Provider) -> None:
    """However long the thread lives, an empty look proves nothing: the end of the window moves on with it."""
    go_on = threading.Event()
    with Executor(ledger_url, [room_tool(provider, go_on)], clock_margin_s=0.1) as executor:
        effect_id = named(executor.call("book_room", CALL).effect_id)
        first = executor.audit.effect(effect_id).absent_from
        assert first is not None
        until(lambda: (executor.audit.effect(effect_id).absent_from or 0) > first, "the window has moved on")
        assert story(executor, effect_id)[0] == ("begun", 1)
        go_on.set()
        until(lambda: ("returned", 1) in story(executor, effect_id), "what the thread said late is recorded")
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
