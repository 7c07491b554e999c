"""C32 (kind K07): the same instant, different spelling (python/cpython #84257, moment/luxon #638)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cases.messages import assert_applied, assert_none, assert_unknown
from cases.naming import POLICY, look_for, lose_the_first_answer, settled
from cases.scene import post, sent
from provider import Provider

from counterfoil import ALL_ARGUMENTS, Effect, Executor, tool

FIRST = "2026-03-04T09:00:00Z"
OTHERS: tuple[Any, ...] = (
    "2026-03-04T09:00:00+00:00",
    "2026-03-04T09:00:00.000000+00:00",
    "2026-03-04T10:00:00+01:00",
    datetime(2026, 3, 4, 9, tzinfo=UTC),
)


def test_every_spelling_of_an_instant_is_recognised(ledger_url: str, provider: Provider) -> None:
    """Lost with the first spelling, asked again with the others: one fingerprint, one effect. Without an offset it is
    refused, with an example of what to write."""

    @tool(key=ALL_ARGUMENTS, sends="once", policy=POLICY)
    def book(effect: Effect, starts: datetime) -> dict[str, str]:
        """Book a slot."""
        return post(provider, effect, {"starts": starts.isoformat()})

    lose_the_first_answer(provider)
    with Executor(ledger_url, tools=[look_for(book, provider)], clock_margin_s=0.1) as executor:
        first = executor.call("book", {"starts": FIRST}, task="t")
        assert_unknown(first)
        settled(executor)
        for number, other in enumerate(OTHERS):
            seen = executor.call("book", {"starts": other}, task="t")
            assert_applied(seen, code="replayed" if number else "verified")
            assert seen.effect_id == first.effect_id
        refused = executor.call("book", {"starts": "2026-03-04T09:00:00"}, task="t")
        assert_none(refused, code="invalid_arguments")
        assert "offset, for example 2026-03-04T09:00:00+01:00" in refused.text
        assert len(executor.audit.effects()) == 1
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def test_text_that_looks_like_an_instant_stays_text(ledger_url: str, provider: Provider) -> None:
    """Of a parameter that is declared as text, two spellings are two values."""

    @tool(key=ALL_ARGUMENTS)
    def note(effect: Effect, words: str) -> dict[str, str]:
        """Write something down."""
        return post(provider, effect, {"words": words})

    with Executor(ledger_url, tools=[note]) as executor:
        told = [executor.call("note", {"words": one}, task="t").code for one in (FIRST, OTHERS[0], FIRST)]
    assert told == ["ok", "ok", "replayed"]
    provider.quiesce()
    assert provider.count() == 2
