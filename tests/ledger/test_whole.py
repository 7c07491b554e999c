"""A change as one statement, on PostgreSQL: what it writes, and what it must not write."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa
from changing import One
from postgres import PostgresServer

from counterfoil.changes import Applied, Change, Declined
from counterfoil.clock import ManualClock
from counterfoil.guard import Asks
from counterfoil.ledger.batch import Batch
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.whole import AT_ONCE_US
from counterfoil.ledger.writer import Fell

PAY = Asks(tenant="", tool="pay", task="t", turn=1, similar=b"s" * 32)


@pytest.fixture
def served(postgres_server: PostgresServer, postgres_template: str, clock: ManualClock) -> Iterator[Ledger]:
    """A ledger on PostgreSQL."""
    name = postgres_server.create(template=postgres_template)
    engine = open_engine(postgres_server.url(name))
    yield Ledger(engine, clock=clock, grouped=True)
    engine.dispose()
    postgres_server.drop(name)


def written(ledger: Ledger) -> tuple[int, int]:
    """How many effects and entries there are."""
    asked = sa.text("SELECT (SELECT count(*) FROM effects), (SELECT count(*) FROM entries)")
    with ledger.engine.connect() as connection:
        effects, entries = connection.execute(asked).one()
    return effects, entries


def wait_for_a_lock(ledger: Ledger) -> None:
    """Until somebody waits for another's transaction."""
    asked = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
    until = time.monotonic() + 5
    with ledger.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.execute(asked).scalar_one():
            assert time.monotonic() < until
            threading.Event().wait(0.005)


@pytest.mark.parametrize("queued", [False, True])
def test_a_begin_that_waited_for_anothers_heeds_what_came_meanwhile(served: Ledger, queued: bool) -> None:
    """Another's begin of the same effect is under way and comes to nothing; the tool was paused while this one waited
    for it. Paused it begins nothing, whether it is alone or alone in the queue."""
    one = One(served)
    begin = one.begin(asks=PAY)

    def begins() -> Applied | Declined:
        return (
            served.concluded(begin, served._apply_together(lambda: [begin], 5.0)[0]) if queued else served.change(begin)
        )

    with ThreadPoolExecutor(1) as threads:
        with served.engine.connect() as connection, connection.begin() as under_way:
            assert isinstance(Batch(connection, served.times).one(one.begin(asks=PAY)), Applied)
            answer = threads.submit(begins)
            wait_for_a_lock(served)
            served.guards.pause("pay", "", by="Ada", why="too many doubles")
            threading.Event().wait(2 * AT_ONCE_US / 1e6)  # the server's clock, which cannot be set
            under_way.rollback()
        refused = answer.result()
    assert isinstance(refused, Declined)
    assert refused.blocked is not None
    assert refused.blocked.code == "paused"
    assert written(served) == (0, 0)


@pytest.mark.parametrize("queued", [False, True])
def test_a_begin_that_a_guard_refuses_leaves_neither_row_nor_entry(served: Ledger, queued: bool) -> None:
    """Row and entry are written before the guards are heard: what they refuse is rolled back with both."""
    served.guards.pause("pay", "", by="Ada", why="too many doubles")
    begin = One(served).begin(asks=PAY)
    if queued:
        [fell] = served._apply_together(lambda: [begin], 5.0)
        assert isinstance(fell, Fell)
        assert not fell.in_doubt
    assert isinstance(served.change(begin), Declined)
    assert written(served) == (0, 0)


def test_what_is_there_already_gets_no_second_entry(served: Ledger) -> None:
    """The same begin again, and another's of the same effect, write neither a row nor an entry."""
    one = One(served)
    begin = one.begin(asks=PAY)
    assert isinstance(served.change(begin), Applied)
    again: Change
    for again in (begin, one.begin(asks=PAY, claim_id="another")):
        served.change(again)
    assert written(served) == (1, 1)


def test_a_settle_of_a_row_that_moved_on_writes_no_entry_of_its_own_accord(served: Ledger) -> None:
    """A settle brings the row as it was; it was pushed meanwhile. It is read anew and written once."""
    one = One(served)
    row = one.begun()
    one.apply(one.push())
    answer = served.change(replace(one.returned(), row=row))
    assert isinstance(answer, Applied)
    assert written(served) == (1, 3), "begun, pushed, returned"
    assert one.row.version == 3


def test_the_guards_one_reading_hears_all_three_tables(served: Ledger) -> None:
    """What is counted for the call, for its tool and for its task, and the breaker, are what `admit` judges by; of
    another task, turn or tool it hears nothing."""
    with served.engine.begin() as connection:
        for task, turn, tool, similar, wrong in (
            ("t", 1, "pay", PAY.similar, 1), ("t", 1, "pay", b"", 2), ("t", 2, "pay", PAY.similar, 40),
            ("u", 1, "pay", PAY.similar, 50), ("t", 1, "book", PAY.similar, 60),
        ):  # fmt: skip
            connection.execute(
                sa.text(
                    'INSERT INTO repeats (tenant, task, turn, tool, "similar", wrong, passing, same, blocked, at) '
                    "VALUES ('', :task, :turn, :tool, :similar, :wrong, 0, 0, 0, 0)"
                ),
                {"task": task, "turn": turn, "tool": tool, "similar": similar, "wrong": wrong},
            )
        connection.execute(sa.text("INSERT INTO tools (tenant, tool, failures) VALUES ('', 'pay', 3), ('x', 'pay', 9)"))
    answer = served.change(One(served).begin(asks=PAY))
    assert isinstance(answer, Applied)
    assert answer.admitted is not None
    assert answer.admitted.repeats.wrong == 1
    assert answer.admitted.circuit.failures == 3


def test_a_role_that_may_not_read_the_entries_may_begin_and_settle(
    postgres_server: PostgresServer, postgres_template: str
) -> None:
    """Who writes the ledger needs to insert entries, not to read them."""
    name = postgres_server.create(template=postgres_template)
    owner = sa.create_engine(postgres_server.url(name))
    with owner.begin() as connection:
        connection.execute(sa.text("CREATE ROLE writer LOGIN"))
        connection.execute(sa.text("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer"))
        connection.execute(sa.text("REVOKE SELECT ON entries FROM writer"))
    engine = open_engine(owner.url.set(username="writer").render_as_string(hide_password=False))
    try:
        one = One(Ledger(engine))
        answer = one.ledger.change(one.begin(asks=PAY))
        assert isinstance(answer, Applied)
        assert isinstance(one.ledger.change(replace(one.returned(), row=answer.row)), Applied)
    finally:
        engine.dispose()
        with owner.begin() as connection:
            connection.execute(sa.text("DROP OWNED BY writer"))
            connection.execute(sa.text("DROP ROLE writer"))
        owner.dispose()
        postgres_server.drop(name)
