"""Seals close what is committed, whoever writes meanwhile, and an honest ledger is always as it was sealed."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from random import Random

import pytest
import sqlalchemy as sa
from changing import One, permitted, terms
from postgres import PostgresServer

from counterfoil.changes import Change, Undoes
from counterfoil.clock import ManualClock
from counterfoil.effect import Proof, Verdict
from counterfoil.errors import UsageError
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.keeping import prune
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import effects, sealed, seals
from counterfoil.ledger.sealing import Digests, Leaf
from counterfoil.ledger.seals import EveryMinute, last_seal, seal
from counterfoil.ledger.verifying import Finding, Verified, verify

SECRET = b"a secret of a test, long enough"
DAY = 86_400
US = 1_000_000


def honest(ledger: Ledger, clock: ManualClock, many: int, secret: bytes | None, seed: int = 1) -> Verified:
    """Let `many` effects live in every way there is, sealing and pruning in between; what a last verify says."""
    random = Random(seed)  # noqa: S311
    ones = [One(ledger, f"{seed}-{number}") for number in range(many)]
    apply(ledger, [one.begin(terms(audit_s=3 * DAY), fresh=True) for one in ones])
    apply(ledger, [one.push() if random.random() < 0.5 else one.lost() for one in random.sample(ones, many // 3)])
    seal(ledger, secret, batch=97)
    clock.advance(60)
    groups: list[list[One]] = [[], [], [], [], []]
    for one in ones:
        random.choice(groups).append(one)
    returned, refused, absent, unclear, _left = groups
    apply(ledger, [one.returned(reference=one.name) for one in returned])
    apply(ledger, [one.closed(proof=Proof.REJECTED, code="declined") for one in refused])
    ledger.take_due(["pay"], None, limit=many // 4, claim_us=US)
    apply(ledger, [one.look() for one in absent])
    apply(ledger, [one.unclear() for one in unclear])
    assert verify(ledger.engine, [secret] if secret else []).findings == []
    seal(ledger, secret, batch=97)
    apply(ledger, [one.begin(fresh=False) for one in refused[::2]])
    for one in returned[:5]:
        undo = One(ledger, f"undo-{one.name}")
        undo.begun(undoes=Undoes(one.key, "compensation", 1))
        permitted(undo.apply(undo.returned()))
    clock.advance(20 * DAY)
    prune(ledger, 10 * DAY * US, None, by="a person", batch=50)
    apply(ledger, [one.returned(2) for one in refused[::4]])
    seal(ledger, secret, batch=97)
    apply(ledger, [one.begin(fresh=False) for one in refused[1::2]])
    return verify(ledger.engine, [secret] if secret else [])


def apply(ledger: Ledger, changes: Sequence[Change]) -> None:
    for start in range(0, len(changes), 50):
        ledger.apply(changes[start : start + 50])


@pytest.mark.parametrize(("many", "secret"), [(150, None), (850, SECRET)], ids=["plain", "keyed"])
def test_an_honest_ledger_is_as_it_was_sealed(
    ledger: Ledger, clock: ManualClock, many: int, secret: bytes | None
) -> None:
    """Begun, pushed, lost, looked at, settled, taken back, pruned and begun again between seals: no alarm."""
    seen = honest(ledger, clock, many, secret)
    assert seen.findings == []
    assert (seen.effects, seen.pruned > 0, seen.unsealed > 0) == (many + 5, True, True)
    seal(ledger, secret)
    after = verify(ledger.engine, [secret] if secret else [])
    assert (after.findings, after.unsealed) == ([], 0)


@pytest.mark.seals_long
@pytest.mark.timeout(900)
def test_ten_thousand_honest_effects_raise_no_alarm(ledger: Ledger, clock: ManualClock) -> None:
    """The same with 10,000."""
    assert honest(ledger, clock, 10_000, SECRET).findings == []


def test_writers_at_work_raise_no_alarm(ledger_url: str) -> None:
    """While others begin and settle, sealing and verifying go on: each seal closes what is committed, and the last one
    leaves nothing open."""
    engines = [open_engine(ledger_url) for _ in range(4)]
    writers = [Ledger(engine) for engine in engines[1:]]

    def write(ledger: Ledger, name: str) -> None:
        for number in range(40):
            one = One(ledger, f"{name}-{number}")
            one.begun()
            one.apply(one.push())
            permitted(one.apply(one.returned()))

    threads = [threading.Thread(target=write, args=(one, str(place))) for place, one in enumerate(writers)]
    book = Ledger(engines[0])
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        seal(book, SECRET, batch=20, most=2)
        assert verify(book.engine, [SECRET]).findings == []
    seal(book, SECRET)
    seen = verify(book.engine, [SECRET])
    for engine in engines:
        engine.dispose()
    assert (seen.findings, seen.effects, seen.entries, seen.unsealed) == ([], 120, 360, 0)


@pytest.fixture
def server(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Ledger]:
    """A ledger on PostgreSQL, where several transactions are open at once."""
    name = postgres_server.create(template=postgres_template)
    engine = open_engine(postgres_server.url(name))
    yield Ledger(engine)
    engine.dispose()
    postgres_server.drop(name)


def test_what_is_committed_after_a_seal_with_an_earlier_time_is_the_next_ones(server: Ledger) -> None:
    """An effect that is begun in an open transaction, and one that is settled in one, are not sealed half: the next
    seal has them, though their times lie before the seal's."""
    settled, begun, other = One(server, "settled"), One(server, "begun"), One(server, "other")
    settled.begun()
    change, birth = settled.returned(), begun.begin()
    with server.engine.connect() as connection, connection.begin() as transaction:
        server._change(connection, change)
        server._change(connection, birth)
        other.begun()
        (first,) = seal(server, None)
        assert (first.effects, first.entries) == (1, 1)
        transaction.commit()
    assert begun.row.created_at < first.at
    assert verify(server.engine).findings == []
    (second,) = seal(server, None)
    assert (second.effects, second.entries, second.number) == (2, 3, 2)
    assert (verify(server.engine).findings, verify(server.engine).unsealed) == ([], 0)


def test_several_hosts_may_seal_at_once(ledger_url: str) -> None:
    """Their seals are one chain, and each effect is sealed once."""
    engines = [open_engine(ledger_url) for _ in range(3)]
    hosts = [Ledger(engine) for engine in engines]
    apply(hosts[0], [One(hosts[0], str(number)).begin() for number in range(60)])
    threads = [threading.Thread(target=seal, args=(one, SECRET), kwargs={"batch": 7}) for one in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with engines[0].connect() as connection:
        numbers = connection.execute(sa.select(seals.c.number).order_by(seals.c.number)).scalars().all()
        leaves = connection.execute(sa.select(sa.func.count()).select_from(sealed)).scalar()
    seen = verify(engines[0], [SECRET])
    for engine in engines:
        engine.dispose()
    assert (list(numbers), leaves) == (list(range(1, len(numbers) + 1)), 60)
    assert (seen.findings, seen.unsealed) == ([], 0)


def test_nothing_new_makes_no_seal(ledger: Ledger) -> None:
    """A seal is made only where there is something to close; the newest one can be asked for."""
    assert (seal(ledger, None), last_seal(ledger)) == ([], None)
    One(ledger).begun()
    (made,) = seal(ledger, None)
    assert seal(ledger, None) == []
    assert last_seal(ledger) == made


# ---------------------------------------------------------------- secrets and roots


def test_a_kept_root_shows_a_chain_that_was_made_anew(ledger: Ledger) -> None:
    """Who can write to the database makes a new chain over another history; no root that was kept is in it."""
    one = One(ledger)
    one.begun()
    (kept,) = seal(ledger, None)
    assert verify(ledger.engine, root=kept.text).findings == []
    with ledger.engine.begin() as connection:
        connection.execute(sa.update(effects).values(arguments='{"order":"B"}', sealed_version=0))
        connection.execute(sa.delete(seals))
        connection.execute(sa.delete(sealed))
    seal(ledger, None)
    assert verify(ledger.engine).findings == []
    (found,) = verify(ledger.engine, root=kept.text).findings
    assert found == Finding("seal", "changed", "1", None, "it has not the root that was kept")


def test_who_has_no_secret_cannot_make_the_chain_anew(ledger: Ledger) -> None:
    """A chain that was made anew is not keyed, or by another secret: both are said."""
    One(ledger).begun()
    seal(ledger, SECRET)
    with ledger.engine.begin() as connection:
        connection.execute(sa.update(effects).values(sealed_version=0))
        connection.execute(sa.delete(seals))
        connection.execute(sa.delete(sealed))
    seal(ledger, None)
    (found,) = verify(ledger.engine, [SECRET]).findings
    assert found.remark == "no seal is keyed, and a secret is given"


def test_a_keyed_chain_does_not_go_on_without_a_secret(ledger: Ledger) -> None:
    """Sealing is refused then, nothing is sealed, and a watch leaves it to those who have the secret. Another secret
    may follow: both verify the chain."""
    One(ledger, "one").begun()
    (made,) = seal(ledger, SECRET)
    One(ledger, "two").begun()
    with pytest.raises(UsageError, match=f"secret with the id {made.secret_id}"):
        seal(ledger, None)
    assert EveryMinute(ledger, None).after_round() is None
    assert last_seal(ledger) == made
    seal(ledger, b"another secret, long enough")
    assert verify(ledger.engine, [b"another secret, long enough", SECRET]).findings == []


def test_the_secret_of_a_seal_is_asked_for_by_its_id(ledger: Ledger) -> None:
    """Without it, or with another one, nothing can be said: the id of the right one is."""
    One(ledger).begun()
    (made,) = seal(ledger, SECRET)
    for others in ((), (b"another secret, long enough",)):
        with pytest.raises(UsageError, match=f"secret with the id {made.secret_id}"):
            verify(ledger.engine, others)
    assert verify(ledger.engine, [b"another secret, long enough", SECRET]).findings == []


def test_a_root_is_given_as_it_was_printed(ledger: Ledger) -> None:
    """Anything else is refused before the ledger is read."""
    for text in ("", "7", "7:abc", "x:" + "0" * 64):
        with pytest.raises(UsageError, match="NUMBER:ROOT"):
            verify(ledger.engine, root=text)


@pytest.mark.parametrize(
    ("statement", "remark"),
    [
        ("UPDATE seals SET at = at + 1 WHERE number = 2", "seal 2 was changed"),
        ("DELETE FROM seals WHERE number = 2", "seal 2 was removed"),
        ("UPDATE sealed SET version = version + 1 WHERE seal = 2", "seal 2 was changed"),
        ("DELETE FROM sealed WHERE seal = 2", "seal 2 was changed"),
        ("UPDATE seals SET root = previous WHERE number = 2", "seal 2 was changed"),
    ],
)
def test_a_seal_that_was_tampered_with_is_named(ledger: Ledger, statement: str, remark: str) -> None:
    """The seals themselves are chained: whoever changes or removes one shows it."""
    for number in range(3):
        One(ledger, str(number)).begun()
        seal(ledger, SECRET)
    with ledger.engine.begin() as connection:
        connection.exec_driver_sql(statement)
    assert remark in [one.text.partition(":")[0] for one in verify(ledger.engine, [SECRET]).findings]


def test_format_1_is_what_it_was() -> None:
    """Digests of format 1 never change: what was sealed stays comparable. (Made when it was new.)"""
    entry = {"key": b"\x01" * 32, "seq": 1, "attempt": 1, "event": "begun", "actor": "h", "fence": 1,
             "detail": '{"verdict": "effect_unknown"}', "at": 7}  # fmt: skip
    state = {"key": b"\x01" * 32, "verdict": str(Verdict.NO_EFFECT), "complete": True, "value": None, "look_at": None,
             "sends_until": 1, "earlier_sends_until": 0, "absent_from": None, "boot_id": None, "boot_low": None,
             "boot_high": None, "sealed_version": 0}  # fmt: skip
    made = Digests(None)
    leaf = Leaf(b"\x01" * 32, 1, 1, made.state(state), "[1, 0, null]", made.entry(entry))
    root = made.root({"number": 1, "format": 1}, [made.leaf(leaf)])
    assert (made.entry(entry).hex(), made.state(state).hex(), root.hex()) == GOLDEN
    assert made.state(state | {"complete": 1}) == made.state(state)
    keyed = Digests(SECRET)
    assert (keyed.secret_id, keyed.entry(entry).hex()[:16]) == KEYED


GOLDEN = (
    "08b6744ec5087e8806aea65b5313f2d8405dcc68e906fc4019f4a0acd2deb2cc",
    "02d6649bdcbd432a92ae31f24f4798d6373eb39bd065892cd7a620ffc681b5f1",
    "4276e5981a2a53fd32b96efde006ed7a332e0ff44906b5853e6c6afd5bd1339b",
)
KEYED = ("bc5bb121eb78fb6f", "d1661c7120be901f")
