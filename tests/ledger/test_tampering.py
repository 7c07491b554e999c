"""Whatever is done by SQL to a sealed entry or effect is named: changed, removed, added, put elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias

import pytest
import sqlalchemy as sa
from changing import One, permitted, terms

from counterfoil.clock import ManualClock
from counterfoil.effect import Proof
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.keeping import prune
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import effects, entries
from counterfoil.ledger.seals import seal
from counterfoil.ledger.verifying import compared, verify

SECRET = b"a secret of a test, long enough"
DAY = 86_400
MANIPULATIONS = 200
# Where the next look is due, and what a running attempt pushes on, moves without an entry while an effect is unknown.
MOVING = ("look_at", "boot_id", "boot_low", "boot_high")
PUSHED = ("sends_until", "earlier_sends_until", "absent_from")


class Named(NamedTuple):
    """What a manipulation must be named as: any of these names, and of an entry, any of these numbers."""

    what: str
    names: tuple[str, ...]
    seqs: tuple[int, ...] = ()


Row: TypeAlias = Any


@pytest.fixture
def sealed_ledger(ledger: Ledger, clock: ManualClock) -> Ledger:
    """Effects of every kind, sealed in three seals: applied, refused, absent, unknown, and tombstones."""
    ones = [One(ledger, str(number)) for number in range(40)]
    for one in ones:
        one.begun(terms(audit_s=DAY))
    seal(ledger, SECRET, batch=15)
    clock.advance(60)
    for one in ones[:20]:
        permitted(one.apply(one.returned(reference=one.name)))
    for one in ones[20:26]:
        permitted(one.apply(one.closed(proof=Proof.REJECTED, code="declined")))
    for one in ones[26:32]:
        permitted(one.apply(one.look()))
    clock.advance(20 * DAY)
    seal(ledger, SECRET)
    for one in ones[20:23]:
        one.begun()
        permitted(one.apply(one.returned(2)))
    prune(ledger, 10 * DAY * 1_000_000, None, by="a person")
    for one in ones[23:25]:
        one.begun()
    seal(ledger, SECRET)
    return ledger


class Intruder:
    """Somebody who may write to the database. Every deed is answered by what it must be named as."""

    def __init__(self, connection: sa.Connection, random: Random) -> None:
        self.connection, self.random = connection, random

    def deed(self) -> Named:
        """One manipulation of the database, of a kind that is drawn."""
        kinds: list[Callable[[], Named]] = [
            self.change_effect, self.change_effect, self.change_entry, self.change_entry, self.delete_effect,
            self.delete_entry, self.insert_effect, self.insert_entry, self.swap_effects, self.swap_entries,
            self.move_entry, self.erase,
        ]  # fmt: skip
        return self.random.choice(kinds)()

    def change_effect(self) -> Named:
        row = self._effect()
        names = [column.name for column in effects.columns if column.name not in ("key", *MOVING)]
        if row.verdict == "effect_unknown":
            names = [name for name in names if name not in PUSHED or getattr(row, name)]
        elif row.look_at is None:
            names += MOVING
        name = self.random.choice(names)
        other = self._other(effects.c[name], getattr(row, name), lower=name in PUSHED)
        self.connection.execute(sa.update(effects).where(effects.c.key == row.key).values({name: other}))
        return Named("effect", (other if name == "id" else row.id,))

    def change_entry(self) -> Named:
        entry, name = self._entry(), self.random.choice(["attempt", "event", "actor", "fence", "detail", "at"])
        other = self._other(entries.c[name], getattr(entry, name))
        self.connection.execute(sa.update(entries).where(self._is(entry)).values({name: other}))
        return Named("entry", (self._id(entry.key),), (entry.seq,))

    def delete_effect(self) -> Named:
        row = self._effect()
        self.connection.execute(sa.delete(effects).where(effects.c.key == row.key))
        return Named("effect", (self._of_key(row.key),))

    def delete_entry(self) -> Named:
        entry = self._entry()
        self.connection.execute(sa.delete(entries).where(self._is(entry)))
        return Named("entry", (self._id(entry.key),), (entry.seq,))

    def insert_effect(self) -> Named:
        """An effect that claims to be as old as the others, with a history like theirs."""
        row, key = self._effect(), self.random.randbytes(32)
        made = row._asdict() | {"key": key, "id": f"cf-{key.hex()[:20]}"}
        self.connection.execute(sa.insert(effects), made)
        for entry in self._book(row.key):
            self.connection.execute(sa.insert(entries), entry._asdict() | {"key": key})
        return Named("effect", (made["id"],))

    def insert_entry(self) -> Named:
        entry = self._entry()
        last = max(one.seq for one in self._book(entry.key))
        stranger = self.random.random() < 0.3
        key = self.random.randbytes(32) if stranger else entry.key
        seq = last + self.random.randint(1, 3)
        self.connection.execute(sa.insert(entries), entry._asdict() | {"key": key, "seq": seq})
        return Named("entry", (self._of_key(key) if stranger else self._id(key),), (seq,))

    def swap_effects(self) -> Named:
        """What one effect was about is told of another one."""
        one, other = self._effect(), self._effect()
        while one.fingerprint == other.fingerprint:
            other = self._effect()
        for row, said in ((one, other), (other, one)):
            told = {name: getattr(said, name) for name in ("fingerprint", "arguments", "echo", "value", "begun_at")}
            self.connection.execute(sa.update(effects).where(effects.c.key == row.key).values(told))
        return Named("effect", (one.id, other.id))

    def swap_entries(self) -> Named:
        """Two entries of one effect change places."""
        book: list[Row] = []
        while len(book) < 2:
            book = self._book(self._effect().key)
        one, other = self.random.sample(book, 2)
        for seq, to in ((one.seq, -1), (other.seq, one.seq), (-1, other.seq)):
            where = (entries.c.key == one.key) & (entries.c.seq == seq)
            self.connection.execute(sa.update(entries).where(where).values(seq=to))
        return Named("entry", (self._id(one.key),), (one.seq, other.seq))

    def move_entry(self) -> Named:
        """An entry is told of another effect."""
        entry, other = self._entry(), self._effect()
        while entry.key == other.key:
            other = self._effect()
        seq = max(one.seq for one in self._book(other.key)) + 1
        self.connection.execute(sa.update(entries).where(self._is(entry)).values(key=other.key, seq=seq))
        return Named("entry", (self._id(entry.key), other.id), (entry.seq, seq))

    def erase(self) -> Named:
        """An effect and its whole book go."""
        row = self._effect()
        self.connection.execute(sa.delete(entries).where(entries.c.key == row.key))
        self.connection.execute(sa.delete(effects).where(effects.c.key == row.key))
        return Named("effect", (self._of_key(row.key),))

    # ------------------------------------------------------------ what there is

    def _effect(self) -> Row:
        rows = self.connection.execute(sa.select(effects).order_by(effects.c.key)).all()
        return self.random.choice(rows)

    def _entry(self) -> Row:
        rows = self.connection.execute(sa.select(entries).order_by(entries.c.key, entries.c.seq)).all()
        return self.random.choice(rows)

    def _book(self, key: bytes) -> list[Row]:
        return list(self.connection.execute(sa.select(entries).where(entries.c.key == key).order_by(entries.c.seq)))

    def _is(self, entry: Row) -> Any:
        return (entries.c.key == entry.key) & (entries.c.seq == entry.seq)

    def _id(self, key: bytes) -> str:
        return str(self.connection.execute(sa.select(effects.c.id).where(effects.c.key == key)).scalar_one())

    def _of_key(self, key: bytes) -> str:
        return f"with the key {key.hex()[:16]}…"

    def _other(self, column: sa.Column[Any], before: Any, *, lower: bool = False) -> Any:
        """Another value that the column takes."""
        match column.type:
            case sa.Boolean():
                return not before
            case sa.JSON():
                return [*before, "x"] if isinstance(before, list) else {**before, "forged": True}
            case sa.LargeBinary():
                return self.random.randbytes(32)
            case sa.Integer():
                step = self.random.randint(1, 1000)
                return step if before is None else before - step if lower else before + step
            case _:
                if column.name == "verdict":
                    return "no_effect" if before == "effect_applied" else "effect_applied"
                return f"{before or ''}x"[-16:] if column.name in ("proof", "undo_kind") else f"{before or ''}x"


@pytest.fixture
def intruded(sealed_ledger: Ledger) -> Iterator[sa.Connection]:
    """A connection of an owner of the tables, who on PostgreSQL switches the triggers off first."""
    with sealed_ledger.engine.connect() as connection, connection.begin() as transaction:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER ALL")
        yield connection
        transaction.rollback()


@pytest.mark.parametrize("seed", [6, *(pytest.param(seed, marks=pytest.mark.seals_long) for seed in range(5))])
def test_each_of_200_random_manipulations_is_named(intruded: sa.Connection, seed: int) -> None:
    """Updates of any column, deletions, insertions, swaps of effects and entries: each is found, and the finding names
    the effect, and the entry by its number. Undone, the ledger is as it was sealed."""
    random, done, unnamed = Random(seed), 0, []  # noqa: S311
    assert compared(intruded, [SECRET]).findings == []
    while done < MANIPULATIONS:
        turn = intruded.begin_nested()
        try:
            named = Intruder(intruded, random).deed()
        except sa.exc.IntegrityError:  # the database itself refuses: no such row can be
            turn.rollback()
            continue
        findings = compared(intruded, [SECRET]).findings
        turn.rollback()
        done += 1
        if not any(
            (one.what, one.name in named.names) == (named.what, True) and (not named.seqs or one.seq in named.seqs)
            for one in findings
        ):
            unnamed.append((named, findings))
    assert unnamed == []
    assert compared(intruded, [SECRET]).findings == []


@pytest.mark.parametrize("name", PUSHED)
def test_what_an_unknown_effect_waits_for_is_not_lowered(intruded: sa.Connection, name: str) -> None:
    """The instants that its safety rests on may only grow while it is unknown: less is named, more is no alarm."""
    unknown = (effects.c.verdict == "effect_unknown") & (effects.c[name] > 0)
    row = intruded.execute(sa.select(effects).where(unknown).order_by(effects.c.key)).first()
    assert row is not None
    for value, found in ((getattr(row, name) + 1, []), (getattr(row, name) - 1, [row.id])):
        intruded.execute(sa.update(effects).where(effects.c.key == row.key).values({name: value}))
        assert [one.name for one in compared(intruded, [SECRET]).findings] == found


def test_an_effect_that_no_seal_holds_is_called_added(intruded: sa.Connection) -> None:
    """A forged effect that says it was sealed; one that was sealed and says that it was not is called changed."""
    named = Intruder(intruded, Random(1)).insert_effect()  # noqa: S311
    assert ("added", named.names[0]) in [(one.how, one.name) for one in compared(intruded, [SECRET]).findings]
    row = intruded.execute(sa.select(effects).where(effects.c.id != named.names[0]).limit(1)).one()
    intruded.execute(sa.update(effects).where(effects.c.key == row.key).values(sealed_version=0))
    assert ("changed", row.id) in [(one.how, one.name) for one in compared(intruded, [SECRET]).findings]


def test_entries_that_changed_places_are_called_reordered(intruded: sa.Connection) -> None:
    """Each is told with the place that it had."""
    named = Intruder(intruded, Random(1)).swap_entries()  # noqa: S311
    findings = compared(intruded, [SECRET]).findings
    assert [(one.how, one.seq) for one in findings] == [("reordered", seq) for seq in sorted(named.seqs)]
    assert sorted(int(one.remark.rpartition(" ")[2]) for one in findings) == sorted(named.seqs)


def test_a_file_that_takes_anything_is_read_to_its_end(sqlite_template: Path, tmp_path: Path) -> None:
    """SQLite takes words in a column of numbers, broken text and keys that are none. Each is named, and none of them
    stops the comparison."""
    shutil.copyfile(sqlite_template, tmp_path / "ledger.db")
    engine = open_engine(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger = Ledger(engine)
    deeds = (
        ("UPDATE effects SET version = 'two' WHERE key = ?", "effect"),
        ("UPDATE effects SET task = CAST(x'ff' AS TEXT) WHERE key = ?", "effect"),
        ("UPDATE entries SET detail = '{' WHERE key = ? AND seq = 1", "entry"),
        ("UPDATE entries SET seq = 'x' WHERE key = ? AND seq = 1", "effect"),
        ("UPDATE effects SET complete = 7 WHERE key = ?", "effect"),
        ("UPDATE effects SET key = 'letters' WHERE key = ?", "effect"),
    )
    ones = [One(ledger, str(number)) for number in range(len(deeds))]
    for one in ones:
        one.begun()
        permitted(one.apply(one.returned()))
    seal(ledger, SECRET)
    ids = [one.row.id for one in ones]
    for one, (statement, _) in zip(ones, deeds, strict=True):
        with engine.begin() as connection:
            connection.exec_driver_sql(statement, (one.key,))
    named = {(one.what, one.name) for one in verify(engine, [SECRET]).findings}
    engine.dispose()
    ids[-1] = f"with the key {ones[-1].key.hex()[:16]}…"
    assert named >= {(what, name) for name, (_, what) in zip(ids, deeds, strict=True)}
