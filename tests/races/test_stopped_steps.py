"""A process is stopped (SIGSTOP) at every step of a call, on every tier; others recover meanwhile; then it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from crash.life import Body, Point, Tier, Verb
from crash.nursery import Nursery
from crash.story import BEFORE_BEGIN, closed_port, inside
from crash.truth import Story
from postgres import PostgresServer
from provider import Provider
from psycopg import sql
from races.stops import Meanwhile, Stop, Yard, right

BEGIN = {"Read", "Start", "Attempt", "Request", "Write:SettleReturned"}
LOST = BEGIN | {"Write:SettleLost"}
LOOKED = LOST | {"Ask", "Write:SettleLook"}
REFUSED = {"Read", "Start", "Attempt", "Request", "Write:SettleClosed"}
# Tier and fault, and the steps that the stopped process must have come to.
STEPS: dict[tuple[Tier, str], set[str]] = {
    ("T0", "none"): BEGIN | {"Sight"},
    ("T0", "ack_lost"): LOST - {"Write:SettleReturned"},
    ("T1", "none"): BEGIN,
    ("T1", "ack_lost"): LOOKED - {"Write:SettleReturned"},
    ("T2", "none"): BEGIN | {"Sight"},
    ("T2", "ack_lost"): LOOKED - {"Write:SettleReturned"},
    ("T2", "request_lost"): LOOKED | {"Sleep"},
    ("T2", "refused"): REFUSED,
    ("T3", "none"): BEGIN,
    ("T3", "ack_lost"): LOST | {"Sleep"},
    ("T4", "none"): BEGIN,
    ("T4", "request_lost"): LOST | {"Revocation"},
    ("T5", "none"): {"Read", "Transact", "Request", "Sight"},
}
# Each step is in one of these, which an ordinary run plays at one point of each step.
ORDINARY: set[tuple[Tier, str]] = {("T2", "request_lost"), ("T2", "refused"), ("T4", "request_lost"), ("T5", "none")}
LONG = pytest.mark.long_races
LEVELLED = [("T2", "none"), ("T2", "request_lost"), ("T3", "ack_lost"), ("T5", "none")]
WITHIN = [pytest.param(*one, marks=LONG) for one in (("T1", "none"), ("T2", "ack_lost"), ("T3", "ack_lost"))]
ALL = [pytest.param(*one, id="-".join(one)) for one in STEPS]


@pytest.fixture(params=["sqlite", "postgresql"])
def yard(request: pytest.FixtureRequest, provider: Provider, nursery: Nursery, tmp_path: Path) -> Iterator[Yard]:
    """A provider and a ledger on each database."""
    with closed_port() as port:
        if request.param == "sqlite":
            template: Path = request.getfixturevalue("sqlite_template")
            yard = Yard("", template, provider, nursery, tmp_path, port)
            yield yard
            yard.close()
            return
        server: PostgresServer = request.getfixturevalue("postgres_server")
        name = server.create(template=request.getfixturevalue("postgres_template"))
        if request.param != "postgresql":
            level = sql.SQL("ALTER DATABASE {} SET default_transaction_isolation = {}")
            server.administer(level.format(sql.Identifier(name), sql.Literal(request.param)))
        yard = Yard(server.url(name), None, provider, nursery, tmp_path, port)
        yield yard
        yard.close()
        server.drop(name)


def _stops(
    yard: Yard, tier: Tier, fault: str, meanwhile: Meanwhile, *, body: Body = "blocking", most: int = 1
) -> list[Stop]:
    """One stop for each point outside a transaction that a process passes."""
    calls = 2 if fault == "none" else 1
    points = yard.points(Story(tier, fault, None, body=body), STEPS[tier, fault], most=most, calls=calls)
    points = [point for point in points if not inside(tier, point)]
    assert {"before", "after", "committed"} == {point.moment for point in points}
    looks = tier in ("T1", "T2")
    verbs: tuple[Verb, ...] = ("call", "reconcile") if looks else ("call",)
    return [
        Stop(tier, fault, point, meanwhile, body, "call" if point in BEFORE_BEGIN else verbs[number % len(verbs)])
        for number, point in enumerate(points)
    ]


@pytest.mark.parametrize(("tier", "fault"), sorted(ORDINARY))
def test_a_process_that_stops_once_at_each_step(yard: Yard, tier: Tier, fault: str) -> None:
    """Stopped at each step that a call has, once: others settle its effect, and when it goes on, nothing more comes of
    it, and what it is told is so. (Every other point of a step is played by `-m long_races`.)"""
    stops = {stop.point.step: stop for stop in _stops(yard, tier, fault, "past_grace") if not stop.breaks_grace}
    assert {*stops} >= STEPS[tier, fault] - ({"Request"} if tier == "T5" else set())  # there it is in the transaction
    assert right(yard.play([*stops.values()]))


@LONG
@pytest.mark.parametrize(("tier", "fault"), ALL)
def test_a_process_that_goes_on_when_everything_is_over(yard: Yard, tier: Tier, fault: str) -> None:
    """Stopped at any step until others have settled its effect and every grace is over: when it goes on, nothing more
    comes of it, and what it is told is so. Only a tool that rests on its grace, stopped between the check of its
    deadline and its request, has a second effect: that is its declared condition, and an incident says it."""
    stops = _stops(yard, tier, fault, "past_grace", most=2 if fault == "request_lost" else 1)
    assert right(yard.play(stops))
    assert any(stop.breaks_grace for stop in stops) is (tier == "T2" and fault != "refused")


@LONG
@pytest.mark.parametrize(
    ("tier", "fault", "body"),
    [
        ("T2", "none", "coroutine"),
        ("T5", "none", "blocking_in_loop"),
        pytest.param("T2", "none", "blocking_in_loop", marks=LONG),
        pytest.param("T2", "request_lost", "coroutine", marks=LONG),
        pytest.param("T3", "ack_lost", "coroutine", marks=LONG),
    ],
)
def test_an_event_loop_that_goes_on_when_everything_is_over(yard: Yard, tier: Tier, fault: str, body: Body) -> None:
    """The same holds of AsyncExecutor, where it differs: in how it attempts, writes, looks and waits."""
    assert right(yard.play(_stops(yard, tier, fault, "past_grace", body=body)))


@LONG
@pytest.mark.parametrize(("tier", "fault"), [("T2", "none"), ("T3", "none"), *WITHIN])
def test_a_process_that_goes_on_while_another_one_recovers(yard: Yard, tier: Tier, fault: str) -> None:
    """Stopped at any step past its lease, it goes on within grace, while another process is at its recovery: there is
    one effect at most, both are told what is so, and nobody has to be alarmed."""
    assert right(yard.play(_stops(yard, tier, fault, "within_grace")))


@LONG
@pytest.mark.parametrize(("tier", "fault"), [("T0", "none"), pytest.param("T0", "ack_lost", marks=LONG)])
def test_a_process_that_goes_on_after_a_person_has_decided(yard: Yard, tier: Tier, fault: str) -> None:
    """A person decides by what the provider shows while the process stands still. Only a request that was past its
    check can make that word wrong, and then the record says so: applied, and an incident."""
    stops = _stops(yard, tier, fault, "operator")
    assert right(yard.play([stop for stop in stops if stop.point not in BEFORE_BEGIN]))
    assert any(stop.misleads for stop in stops)


# Each write of a stopped process: tier, fault, and who is held up by it.
HELD: list[tuple[Tier, str, Verb]] = [
    ("T0", "none", "resolve"),
    ("T2", "none", "call"),
    ("T2", "ack_lost", "call"),
    ("T2", "refused", "call"),
    ("T3", "none", "call"),
    ("T4", "ack_lost", "call"),
    ("T5", "none", "call"),
]


@LONG
@pytest.mark.parametrize(("tier", "fault", "verb"), HELD, ids=[f"{tier}-{fault}-{verb}" for tier, fault, verb in HELD])
def test_whoever_waits_for_a_transaction_of_a_stopped_process(yard: Yard, tier: Tier, fault: str, verb: Verb) -> None:
    """Stopped inside a transaction, with the row written or just before COMMIT, it holds up whoever writes on the same
    effect: the database shows the waiter. When it goes on, both are told what is so."""
    points = [point for point in yard.points(Story(tier, fault, None)) if inside(tier, point)]
    assert {"sql", "commit"} <= {point.moment for point in points}
    if verb == "resolve":
        points = [point for point in points if point.step != "Start"]
    assert points
    assert right(yard.play([Stop(tier, fault, point, "held_up", verb=verb) for point in points]))


@pytest.mark.parametrize("yard", ["postgresql"], indirect=True)
@pytest.mark.parametrize(("tier", "verb"), [("T2", "call"), ("T5", "call")])
def test_a_transaction_in_which_a_process_stands_still_is_ended(yard: Yard, tier: Tier, verb: Verb) -> None:
    """A host that stands still between two statements does not hold up its effect for as long as it stands: PostgreSQL
    ends the transaction, others settle the effect, and the process finds out what is so when it goes on."""
    points = [point for point in yard.points(Story(tier, "none", None)) if inside(tier, point)]
    assert right(yard.play([Stop(tier, "none", point, "abandoned", verb=verb) for point in points]))


@LONG
@pytest.mark.parametrize("yard", ["repeatable read", "serializable"], indirect=True)
@pytest.mark.parametrize(
    ("tier", "fault"), [("T2", "none"), ("T2", "request_lost"), ("T3", "ack_lost"), ("T5", "none")]
)
def test_every_isolation_level_under_stopped_processes(yard: Yard, tier: Tier, fault: str) -> None:
    """What holds of stopped processes and of those that wait for them holds at every isolation level."""
    assert right(yard.play(_stops(yard, tier, fault, "past_grace")))
    points = [point for point in yard.points(Story(tier, fault, None)) if inside(tier, point)]
    assert right(yard.play([Stop(tier, fault, point, "held_up") for point in points]))


# A process that recovers: what the first one left, how the stopped one recovers, and the steps that it comes to.
RECOVERIES: list[tuple[Tier, str, Point, Verb, set[str]]] = [
    ("T2", "none", Point("after", "Request"), "reconcile", {"Ask", "Write:SettleLook"}),
    ("T2", "none", Point("before", "Request"), "reconcile", {"Ask", "Write:SettleLook"}),
    ("T2", "none", Point("before", "Request"), "call", {"Ask", "Write:SettleLook", "Start", "Request"}),
]


@LONG
@pytest.mark.parametrize(("tier", "fault", "death", "own", "steps"), RECOVERIES)
def test_a_recovery_that_goes_on_when_everything_is_over(
    yard: Yard, tier: Tier, fault: str, death: Point, own: Verb, steps: set[str]
) -> None:
    """What a stopped recovery has seen before it stood still says nothing about what others began meanwhile: an old
    "absent" neither ends their attempt nor sends again."""
    points = yard.points(Story(tier, fault, death), steps, own=own)
    points = [point for point in points if not inside(tier, point) and point.step in steps]
    assert right(yard.play([Stop(tier, fault, one, "past_grace", death=death, own=own) for one in points]))
