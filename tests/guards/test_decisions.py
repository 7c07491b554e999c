"""The guards' decisions as pure functions: tables of what is counted and what is let through."""

from __future__ import annotations

from typing import Any

import pytest

from counterfoil import Alike, Breaker, Budget, LoopGuard, UsageError
from counterfoil.guard import Account, Circuit, End, Health, Repeats, Sign, breaker, budget, loop, similarity

S = 1_000_000
ALIKE = {"path": Alike(path=True, ignore_case=True)}
ONE = Breaker(failures=2, open_s=10)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"path": "/a/b/"}, {"path": "/a/b"}),
        ({"path": " /a//b "}, {"path": "/A/B"}),
        ({"q": "two  words"}, {"q": " two words\n"}),
        ({"limit": 10}, {"limit": "10"}),
        ({"limit": 10}, {"limit": 10.0}),
        ({"price": 0.1 + 0.2}, {"price": 0.3}),
        ({"q": "\ufb01n"}, {"q": "fin"}),
        ({"a": 1, "b": [1, {"c": "x "}]}, {"b": [1.0, {"c": "x"}], "a": 1}),
    ],
)
def test_variants_are_similar(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Spaces, Unicode forms, rounding, the type of a number, and what is declared to be alike: one fingerprint."""
    assert similarity("search", one, ALIKE) == similarity("search", other, ALIKE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"q": "/a/b/"}, {"q": "/a/b"}),
        ({"q": "Word"}, {"q": "word"}),
        ({"order": 123456789}, {"order": 123456788}),
        ({"price": 1.5}, {"price": 1.6}),
        ({"q": "a b"}, {"q": "ab"}),
        ({"q": True}, {"q": 1}),
        ({"q": None}, {}),
        ({"path": "/"}, {"path": ""}),
    ],
)
def test_what_matters_stays_distinct(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Case and slashes count where nobody declared otherwise; another number, word or argument is another approach."""
    assert similarity("search", one, ALIKE) != similarity("search", other, ALIKE)


def test_another_tool_is_never_similar() -> None:
    """The tool's name is part of the fingerprint."""
    assert similarity("a", {"x": 1}, {}) != similarity("b", {"x": 1}, {})


@pytest.mark.parametrize(
    ("mine", "of_tool", "cap"),
    [
        (Repeats(), Repeats(), None),
        (Repeats(wrong=1, passing=1), Repeats(wrong=1, passing=1), None),
        (Repeats(wrong=2), Repeats(wrong=2), "wrong_input"),
        (Repeats(passing=2), Repeats(passing=2), None),
        (Repeats(passing=3), Repeats(passing=3), "passing_faults"),
        (Repeats(wrong=1, passing=2), Repeats(wrong=1, passing=2), "passing_faults"),
        (Repeats(same=6), Repeats(), "same_answers"),
        (Repeats(), Repeats(wrong=5, passing=5), "tool_failures"),
    ],
)
def test_limits_by_class(mine: Repeats, of_tool: Repeats, cap: str | None) -> None:
    """Two failures of wrong input, three that may pass (mixed ones too), six equal answers, ten of a tool."""
    hit = loop.limit_hit(mine, of_tool, LoopGuard())
    assert (hit and hit[0]) == cap


def test_only_its_own_success_clears() -> None:
    """A success takes failures back to none; another answer of a read-only tool begins the count of equal ones anew."""
    failed = loop.counted(loop.counted(Repeats(), End.WRONG), End.PASSING)
    assert failed.failures == 2
    assert loop.counted(failed, End.DONE).failures == 0
    polled = loop.counted(loop.counted(failed, End.ANSWERED, "x"), End.ANSWERED, "x")
    assert (polled.failures, polled.same) == (0, 2)
    assert loop.counted(polled, End.ANSWERED, "y").same == 1


def test_a_breaker_opens_probes_and_closes() -> None:
    """Faults in a row open it; nothing begins for a while; then one probe, whose end alone decides."""
    fault, answer, nothing = (Health(sign, ONE) for sign in (Sign.FAULT, Sign.ANSWER, Sign.NOTHING))
    one = breaker.after(breaker.CLOSED, fault, "a", 0)
    assert breaker.after(one, answer, "b", 1) == breaker.CLOSED
    opened = breaker.after(one, fault, "b", 5 * S)
    assert opened == Circuit(2, opened_at=5 * S)
    assert breaker.wait_us(opened, ONE, 14 * S) == 1 * S
    assert breaker.wait_us(opened, ONE, 15 * S) == 0
    probed = breaker.probing(opened, "p", 20 * S)
    assert breaker.wait_us(probed, ONE, 16 * S) == 4 * S
    assert breaker.after(probed, answer, "late", 16 * S) == probed, "a late answer of another attempt closes nothing"
    assert breaker.after(probed, fault, "late", 16 * S) == probed, "nor does it prolong"
    assert breaker.after(probed, answer, "p", 16 * S) == breaker.CLOSED
    assert breaker.after(probed, fault, "p", 16 * S) == Circuit(3, opened_at=16 * S)
    assert breaker.wait_us(breaker.after(probed, nothing, "p", 16 * S), ONE, 16 * S) == 0, "the next one is the probe"
    assert breaker.wait_us(probed, ONE, 20 * S + 1) == 0, "the process of a probe may die"


def test_a_budget_counts_by_turn_task_tool_and_unit() -> None:
    """Each cap is hit at its own number; a new turn counts anew; a unit that is not named may not be spent."""
    limits = Budget(calls_per_turn=2, calls_per_task=3, calls_per_tool={"b": 1}, spend={"eur": 100})
    account = Account(limits)
    for _ in range(2):
        assert budget.over(account, "a", 1, ("eur", 50)) is None
        account = budget.admitted(account, "a", 1, ("eur", 50))
    assert budget.over(account, "a", 1, None) == budget.Over("calls_per_turn", 2, 2)
    assert budget.over(account, "a", 0, None) == budget.Over("calls_per_turn", 2, 2), "an earlier turn is no way out"
    assert budget.over(account, "a", 2, ("eur", 1)) == budget.Over("spend.eur", 100, 100, 1, "eur")
    assert budget.over(account, "a", 2, ("usd", 1)) == budget.Over("spend.usd", 0, 0, 1, "usd")
    assert budget.over(account, "a", 2, None) is None
    account = budget.admitted(account, "b", 2, None)
    assert budget.over(account, "c", 3, None) == budget.Over("calls_per_task", 3, 3)
    assert budget.over(Account(limits, tool_calls={"b": 1}), "b", 1, None) == budget.Over("calls_per_tool", 1, 1)


def test_late_truth_is_booked_whatever_the_cap_says() -> None:
    """What was released and is spent after all exceeds the cap, and says so; a plain settling never does."""
    account = Account(Budget(spend={"eur": 100}), reserved={"eur": 40}, spent={"eur": 60})
    settled, over = budget.booked(account, budget.Booking("eur", 40, 40))
    assert (settled.reserved, settled.spent, over) == ({"eur": 0}, {"eur": 100}, None)
    late, over = budget.booked(settled, budget.Booking("eur", 0, 40))
    assert late.spent == {"eur": 140}
    assert over == budget.Over("spend.eur", 100, 140, 40, "eur")


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(),
        lambda: Budget(calls_per_turn=0),
        lambda: Budget(calls_per_tool={"a": -1}),
        lambda: Budget(spend={"eur": 1.5}),  # type: ignore[dict-item]
        lambda: Budget(spend={"": 1}),
        lambda: Budget(spend=5),  # type: ignore[arg-type]
        lambda: Breaker(failures=0),
        lambda: Breaker(open_s=float("inf")),
        lambda: LoopGuard(wrong_input=0),
        lambda: LoopGuard(wrong_input=4, passing_faults=3),
        lambda: Alike(digits=0),
    ],
)
def test_a_setting_that_is_none_is_refused(make: Any) -> None:
    """Numbers out of range, and limits that contradict each other, say how to mend them."""
    with pytest.raises(UsageError, match=r"give|takes|limits nothing|raise it|short word|whole number"):
        make()


def test_a_budget_survives_the_ledger() -> None:
    """Written as JSON and read back, it is the same; equal ones are written the same."""
    one = Budget(calls_per_tool={"b": 2, "a": 1}, spend={"usd": 1, "eur": 2})
    assert Budget.of_json(one.as_json()) == one
    assert one.as_json() == Budget(calls_per_tool={"a": 1, "b": 2}, spend={"eur": 2, "usd": 1}).as_json()
