"""What was found by trying to break changes that go together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from changing import SECOND, One, permitted, terms

from counterfoil.changes import Applied, Change
from counterfoil.clock import ManualClock
from counterfoil.effect import Incident, Proof, Verdict
from counterfoil.host import SystemHost
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.writer import Fell, Writer


@pytest.mark.parametrize("brings_row", [False, True])
@pytest.mark.parametrize("among", [0, 3])
def test_a_refusal_speaks_for_no_earlier_attempt_that_was_pushed_meanwhile(
    ledger: Ledger, clock: ManualClock, brings_row: bool, among: int
) -> None:
    """An earlier function still runs, and is pushed after the present attempt began and before that one's last possible
    send, so that no last possible send moves on: a refusal that speaks for the key closes its own attempt alone."""
    one, more = One(ledger), [One(ledger, f"more-{number}") for number in range(among)]
    again = terms(timeout_s=10, grace_s=1, retention_s=86_400, concurrent=True)
    one.begun(again)
    clock.advance(10)
    one.apply(one.push())
    clock.advance(2.5)
    row = one.begun(replace(again, timeout_us=30 * SECOND))
    assert row.attempts == 2
    clock.advance(1)
    one.apply(one.push(1, noted=True))
    clock.advance(3)
    refused = one.closed(2, Proof.REJECTED, status=402, speaks_for_key=True, row=row if brings_row else None)
    begins = [each.begun() for each in more]
    settles = [replace(each.returned(), row=begun) for each, begun in zip(more, begins, strict=True)]
    for answer in ledger.apply([*settles, refused]):
        permitted(answer)
    assert one.row.verdict is Verdict.EFFECT_UNKNOWN
    assert one.row.open_attempts == 1


class Exits(BaseException):
    """What is no `Exception`."""


def test_who_serves_others_outlives_whatever_is_raised() -> None:
    """What is no `Exception` falls into a batch that may have counted: nobody waits for ever, each does its part for
    itself in doubt, and the next is served."""
    goes_on, raised = threading.Event(), list[int]()

    def alone(question: int) -> int:
        goes_on.wait()
        return question

    def together(waiting: Callable[[], Sequence[int]]) -> Sequence[int]:
        goes_on.wait()
        if not raised:
            raised.extend(waiting())
            raise Exits
        return waiting()

    writer = Writer(SystemHost(), "exits", key=None, alone=alone, together=together, direct=1)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(writer.ask, 0)
        while not writer._direct:
            pass
        second = threads.submit(writer.ask, 1)
        while writer.waiting < 1:
            pass
        goes_on.set()
        fell = second.result(timeout=5)
        assert isinstance(fell, Fell)
        assert fell.in_doubt
        assert (first.result(), writer.ask(5)) == (0, 5)
    writer.close()


@pytest.mark.parametrize("by", ["a thread", "a loop", "itself"])
def test_who_is_told_of_a_batch_may_wait_for_the_ledger(ledger_url: str, clock: ManualClock, by: str) -> None:
    """Somebody is told of an incident in the thread that serves the queue, and waits there for another change, which
    has to wait in the queue: it is made, and so is all else."""
    engine = open_engine(ledger_url)
    made: list[object] = []

    async def in_loop(ledger: Ledger, change: Change) -> object:
        return await asyncio.wait_for(ledger.change_soon(change, asyncio.get_running_loop()), 5)

    def told(_: Incident) -> None:
        change = other.begin()
        match by:
            case "a thread":
                with ThreadPoolExecutor(1) as thread:
                    made.append(thread.submit(asyncio.run, in_loop(ledger, change)).result(5))
            case "a loop":
                made.append(asyncio.run(in_loop(ledger, change)))
            case _:
                made.append(ledger.change(change))

    ledger = Ledger(engine, clock=clock, on_incident=told)
    one, other, third = (One(ledger, name) for name in ("one", "other", "third"))
    one.begun()
    permitted(one.apply(one.closed()))
    late = asyncio.run(in_loop(ledger, one.returned()))
    assert isinstance(late, Applied)
    assert [permitted(answer).attempts for answer in made] == [1]  # type: ignore[arg-type]
    assert isinstance(asyncio.run(in_loop(ledger, third.begin())), Applied)
    ledger.close()
    engine.dispose()
