"""C59 (kind K16). An error page of two megabytes, a line of one, two hundred causes and bytes that are no text: cut at
the door, in the message and in the ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from cases.messages import assert_none, assert_unknown
from cases.scene import details

from counterfoil import Executor, Observation, Policy, Rejected, Tool, tool
from counterfoil.message import TOKENS, tokens

HTML = "<html><head><title>502</title></head>" + "<p class='x'>The service is away.</p>" * 55_000 + "</html>"
ONE_LINE = "x1" * 500_000
KEPT_BYTES = 8_192


def caused() -> BaseException:
    problem: BaseException = ValueError("the first cause")
    for number in range(200):
        outer = ValueError(f"cause {number} <b>of</b> 200")
        outer.__cause__ = problem
        problem = outer
    return problem


TEXTS: dict[str, Callable[[], Any]] = {
    "2 MB of HTML": lambda: HTML,
    "1 MB on one line": lambda: ONE_LINE,
    "invalid UTF-8": lambda: (b"\xff\xfe<b>\x00" * 90_000).decode("utf-8", "surrogateescape"),
    "bytes": lambda: b"\xff\xfe\x00<b>" * 90_000,
}


def search(raised: Callable[[], BaseException]) -> Tool[..., Any]:
    @tool(key=("order",), policy=Policy(patience_s=0.1))
    def charge(order: str) -> None:
        """Charge the customer's card once for one order. Use it when the total is confirmed."""
        raise raised()

    return charge


def called(ledger_url: str, raised: Callable[[], BaseException], event: str) -> tuple[Observation, dict[str, Any]]:
    with Executor(ledger_url, [search(raised)]) as executor:
        started = time.process_time()
        seen = executor.call("charge", {"order": "A-1"})
        assert time.process_time() - started < 5.0, "cutting is no work of minutes"
        (entry,) = details(executor, seen.effect_id, event)
    return seen, entry


def assert_short(seen: Observation, entry: dict[str, Any], *, cut: bool) -> None:
    for text in (seen.text, seen.message("json")):
        assert tokens(text) <= TOKENS
        assert text.encode("utf-8")
        assert "<" not in text
    account = entry["error"]
    assert len(account["text"].encode("utf-8")) <= KEPT_BYTES
    assert ("size" in account, "digest" in account) == (cut, cut)
    assert not cut or account["size"] > KEPT_BYTES


@pytest.mark.parametrize("name", TEXTS)
def test_an_error_of_that_size_is_lost_and_short(ledger_url: str, name: str) -> None:
    """Unlisted: unknown, the message is the ordinary one, and 8 kB of the text with size and digest are kept."""
    seen, entry = called(ledger_url, lambda: RuntimeError(TEXTS[name]()), "lost")
    assert_unknown(seen)
    assert_short(seen, entry, cut=True)


@pytest.mark.parametrize("name", TEXTS)
def test_a_refusal_of_that_size_is_cut_and_says_so(ledger_url: str, name: str) -> None:
    """Raised as a reason: no effect; the reason is cut, says how much there was, and has no markup in it."""
    said = TEXTS[name]()
    seen, entry = called(ledger_url, lambda: Rejected("search_away", said, hint=said), "closed")
    assert_none(seen, code="search_away")
    assert_short(seen, entry, cut=True)
    assert not isinstance(said, str) or f"({len(said):,} characters)" in seen.text
    assert seen.next_action == "Change the arguments and call charge again."


def test_two_hundred_causes_are_counted(ledger_url: str) -> None:
    """The first twenty stand in the ledger, the others as a number."""
    seen, entry = called(ledger_url, caused, "lost")
    assert_unknown(seen)
    assert_short(seen, entry, cut=False)
    assert "and 181 more below" in entry["error"]["text"]
