"""What is pruned leaves a tombstone that answers for its key for ever; what is not over is left alone."""

from __future__ import annotations

import json
import resource
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from changing import SECOND, One, guard, permitted, terms
from postgres import PostgresServer

from counterfoil.changes import Undoes
from counterfoil.clock import ManualClock
from counterfoil.effect import Found, Proof, Row, Verdict
from counterfoil.errors import UsageError
from counterfoil.ledger.archive import Archive, digest
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.keeping import Pruned, prune
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import entries, references, sightings
from counterfoil.ledger.seals import seal
from counterfoil.ledger.verifying import verify

DAY = 86_400
OLD = 30 * DAY * SECOND
LATER_S = 40 * DAY


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "archive.jsonl"


@pytest.fixture
def archive(file: Path) -> Iterator[Archive]:
    with Archive(file, remembered=200) as opened:
        yield opened


def applied(ledger: Ledger, name: str, **declared: Any) -> One:
    one = One(ledger, name)
    one.begun(terms(**declared))
    permitted(one.apply(one.returned(reference=f"pi_{name}")))
    return one


def refused(ledger: Ledger, name: str) -> One:
    one = One(ledger, name)
    one.begun()
    permitted(one.apply(one.closed(proof=Proof.REJECTED, code="card_declined")))
    return one


def pruned(ledger: Ledger, archive: Archive | None = None, **asked: Any) -> Pruned:
    return prune(ledger, OLD, archive, by="a person", **asked)


def history(ledger: Ledger, one: One) -> list[str]:
    return [entry.event for entry in Audit(ledger).history(one.row.id)]


def test_an_applied_effect_leaves_a_tombstone_and_its_content_in_the_archive(
    ledger: Ledger, clock: ManualClock, archive: Archive, file: Path
) -> None:
    """Arguments, value, entries and sightings are in the file and nowhere else; identity, verdict and proof stay, and
    the one entry that is left names the line by its digest."""
    one = applied(ledger, "A")
    ledger.see([{"key": one.key, "call_id": "c2", "task": "task", "turn": 2, "code": "replayed", "at": 1}])
    before = one.row
    clock.advance(LATER_S)
    assert pruned(ledger, archive) == Pruned(1)
    (line,) = file.read_bytes().splitlines()
    kept = json.loads(line)
    assert (kept["id"], kept["effect"]["arguments"], kept["effect"]["value"]) == (before.id, before.arguments, '"done"')
    assert [entry["event"] for entry in kept["entries"]] == ["begun", "returned"]
    assert [seen["call_id"] for seen in kept["sightings"]] == ["c2"]
    after = one.row
    assert (after.arguments, after.echo, after.value, after.holder) == ("{}", "{}", None, None)
    stays = ("key", "id", "verdict", "proof", "attempts", "provider_keys", "sends_until", "fingerprint", "references")
    assert [getattr(after, name) for name in stays] == [getattr(before, name) for name in stays]
    (left,) = Audit(ledger).history(after.id)
    assert (left.event, left.seq, left.actor) == ("pruned", 3, "a person")
    assert left.detail == {"verdict": "effect_applied", "through": 2, "digest": digest(line), "exported": True}
    with ledger.engine.connect() as connection:
        assert connection.execute(sa.select(sa.func.count()).select_from(sightings)).scalar() == 0


def test_a_pruned_applied_effect_never_begins(ledger: Ledger, clock: ManualClock) -> None:
    """A begin meets the tombstone and is declined, with the same arguments and with others."""
    one = applied(ledger, "A")
    clock.advance(LATER_S)
    pruned(ledger)
    assert guard(one.apply(one.begin())) == "applied"
    assert guard(one.apply(one.begin(fingerprint=bytes(32)))) == "conflict"


def test_its_reference_goes_on_belonging_to_it(ledger: Ledger, clock: ManualClock) -> None:
    """After a prune, nothing else is proven by what the pruned effect left in the world."""
    applied(ledger, "A")
    clock.advance(LATER_S)
    pruned(ledger)
    with ledger.engine.connect() as connection:
        assert connection.execute(sa.select(references.c.reference)).scalars().all() == ["pi_A"]
    other = One(ledger, "B")
    other.begun()
    assert permitted(other.apply(other.found("pi_A"))).verdict is Verdict.EFFECT_UNKNOWN


def test_fence_and_generation_go_on_after_a_prune(ledger: Ledger, clock: ManualClock) -> None:
    """A pruned no_effect may begin again: with the next attempt and the next key, never with the first ones (F19)."""
    one = refused(ledger, "A")
    clock.advance(LATER_S)
    pruned(ledger)
    stone = one.row
    assert (stone.pruned_at is not None, stone.verdict) == (True, Verdict.NO_EFFECT)
    again = one.begun()
    assert (again.attempts, again.key_generation, again.provider_key) == (2, 1, f"{again.id}-k1")
    assert (again.version, again.pruned_at, again.arguments) == (stone.version + 1, None, '{"order":"A"}')
    assert again.sends_until > stone.sends_until
    assert again.provider_keys[0] == stone.provider_key


def test_a_zombie_of_the_life_before_closes_nothing(ledger: Ledger, clock: ManualClock) -> None:
    """What attempt 1 says after a prune speaks for attempt 1: the attempt that is out now stays unproven (F19)."""
    one = refused(ledger, "A")
    clock.advance(LATER_S)
    pruned(ledger)
    one.begun()
    assert guard(one.apply(one.closed(1))) == "closed_before"
    assert one.row.verdict is Verdict.EFFECT_UNKNOWN


def test_a_late_success_latches_on_a_tombstone(ledger: Ledger, clock: ManualClock) -> None:
    """A success that comes after the prune of a no_effect is kept with its value, and is told of as an incident."""
    one = refused(ledger, "A")
    clock.advance(LATER_S)
    pruned(ledger)
    row = permitted(one.apply(one.returned(1, "pi_late")))
    assert (row.verdict, row.value, row.pruned_at) == (Verdict.EFFECT_APPLIED, '"done"', None)
    assert [incident.kind for incident in Audit(ledger).incidents()] == ["late_effect"]


def doubt(ledger: Ledger, _clock: ManualClock) -> One:
    one = One(ledger, "doubt")
    one.begun(terms(grace_s=None))
    one.apply(one.lost())
    return one


def partly(ledger: Ledger, _clock: ManualClock) -> One:
    one = One(ledger, "partly")
    one.begun()
    one.apply(one.found("pi_1", complete=False))
    closed_incidents(ledger)
    return one


def twice(ledger: Ledger, _clock: ManualClock) -> One:
    one = One(ledger, "twice")
    one.begun()
    one.apply(one.found("pi_1", "pi_2"))
    closed_incidents(ledger)
    return one


def audited(ledger: Ledger, clock: ManualClock) -> One:
    one = One(ledger, "audited")
    one.begun(terms(audit_s=3 * LATER_S))
    clock.advance(60)
    assert permitted(one.apply(one.look())).proof is Proof.ABSENT_AFTER_GRACE
    return one


def remembered(ledger: Ledger, _clock: ManualClock) -> One:
    return applied(ledger, "remembered", retention_s=2 * LATER_S)


def watched(ledger: Ledger, _clock: ManualClock) -> One:
    one = applied(ledger, "watched")
    ledger.raise_incident(one.row, "look_into_it", {})
    return one


def taken_back(ledger: Ledger, _clock: ManualClock) -> One:
    one = applied(ledger, "taken-back")
    undo = One(ledger, "undo")
    undo.begun(terms(grace_s=None), undoes=Undoes(one.key, "compensation", 1))
    return one


def closed_incidents(ledger: Ledger) -> None:
    for incident in Audit(ledger).incidents():
        ledger.close_incident(incident.number, None, by="a person", why="seen to")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (doubt, {"unknown": 1}),
        (partly, {"incomplete": 1}),
        (twice, {"doubled": 1}),
        (audited, {"look_due": 1}),
        (remembered, {"key_remembered": 1}),
        (watched, {"incident_open": 1}),
        (taken_back, {"undo_open": 1, "unknown": 1}),
    ],
)
def test_what_is_not_over_is_left_as_it_is(ledger: Ledger, clock: ManualClock, make: Any, why: dict[str, int]) -> None:
    """However old: it stays with all its entries, and the prune counts it by the reason."""
    one: One = make(ledger, clock)
    before, told = one.row, history(ledger, one)
    clock.advance(LATER_S)
    assert pruned(ledger) == Pruned(0, why)
    assert _same(one.row, before)
    assert history(ledger, one) == told


def _same(row: Row, before: Row) -> bool:
    return all(getattr(row, name) == getattr(before, name) for name in Row.__dataclass_fields__ if name != "now")


def test_the_record_goes_when_the_key_is_forgotten(ledger: Ledger, clock: ManualClock) -> None:
    """The retention counts from the last moment at which a request may have come: then the record may go."""
    one = applied(ledger, "A", retention_s=LATER_S)
    clock.advance(LATER_S + 10 + 20)
    assert pruned(ledger).kept == {"key_remembered": 1}
    clock.advance(10)
    assert pruned(ledger) == Pruned(1)
    assert one.row.pruned_at is not None


def test_a_younger_effect_stays(ledger: Ledger, clock: ManualClock) -> None:
    """Age counts from the last change; what is younger is not even counted."""
    applied(ledger, "A")
    clock.advance(29 * DAY)
    assert pruned(ledger) == Pruned()


def test_a_tombstone_cannot_be_taken_back(ledger: Ledger, clock: ManualClock) -> None:
    """Nobody knows any more what it was about: a compensation is refused, and nothing is begun."""
    one = applied(ledger, "A")
    clock.advance(LATER_S)
    pruned(ledger)
    undo = One(ledger, "undo")
    assert guard(undo.apply(undo.begin(undoes=Undoes(one.key, "compensation", 1)))) == "original:expired"
    assert ledger.read(undo.key) is None


def test_the_same_prune_again_does_nothing(ledger: Ledger, clock: ManualClock, archive: Archive, file: Path) -> None:
    """A second prune finds nothing to take out and writes no line; batches of any size take each effect once."""
    for number in range(7):
        applied(ledger, str(number))
    clock.advance(LATER_S)
    told: list[int] = []
    assert pruned(ledger, archive, batch=3, told=lambda done: told.append(done.pruned)) == Pruned(7)
    assert told == [3, 6, 7]
    whole = file.read_bytes()
    assert len({json.loads(line)["id"] for line in whole.splitlines()}) == 7
    assert pruned(ledger, archive) == Pruned()
    assert file.read_bytes() == whole


def test_one_tenants_prune_leaves_the_others_alone(ledger: Ledger, clock: ManualClock) -> None:
    """With a tenant named, only its effects go."""
    north, south = One(ledger, "A", tenant="north"), One(ledger, "A", tenant="south")
    for one in (north, south):
        one.begun()
        one.apply(one.returned())
    clock.advance(LATER_S)
    assert pruned(ledger, tenant="north") == Pruned(1)
    assert (north.row.pruned_at is None, south.row.pruned_at is None) == (False, True)


def test_a_look_that_found_it_again_keeps_the_tombstone_applied(ledger: Ledger, clock: ManualClock) -> None:
    """Evidence that comes after the prune latches as ever: a second one is counted."""
    one = applied(ledger, "A")
    clock.advance(LATER_S)
    pruned(ledger)
    seen: Found[None] = Found(None, reference=("pi_A", "pi_other"))
    assert permitted(one.apply(one.look(found=seen))).count == 2


def test_who_begins_while_it_prunes_goes_on_where_the_effect_was(ledger_url: str) -> None:
    """Begins and a prune meet on the same effects: each begin is the second attempt, whether it came before its
    effect's turn or found a tombstone, and no book has a gap."""
    clock, engines = ManualClock(), [open_engine(ledger_url) for _ in range(2)]
    keeper, caller = (Ledger(engine, clock=clock) for engine in engines)
    ones = [refused(caller, str(number)) for number in range(40)]
    clock.advance(LATER_S)
    done: list[Pruned] = []
    thread = threading.Thread(target=lambda: done.append(pruned(keeper, batch=3)))
    thread.start()
    for one in sorted(ones, key=lambda one: one.key, reverse=True):
        assert one.begun().attempts == 2
    thread.join()
    seal(keeper, None)
    findings, stones = verify(keeper.engine).findings, [one for one in ones if history(keeper, one)[0] == "pruned"]
    for engine in engines:
        engine.dispose()
    assert findings == []
    assert [one.pruned for one in done] == [len(stones)]


# ---------------------------------------------------------------- the file


def test_a_torn_line_is_taken_away_and_written_whole(ledger: Ledger, clock: ManualClock, file: Path) -> None:
    """What a crash left of a line is no line: afterwards the file holds whole ones alone, none of them twice."""
    applied(ledger, "A")
    clock.advance(LATER_S)
    with Archive(file, remembered=10) as first:
        pruned(ledger, first)
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: len(whole) // 2])
    with Archive(file, remembered=10) as second:
        second.write([whole])
    assert file.read_bytes() == whole


def test_an_archive_is_its_owners_alone_and_one_prunes_at_a_time(file: Path) -> None:
    """The file holds arguments: nobody else may read it. A second prune into it is refused while one is at work."""
    with Archive(file, remembered=10):
        assert file.stat().st_mode & 0o077 == 0
        with pytest.raises(UsageError, match="another prune"):
            Archive(file, remembered=10)


def test_a_file_of_something_else_is_not_written_to(file: Path) -> None:
    """Whatever was there stays as it is."""
    file.write_text("a letter\n")
    with pytest.raises(UsageError, match="no archive"):
        Archive(file, remembered=10)
    assert file.read_text() == "a letter\n"


def test_a_line_that_does_not_fit_on_the_disk_leaves_nothing(file: Path) -> None:
    """What could not be written whole is taken away again, and it is said."""
    first, second = b'{"format":"counterfoil-archive-1","id":1}\n', b'{"format":"counterfoil-archive-1","id":22}\n'
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with Archive(file, remembered=10) as archive:
            archive.write([first])
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(first) + 10, most[1]))
            with pytest.raises(UsageError, match="nothing is pruned"):
                archive.write([second])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
        signal.signal(signal.SIGXFSZ, handler)
    assert file.read_bytes() == first


def test_what_cannot_be_archived_stays(ledger: Ledger, clock: ManualClock, file: Path) -> None:
    """Where the file does not take the lines, nothing of that batch is pruned."""
    one = applied(ledger, "A")
    clock.advance(LATER_S)
    with Archive(file, remembered=10) as archive:
        pass
    with pytest.raises(UsageError, match="nothing is pruned"):
        pruned(ledger, archive)
    assert one.row.pruned_at is None
    assert history(ledger, one) == ["begun", "returned"]


@pytest.mark.parametrize("statement", ["UPDATE entries SET actor = 'me'", "DELETE FROM entries", "TRUNCATE entries"])
def test_a_server_takes_no_entry_out_of_the_book(
    postgres_server: PostgresServer, postgres_template: str, statement: str
) -> None:
    """On PostgreSQL the database itself refuses to change, remove or empty entries."""
    name = postgres_server.create(template=postgres_template)
    engine = open_engine(postgres_server.url(name))
    applied(Ledger(engine), "A")
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine.begin() as connection:
        connection.exec_driver_sql(statement)
    with engine.connect() as connection:
        events = connection.execute(sa.select(entries.c.event).order_by(entries.c.seq)).scalars().all()
    engine.dispose()
    postgres_server.drop(name)
    assert events == ["begun", "returned"]
