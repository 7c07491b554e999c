"""C13: a timeout is read as a failure, and the job is created again (databricks-solutions/ai-dev-kit #80).

The provider works on until the test lets it go on, which is longer than the deadline of 1 s. The scripted model calls
again twice, directly after the timeout.
"""

from __future__ import annotations

from typing import Any

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.scene import details, find, incidents, looked, named, post, sent, story, until
from provider import Provider

from counterfoil import Effect, Executor, ManualClock, Observation, Policy, Proof, SystemClock, Tool, Verdict, tool

CALL = {"name": "nightly"}
HOUR_US = 3_600_000_000


def job_tool(provider: Provider) -> Tool[..., Any]:
    @tool(key=("name",), sends="once", policy=Policy(timeout_s=1.0, grace_s=60.0, patience_s=0.05, wait_s=0.5))
    def create_job(effect: Effect, name: str) -> dict[str, str]:
        """Create a job of this name."""
        return post(provider, effect, {"name": name}, timeout_s=20.0)

    create_job.postcondition(lambda effect: find(provider, effect))
    return create_job


def call_three_times(executor: Executor) -> list[Observation]:
    """The call and two repeats of a model that did not believe the answer; a fresh call id each time."""
    return [executor.call("create_job", CALL, turn=turn, call_id=f"call_{turn}") for turn in (1, 2, 3)]


def check_the_doubt(executor: Executor, provider: Provider, seen: list[Observation]) -> str:
    """All three hear unknown, and one request is under way."""
    for one in seen:
        assert_unknown(one)
        assert "may have been carried out, or may still be" in one.reason
        assert "check_effect" in one.next_action
        assert named(one.effect_id) in one.next_action
        assert one.retry == "check"
        assert one.retry_after_s is not None
        assert one.retry_after_s > 0
    assert len({one.effect_id for one in seen}) == 1
    assert len(sent(provider)) == 1
    assert provider.count() == 0
    return named(seen[0].effect_id)


def check_the_repeats(executor: Executor, effect_id: str) -> None:
    """The ledger knows who asked meanwhile and what they were told; one attempt was made."""
    until(lambda: len(executor.audit.sightings(effect_id)) >= 4, "what replays leave is written behind")
    seen = [(one["call_id"], one["turn"], one["code"]) for one in executor.audit.sightings(effect_id)]
    assert seen[:3] == [
        ("call_1", 1, "effect_unknown"),
        ("call_2", 2, "effect_unknown"),
        ("call_3", 3, "effect_unknown"),
    ]
    assert details(executor, effect_id, "begun") == [
        {
            "verdict": "effect_unknown", "permission": "new", "provider_key": f"{effect_id}-k0",
            "turn": 1, "call_id": "call_1",
        }
    ]  # fmt: skip
    assert incidents(executor) == []


def test_the_answer_comes_after_the_deadline(ledger_url: str, provider: Provider) -> None:
    """The late answer of the one attempt is kept: asked at the end, the job is there with its id, made once."""
    provider.arm("slow")
    with Executor(ledger_url, tools=[job_tool(provider)], clock_margin_s=0.1) as executor:
        effect_id = check_the_doubt(executor, provider, call_three_times(executor))
        provider.release()
        until(lambda: ("returned", 1) in story(executor, effect_id), "the late answer is recorded")
        provider.quiesce()

        job = {"payment": provider.effects()[0]["id"]}
        state = executor.call("check_effect", {"effect_id": effect_id})
        assert_applied(state, code="replayed")
        assert (state.value, state.proof) == (job, Proof.RETURNED)
        last = executor.call("create_job", CALL, turn=4, call_id="call_4")
        assert_applied(last, code="replayed")
        assert last.value == job
        check_the_repeats(executor, effect_id)
        told = [one for one in story(executor, effect_id) if one[0] not in ("looked", "overrun")]
        assert told == [("begun", 1), ("lost", 1), ("returned", 1)]
    assert provider.count() == len(sent(provider)) == 1


def reconcile_an_hour_later(ledger: str, provider: Provider) -> None:
    clock = ManualClock(SystemClock().wall_us() + HOUR_US)
    with Executor(ledger, tools=[job_tool(provider)], clock=clock) as executor:
        done = executor.reconcile()
    assert (done.looked, done.applied, done.unknown) == (1, 1, 0)


@pytest.mark.parametrize("asked_by", ["check_effect", "create_job", "reconcile"])
def test_the_answer_never_comes_and_the_check_succeeds(ledger_url: str, provider: Provider, asked_by: str) -> None:
    """The job is created after the deadline and its answer is lost: whoever looks then finds it, with its id."""
    provider.arm("late", mode="hold")
    with Executor(ledger_url, tools=[job_tool(provider)], clock_margin_s=0.1) as executor:
        effect_id = check_the_doubt(executor, provider, call_three_times(executor))
        looks = looked(provider)
        assert looks >= 3, "each of them looked before it answered"
        provider.release()
        provider.quiesce()

        job = {"payment": provider.effects()[0]["id"]}
        if asked_by == "reconcile":
            reconcile_an_hour_later(ledger_url, provider)
        else:
            arguments = {"effect_id": effect_id} if asked_by == "check_effect" else CALL
            seen = executor.call(asked_by, arguments)
            assert_applied(seen, code="verified")
            assert "before" not in seen.reason, "it was carried out after the call had ended"
        state = executor.call("create_job", CALL, turn=4, call_id="call_4")
        assert_applied(state, code="replayed")
        assert (state.value, state.proof, state.verdict) == (job, Proof.FOUND, Verdict.EFFECT_APPLIED)
        check_the_repeats(executor, effect_id)
        told = [one for one in story(executor, effect_id) if one[0] not in ("looked", "overrun")]
        assert told == [("begun", 1), ("lost", 1), ("found", 0)]
    assert provider.count() == len(sent(provider)) == 1
