"""A doubt that is left becomes one incident, however many hosts review; hosts do not wait for each other's rows."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import sqlalchemy as sa
from changing import SECOND, One, terms

from counterfoil.clock import ManualClock
from counterfoil.effect import Incident
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import effects, incidents

HOSTS = 4


@pytest.fixture
def hosts(ledger_url: str, clock: ManualClock) -> Iterator[list[Ledger]]:
    """The same ledger as several hosts have it open."""
    engines = [open_engine(ledger_url) for _ in range(HOSTS)]
    yield [Ledger(engine, clock=clock) for engine in engines]
    for engine in engines:
        engine.dispose()


def test_each_doubt_is_raised_once_by_all_hosts_together(hosts: list[Ledger], clock: ManualClock) -> None:
    """Hosts that review at the same moment raise each doubt once between them, and each is told of what it raised."""
    for number in range(30):
        One(hosts[0], str(number)).begun(terms(review_s=60))
    clock.advance(61)
    together = Barrier(HOSTS)

    def review(ledger: Ledger) -> int:
        together.wait()
        return sum(ledger.review("", limit=7) for _ in range(8))

    with ThreadPoolExecutor(HOSTS) as pool:
        raised = list(pool.map(review, hosts))
    with hosts[0].engine.connect() as connection:
        kinds = connection.execute(sa.select(incidents.c.kind, sa.func.count()).group_by(incidents.c.kind)).all()
    assert sum(raised) == 30
    assert [tuple(kind) for kind in kinds] == [("doubt_left", 30)]


def test_a_doubt_that_begins_anew_may_be_raised_anew(ledger: Ledger, clock: ManualClock) -> None:
    """The incident belongs to one doubt: one that was settled and is in doubt again is another matter."""
    one = One(ledger)
    for attempt in (1, 2):
        one.begun(terms(review_s=60))
        clock.advance(61)
        assert (ledger.review(""), ledger.review("")) == (1, 0)
        one.apply(one.closed(attempt))
        clock.advance(1)


def test_the_incident_says_how_long_how_often_and_why(ledger_url: str, clock: ManualClock) -> None:
    """Of a doubt that looks left: its age, its looks, the last reason; of one that nobody looked at, that."""
    told: list[Incident] = []
    engine = open_engine(ledger_url)
    ledger = Ledger(engine, clock=clock, on_incident=told.append)
    one, other = One(ledger, "one"), One(ledger, "other")
    one.begun(terms(review_s=60))
    other.begun(terms(review_s=60))
    one.apply(one.unclear())
    clock.advance(61)
    assert ledger.review("") == 2
    details = {incident.effect_id: incident.detail for incident in told}
    assert details == {
        one.row.id: {"attempts": 1, "looks": 1, "unknown_s": 61, "reason": "500"},
        other.row.id: {"attempts": 1, "looks": 0, "unknown_s": 61, "reason": "nobody has looked"},
    }
    engine.dispose()


def test_what_another_host_is_taking_is_left_to_it(
    postgres_server: object, request: pytest.FixtureRequest, clock: ManualClock
) -> None:
    """On PostgreSQL nobody waits for a row that another transaction holds: the others are taken at once."""
    server = request.getfixturevalue("postgres_server")
    name = server.create(template=request.getfixturevalue("postgres_template"))
    engine = open_engine(server.url(name))
    ledger = Ledger(engine, clock=clock)
    known = [One(ledger, str(number)) for number in range(3)]
    for one in known:
        one.begun(terms(review_s=60))
    clock.advance(61)
    with engine.begin() as connection:
        connection.execute(sa.select(effects.c.key).where(effects.c.key == known[0].key).with_for_update())
        taken = ledger.take_due(["pay"], "", limit=10, claim_us=SECOND)
        assert ledger.review("") == 2
    assert {row.key for row in taken} == {one.key for one in known[1:]}
    engine.dispose()
    server.drop(name)
