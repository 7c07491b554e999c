"""Several changes in one transaction: each gets its own answer, and none spoils another's."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa
from changing import One, guard, permitted, terms
from cutting import commits
from postgres import PostgresServer

from counterfoil.changes import Answer, Applied, Change, Declined, Undoes
from counterfoil.clock import ManualClock
from counterfoil.effect import Row, Verdict
from counterfoil.errors import LedgerUnavailable
from counterfoil.guard import Asks
from counterfoil.host import SystemHost
from counterfoil.ledger.batch import Apart
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.writer import CROWDED, Fell, Writer

PATIENCE_S = 0.3


@pytest.fixture
def book(ledger_url: str, clock: ManualClock) -> Iterator[Ledger]:
    """A ledger of little patience."""
    engine = open_engine(ledger_url)
    ledger = Ledger(engine, clock=clock, patience_s=PATIENCE_S, grouped=True)
    yield ledger
    ledger.close()
    engine.dispose()


def several(ledger: Ledger, most: int, name: str = "one") -> list[One]:
    return [One(ledger, f"{name}-{number}") for number in range(most)]


def entries(ledger: Ledger) -> dict[bytes, int]:
    """How many entries each effect has."""
    with ledger.engine.connect() as connection:
        found = connection.execute(sa.text("SELECT key, count(*) FROM entries GROUP BY key"))
        return {bytes(key): count for key, count in found}


@pytest.mark.parametrize("poison", ["another has its id", "an id that is too long", "there is no such effect"])
def test_a_change_that_cannot_be_written_harms_no_other(book: Ledger, poison: str) -> None:
    """Of 50 changes that go together one cannot be made: the other 49 are, each with its entry, and it is not."""
    there = One(book, "there")
    there.begun()
    ones = several(book, 50)
    changes: list[Change] = [one.begin() for one in ones]
    bad = ones[20]
    match poison:
        case "another has its id":
            changes[20] = bad.begin(id=there.row.id)
        case "an id that is too long":
            changes[20] = bad.begin(id="x" * 65)
        case _:
            changes[20] = bad.lost()
    answers = asked_at_once(book, changes)
    for number, answer in enumerate(answers):
        if number != 20:
            assert isinstance(answer, Applied)
            assert answer.row.version == 1
    counted = entries(book)
    assert all(counted[one.key] == 1 for one in ones if one is not bad)
    match poison:
        case "another has its id":
            assert isinstance(answers[20], LedgerUnavailable)
            assert book.read(bad.key) is None
        case "an id that is too long" if book.engine.dialect.name == "postgresql":
            assert isinstance(answers[20], LedgerUnavailable)
            assert book.read(bad.key) is None
        case "there is no such effect":
            refused = answers[20]
            assert isinstance(refused, Declined)
            assert refused.guard == "no_row"


def asked_at_once(ledger: Ledger, changes: Sequence[Change]) -> list[Answer | LedgerUnavailable]:
    """What comes of changes that are carried out as one batch."""
    answers: list[Answer | LedgerUnavailable] = []
    carried = ledger._apply_together(lambda: changes, PATIENCE_S)
    for change, one in zip(changes, carried, strict=True):
        try:
            answers.append(ledger.concluded(change, one))
        except LedgerUnavailable as refused:
            answers.append(refused)
    return answers


def test_a_begin_that_a_guard_refuses_leaves_nothing_among_others(book: Ledger) -> None:
    """A paused tool's begin is refused; its row and its entry are gone, and its neighbours have begun."""
    book.guards.pause("refund", "", by="a person", why="a bad day")
    ones = [One(book, f"one-{number}", tool="refund" if number == 3 else "pay") for number in range(8)]
    answers = asked_at_once(book, [one.begin(asks=Asks(tenant="", tool=one.tool)) for one in ones])
    refused = answers.pop(3)
    assert isinstance(refused, Declined)
    assert refused.blocked is not None
    assert refused.blocked.code == "paused"
    assert refused.row is None
    assert [permitted(answer).attempts for answer in answers] == [1] * 7  # type: ignore[arg-type]
    assert sorted(entries(book).values()) == [1] * 7


def test_each_of_a_batch_is_judged_by_its_own_row(book: Ledger) -> None:
    """Begins, ends, looks and refusals go together; each row is what its own change alone would have made of it."""
    ones = several(book, 6)
    for one in ones[1:]:
        one.begun()
    changes: list[Change] = [
        ones[0].begin(),
        ones[1].returned(),
        ones[2].closed(),
        ones[3].lost(),
        replace(ones[4].begin(), fresh=True),
        ones[5].found("pi_1"),
    ]
    answers = book.apply(changes)
    assert guard(answers[4]) == "in_progress"
    verdicts = [one.row.verdict for one in ones]
    assert verdicts == [
        Verdict.EFFECT_UNKNOWN,
        Verdict.EFFECT_APPLIED,
        Verdict.NO_EFFECT,
        Verdict.EFFECT_UNKNOWN,
        Verdict.EFFECT_UNKNOWN,
        Verdict.EFFECT_APPLIED,
    ]
    assert [one.row.version for one in ones] == [1, 2, 2, 2, 1, 2]
    assert [entries(book)[one.key] for one in ones] == [1, 2, 2, 2, 1, 2]


# ---------------------------------------------------------------- a settle that brings its row


def test_a_row_that_is_still_the_same_is_not_read_again(book: Ledger) -> None:
    """A settle with the row that was begun writes it without a SELECT."""
    one = One(book)
    row = one.begun()
    settle = replace(one.returned(), row=row)
    asked: list[str] = []
    sa.event.listen(book.engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    assert permitted(one.apply(settle)).verdict is Verdict.EFFECT_APPLIED
    assert not [statement for statement in asked if statement.startswith("SELECT") and "FROM effects" in statement]
    assert one.row.version == 2


def _lost_meanwhile(one: One) -> None:
    one.apply(one.lost())


def _pushed_meanwhile(one: One) -> None:
    one.apply(one.push(noted=True))


def _revoked_meanwhile(one: One) -> None:
    revoke = One(one.ledger, f"revoke of {one.name}", tool="pay.revoke")
    permitted(one.apply(revoke.begin(undoes=Undoes(one.key, "revoke", 1), fingerprint=revoke.key)))


@pytest.mark.parametrize("meanwhile", [_lost_meanwhile, _pushed_meanwhile, _revoked_meanwhile])
@pytest.mark.parametrize("among", [0, 3])
def test_a_row_that_has_changed_is_read_again(
    book: Ledger, clock: ManualClock, meanwhile: Callable[[One], None], among: int
) -> None:
    """A version or a last possible send that has moved on since the begin is seen: what is written is what a settle
    without the row would have written, alone and among others."""
    one, other, more = One(book), One(book, "other"), several(book, among, "more")
    row, _ = one.begun(terms(timeout_s=10, grace_s=20)), other.begun(terms(timeout_s=10, grace_s=20))
    settles: list[Change] = []
    for each in more:
        begun = each.begun()
        settles.append(replace(each.returned(), row=begun))
    clock.advance(30)
    for each in (one, other):
        meanwhile(each)
    later = replace(one.lost(), reason="later")
    answers = book.apply([*settles, replace(later, row=row)])
    assert all(isinstance(answer, Applied) for answer in answers)
    permitted(book.apply([replace(later, key=other.key)])[0])
    told = [_without_names(each.row) for each in (one, other)]
    assert told[0] == told[1]
    assert entries(book)[one.key] == one.row.version
    assert [each.row.version for each in more] == [2] * among


def _without_names(row: Row) -> dict[str, object]:
    names = ("key", "id", "fingerprint", "provider_key", "provider_keys", "revoke_by", "claim_id")
    return {name: content for name, content in vars(row).items() if name not in names}


# ---------------------------------------------------------------- COMMIT


@pytest.mark.parametrize("fate", ["lost before", "lost after"])
def test_a_batch_whose_commit_is_in_doubt_counts_once(book: Ledger, fate: str) -> None:
    """Whether COMMIT counted or not, each change is asked again and is there once."""
    ones = several(book, 5)
    with commits(book.engine, [fate]):
        answers = book.apply([one.begin() for one in ones])
    assert [permitted(answer).version for answer in answers] == [1] * 5
    assert entries(book) == {one.key: 1 for one in ones}


def test_what_a_batch_left_in_doubt_stays_in_doubt(book: Ledger) -> None:
    """COMMIT counted, its reply is lost and the database is gone: nobody is told that nothing was written."""
    ones = several(book, 3)
    changes = [one.begin() for one in ones]
    with commits(book.engine, ["gone"]):
        answers = asked_at_once(book, changes)
    assert [isinstance(one, LedgerUnavailable) and not one.certain for one in answers] == [True] * 3
    assert entries(book) == {one.key: 1 for one in ones}


# ---------------------------------------------------------------- many callers


def test_callers_at_the_same_moment_share_commits_and_hear_after_them(book: Ledger) -> None:
    """50 threads begin at once: there are fewer commits than begins, and whoever is answered finds the row in the
    database by a connection of its own."""
    done: list[str] = []
    sa.event.listen(book.engine, "commit", lambda _: done.append("commit"))
    go = threading.Barrier(50)

    def begin(one: One) -> Row | None:
        change = one.begin()
        go.wait()
        permitted(book.change(change))
        with book.engine.connect() as connection:
            there = connection.execute(sa.text("SELECT count(*) FROM effects WHERE id = :id"), {"id": change.id})
            assert there.scalar_one() == 1
        return book.read(one.key)

    with ThreadPoolExecutor(50) as threads:
        rows = list(threads.map(begin, several(book, 50)))
    assert all(row is not None and row.version == 1 for row in rows)
    assert len(done) < 50


def test_two_begins_of_one_effect_are_never_in_one_batch(book: Ledger) -> None:
    """40 threads begin 4 effects at once: each is begun by one of them, and the others are declined."""
    ones = several(book, 4)
    go = threading.Barrier(40)
    begins = [replace(one.begin(), claim_id=f"mine{number}") for number in range(10) for one in ones]

    def begin(change: Change) -> bool:
        go.wait()
        return isinstance(book.change(change), Applied)

    with ThreadPoolExecutor(40) as threads:
        permits = list(threads.map(begin, begins))
    assert sum(permits) == 4
    assert entries(book) == {one.key: 1 for one in ones}
    with pytest.raises(ValueError, match="one change per key"):
        book.apply([begins[0], begins[4]])


def change_of(one: One, number: int) -> Change:
    """One of the changes that an effect which has begun may see."""
    match number:
        case 0:
            return one.lost()
        case 1:
            return one.unclear()
        case 2:
            return one.push()
        case _:
            return one.returned()


def test_batches_in_any_order_do_not_lock_each_other_out(ledger_url: str, clock: ManualClock) -> None:
    """6 threads settle and look at the same 40 effects in batches of 20 in random order: none of them falls, and a
    server counts no deadlock."""
    engine = open_engine(ledger_url)
    ledger = Ledger(engine, clock=clock)
    ones = several(ledger, 40)
    ledger.apply([one.begin() for one in ones])
    fallen: list[object] = []

    def work(seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311
        for _ in range(8):
            some = chance.sample(ones, 20)
            changes = [change_of(one, chance.randrange(4)) for one in some]
            chance.shuffle(changes)
            fallen.extend(one for one in ledger._apply_together(lambda: changes, 10.0) if isinstance(one, Fell))  # noqa: B023

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))
    assert fallen == []
    counted = entries(ledger)
    assert all(one.row.version == counted[one.key] for one in ones)
    if engine.dialect.name == "postgresql":
        asked = sa.text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        with engine.connect() as connection:
            assert connection.execute(asked).scalar_one() == 0
    engine.dispose()


def test_the_only_row_that_is_read_is_left_out_too(postgres_server: PostgresServer, postgres_template: str) -> None:
    """One settle beside nine begins, of an effect that somebody holds: the begins do not wait for it."""
    name = postgres_server.create(template=postgres_template)
    engine = open_engine(postgres_server.url(name))
    ledger = Ledger(engine, patience_s=PATIENCE_S, grouped=True)
    held = One(ledger, "held")
    held.begun()
    changes: list[Change] = [held.returned(), *(one.begin() for one in several(ledger, 9))]
    with engine.connect() as connection, connection.begin():
        connection.execute(sa.text("SELECT 1 FROM effects WHERE key = :key FOR UPDATE"), {"key": held.key})
        first, *others = ledger._apply_together(lambda: changes, PATIENCE_S)
    assert isinstance(first, Apart)
    assert all(isinstance(one, Applied) for one in others)
    engine.dispose()
    postgres_server.drop(name)


@pytest.mark.parametrize("brings_row", [False, True])
def test_a_row_that_somebody_holds_does_not_hold_up_the_others(
    postgres_server: PostgresServer, postgres_template: str, brings_row: bool
) -> None:
    """Another transaction holds one of ten effects: the other nine are settled while it does, and the one is not."""
    name = postgres_server.create(template=postgres_template)
    engine = open_engine(postgres_server.url(name))
    ledger = Ledger(engine, patience_s=PATIENCE_S)
    ones = several(ledger, 10)
    rows = [one.begun() for one in ones]
    settles = [one.returned() for one in ones]
    if brings_row:
        settles = [replace(settle, row=row) for settle, row in zip(settles, rows, strict=True)]
    with engine.connect() as connection, connection.begin():
        connection.execute(sa.text("SELECT 1 FROM effects WHERE key = :key FOR UPDATE"), {"key": ones[4].key})
        answers = asked_at_once(ledger, settles)
        held = answers.pop(4)
        assert all(isinstance(answer, Applied) for answer in answers)
        assert isinstance(held, LedgerUnavailable)
        assert held.certain
    assert [one.row.version for one in ones] == [2, 2, 2, 2, 1, 2, 2, 2, 2, 2]
    engine.dispose()
    postgres_server.drop(name)


# ---------------------------------------------------------------- the queue


def _doubled(waiting: Callable[[], Sequence[int]]) -> list[int]:
    return [2 * one for one in waiting()]


def test_who_asks_alone_is_served_in_its_own_thread() -> None:
    """Nobody else asks, so there is no other thread."""
    seen: list[int] = []

    def alone(question: int) -> int:
        seen.append(threading.get_ident())
        return 2 * question

    writer = Writer(SystemHost(), "doubling", key=None, alone=alone, together=_doubled, direct=1)
    assert writer.ask(4) == 8
    assert seen == [threading.get_ident()]


def test_a_full_queue_refuses_clearly_and_loses_nobody() -> None:
    """While the ledger stands still as many wait as there are places. The next one is refused at once; those who wait
    are served together when it goes on."""
    goes_on, served = threading.Event(), list[int]()

    def alone(question: int) -> int:
        goes_on.wait()
        return 2 * question

    def together(waiting: Callable[[], Sequence[int]]) -> list[int]:
        goes_on.wait()
        served.append(len(waiting()))
        return _doubled(waiting)

    writer = Writer(SystemHost(), "doubling", key=None, alone=alone, together=together, direct=1, places=3)
    with ThreadPoolExecutor(4) as threads:
        waiting = [threads.submit(writer.ask, number) for number in range(4)]
        while writer.waiting < 3:
            time.sleep(0.001)
        with pytest.raises(LedgerUnavailable, match=CROWDED) as refused:
            writer.ask(9)
        goes_on.set()
        assert [one.result() for one in waiting] == [0, 2, 4, 6]
    assert refused.value.certain
    assert sum(served) == 3
    writer.close()


def test_the_same_key_waits_for_the_next_batch() -> None:
    """Of questions with one key, only one is in a batch; the others come after it, in the order in which they came."""
    goes_on, batches = threading.Event(), list[list[bytes]]()

    def alone(question: bytes) -> bytes:
        goes_on.wait()
        return question

    def together(waiting: Callable[[], Sequence[bytes]]) -> Sequence[bytes]:
        goes_on.wait()
        batches.append(list(waiting()))
        return waiting()

    writer = Writer(SystemHost(), "echo", key=lambda one: one[:1], alone=alone, together=together, direct=1)
    with ThreadPoolExecutor(5) as threads:
        waiting = []
        for place, question in enumerate((b"-", b"a1", b"a2", b"b1", b"a3")):
            waiting.append(threads.submit(writer.ask, question))
            while writer.waiting < place:
                time.sleep(0.001)
        goes_on.set()
        assert [one.result() for one in waiting] == [b"-", b"a1", b"a2", b"b1", b"a3"]
    assert batches == [[b"a1", b"b1"], [b"a2"], [b"a3"]]
    writer.close()


def test_what_a_batch_raises_is_told_to_each_of_it_and_the_next_is_served() -> None:
    """A fault under one batch is its callers' answer; nobody waits for ever, and the queue goes on."""
    goes_on = threading.Event()

    def alone(question: int) -> int:
        goes_on.wait()
        return question

    def together(waiting: Callable[[], Sequence[int]]) -> Sequence[int]:
        goes_on.wait()
        if 1 in waiting():
            raise RuntimeError("a fault")
        return waiting()

    writer = Writer(SystemHost(), "faulty", key=None, alone=alone, together=together, direct=1)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(writer.ask, 0)
        second = threads.submit(writer.ask, 1)
        while writer.waiting < 1:
            time.sleep(0.001)
        goes_on.set()
        with pytest.raises(RuntimeError, match="a fault"):
            second.result()
        assert (first.result(), writer.ask(5)) == (0, 5)
    writer.close()
