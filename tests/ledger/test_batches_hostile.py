"""What was found by trying to break changes that go together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa
from changing import SECOND, One, permitted, terms
from postgres import PostgresServer, isolated_database

from counterfoil import AsyncExecutor, tool
from counterfoil.changes import Answer, Applied, Change, Declined
from counterfoil.clock import ManualClock
from counterfoil.effect import Incident, Proof, Verdict
from counterfoil.guard import Asks, Twin
from counterfoil.guard.budget import Budget
from counterfoil.host import SystemHost
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.writer import SWITCH, Fell, Writer


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


def asked_at_once(ledger: Ledger, changes: Sequence[Change]) -> list[Answer]:
    """What comes of changes that are carried out as one batch."""
    carried = ledger._apply_together(lambda: changes, 5.0)
    return [ledger.concluded(change, one) for change, one in zip(changes, carried, strict=True)]


def test_of_look_alikes_that_begin_again_in_one_batch_one_is_let_through(ledger: Ledger) -> None:
    """Three look-alikes were proven to have no effect, and begin again together: as one after the other, only one of
    them is let through, and the others are what they were."""
    ones = [One(ledger, f"alike-{number}") for number in range(3)]
    asks, alike = Asks(tenant="", tool="pay", twin=Twin(60 * SECOND)), ones[0].key
    for one in ones:
        one.begun(asks=asks, fingerprint=alike)
        permitted(one.apply(one.closed()))
    answers = asked_at_once(ledger, [one.begin(asks=asks, fingerprint=alike) for one in ones])
    refused = [answer for answer in answers if isinstance(answer, Declined) and answer.blocked is not None]
    assert [answer.blocked.code for answer in refused if answer.blocked] == ["possible_duplicate"] * 2
    assert sorted(one.row.version for one in ones) == [2, 2, 3]


def test_a_refusal_in_a_batch_leaves_no_account_of_its_task(ledger: Ledger) -> None:
    """A begin that comes with the budget of its task is refused for another reason: the task is as if it had not been
    asked for, so that another budget may still be given to it. Its neighbour's task has its account."""
    asks = Asks(tenant="", tool="pay", task="first", budget=Budget(calls_per_task=3), twin=Twin(60 * SECOND))
    ones = [One(ledger, f"alike-{number}") for number in range(3)]
    ones[0].begun(asks=asks, fingerprint=ones[0].key)
    begins = [one.begin(asks=replace(asks, task=one.name), fingerprint=one.key) for one in ones[1:]]
    answers = asked_at_once(ledger, [replace(begins[0], fingerprint=ones[0].key), begins[1]])
    assert [isinstance(answer, Applied) for answer in answers] == [False, True]
    assert ledger.guards.account("", "alike-1").budget is None
    assert ledger.guards.account("", "alike-2").calls == 1
    assert ledger.guards.declare("", "alike-1", Budget(calls_per_task=5)).budget == Budget(calls_per_task=5)


@pytest.mark.parametrize("level", ["read committed", "repeatable read", "serializable"])
def test_of_look_alikes_at_the_same_moment_one_is_let_through(
    postgres_server: PostgresServer, postgres_template: str, level: str
) -> None:
    """Two hosts begin look-alikes at once, by whatever isolation the database has by default: the second waits for the
    first, and sees it."""
    with isolated_database(postgres_server, postgres_template, level) as url:
        ledger = Ledger(open_engine(url))
        asks, go = Asks(tenant="", tool="pay", twin=Twin(60 * SECOND)), threading.Barrier(2)

        def begin(change: Change) -> bool:
            go.wait()
            return isinstance(ledger.apply([change])[0], Applied)

        with ThreadPoolExecutor(2) as threads:
            for number in range(20):
                ones = [One(ledger, f"{number}-{each}") for each in range(2)]
                begins = [one.begin(asks=asks, fingerprint=ones[0].key) for one in ones]
                assert sorted(threads.map(begin, begins)) == [False, True]
        ledger.engine.dispose()


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


def test_a_coroutine_whose_shared_reading_fell_reads_by_itself(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is raised in the thread that reads for many is nobody's answer: a coroutine reads alone, and its call goes
    on."""
    monkeypatch.setenv(SWITCH, "on")  # whatever the others are run with

    @tool(key=("order",))
    async def pay(order: str) -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        return order

    fallen: list[str] = []

    def fall(_connection: sa.Connection, _cursor: object, statement: str, *_: object) -> None:
        if threading.current_thread().name == "counterfoil-reader" and not fallen:
            fallen.append(statement)
            raise SystemExit

    async def main() -> str:
        async with AsyncExecutor(open_engine(ledger_url), [pay]) as executor:
            sa.event.listen(executor._engine, "before_cursor_execute", fall)
            try:
                return (await executor.call("pay", {"order": "A"})).code
            finally:
                executor._engine.dispose()

    assert (asyncio.run(main()), len(fallen)) == ("ok", 1)
