"""What a model hears of an effect whose record was pruned: it was done, and nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from counterfoil import Effect, Executor, ManualClock, Policy, Rejected, Tool, Verdict, tool
from counterfoil.ledger.keeping import Pruned, prune

DAY_S = 86_400
OLD = 30 * DAY_S * 1_000_000


class Desk:
    """An executor whose one tool counts what it sends, and a clock to move on."""

    def __init__(self, url: str) -> None:
        self.clock = ManualClock()
        self.sent: list[str] = []
        self.undone: list[str] = []
        self.executor = Executor(url, [self.tool()], clock=self.clock)

    def tool(self) -> Tool[..., str]:
        @tool(key=("order",), policy=Policy(timeout_s=5))
        def charge(effect: Effect, order: str, amount: int) -> str:
            """Charge the card for one order."""
            self.sent.append(effect.provider_key)
            if order == "declined" and len(self.sent) == 1:
                raise Rejected("card_declined", "the card was declined")
            return f"pi_{order}"

        @charge.compensation()
        def refund(effect: Effect) -> str:
            """Give the money back."""
            self.undone.append(effect.id)
            return "refunded"

        return charge

    def prune(self) -> Pruned:
        self.clock.advance(40 * DAY_S)
        return prune(self.executor._ledger, OLD, None, by="a person")


@pytest.fixture
def desk(ledger_url: str) -> Iterator[Desk]:
    one = Desk(ledger_url)
    yield one
    one.executor.close()


def test_a_known_key_is_told_to_be_expired_and_never_run_as_new(desk: Desk) -> None:
    """The same call again: it was done, its result is no longer kept, nothing was sent. check_effect says so too."""
    desk.executor.call("charge", {"order": "A", "amount": 5})
    assert desk.prune() == Pruned(1)
    again = desk.executor.call("charge", {"order": "A", "amount": 5})
    assert (again.code, again.ok, again.verdict, again.value) == ("expired", True, Verdict.EFFECT_APPLIED, None)
    checked = desk.executor.call("check_effect", {"effect_id": again.effect_id})
    assert (checked.code, len(desk.sent)) == ("expired", 1)


def test_other_arguments_under_a_pruned_key_conflict(desk: Desk) -> None:
    """The key goes on standing for what it stood for."""
    desk.executor.call("charge", {"order": "A", "amount": 5})
    desk.prune()
    other = desk.executor.call("charge", {"order": "A", "amount": 6})
    assert (other.code, len(desk.sent)) == ("key_conflict", 1)


def test_what_was_refused_long_ago_may_be_tried_again(desk: Desk) -> None:
    """A pruned no_effect begins again, as its next attempt and under its next key: the old key may hold a refusal."""
    assert desk.executor.call("charge", {"order": "declined", "amount": 5}).code == "card_declined"
    desk.prune()
    again = desk.executor.call("charge", {"order": "declined", "amount": 5})
    assert (again.code, [key.rpartition("-")[2] for key in desk.sent]) == ("ok", ["k0", "k1"])


def test_a_pruned_effect_is_not_compensated(desk: Desk) -> None:
    """What it was about is archived: a person has to see to it, and the compensation's function does not run."""
    seen = desk.executor.call("charge", {"order": "A", "amount": 5})
    assert seen.effect_id is not None
    desk.prune()
    told = desk.executor.compensate(seen.effect_id)
    assert (told.code, desk.undone) == ("conflict", [])
    assert "archived" in told.text
