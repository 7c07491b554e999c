"""C34: a NUL character in the answer breaks the database write (METR/vivaria #433).

What a provider says comes from outside: no character of it may cost a verdict, on either database.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from cases.messages import assert_applied, assert_none, assert_well_formed
from cases.scene import AMPLE_S, incidents, looked, post, sent, story
from provider import Provider

from counterfoil import Absent, Effect, Executor, Found, Policy, Proof, Rejected, Unclear, Verdict, tool

NUL = "a\u0000b"
SURROGATE = "a\ud800b"
REPLACED = "a\ufffdb"
VALUES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "nul": ({"text": NUL}, ({"text": NUL}, {"text": REPLACED})),
    "lone surrogate": ({"text": SURROGATE}, ({"text": SURROGATE}, {"text": REPLACED})),
    "nul in a name": ({NUL: 1}, ({NUL: 1}, {REPLACED: 1})),
    "all at once": ([{NUL: SURROGATE}], ([{NUL: SURROGATE}], [{REPLACED: REPLACED}])),
}
POLICY = Policy(timeout_s=20.0, grace_s=60.0, patience_s=0.05, wait_s=0.5)


def assert_printable(text: str) -> None:
    """It can go to any model, log or terminal."""
    text.encode("utf-8")
    assert "\x00" not in text


@pytest.mark.parametrize("name", VALUES)
def test_the_result_is_kept_and_delivered(ledger_url: str, provider: Provider, name: str) -> None:
    """Applied, one effect, and the same visible value at once, replayed, and on both databases."""
    value, permitted = VALUES[name]

    @tool(key=("page",), sends="once", policy=POLICY)
    def publish(effect: Effect, page: str) -> Any:
        """Publish a page once."""
        post(provider, effect, {"page": page})
        return value

    with Executor(ledger_url, tools=[publish], clock_margin_s=0.1) as executor:
        seen = executor.call("publish", {"page": "p"})
        again = executor.call("publish", {"page": "p"})
        assert_applied(seen, code="ok")
        assert_applied(again, code="replayed")
        assert seen.value == again.value
        assert seen.value in permitted
        for one in (seen, again):
            assert_printable(one.text)
            assert "Result: " in one.text
        (effect,) = executor.audit.effects()
        assert json.loads(effect.value or "") == seen.value
        assert (effect.value or "").isascii()
        assert seen.value == value or effect.value_note, "what was replaced is noted"
        assert story(executor, effect.id) == [("begun", 1), ("returned", 1)]
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


@pytest.mark.parametrize("text", [NUL, SURROGATE], ids=["nul", "lone surrogate"])
def test_a_reference_of_any_characters(ledger_url: str, provider: Provider, text: str) -> None:
    """A success latches although the provider's name for it cannot be text in the database."""

    @tool(key=("page",), sends="once", policy=POLICY)
    def publish(effect: Effect, page: str) -> str:
        """Publish a page once."""
        post(provider, effect, {"page": page})
        effect.reference = text
        return "done"

    with Executor(ledger_url, tools=[publish], clock_margin_s=0.1) as executor:
        for code in ("ok", "replayed"):
            seen = executor.call("publish", {"page": "p"})
            assert_applied(seen, code=code)
            assert_printable(seen.text)
        (effect,) = executor.audit.effects()
        assert len(effect.references) == 1
    provider.quiesce()
    assert provider.count() == 1


@pytest.mark.parametrize("text", [NUL, SURROGATE], ids=["nul", "lone surrogate"])
def test_a_look_that_finds_any_characters(ledger_url: str, provider: Provider, text: str) -> None:
    """Value and reference of a look are written too: the lost answer is settled as applied."""

    @tool(key=("page",), sends="once", policy=POLICY)
    def publish(effect: Effect, page: str) -> Any:
        """Publish a page once."""
        return post(provider, effect, {"page": page})

    @publish.postcondition
    def published(effect: Effect) -> Found[Any] | Absent | Unclear:
        return Found({text: text}, reference=text) if provider.look(effect.id, timeout_s=AMPLE_S).body else Absent()

    provider.arm("ack_lost")
    with Executor(ledger_url, tools=[publish], clock_margin_s=0.1) as executor:
        seen = executor.call("publish", {"page": "p"})
        assert_applied(seen, code="verified")
        assert_printable(seen.text)
        assert executor.audit.effects()[0].proof is Proof.FOUND
    provider.quiesce()
    assert provider.count() == looked(provider) == 1


@pytest.mark.parametrize("text", [NUL, SURROGATE], ids=["nul", "lone surrogate"])
def test_a_refusal_in_any_characters(ledger_url: str, provider: Provider, text: str) -> None:
    """A definite no stays a definite no, in printable words."""

    @tool(key=("page",), sends="once", policy=POLICY)
    def publish(effect: Effect, page: str) -> str:
        """Publish a page once."""
        raise Rejected(
            "declined", f"the page {text} is not welcome", hint=f"Drop the sign in {text}.", candidates=[text]
        )

    with Executor(ledger_url, tools=[publish], clock_margin_s=0.1) as executor:
        seen = executor.call("publish", {"page": "p"})
        assert_none(seen, code="declined")
        assert_printable(seen.text)
        (effect,) = executor.audit.effects()
        assert (effect.verdict, effect.proof) == (Verdict.NO_EFFECT, Proof.REJECTED)


def test_a_refusal_of_any_length(ledger_url: str, provider: Provider) -> None:
    """A provider's word for its no may be long: it is cut, and the no is recorded on both databases."""
    code, reason = "d" * 1000, "e" * 100_000

    @tool(key=("page",), sends="once", policy=POLICY)
    def publish(effect: Effect, page: str) -> str:
        """Publish a page once."""
        raise Rejected(code, reason)

    with Executor(ledger_url, tools=[publish], clock_margin_s=0.1) as executor:
        seen = executor.call("publish", {"page": "p"})
        assert seen.verdict is Verdict.NO_EFFECT, seen.text
        assert code.startswith(seen.code)
        (effect,) = executor.audit.effects()
        assert (effect.verdict, effect.proof) == (Verdict.NO_EFFECT, Proof.REJECTED)


@pytest.mark.parametrize("text", [NUL, SURROGATE], ids=["nul", "lone surrogate"])
def test_a_look_that_cannot_see_for_any_reason(ledger_url: str, provider: Provider, text: str) -> None:
    """The reason of an unclear look is written down whatever is in it; the doubt stays a doubt."""

    @tool(key=("page",), sends="once", policy=POLICY)
    def publish(effect: Effect, page: str) -> Any:
        """Publish a page once."""
        return post(provider, effect, {"page": page})

    publish.postcondition(lambda effect: Unclear(f"the provider said {text}"))
    provider.arm("ack_lost")
    with Executor(ledger_url, tools=[publish], clock_margin_s=0.1) as executor:
        seen = executor.call("publish", {"page": "p"})
        assert seen.code == "effect_unknown"
        assert_printable(seen.text)
        assert_well_formed(seen)
        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1), ("looked", 0)]


@pytest.mark.parametrize("text", [NUL, SURROGATE], ids=["nul", "lone surrogate"])
def test_a_call_in_any_characters(ledger_url: str, provider: Provider, text: str) -> None:
    """What the model and its framework say (arguments, task, call id) is written too, or refused before anything."""

    @tool(key=("page",), sends="once", policy=POLICY)
    def publish(effect: Effect, page: str, note: str) -> Any:
        """Publish a page once."""
        return post(provider, effect, {"page": page})

    with Executor(ledger_url, tools=[publish], clock_margin_s=0.1) as executor:
        for _ in range(2):
            seen = executor.call("publish", {"page": "p", "note": text}, task=text, call_id=text)
            assert_printable(seen.text)
            assert seen.verdict is Verdict.EFFECT_APPLIED or seen.code == "invalid_arguments", seen.text
        applied = len(executor.audit.effects())
    provider.quiesce()
    assert provider.count() == applied
