"""C04: a failed attempt's row was deleted, and the retry got a new key (medusajs/medusa #16292).

There is no look; the provider de-duplicates by the key that it receives, and the tool is declared so.
"""

from __future__ import annotations

from typing import Any, Literal

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.processes import playing
from cases.scene import details, incidents, looked, post, sent, story, until_free
from provider import Provider

from counterfoil import Effect, Executor, KeyPolicy, Policy, Tool, tool

CALL = {"payment": "pay-1", "amount": 70}
KEYS = KeyPolicy(retention_s=600.0, concurrent=True)


def capture_tool(provider: Provider, *, attempts_max: int = 1) -> Tool[..., Any]:
    policy = Policy(
        timeout_s=20.0, grace_s=0.2, patience_s=2.0, wait_s=0.05, attempts_max=attempts_max, key_policy=KEYS
    )

    @tool(key=("payment",), policy=policy)
    def capture(effect: Effect, payment: str, amount: int) -> dict[str, str]:
        """Capture an authorised payment once."""
        return post(provider, effect, {"payment": payment, "amount": amount}, key=effect.provider_key)

    return capture


def opened(ledger: str, provider: Provider, **settings: int) -> Executor:
    return Executor(ledger, tools=[capture_tool(provider, **settings)], clock_margin_s=0.1)


def captured(ledger: str, provider: str) -> dict[str, Any]:
    """The play: the retry of another process."""
    with opened(ledger, Provider.at(provider)) as executor:
        return executor.call("capture", CALL, call_id="call_2").as_dict()


def check_the_end(executor: Executor, effect_id: str | None, provider: Provider) -> None:
    """One effect and one key over both attempts, of which the failed one is kept."""
    assert story(executor, effect_id) == [("begun", 1), ("lost", 1), ("begun", 2), ("returned", 2)]
    begun = details(executor, effect_id, "begun")
    assert begun[1]["permission"] == "same_key"
    (effect,) = executor.audit.effects()
    assert effect.id == effect_id
    assert [one["provider_key"] for one in begun] == [effect.provider_key] * 2
    assert effect.provider_keys == (effect.provider_key,)
    assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == 1
    assert [request["key"] for request in sent(provider)] == [effect.provider_key] * 2
    assert looked(provider) == 0


@pytest.mark.parametrize("where", ["same process", "new process", "new turn"])
def test_the_retry_goes_out_under_the_same_key(
    ledger_url: str, provider: Provider, where: Literal["same process", "new process", "new turn"]
) -> None:
    """The first call ends unknown; the retry is sent under the very same key, so there is one effect, and applied."""
    provider.dedupe(600.0)
    provider.arm("ack_lost")
    with opened(ledger_url, provider) as executor:
        first = executor.call("capture", CALL, call_id="call_1", turn=1)
        assert_unknown(first)
        assert story(executor, first.effect_id) == [("begun", 1), ("lost", 1)]
        until_free(executor)
        if where == "new process":
            with playing(captured, ledger=ledger_url, provider=provider.url) as child:
                told = child.result()
            assert (told["verdict"], told["code"], told["effect_id"]) == ("effect_applied", "ok", first.effect_id)
            assert told["value"] == {"payment": provider.effects()[0]["id"]}
        else:
            turn = {"call_id": "call_9", "turn": 2} if where == "new turn" else {"call_id": "call_1", "turn": 1}
            seen = executor.call("capture", CALL, **turn)  # type: ignore[arg-type]
            assert_applied(seen, code="ok")
            assert seen.effect_id == first.effect_id
            assert seen.value == {"payment": provider.effects()[0]["id"]}
        check_the_end(executor, first.effect_id, provider)


def test_one_call_may_send_it_again_by_itself(ledger_url: str, provider: Provider) -> None:
    """With more than one attempt allowed, the call itself sends the same key again, and ends applied."""
    provider.dedupe(600.0)
    provider.arm("ack_lost")
    with opened(ledger_url, provider, attempts_max=3) as executor:
        seen = executor.call("capture", CALL)
        assert_applied(seen, code="ok")
        check_the_end(executor, seen.effect_id, provider)
