"""C33: a result too large to record, and the action repeated for ever (pydantic/pydantic-ai #7157).

The ledger takes 1 MB; the tool sends one mail and returns 50 MB. In the variant the arguments have 50 MB.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from cases.messages import assert_applied, assert_none
from cases.scene import details, find, incidents, looked, post, sent, story
from provider import Provider

from counterfoil import Effect, Executor, Policy, Proof, Tool, tool

HUGE = 50_000_000
LIMIT = 1_000_000
SMALL = 2_000


def export_tool(provider: Provider) -> Tool[..., Any]:
    @tool(key=("report",), sends="once", policy=Policy(grace_s=5.0, attempts_max=3, value_max_bytes=LIMIT))
    def export_and_mail(effect: Effect, report: str, note: str = "") -> str:
        """Export a report and mail it once."""
        post(provider, effect, {"report": report})
        return "x" * HUGE

    export_and_mail.postcondition(lambda effect: find(provider, effect))
    return export_and_mail


def test_a_result_of_50_mb_is_done_and_not_repeated(ledger_url: str, provider: Provider) -> None:
    """The verdict is recorded with size and digest, one mail goes out, and a repeat is answered from the ledger."""
    size = HUGE + 2
    with Executor(ledger_url, tools=[export_tool(provider)], clock_margin_s=0.1) as executor:
        seen = executor.call("export_and_mail", {"report": "r1"})
        again = executor.call("export_and_mail", {"report": "r1"})
        for one in (seen, again):
            assert_applied(one, code="value_not_stored")
            assert (one.ok, one.value, one.proof) == (True, None, Proof.RETURNED)
            assert "It is done" in one.reason
            assert f"{size} bytes" in one.reason
            assert f"{LIMIT}" in one.reason
            assert len(one.text) < SMALL

        (effect,) = executor.audit.effects()
        digest = hashlib.sha256(json.dumps("x" * HUGE).encode()).hexdigest()
        assert (effect.value, effect.value_size, effect.value_digest) == (None, size, f"sha256:{digest}")
        assert story(executor, effect.id) == [("begun", 1), ("returned", 1)]
        assert len(json.dumps(details(executor, effect.id, "returned"))) < SMALL
        assert effect.references == (provider.effects()[0]["id"],)
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
    assert looked(provider) == 0


def test_the_message_says_how_to_get_the_rest(ledger_url: str, provider: Provider) -> None:
    """The one next action is a way to the result that does not call the tool again."""
    with Executor(ledger_url, tools=[export_tool(provider)], clock_margin_s=0.1) as executor:
        seen = executor.call("export_and_mail", {"report": "r1"})
    assert_applied(seen, code="value_not_stored")
    assert "do not call export_and_mail for this again" in seen.next_action.lower()
    assert re.search(r"\b(read|fetch|look up|get)\b", seen.next_action, re.IGNORECASE), seen.next_action


def test_arguments_of_50_mb_are_refused_before_anything(ledger_url: str, provider: Provider) -> None:
    """Nothing is sent, nothing is written, the message is short, and the key stays free for a smaller call."""
    with Executor(ledger_url, tools=[export_tool(provider)], clock_margin_s=0.1) as executor:
        for arguments in ({"report": "r1", "note": "x" * HUGE}, json.dumps({"report": "r1", "note": "x" * HUGE})):
            seen = executor.call("export_and_mail", arguments)
            assert_none(seen, code="invalid_arguments")
            assert "too large" in seen.text
            assert len(seen.text) < SMALL
            assert len(json.dumps(seen.as_dict())) < 2 * SMALL
            assert executor.audit.effects() == []
            assert provider.requests() == []
        assert_applied(executor.call("export_and_mail", {"report": "r1", "note": "x"}), code="value_not_stored")
    provider.quiesce()
    assert provider.count() == 1
