"""C20: identical calls in one turn of the model (https://github.com/LionSR/TeXRA/pull/9765).

Models emit one side-effecting call several times in a parallel turn, under different call ids; runtimes ran all of
them, or answered the copies with an error. Equal calls can also be meant, which the caller then has to say.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from cases.messages import assert_applied
from cases.scene import details, incidents, looked, named, post, sent, story, until
from provider import Provider

from counterfoil import Effect, Executor, Observation, Policy, Tool, tool

CALL = {"to": "A", "amount": 10}
TASK = "month-end"
IDS = ("c1", "c2", "c3")


def invoice_tools(provider: Provider, *, repeatable: bool = False, undone: bool = False) -> list[Tool[..., Any]]:
    """`send_invoice`, and `void_invoice`: a tool of its own or, if `undone`, the compensation of the former."""
    policy = Policy(timeout_s=20.0, grace_s=5.0, patience_s=20.0)

    @tool(key=("to", "amount"), sends="once", repeatable=repeatable, policy=policy)
    def send_invoice(effect: Effect, to: str, amount: int) -> dict[str, str]:
        """Send an invoice to a customer."""
        return post(provider, effect, {"to": to, "amount": amount})

    if undone:

        @send_invoice.compensation(sends="once")
        def void(effect: Effect) -> dict[str, str]:
            """Void an invoice."""
            return post(provider, effect, {"void": effect.original.id})

        return [send_invoice]

    @tool(key=("to",), sends="once", policy=policy)
    def void_invoice(effect: Effect, to: str) -> dict[str, str]:
        """Void the last invoice of a customer."""
        return post(provider, effect, {"void": to})

    return [send_invoice, void_invoice]


def one_turn(executor: Executor, calls: Sequence[dict[str, Any]]) -> list[Observation]:
    """The calls of one parallel turn, all at once, with the ids c1, c2, c3."""
    barrier = threading.Barrier(len(calls))

    def one(call_id: str, arguments: dict[str, Any]) -> Observation:
        barrier.wait()
        return executor.call("send_invoice", arguments, task=TASK, turn=1, call_id=call_id)

    with ThreadPoolExecutor(len(calls)) as threads:
        return [future.result() for future in [threads.submit(one, *each) for each in zip(IDS, calls, strict=True)]]


def invoices(provider: Provider) -> int:
    return sum("to" in one["body"] for one in provider.effects())


def test_one_action_serves_the_three_calls(ledger_url: str, provider: Provider) -> None:
    """One is executed, two share its result as a success; all three call ids lead to the one effect. After the void,
    only a new occurrence is a new invoice; without it the answer is the old one, and how to ask for another."""
    with Executor(ledger_url, invoice_tools(provider)) as executor:
        provider.arm("slow", seconds=0.05)
        seen = one_turn(executor, [CALL] * 3)
        assert Counter(one.code for one in seen) == {"ok": 1, "replayed": 2}
        for one in seen:
            assert_applied(one, code=one.code)
            assert one.ok
            assert (one.value, one.effect_id) == (seen[0].value, seen[0].effect_id)
            if one.code == "replayed":
                assert "this is the stored result, nothing was sent again" in one.reason
        provider.quiesce()
        assert invoices(provider) == len(sent(provider)) == 1
        effect_id = named(seen[0].effect_id)
        assert story(executor, effect_id) == [("begun", 1), ("returned", 1)]
        until(lambda: len(executor.audit.sightings(effect_id)) == 2, "what replays leave is written behind")
        ids = {details(executor, effect_id, "begun")[0]["call_id"]}
        ids |= {one["call_id"] for one in executor.audit.sightings(effect_id)}
        assert ids == set(IDS)

        assert_applied(executor.call("void_invoice", {"to": "A"}, task=TASK, turn=2), code="ok")
        again = executor.call("send_invoice", CALL, task=TASK, turn=2, call_id="c5")
        assert_applied(again, code="replayed")
        assert again.effect_id == effect_id
        assert "ask for a further occurrence of it" in again.next_action
        assert invoices(provider) == 1
        wanted = executor.call("send_invoice", CALL, task=TASK, turn=2, call_id="c6", occurrence=2)
        assert_applied(wanted, code="ok")
        assert wanted.effect_id != effect_id
        assert incidents(executor) == []
    provider.quiesce()
    assert (invoices(provider), looked(provider)) == (2, 0)


def test_calls_that_are_meant_are_told_apart_by_their_occurrence(ledger_url: str, provider: Provider) -> None:
    """A repeatable tool with distinct occurrences: three calls, three invoices, three records."""
    with Executor(ledger_url, invoice_tools(provider, repeatable=True)) as executor:
        seen = one_turn(executor, [CALL | {"occurrence": number} for number in (1, 2, 3)])
        assert [one.code for one in seen] == ["ok"] * 3
        rows = executor.audit.effects()
        assert {row.id for row in rows} == {one.effect_id for one in seen}
        assert {row.occurrence for row in rows} == {"1", "2", "3"}
        linked = {details(executor, one.effect_id, "begun")[0]["call_id"]: one.effect_id for one in seen}
        assert linked == dict(zip(IDS, [one.effect_id for one in seen], strict=True))
        assert incidents(executor) == []
    provider.quiesce()
    assert invoices(provider) == len(sent(provider)) == 3


def test_what_was_voided_through_the_ledger_is_told_as_ended(ledger_url: str, provider: Provider) -> None:
    """Where the void is the invoice's compensation, the same call hears that it was taken back, and what another is."""
    with Executor(ledger_url, invoice_tools(provider, undone=True)) as executor:
        first = executor.call("send_invoice", CALL, task=TASK, turn=1)
        executor.compensate(named(first.effect_id))
        again = executor.call("send_invoice", CALL, task=TASK, turn=2)
        assert (again.verdict, again.code, again.effect_id) == ("effect_applied", "ended", first.effect_id)
        assert "another one is a further occurrence of it" in again.reason
        assert_applied(executor.call("send_invoice", CALL, task=TASK, turn=2, occurrence=2), code="ok")
    provider.quiesce()
    assert invoices(provider) == 2
