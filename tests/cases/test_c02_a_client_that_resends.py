"""C02: the tool's own HTTP client resends behind the executor's back (ComposioHQ/composio #3654).

The inner client sends up to three times after read timeouts; the first answer comes too late for it, later ones do not.
"""

from __future__ import annotations

import contextlib
from typing import Any

from cases.messages import assert_applied
from cases.scene import AMPLE_S, find, incidents, looked, post, sent, story
from provider import Provider

from counterfoil import Effect, Executor, KeyPolicy, Policy, Proof, Tool, tool

CALL = {"to": "ann@example.org", "subject": "Hello"}
KEYS = KeyPolicy(retention_s=600.0, concurrent=True)
ONE_LOST = (0.2, AMPLE_S, AMPLE_S)
"""The inner client's read timeouts, one for each time that it sends; the provider holds those that are short."""
BOTH_LOST = (0.2, 0.2)


def mail_tool(provider: Provider, policy: Policy, timeouts_s: tuple[float, ...] = ONE_LOST) -> Tool[..., Any]:
    """It declares nothing about how it sends, since its client resends."""

    @tool(key=("to", "subject"), policy=policy)
    def send_mail(effect: Effect, to: str, subject: str) -> dict[str, str]:
        """Send one mail."""
        mail = {"to": to, "subject": subject}
        for timeout_s in timeouts_s[:-1]:
            with contextlib.suppress(TimeoutError):
                return post(provider, effect, mail, key=effect.provider_key, timeout_s=timeout_s)
        return post(provider, effect, mail, key=effect.provider_key, timeout_s=timeouts_s[-1])

    send_mail.postcondition(lambda effect: find(provider, effect))
    return send_mail


def test_a_provider_that_knows_the_key_delivers_once(ledger_url: str, provider: Provider) -> None:
    """Variant a: every inner request carries the key that the executor handed in, so there is one effect."""
    provider.dedupe(600.0)
    provider.arm("ack_lost", mode="hold")
    policy = Policy(timeout_s=30.0, grace_s=1.0, key_policy=KEYS, verify="always")
    with Executor(ledger_url, tools=[mail_tool(provider, policy)], clock_margin_s=0.1) as executor:
        seen = executor.call("send_mail", CALL)
        assert_applied(seen, code="ok")
        assert (seen.attempts, seen.value) == (1, {"payment": provider.effects()[0]["id"]})
        (effect,) = executor.audit.effects()
        assert [request["key"] for request in sent(provider)] == [effect.provider_key] * 2
        assert effect.count == 1
        assert [one for one in story(executor, seen.effect_id) if one[0] == "begun"] == [("begun", 1)]
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == 1


def check_the_double(executor: Executor, provider: Provider) -> None:
    """What the ledger and the audit show of a mail that went out twice, in one attempt of the executor."""
    (effect,) = executor.audit.effects()
    assert (effect.attempts, effect.count) == (1, 2)
    assert sorted(effect.references) == sorted(one["id"] for one in provider.effects())
    assert [one for one in story(executor, effect.id) if one[0] == "begun"] == [("begun", 1)]
    (doubled,) = executor.audit.incidents()
    assert (doubled.kind, doubled.effect_id, doubled.tool) == ("applied_more_than_once", effect.id, "send_mail")
    assert doubled.detail["count"] == 2
    before = len(provider.requests())
    again = executor.call("send_mail", CALL)
    check_the_message(again)
    assert len(provider.requests()) == before, "nothing is sent again, and nobody looks"
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 2


def check_the_message(seen: Any) -> None:
    assert_applied(seen, code="applied_more_than_once")
    assert "was carried out" in seen.reason
    assert "more than one match was found" in seen.reason
    assert "Report this" in seen.next_action
    assert "do not call send_mail for this again" in seen.next_action
    assert seen.stop == "applied_more_than_once"


def test_a_provider_without_memory_delivers_twice_and_it_is_seen(ledger_url: str, provider: Provider) -> None:
    """Variant b: the tool returned well, and only a look after the success can see that there are two."""
    provider.arm("ack_lost", mode="hold")
    policy = Policy(timeout_s=30.0, grace_s=1.0, verify="always")
    with Executor(ledger_url, tools=[mail_tool(provider, policy)], clock_margin_s=0.1) as executor:
        seen = executor.call("send_mail", CALL)
        check_the_message(seen)
        assert (seen.attempts, looked(provider)) == (1, 1)
        check_the_double(executor, provider)


def test_every_inner_answer_is_lost_and_the_look_counts(ledger_url: str, provider: Provider) -> None:
    """Variant b with two inner requests that both lose their answers: the look finds both, and no third is sent."""
    provider.arm("ack_lost", mode="hold", times=2)
    policy = Policy(timeout_s=30.0, grace_s=1.0, attempts_max=3)
    with Executor(ledger_url, tools=[mail_tool(provider, policy, BOTH_LOST)], clock_margin_s=0.1) as executor:
        seen = executor.call("send_mail", CALL)
        check_the_message(seen)
        assert (seen.attempts, seen.proof, looked(provider)) == (1, Proof.FOUND, 1)
        assert story(executor, seen.effect_id) == [("begun", 1), ("lost", 1), ("found", 0)]
        check_the_double(executor, provider)
