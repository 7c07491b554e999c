"""C10: a read timeout on a POST is no ordinary passing error (urllib3/urllib3 #1059, mollie/mollie-api-python #325)."""

from __future__ import annotations

from cases.messages import assert_applied
from cases.scene import details, incidents, looked, payment_tool, sent, story
from provider import Provider

from counterfoil import Executor, Policy, Proof, Verdict

POLICY = Policy(timeout_s=20.0, grace_s=5.0, attempts_max=3)


def test_a_lost_answer_is_settled_by_a_look_and_not_by_a_resend(ledger_url: str, provider: Provider) -> None:
    """Although three tries are allowed, the effect is found by one look: one request, one attempt, applied."""
    provider.arm("ack_lost", mode="hold")
    with Executor(ledger_url, tools=[payment_tool(provider, POLICY)], clock_margin_s=0.1) as executor:
        seen = executor.call("create_payment", {"order": "A-1", "amount": 500})
        assert_applied(seen, code="verified")
        assert "answer was lost" in seen.reason
        assert "looking showed that it had been carried out" in seen.reason
        (effect,) = provider.effects()
        assert (seen.proof, seen.attempts, seen.value) == (Proof.FOUND, 1, {"payment": effect["id"]})
        assert effect["reference"] == seen.effect_id

        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1), ("found", 0)]
        (lost,) = details(executor, seen.effect_id, "lost")
        assert (lost["reason"], lost["verdict"]) == ("TimeoutError", Verdict.EFFECT_UNKNOWN)
        (found,) = details(executor, seen.effect_id, "found")
        assert (found["proof"], found["verdict"]) == (Proof.FOUND, Verdict.EFFECT_APPLIED)
        assert (found["references"], found["count"]) == ([effect["id"]], 1)
        assert [row.id for row in executor.audit.effects()] == [seen.effect_id]
        assert executor.audit.doubts() == []
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == looked(provider) == 1
