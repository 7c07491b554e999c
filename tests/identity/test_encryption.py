"""Encryption at rest: who has the database has no argument, value or detail; who has the key has all of them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pytest
import sqlalchemy as sa
from changing import One, permitted
from cli.conftest import Run, run, shop
from outside import Make, World
from told.test_hygiene import raw

from counterfoil import (
    Absent,
    Content,
    Effect,
    Executor,
    ManualClock,
    Policy,
    Rejected,
    SystemClock,
    Tool,
    Unclear,
    UsageError,
    Verdict,
    tool,
)
from counterfoil.errors import LedgerUnavailable
from counterfoil.ledger import reencryption
from counterfoil.ledger.cipher import CipherKeys, Unreadable, key_id
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import effects, entries, incidents, pins
from counterfoil.ledger.verifying import verify

__all__ = ["run", "shop"]
OLD, NEW, WRONG = b"o" * 32, b"n" * 32, b"w" * 32
# One for each kind of thing that is kept: an argument, a describing one, a value, a reason, a person's why.
MARKS = ("mk-argument", "mk-note", "mk-value", "mk-refused", "mk-doubt", "mk-why", "mk-occurrence")
ARGUMENTS = {"name": "mk-argument", "note": "mk-note"}


@pytest.fixture
def clock() -> ManualClock:
    """Two hours ago, so that a prune by the real clock finds what is old."""
    return ManualClock(SystemClock().wall_us() - 7_200_000_000)


@pytest.fixture
def order(world: World) -> Tool[..., Any]:
    """A tool whose arguments, values and refusals are marked."""

    @tool(key=("number",), policy=Policy(timeout_s=5, patience_s=0.1, grace_s=0, review_after_s=60, breaker=None))
    def create_order(effect: Effect, number: int, name: str, note: Annotated[str, Content] = "") -> dict[str, str]:
        """Create one order. Use it when the customer has chosen."""
        if number < 0:
            raise Rejected("no_stock", "mk-refused")
        try:
            world.act(effect)
        except TimeoutError:
            raise TimeoutError("mk-doubt") from None
        effect.reference = f"ref-{number}"
        return {"order": "mk-value"}

    return create_order


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the cipher keys of the environment."""

    def give(*words: bytes) -> None:
        monkeypatch.setenv("COUNTERFOIL_CIPHER_KEYS", "\n".join(word.hex() for word in words))

    give()
    return give


def history(executor: Executor, world: World) -> dict[str, Any]:
    """An applied effect, a refused one, a doubt with its incident that a person ends, and one that stays in doubt."""
    ids: dict[str, Any] = {}
    ids["applied"] = executor.call("create_order", {"number": 1, **ARGUMENTS}, occurrence="mk-occurrence").effect_id
    ids["refused"] = executor.call("create_order", {"number": -1, **ARGUMENTS}).effect_id
    for number, name in ((2, "resolved"), (3, "doubt")):
        world.next = ["ack_lost"]
        seen = executor.call("create_order", {"number": number, **ARGUMENTS})
        assert seen.verdict is Verdict.EFFECT_UNKNOWN
        ids[name] = seen.effect_id
    world.clock.advance(100)
    assert executor.reconcile().incidents == 2
    (row,) = [row for row in executor.audit.doubts() if row.id == ids["resolved"]]
    executor.resolve(row.id, "effect_applied", by="N.", why="mk-why", version=row.version, value={"order": "mk-value"})
    return ids


def marked(text: str) -> list[str]:
    return [mark for mark in MARKS if mark in text]


def counted(ledger_url: str, asked: Any) -> Any:
    engine = sa.create_engine(ledger_url)
    try:
        with engine.connect() as connection:
            return connection.execute(asked).scalar()
    finally:
        engine.dispose()


def changed(ledger_url: str, statement: Any) -> None:
    """Changes the database behind the ledger's back."""
    engine = sa.create_engine(ledger_url)
    try:
        with engine.begin() as connection:
            if connection.dialect.name != "sqlite":
                connection.exec_driver_sql("ALTER TABLE entries DISABLE TRIGGER USER")
            assert connection.execute(statement).rowcount > 0
    finally:
        engine.dispose()


# ---------------------------------------------------------------- what is kept, and who reads it


def test_the_database_holds_nothing_plain_and_every_reader_all(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any, tmp_path: Path
) -> None:
    """No argument, value or detail stands in the raw file, its log or a dump; calls, audits, looks, people and every
    command read them with the key, and a prune writes none into its archive."""
    executor = executor_of(order, cipher_key=OLD)
    ids = history(executor, world)
    assert marked(raw(ledger_url)) == []
    assert ids["applied"] in raw(ledger_url), "there is something to search"
    keys(OLD)
    again = executor.call("create_order", {"number": 1, **ARGUMENTS}, occurrence="mk-occurrence")
    assert (again.code, again.value) == ("replayed", {"order": "mk-value"})
    other = executor.call("create_order", {"number": 1, "name": "other"}, occurrence="mk-occurrence")
    assert (other.code, "mk-argument" in other.text) == ("key_conflict", True)
    shown = run("show", ids["applied"], "--json", "--ledger", ledger_url).json
    assert (shown["arguments"]["name"], shown["value"]) == ("mk-argument", {"order": "mk-value"})
    told = [run("effects", "--where", "name=mk-argument", "--ledger", ledger_url)]
    told += [run("show", one, "--ledger", ledger_url) for one in ids.values()]
    told += [run("doubts", "--json", "--ledger", ledger_url), run("incidents", "--json", "--ledger", ledger_url)]
    told += [run("audit", "export", "--ledger", ledger_url)]
    told += [run("audit", "seal", "--ledger", ledger_url), run("audit", "verify", "--ledger", ledger_url)]
    assert {ran.code for ran in told} == {0}
    everything = "".join(ran.out for ran in told)
    assert marked(everything) == [mark for mark in MARKS if mark != "mk-occurrence"]
    codes = {one["code"] for one in run("stats", "--by", "code", "--json", "--ledger", ledger_url).json}
    assert {"ok", "no_stock"} <= codes
    (closed,) = [one for one in executor.audit.incidents() if one.effect_id == ids["doubt"]]
    assert executor.close_incident(closed.number, by="N.", why="seen").detail == closed.detail
    assert marked(raw(ledger_url)) == []


def test_the_archive_is_encrypted_as_the_ledger_was(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any, tmp_path: Path
) -> None:
    """A prune writes ciphertext, `audit archive` reads it with the key alone, and the tombstone still answers."""
    executor = executor_of(order, cipher_key=OLD)
    ids = history(executor, world)
    keys(OLD)
    file = tmp_path / "archive.jsonl"
    asked = ("prune", "--older-than", "0s", "--export", file, "--ledger", ledger_url)
    assert run(*asked, "--json").json["pruned"] == 2  # the refused one, and the applied one
    assert marked(file.read_text()) == []
    lines = {one["id"]: one for one in map(json.loads, run("audit", "archive", file).out.splitlines())}
    assert json.loads(lines[ids["applied"]]["effect"]["arguments"])["name"] == "mk-argument"
    assert lines[ids["applied"]]["effect"]["occurrence"] == "mk-occurrence"
    assert "mk-refused" in json.dumps(lines[ids["refused"]]["entries"])
    seen = executor.call("create_order", {"number": 1, **ARGUMENTS}, occurrence="mk-occurrence")
    assert seen.code == "expired"
    keys()
    ran = run("audit", "archive", file)
    assert (ran.code, "no cipher key was given" in ran.err) == (3, True)
    torn = file.read_bytes()[:-20]
    file.write_bytes(torn)
    keys(OLD)
    assert len(run("audit", "archive", file).out.splitlines()) == len(lines) - 1
    file.write_text("{}\n")
    assert run("audit", "archive", file).code == 1


def test_a_host_without_the_key_is_refused(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any
) -> None:
    """Neither an executor without it nor one with another opens the ledger; commands that need it say its id; those
    that need none work."""
    executor = executor_of(order, cipher_key=OLD)
    history(executor, world)
    with pytest.raises(UsageError, match=f"encrypted by the cipher key with the id {key_id(OLD)}"):
        executor_of(order)
    with pytest.raises(UsageError, match=f"not given, with the id {key_id(OLD)}"):
        executor_of(order, cipher_key=[WRONG, NEW])
    for words in (["effects"], ["doubts"], ["incidents"], ["audit", "export"]):
        ran = run(*words, "--ledger", ledger_url)
        assert (ran.code, "no cipher key was given" in ran.err) == (3, True), words
    keys(WRONG)
    ran = run("effects", "--ledger", ledger_url)
    assert (ran.code, key_id(OLD) in ran.err, ran.out) == (3, True, "")
    for words in (["stats"], ["status"], ["db", "check"], ["db", "tenants"], ["audit", "seal"], ["audit", "verify"]):
        assert run(*words, "--ledger", ledger_url).code == 0, words
    assert run("db", "reencrypt", "--ledger", ledger_url).code == 1


def test_keys_that_are_none_are_refused(ledger_url: str, run: Run, keys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not 64 digits on each line is said to be that, and is not shown."""
    ran = run("db", "reencrypt", "--ledger", ledger_url)
    assert (ran.code, "set COUNTERFOIL_CIPHER_KEYS" in ran.err) == (1, True)
    for wrong in ("zz", "00" * 31, "00" * 33, f"{OLD.hex()}\nshort"):
        monkeypatch.setenv("COUNTERFOIL_CIPHER_KEYS", wrong)
        ran = run("effects", "--ledger", ledger_url)
        assert (ran.code, "as 64 digits" in ran.err, wrong in ran.err) == (1, True, False)


# ---------------------------------------------------------------- switching it on, and exchanging the key


def test_a_plain_ledger_is_encrypted_in_two_steps(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any, tmp_path: Path
) -> None:
    """First every host is given the key, and writes on in plain; then `db reencrypt` encrypts what is there, also in
    what the file had freed. A host that was left out begins nothing from then on. What stays plain is counted, and a
    prune takes it out; the seals hold all along."""
    left_out = executor_of(order)
    ids = history(left_out, world)
    keys(OLD)
    assert run("audit", "seal", "--ledger", ledger_url).code == 0
    both = executor_of(order, cipher_key=OLD)
    assert both.call("create_order", {"number": 7, "name": "mk-argument"}).code == "ok"
    assert marked(raw(ledger_url)) != []
    told = run("db", "reencrypt", "--by", "N.", "--json", "--ledger", ledger_url).json
    assert (told["key_id"], told["encrypted"], told["complete"]) == (key_id(OLD), 5 + 2, True)
    plain = told["plain_entries"]
    assert plain == counted(ledger_url, sa.select(sa.func.count()).select_from(entries)) - 5
    assert set(marked(raw(ledger_url))) <= {"mk-refused", "mk-why", "mk-doubt"}, "details that stand in entries"
    assert both.call("create_order", {"number": 1, **ARGUMENTS}, occurrence="mk-occurrence").code == "replayed"
    assert both.audit.history(ids["applied"])[-1].event == "encrypted"
    sent = len(world.requests)
    seen = left_out.call("create_order", {"number": 8, "name": "mk-argument"})
    assert (seen.code, len(world.requests)) == ("ledger_unavailable", sent)
    again = left_out.call("create_order", {"number": 1, **ARGUMENTS}, occurrence="mk-occurrence")
    assert (again.code, again.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
    seen_by = run("db", "check", "--json", "--ledger", ledger_url).json["encryption"]
    assert seen_by == {"key_ids": [key_id(OLD)], "plain": 0, "earlier": 0, "plain_entries": plain}
    assert f"{plain} entries were written in plain" in run("db", "check", "--ledger", ledger_url).out
    assert run("audit", "verify", "--ledger", ledger_url).code == 0
    assert run("db", "reencrypt", "--json", "--ledger", ledger_url).json["encrypted"] == 0
    assert run("prune", "--older-than", "0s", "--export", tmp_path / "a.jsonl", "--ledger", ledger_url).code == 0
    fewer = run("db", "check", "--json", "--ledger", ledger_url).json["encryption"]["plain_entries"]
    assert fewer < plain


def test_what_an_attempt_is_under_way_for_is_left(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any
) -> None:
    """A host that was not told may still write down how its attempt ended: the effect is encrypted the next time, when
    the lease is over, and the command says so by its code."""
    keys(OLD)
    left_out = executor_of(order)

    class Meanwhile:
        ran: Any = None

        def __call__(self, moment: str, step: str, tool: str, effect_id: str) -> None:
            if (moment, step) == ("before", "Attempt"):
                self.ran = self.ran or run("db", "reencrypt", "--json", "--ledger", ledger_url)

    meanwhile = Meanwhile()
    slow = executor_of(order, observer=meanwhile)
    assert left_out.call("create_order", {"number": 1, "name": "x"}).code == "ok"
    world.clock.advance(7_200)  # the command has the real time
    seen = slow.call("create_order", {"number": 2, "name": "x"})
    assert (meanwhile.ran.code, meanwhile.ran.json["encrypted"], meanwhile.ran.json["left"]) == (7, 1, 1)
    assert seen.code == "ok"
    ran = run("db", "reencrypt", "--json", "--ledger", ledger_url)
    assert (ran.code, ran.json["encrypted"], ran.json["left"]) == (0, 1, 0)


def test_a_key_is_exchanged_in_two_steps(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any
) -> None:
    """Every host is given both; then `db reencrypt` wraps all data keys anew, changes no entry, and the earlier key is
    needed no more. A host that does not know the new one begins nothing from then on."""
    old = executor_of(order, cipher_key=OLD)
    ids = history(old, world)
    both = executor_of(order, cipher_key=[NEW, OLD])
    assert both.call("create_order", {"number": 7, "name": "x"}).code == "ok"
    assert old.call("create_order", {"number": 7, "name": "x"}).code == "replayed", "both write by the old one"
    before = counted(ledger_url, sa.select(sa.func.count()).select_from(entries))
    keys(NEW, OLD)
    ran = run("db", "reencrypt", "--ledger", ledger_url)
    assert (ran.code, "wrapped 7 anew" in ran.out) == (0, True)
    assert counted(ledger_url, sa.select(sa.func.count()).select_from(entries)) == before
    sent = len(world.requests)
    for number in (8, 7):
        assert old.call("create_order", {"number": number, "name": "x"}).code == "ledger_unavailable"
    assert len(world.requests) == sent
    with pytest.raises(UsageError, match=key_id(NEW)):
        executor_of(order, cipher_key=OLD)
    alone = executor_of(order, cipher_key=NEW)
    assert alone.call("create_order", {"number": 1, **ARGUMENTS}, occurrence="mk-occurrence").code == "replayed"
    assert alone.call("create_order", {"number": 9, "name": "x"}).code == "ok"
    assert [entry.detail.get("why") for entry in alone.audit.history(ids["resolved"])][-1] == "mk-why"
    keys(NEW)
    assert run("incidents", "--json", "--ledger", ledger_url).code == 0
    assert marked(raw(ledger_url)) == []


def test_a_reencryption_that_breaks_off_is_run_again(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any
) -> None:
    """Broken off after its first batch, both keys go on being needed and everything can be read; then it ends."""
    executor = executor_of(order, cipher_key=OLD)
    history(executor, world)
    both = executor_of(order, cipher_key=[NEW, OLD])
    found = CipherKeys.given([NEW, OLD])
    assert found is not None
    ledger = Ledger(both._engine, clock=world.clock, cipher_keys=found)

    def breaks(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reencryption.reencrypt(ledger, found, by="N.", batch=1, told=breaks)
    seen = reencryption.encryption(ledger.engine)
    assert (seen.key_ids, seen.earlier > 0) == ((key_id(NEW), key_id(OLD)), True)
    with pytest.raises(UsageError, match=key_id(OLD)):
        executor_of(order, cipher_key=NEW)
    assert both.call("create_order", {"number": 1, **ARGUMENTS}, occurrence="mk-occurrence").code == "replayed"
    done = reencryption.reencrypt(ledger, found, by="N.", batch=1)
    assert (done.complete, reencryption.encryption(ledger.engine).key_ids) == (True, (key_id(NEW),))


def test_a_begin_holds_the_key_that_it_writes_by(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """From when a begin has asked by which key it writes until its commit, that key is not forgotten: who exchanges
    it waits, and then finds what was begun."""
    engine = executor_of(order, cipher_key=OLD)._engine
    both = CipherKeys((NEW, OLD))
    exchanging = Ledger(engine, clock=world.clock, patience_s=0.2, cipher_keys=both)
    one = One(Ledger(engine, clock=world.clock, cipher_keys=both), "under way")
    waits: list[bool] = []

    def meanwhile(_: Any, __: Any, statement: str, *___: Any) -> None:
        if statement.startswith("INSERT INTO effects") and not waits:
            waits.append(False)
            with suppress(LedgerUnavailable):
                reencryption.reencrypt(exchanging, both, by="N.")
                return
            waits[0] = True

    sa.event.listen(engine, "before_cursor_execute", meanwhile)
    one.begun()
    assert waits == [True]
    permitted(one.apply(one.returned()))
    assert reencryption.reencrypt(exchanging, both, by="N.").rewrapped == 1
    assert Ledger(engine, clock=world.clock, cipher_keys=CipherKeys((NEW,))).read(one.key) is not None


def test_only_an_empty_ledger_is_encrypted_by_whoever_opens_it(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """A key given to one host does not lock out the others that are at work; on a ledger without effects there are
    none."""
    plain = executor_of(order)
    assert plain.call("create_order", {"number": 1, "name": "x"}).code == "ok"
    keyed = executor_of(order, cipher_key=OLD)
    assert keyed.call("create_order", {"number": 2, "name": "x"}).code == "ok"
    assert plain.call("create_order", {"number": 2, "name": "x"}).code == "replayed"
    assert counted(ledger_url, sa.select(pins.c.value).where(pins.c.name == "ciphers")) == "[]"
    executor_of(order)


# ---------------------------------------------------------------- what was changed


WORDS = {
    "another effect's arguments": ("arguments", "other"),
    "another effect's data key": ("data_key", "other"),
    "no data key": ("data_key", "none"),
    "plain arguments": ("arguments", "plain"),
    "another column": ("value", "echo"),
    "a changed letter": ("value", "letter"),
}


@pytest.mark.parametrize("how", WORDS)
def test_what_was_put_there_is_never_believed(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any, how: str
) -> None:
    """A ciphertext of another effect or column, a plain one, a data key of another or none: the call hears that the
    ledger cannot be read and sends nothing, commands name the effect and end with code 3, and all others go on."""
    executor = executor_of(order, cipher_key=OLD)
    ids = history(executor, world)
    column, source = WORDS[how]
    of = effects.c.id == ids["applied"]
    there = {name: counted(ledger_url, sa.select(effects.c[name]).where(of)) for name in (column, "echo")}
    other = counted(ledger_url, sa.select(effects.c[column]).where(effects.c.id == ids["doubt"]))
    letters = there[column][:9] + ("A" if there[column][9] != "A" else "B") + there[column][10:]
    put = {"other": other, "none": None, "plain": '{"number":1}', "echo": there["echo"], "letter": letters}[source]
    changed(ledger_url, sa.update(effects).where(of).values({column: put}))
    sent = len(world.requests)
    seen = executor.call("create_order", {"number": 1, **ARGUMENTS}, occurrence="mk-occurrence")
    assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
    assert "nothing" in seen.text
    assert len(world.requests) == sent
    keys(OLD)
    for words in (["effects"], ["show", ids["applied"]]):
        ran = run(*words, "--ledger", ledger_url)
        assert (ran.code, f"{ids['applied']}: a record cannot be decrypted" in ran.err, ran.out) == (3, True, "")
    assert executor.call("create_order", {"number": 5, "name": "x"}).code == "ok"
    pruned = run("prune", "--older-than", "0s", "--json", "--ledger", ledger_url).json
    assert pruned["kept"]["unreadable"] == 1


def test_a_doubt_that_cannot_be_read_stays_one_and_holds_nobody_up(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any
) -> None:
    """It is never absent; looks at the others go on; `db reencrypt` names it, ends with code 7 and keeps its key."""

    @order.postcondition
    def created(effect: Effect) -> Absent | Unclear:
        return Absent() if world.looks else Unclear("shut")

    executor = executor_of(order, cipher_key=OLD)
    ids = history(executor, world)
    world.next = ["ack_lost"]
    other = executor.call("create_order", {"number": 4, **ARGUMENTS}).effect_id
    world.looks = ["open"]
    of = effects.c.id == ids["doubt"]
    wrapped = counted(ledger_url, sa.select(effects.c.data_key).where(of))
    changed(ledger_url, sa.update(effects).where(of).values(data_key=wrapped[:-8] + "AAAAAAAA"))
    world.clock.advance(10_000)
    for _ in range(3):
        executor.reconcile()
    assert counted(ledger_url, sa.select(effects.c.verdict).where(of)) == "effect_unknown"
    assert counted(ledger_url, sa.select(effects.c.verdict).where(effects.c.id == other)) == "no_effect"
    keys(NEW, OLD)
    ran = run("db", "reencrypt", "--json", "--ledger", ledger_url)
    assert (ran.code, ran.json["unreadable"], ran.json["left"]) == (7, [ids["doubt"]], 0)
    assert ids["doubt"] in run("db", "reencrypt", "--ledger", ledger_url).out
    known = run("db", "check", "--json", "--ledger", ledger_url).json["encryption"]
    assert (known["key_ids"], known["earlier"]) == ([key_id(NEW), key_id(OLD)], 1)


def test_entries_and_incidents_are_not_moved_either(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """The detail of one entry in the place of another, of the same effect or not, and an incident's in that of another:
    refused; so is the code of an entry that was changed beside it."""
    executor = executor_of(order, cipher_key=OLD)
    ids = history(executor, world)
    key = sa.select(effects.c.key).where(effects.c.id == ids["applied"]).scalar_subquery()

    def detail(seq: int) -> Any:
        return counted(ledger_url, sa.select(entries.c.detail).where((entries.c.key == key) & (entries.c.seq == seq)))

    kept = {seq: detail(seq) for seq in (1, 2)}
    for put in (kept[1], kept[2] | {"code": "no_stock"}):
        changed(ledger_url, sa.update(entries).where((entries.c.key == key) & (entries.c.seq == 2)).values(detail=put))
        with pytest.raises(Unreadable):
            executor.audit.history(ids["applied"])
    one, two = executor.audit.incidents()
    of_two = counted(ledger_url, sa.select(incidents.c.detail).where(incidents.c.number == two.number))
    changed(ledger_url, sa.update(incidents).where(incidents.c.number == one.number).values(detail=of_two))
    with pytest.raises(Unreadable):
        executor.audit.incidents()


def test_a_seal_sees_a_data_key_that_was_taken_away(
    ledger_url: str, order: Tool[..., Any], world: World, executor_of: Make, run: Run, keys: Any
) -> None:
    """An exchange of the cipher key is no change for the seals; taking a data key away is one, and so is one that was
    changed, where the cipher keys are at hand."""
    executor = executor_of(order, cipher_key=OLD)
    ids = history(executor, world)
    keys(NEW, OLD)
    assert run("audit", "seal", "--ledger", ledger_url).code == 0
    assert run("db", "reencrypt", "--ledger", ledger_url).code == 0
    assert verify(executor._engine).ok
    spoilt = sa.update(effects).where(effects.c.id == ids["refused"]).values(data_key=f"{key_id(NEW)}.AAAA")
    changed(ledger_url, spoilt)
    ran = run("audit", "verify", "--ledger", ledger_url)
    assert (ran.code, f"effect {ids['refused']} was changed: its data key does not open" in ran.out) == (6, True)
    changed(ledger_url, sa.update(effects).where(effects.c.id == ids["applied"]).values(data_key=None))
    (found,) = verify(executor._engine).findings
    assert (found.what, found.how, found.name) == ("effect", "changed", ids["applied"])


def test_the_extra_is_named_where_it_is_missing(order: Tool[..., Any], executor_of: Make, monkeypatch: Any) -> None:
    """Without cryptography a cipher key is refused with the words that install it."""
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(UsageError, match=r"pip install 'counterfoil\[encryption\]'"):
        executor_of(order, cipher_key=OLD)
