"""C11, the control: a failure before any byte left may be retried at once (urllib3/urllib3 #260).

The failures are real: a closed port, a name that does not resolve, a peer that speaks no TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from cases.messages import assert_applied
from cases.scene import details, find, incidents, looked, sent, story
from failure.failure_faults import LOOPBACK, Server, closed_port
from provider import Provider

from counterfoil import Effect, Executor, Policy, Proof, Tool, tool

FAULTS = ("refused", "dns", "tls")
POLICY = Policy(timeout_s=5.0, grace_s=60.0, attempts_max=3, wait_s=0.01)


@pytest.fixture
def no_tls() -> Iterator[Server]:
    server = Server("no_tls")
    yield server
    server.close()


@pytest.fixture(params=FAULTS)
def nowhere(request: pytest.FixtureRequest, no_tls: Server) -> Iterator[str]:
    """A URL at which nobody can be told anything."""
    with closed_port() as port:
        yield {
            "refused": f"http://{LOOPBACK}:{port}",
            "dns": "http://nobody.invalid",
            "tls": f"https://{LOOPBACK}:{no_tls.port}",
        }[request.param]


def tool_with_bad_tries(provider: Provider, nowhere: str, keys: list[str]) -> Tool[..., Any]:
    """Its tries 1 and 2 go nowhere, its third one to the provider."""

    @tool(key=("order",), sends="once", policy=POLICY)
    def create_payment(effect: Effect, order: str, amount: int) -> dict[str, str]:
        """Pay one order. Use it when the customer has confirmed the amount."""
        keys.append(effect.provider_key)
        body = {"reference": effect.id, "key": effect.provider_key, "body": {"order": order, "amount": amount}}
        url = nowhere if effect.attempt <= 2 else provider.url
        with httpx.Client(trust_env=False, follow_redirects=False, timeout=effect.remaining_s) as client:
            answer = client.post(f"{url}/effects", json=body).raise_for_status()
        effect.reference = answer.json()["id"]
        return {"payment": answer.json()["id"]}

    create_payment.postcondition(lambda effect: find(provider, effect))
    return create_payment


def test_two_harmless_failures_and_a_plain_success(ledger_url: str, provider: Provider, nowhere: str) -> None:
    """Two attempts end as never sent, the third one is applied: one effect, one key, and no look was needed."""
    keys: list[str] = []
    tools = [tool_with_bad_tries(provider, nowhere, keys)]
    with Executor(ledger_url, tools=tools, clock_margin_s=0.1) as executor:
        seen = executor.call("create_payment", {"order": "A-1", "amount": 500})
        assert_applied(seen, code="ok")
        assert (seen.proof, seen.attempts) == (Proof.RETURNED, 3)
        assert seen.value == {"payment": provider.effects()[0]["id"]}
        assert seen.reason == "It is done.", "the model need not hear of the two harmless failures"

        assert story(executor, seen.effect_id) == [
            ("begun", 1), ("closed", 1), ("begun", 2), ("closed", 2), ("begun", 3), ("returned", 3),
        ]  # fmt: skip
        closed = details(executor, seen.effect_id, "closed")
        assert [(one["verdict"], one["proof"]) for one in closed] == [("no_effect", Proof.NEVER_SENT)] * 2
        begun = details(executor, seen.effect_id, "begun")
        assert [one["permission"] for one in begun] == ["new", Proof.NEVER_SENT, Proof.NEVER_SENT]
        assert [one["provider_key"] for one in begun] == keys == [keys[0]] * 3
        assert [row.id for row in executor.audit.effects()] == [seen.effect_id]
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
    assert sent(provider)[0]["key"] == keys[0]
    assert looked(provider) == 0
