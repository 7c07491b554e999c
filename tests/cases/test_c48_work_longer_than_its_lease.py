"""C48: a lease shorter than the work, and a new copy every five minutes (https://github.com/dimagi/open-chat-studio/pull/4084).

A task that ran longer than the broker's visibility timeout was delivered again and again while the first was alive.
Here a lease is never shorter than the deadline, and there is no heartbeat: a redelivery within it hears that the work
is in progress, a later one looks.
"""

from __future__ import annotations

import ctypes
import fcntl
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from cases.messages import assert_applied, assert_unknown
from cases.processes import Child, hear, playing, say
from cases.scene import details, find, incidents, named, post, sent, story, until, until_free
from provider import Provider
from races.gate import locked

from counterfoil import Effect, Executor, Observation, Policy, Row, Tool, tool

CALL = {"job": "nightly"}
MARGIN_S = 0.1
LONG_S, SHORT_S = 60.0, 0.8
REDELIVERIES = 4


def job_tool(
    provider: Provider, timeout_s: float, held: str = "", gate: str = "", patience_s: float = 0.02
) -> Tool[..., Any]:
    """`held`: "before" or "after" its request it holds the interpreter's lock until the file `gate` is unlocked."""
    policy = Policy(timeout_s=timeout_s, grace_s=0.3, patience_s=patience_s, wait_s=0.1)

    @tool(key=("job",), sends="marked", policy=policy)
    def run_job(effect: Effect, job: str) -> dict[str, str]:
        """Run a job once."""
        if held == "before":
            starve(gate)
        with effect.sending():
            done = post(provider, effect, {"job": job}, timeout_s=20.0)
        if held == "after":
            starve(gate)
        return done

    run_job.postcondition(lambda effect: find(provider, effect))
    return run_job


def starve(gate: str) -> None:
    """Stand still in C code that keeps the interpreter's lock: no other thread of this process can run."""
    with Path(gate).open("w") as file:
        say("starving")
        ctypes.PyDLL(None).flock(file.fileno(), fcntl.LOCK_EX)


def worker(ledger: str, provider: str, timeout_s: float, held: str, gate: str) -> Any:
    """The play: the first delivery. After its call it stays alive until the test says so."""
    tools = [job_tool(Provider.at(provider), timeout_s, held, gate)]
    with Executor(ledger, tools, clock_margin_s=MARGIN_S) as executor:
        say(executor.call("run_job", CALL).as_dict())
        hear()
        return "ended"


def first_delivery(ledger: str, provider: Provider, timeout_s: float, held: str = "", gate: str = "") -> Any:
    return playing(worker, ledger=ledger, provider=provider.url, timeout_s=timeout_s, held=held, gate=gate)


def redelivered(ledger: str, provider: Provider, timeout_s: float, number: int) -> tuple[Observation, Row]:
    """One more delivery, to a worker of its own."""
    with Executor(ledger, [job_tool(provider, timeout_s)], clock_margin_s=MARGIN_S) as executor:
        seen = executor.call("run_job", CALL, call_id=f"delivery-{number}")
        return seen, executor.audit.effect(named(seen.effect_id))


def ended(child: Child) -> Any:
    """What the first delivery was told; afterwards its process ends."""
    told = child.heard()
    child.tell("end")
    assert child.result() == "ended"
    return told


def test_redeliveries_within_the_lease(ledger_url: str, provider: Provider) -> None:
    """Each redelivery hears that it is in progress and is counted; the lease covers the deadline, and no setting makes
    it shorter. When the work is done, a redelivery is a replay."""
    provider.arm("slow")
    with first_delivery(ledger_url, provider, timeout_s=LONG_S) as child:
        provider.await_parked()
        for number in range(REDELIVERIES):
            seen, row = redelivered(ledger_url, provider, LONG_S, number)
            assert_unknown(seen, code="in_progress")
            assert (row.lease_until - row.begun_at) / 1_000_000 == pytest.approx(LONG_S + MARGIN_S, abs=0.001)
        provider.release()
        assert ended(child)["code"] == "ok"
    seen, _ = redelivered(ledger_url, provider, LONG_S, REDELIVERIES)
    assert_applied(seen, code="replayed")
    assert not [item.name for item in fields(Policy) if "lease" in item.name or "heartbeat" in item.name]
    with Executor(ledger_url) as executor:
        assert story(executor, seen.effect_id) == [("begun", 1), ("returned", 1)]
        counted = [(one["call_id"], one["code"]) for one in executor.audit.sightings(named(seen.effect_id))]
        refused = [(f"delivery-{number}", "in_progress") for number in range(REDELIVERIES)]
        assert counted == [*refused, (f"delivery-{REDELIVERIES}", "replayed")]
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


def test_redeliveries_after_the_lease(ledger_url: str, provider: Provider) -> None:
    """The work outlives its deadline: redeliveries look, find nothing, and hear unknown for as long as it lives, since
    the last moment at which it may send moves on with it. Then its own end counts."""
    provider.arm("slow")
    with first_delivery(ledger_url, provider, timeout_s=SHORT_S) as child, Executor(ledger_url) as executor:
        provider.await_parked()
        until_free(executor)
        (row,) = executor.audit.effects()
        effect_id = row.id
        moved = [row.sends_until]
        for number in range(REDELIVERIES):
            seen, row = redelivered(ledger_url, provider, SHORT_S, number)
            assert_unknown(seen)
            until(lambda: executor.audit.effect(effect_id).sends_until > moved[-1], "the last possible send moves on")
            moved.append(executor.audit.effect(effect_id).sends_until)
        assert (row.attempts, len(sent(provider))) == (1, 1)
        provider.release()
        until(lambda: ("returned", 1) in story(executor, effect_id), "the end of the work is recorded")
        assert ended(child)["code"] == "effect_unknown"
        seen, _ = redelivered(ledger_url, provider, SHORT_S, REDELIVERIES)
        assert_applied(seen, code="replayed")
        refused = [one for one in executor.audit.sightings(effect_id) if str(one["call_id"]).startswith("delivery-")]
        assert [one["code"] for one in refused] == ["effect_unknown"] * REDELIVERIES + ["replayed"]
        assert len(details(executor, effect_id, "begun")) == 1
        assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1


@pytest.mark.parametrize("held", ["before", "after"])
def test_a_worker_whose_threads_are_starved(ledger_url: str, provider: Provider, tmp_path: Path, held: str) -> None:
    """The tool holds the interpreter's lock, so nothing in its process can say that it lives. Another takes over: what
    was sent it finds; what was not it sends after proven absence, and then the first one may not send any more."""
    with ExitStack() as lock:
        gate = lock.enter_context(locked(tmp_path / "gate"))
        delivery = first_delivery(ledger_url, provider, SHORT_S, held, str(gate))
        with (
            delivery as child,
            Executor(ledger_url, [job_tool(provider, 20.0, patience_s=10.0)], clock_margin_s=MARGIN_S) as executor,
        ):
            assert child.heard() == "starving"
            until_free(executor)
            second = executor.call("run_job", CALL)
            assert_applied(second, code="verified" if held == "after" else "ok")
            lock.close()
            told = ended(child)
            assert (told["verdict"], told["value"]) == ("effect_applied", second.value)
            assert len(details(executor, second.effect_id, "begun")) == (1 if held == "after" else 2)
            (row,) = executor.audit.effects()
            assert (row.verdict, row.count) == ("effect_applied", 1)
            assert incidents(executor) == []
    provider.quiesce()
    assert provider.count() == len(sent(provider)) == 1
