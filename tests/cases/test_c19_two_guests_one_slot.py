"""C19: two customers and one slot (https://github.com/calcom/cal.diy/issues/13397).

A booking handler looked whether the slot was free and inserted afterwards, without a lock, so that everybody who asked
at once got it. Here two processes book at once, the provider takes whoever comes first and answers 409 to the other.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from cases.messages import assert_none
from cases.processes import hear, playing, say
from cases.scene import AMPLE_S, ProviderError, details, incidents, looked, sent, story
from provider import Provider

from counterfoil import Effect, Executor, Policy, Rejected, Tool, tool

SLOT = "2027-03-04T10:00:00Z"
FREE = ["2027-03-04T11:00:00Z"]


def book_tool(provider: Provider) -> Tool[..., Any]:
    @tool(key=("slot", "guest"), sends="once", policy=Policy(timeout_s=20.0, grace_s=5.0, attempts_max=3))
    def book(effect: Effect, slot: str, guest: str) -> dict[str, str]:
        """Book a slot for a guest."""
        answer = provider.send(effect.id, body={"slot": slot, "guest": guest}, timeout_s=AMPLE_S)
        if answer.status == 409:
            raise Rejected("conflict", "the slot is taken", field="slot", candidates=FREE, status=409)
        if answer.status != 201:
            raise ProviderError(answer.status)
        effect.reference = answer.body["id"]
        return {"booking": answer.body["id"]}

    return book


def guest_books(ledger: str, provider: str, guest: str) -> Any:
    """The play: a guest whose process is ready, and books when the test says so."""
    with Executor(ledger, [book_tool(Provider.at(provider))]) as executor:
        say("ready")
        hear()
        return executor.call("book", {"slot": SLOT, "guest": guest}).as_dict()


def test_one_gets_the_slot_and_the_other_is_told_to_choose_another(ledger_url: str, provider: Provider) -> None:
    """One is applied. The other is no effect for good: it was not tried again by itself, its slot is echoed, and the
    next action is another slot. Repeated unchanged, it is refused again, and the ledger counts that."""
    provider.arm("refuse", status=409, skip=1, times=None)
    with ExitStack() as stack:
        guests = {
            guest: stack.enter_context(playing(guest_books, ledger=ledger_url, provider=provider.url, guest=guest))
            for guest in ("A", "B")
        }
        assert [child.heard() for child in guests.values()] == ["ready"] * 2
        for child in guests.values():
            child.tell("now")
        told = {guest: child.result() for guest, child in guests.items()}
    winner, loser = sorted(told, key=lambda guest: not told[guest]["ok"])
    assert (told[winner]["verdict"], told[winner]["code"]) == ("effect_applied", "ok")
    check_the_refusal(told[loser], loser)
    with Executor(ledger_url, [book_tool(provider)]) as executor:
        rows = {row.id: row for row in executor.audit.effects()}
        assert set(rows) == {told[guest]["effect_id"] for guest in told}
        effect_id = told[loser]["effect_id"]
        assert (rows[effect_id].verdict, rows[effect_id].proof, rows[effect_id].attempts) == (
            "no_effect",
            "rejected",
            1,
        )
        assert story(executor, effect_id) == [("begun", 1), ("closed", 1)]

        again = executor.call("book", {"slot": SLOT, "guest": loser})
        assert_none(again, code="conflict")
        check_the_refusal(again.as_dict(), loser)
        assert story(executor, effect_id) == [("begun", 1), ("closed", 1), ("begun", 2), ("closed", 2)]
        closed = details(executor, effect_id, "closed")
        assert [(one["code"], one["reason"]) for one in closed] == [("conflict", "the slot is taken")] * 2
        assert executor.audit.effect(effect_id).attempts == 2
        assert incidents(executor) == []
    provider.quiesce()
    (effect,) = provider.effects()
    assert effect["body"] == {"slot": SLOT, "guest": winner}
    assert (len(sent(provider)), looked(provider)) == (3, 0)


def check_the_refusal(seen: dict[str, Any], guest: str) -> None:
    assert (seen["verdict"], seen["code"], seen["ok"], seen["proof"]) == ("no_effect", "conflict", False, "rejected")
    assert (seen["retry"], seen["retry_after_s"], seen["category"]) == ("change_arguments", None, "recoverable")
    assert seen["reason"] == "the slot is taken"
    assert SLOT in seen["rejected_arguments"]
    assert guest in seen["rejected_arguments"]
    assert seen["candidates"] == FREE
    assert seen["next_action"] == "Use another slot."
