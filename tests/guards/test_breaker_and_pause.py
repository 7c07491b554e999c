"""Breaker, pause, and the mode in which guards only count, through executors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from calls.conftest import charge
from guards.failing import Service, act_tool, read_tool
from outside import Make, MakeAsync, World

from counterfoil import Breaker, Budget, Effect, Executor, KeyPolicy, ManualClock, Policy, Tool, UsageError, tool

__all__ = ["charge"]

TWO = Breaker(failures=2, open_s=60)


def act(executor: Executor, what: str) -> str:
    """The code of one act, in a task of its own."""
    return executor.call("act", {"what": what}, task=what).code


def keyed_tool(service: Service) -> Tool[..., Any]:
    """A tool whose provider de-duplicates on its key: after a lost answer the same key may go out again."""

    @tool(
        key=("what",),
        policy=Policy(
            timeout_s=5, grace_s=1, attempts_max=1, patience_s=1, breaker=None,
            key_policy=KeyPolicy(retention_s=86_400, concurrent=True),
        ),
    )  # fmt: skip
    def send(effect: Effect, what: str) -> str:
        """Send one thing once. Use it when it is wanted."""
        return service.answer(effect.provider_key)

    return send


def test_it_opens_probes_and_closes(executor_of: Make, clock: ManualClock) -> None:
    """Two faults open it; for a minute nothing is sent; then one attempt is let through, and its success closes it."""
    service = Service("down", "down")
    executor = executor_of(act_tool(service, breaker=TWO))
    assert [act(executor, what) for what in "ab"] == ["unavailable"] * 2
    seen = executor.call("act", {"what": "c"}, task="c")
    assert (seen.code, seen.verdict, seen.retry, seen.retry_after_s) == ("breaker_open", "no_effect", "after", 60)
    clock.advance(59)
    assert act(executor, "c") == "breaker_open"
    clock.advance(1)
    assert [act(executor, what) for what in "cd"] == ["ok", "ok"]
    assert len(service.asked) == 4
    (incident,) = executor.audit.incidents()
    assert (incident.kind, incident.detail["failures"]) == ("breaker_opened", 2)


def test_a_probe_that_fails_opens_it_anew(executor_of: Make, clock: ManualClock) -> None:
    """The minute begins again, for read-only tools as for the others."""
    service = Service("down", "down", "down")
    executor = executor_of(read_tool(service, breaker=TWO))

    def read() -> str:
        return executor.call("get_status", {"job": "1"}).code

    assert [read(), read(), read()] == ["unavailable", "unavailable", "breaker_open"]
    clock.advance(60)
    assert [read(), read()] == ["unavailable", "breaker_open"]
    clock.advance(60)
    assert [read(), read()] == ["read", "read"]


def test_opening_turns_no_doubt_into_a_failure(executor_of: Make, clock: ManualClock) -> None:
    """Answers that are lost open the breaker; what is unknown stays unknown, is told so, and is looked at."""
    service = Service("lost", "lost")
    one = act_tool(service, breaker=TWO)
    executor = executor_of(one)
    assert [act(executor, what) for what in "abc"] == ["effect_unknown", "effect_unknown", "breaker_open"]
    assert act(executor, "a") == "effect_unknown"
    assert len(executor.audit.doubts()) == 2


def test_a_resend_is_gated_too_and_looking_goes_on(executor_of: Make, clock: ManualClock) -> None:
    """A tool whose provider de-duplicates would be sent again; while it is paused nothing is sent, and the answer is
    that nothing is known. When it is resumed, the same key goes out."""
    service = Service("lost")
    executor = executor_of(keyed_tool(service))
    assert executor.call("send", {"what": "a"}).code == "effect_unknown"
    executor.pause("send", by="Ada", why="the provider asked for it")
    clock.advance(30)
    seen = executor.call("send", {"what": "a"})
    assert (seen.code, seen.verdict) == ("effect_unknown", "effect_unknown")
    assert len(service.asked) == 1
    assert executor.resume("send")
    assert executor.call("send", {"what": "a"}).code == "ok"
    assert service.asked == [service.asked[0]] * 2


def test_a_pause_holds_on_every_host_and_replays_go_on(executor_of: Make) -> None:
    """What one host has paused another does not begin; what is applied is replayed; other tools and tenants go on."""
    service = Service()
    one, other = executor_of(act_tool(service)), executor_of(act_tool(service), act_tool(service, name="more"))
    assert act(one, "a") == "ok"
    one.pause("act", by="Ada", why="a bad day")
    seen = other.call("act", {"what": "b"}, task="b")
    assert (seen.code, seen.verdict, seen.effect_id) == ("paused", "no_effect", None)
    assert act(other, "a") == "replayed"
    assert other.call("more", {"what": "b"}, task="b").code == "ok"
    assert act(executor_of(act_tool(service), tenant="b"), "b") == "ok"
    assert executor_of(act_tool(service), mode="observe").call("act", {"what": "c"}, task="c").code == "paused"
    assert len(service.asked) == 3
    (state,) = one.audit.guards()
    assert (state.tool, state.paused_by, state.paused_why) == ("act", "Ada", "a bad day")
    assert one.audit.incidents() == [], "a person's own word is no incident"
    assert one.resume("act")
    assert not one.resume("act")
    assert act(other, "b") == "ok"
    assert one.audit.guards() == []


def test_a_pause_is_a_named_persons(executor_of: Make) -> None:
    """No name, no reason: no pause."""
    executor = executor_of(act_tool(Service()))
    with pytest.raises(UsageError, match="named person"):
        executor.pause("act", by=" ", why="because")
    assert act(executor, "a") == "ok"


def test_a_paused_undo_does_not_run(executor_of: Make) -> None:
    """A compensation is paused by its own name; pausing the tool itself leaves taking back possible."""
    service = Service()
    one = act_tool(service)
    taken: list[str] = []

    @one.compensation()
    def give_back(effect: Effect) -> None:
        """Take the thing back."""
        assert effect.original is not None
        taken.append(effect.original.id)

    executor = executor_of(one, budget=Budget(calls_per_task=1))
    effect_id = str(executor.call("act", {"what": "a"}, task="t").effect_id)
    executor.pause("act", by="Ada", why="a bad day")
    executor.pause("act-compensation", by="Ada", why="a bad day")
    assert executor.compensate(effect_id).code == "paused"
    executor.resume("act-compensation")
    assert executor.compensate(effect_id).code == "ok", "neither the pause nor the budget of the tool is against it"
    assert taken == [effect_id]


def test_paused_and_exhausted_at_once(executor_of: Make) -> None:
    """Two guards are against it: what a person said comes first, then what lasts longer; one reason is told."""
    executor = executor_of(act_tool(Service("down"), breaker=Breaker(failures=1)), budget=Budget(calls_per_task=1))
    assert executor.call("act", {"what": "a"}, task="t").code == "unavailable"
    assert executor.call("act", {"what": "a"}, task="t").code == "budget_exhausted"
    executor.pause("act", by="Ada", why="a bad day")
    assert executor.call("act", {"what": "a"}, task="t").code == "paused"
    assert executor.call("act", {"what": "a"}, task="other").code == "paused"
    executor.resume("act")
    assert executor.call("act", {"what": "a"}, task="other").code == "breaker_open"


def test_observe_counts_and_refuses_nothing(executor_of: Make) -> None:
    """Everything is let through, and for each cap that is hit an incident says that it would have been refused."""
    service = Service()
    service.always = "down"
    one = act_tool(service, breaker=TWO)
    executor = executor_of(one, mode="observe", budget=Budget(calls_per_task=4))
    told = [executor.call("act", {"what": "x"}, task="t", turn=1) for _ in range(6)]
    assert [(one.code, one.stop) for one in told] == [("unavailable", None)] * 6
    assert len(service.asked) == 6
    assert len(executor.audit.incidents()) == 3, "each cap is told of once"
    seen = {one.kind: one.detail for one in executor.audit.incidents()}
    assert seen.keys() == {"repeated_call", "budget_exhausted", "breaker_opened"}
    assert (seen["repeated_call"]["refused"], seen["budget_exhausted"]["refused"]) == (False, False)
    wrong = [executor.call("act", {"what": 5}, task="t", turn=1) for _ in range(4)]
    assert [(one.code, one.stop) for one in wrong] == [("invalid_arguments", None)] * 4


def test_observe_stops_no_run(executor_of: Make) -> None:
    """A refusal over and over, which enforcing would stop: each is told as what it is, and the run goes on."""
    service = Service()
    service.always = "rejected"
    executor = executor_of(act_tool(service), mode="observe")
    told = [executor.call("act", {"what": "x"}, task="t", turn=1) for _ in range(6)]
    assert [(one.code, one.stop) for one in told] == [("card_declined", None)] * 6


def test_asynchronous_calls_are_guarded_the_same(async_executor_of: MakeAsync, clock: ManualClock) -> None:
    """Pause, breaker and loop guard of the asynchronous executor, for tools that act and tools that read."""
    service = Service("down", "down")

    async def play() -> list[str]:
        async with async_executor_of(act_tool(service, breaker=TWO), read_tool(Service())) as executor:
            codes = [(await executor.call("act", {"what": what}, task=what)).code for what in "abc"]
            clock.advance(60)
            codes.append((await executor.call("act", {"what": "d"}, task="d")).code)
            await executor.pause("act", by="Ada", why="a bad day")
            codes.append((await executor.call("act", {"what": "e"}, task="e")).code)
            assert await executor.resume("act")
            polled = [(await executor.call("get_status", {"job": "1"}, task="t")).code for _ in range(7)]
            return [*codes, polled[5], polled[6]]

    wanted = ["unavailable", "unavailable", "breaker_open", "ok", "paused", "read", "repeated_call"]
    assert asyncio.run(play()) == wanted


def test_a_doubt_that_is_asked_for_again_and_again_stops_the_run(
    charge: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """No attempt is asked for, so no guard is: the answer stays unknown, and from the third repeat on it stops."""
    executor = executor_of(charge)
    world.next, world.looks = ["ack_lost"], ["raises"] * 1000
    good = {"order": "A", "amount": 5}
    seen = [executor.call("charge", good, task="t", turn=1) for _ in range(5)]
    assert {one.verdict for one in seen} == {"effect_unknown"}
    assert [one.stop for one in seen] == [None, None, None, "repeated_call", "repeated_call"]
    assert world.count(seen[0].effect_id) == 1


def test_a_key_that_is_taken_stops_who_insists(executor_of: Make) -> None:
    """The key of another call is answered without an attempt; a model that insists is stopped."""
    service = Service()

    @tool(key=("what",))
    def put(what: str, cents: int) -> str:
        """Put one thing."""
        return service.answer(what)

    executor = executor_of(put)
    executor.call("put", {"what": "a", "cents": 1}, task="t", turn=1)
    seen = [executor.call("put", {"what": "a", "cents": 2}, task="t", turn=1) for _ in range(4)]
    assert {one.code for one in seen} == {"key_conflict"}
    assert [one.stop for one in seen] == [None, None, "repeated_call", "repeated_call"]
