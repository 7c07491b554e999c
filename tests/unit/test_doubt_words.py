"""What is said of a doubt: the status that came in place of an answer, and a key that protects nothing any more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from counterfoil.attempt import GateState
from counterfoil.effect import Lost, Verdict
from counterfoil.failure import classify
from counterfoil.runner.job import NO_ROW
from counterfoil.telling import unknown_words

ROW = replace(NO_ROW, id="cf-1", verdict=Verdict.EFFECT_UNKNOWN, code="effect_unknown")


class ShopError(Exception):
    """An error of a client that keeps the status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_the_status_of_an_answer_that_proves_nothing_is_kept(status: int) -> None:
    """An answer with a status that nobody declared is lost, and the model hears the status and the doubt."""
    outcome = classify(ShopError(status), sends="once", rejects=(), gate=GateState.UNTOUCHED)
    assert (type(outcome), getattr(outcome, "status", None)) == (Lost, status)
    words = unknown_words("pay", ROW, looks=True, outcome=outcome)
    assert words.reason == f"The status {status} came as answer: it may have been carried out, or may still be."


def test_the_code_of_an_exit_is_no_status() -> None:
    """`SystemExit(130)` has a code that no provider has answered."""
    outcome = classify(SystemExit(130), sends="once", rejects=(), gate=GateState.UNTOUCHED)
    assert isinstance(outcome, Lost)
    assert outcome.status is None


def test_a_key_that_has_expired_leaves_a_person() -> None:
    """Without a look the message says that the key protects nothing, and its one action is to report; with a look,
    looking is still the way."""
    blind = unknown_words("pay", ROW, looks=False, key_expired=True)
    assert "its key has expired" in blind.reason
    assert "a person has to check it" in blind.hint
    assert unknown_words("pay", ROW, looks=True, key_expired=True).hint == ""
