"""Which ledger is encrypted, and by which cipher key: marking it, exchanging the key, encrypting what is there.

Owns the statements of `db reencrypt`. A host that knows no cipher key begins nothing in an encrypted ledger: where it
is opened it is refused, and where it was open before, the database itself takes no effect without a data key. A host
that begins one holds the pin, so that a key is named no more only when nobody is about to write by it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.effect import Verdict
from counterfoil.errors import LedgerError, UsageError
from counterfoil.ledger import pins
from counterfoil.ledger.cipher import CipherKeys, Unreadable
from counterfoil.ledger.concealed import (
    CONCEALED,
    cipher_of,
    concealed_columns,
    concealed_entry,
    concealed_incident,
    incident_key,
    of_incident,
    with_incident_key,
)
from counterfoil.ledger.connect import READS
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import effects, entries, incidents

BATCH: Final = 200
PASSES: Final = 3
_TRIGGER: Final = "effects_encrypted"
_GUARD: Final = {
    "sqlite": (
        f"""CREATE TRIGGER IF NOT EXISTS {_TRIGGER} BEFORE INSERT ON effects WHEN NEW.data_key IS NULL
BEGIN SELECT RAISE(ABORT, 'the ledger is encrypted: this host has no cipher key'); END""",
    ),
    "postgresql": (
        """CREATE OR REPLACE FUNCTION counterfoil_encrypted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the ledger is encrypted: this host has no cipher key'; END $$""",
        f"""CREATE OR REPLACE TRIGGER {_TRIGGER} BEFORE INSERT ON effects FOR EACH ROW
WHEN (NEW.data_key IS NULL) EXECUTE FUNCTION counterfoil_encrypted()""",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encryption:
    """How far a ledger is encrypted. `key_ids`: of the cipher keys that are needed, the writing one first; none: it is
    not encrypted. The others are counted where it is: effects and incidents that are plain, effects and incidents under
    an earlier key, and entries that were written in plain, which stay so until their effect is pruned."""

    key_ids: tuple[str, ...] = ()
    plain: int = 0
    earlier: int = 0
    plain_entries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reencrypted:
    """What was done: effects and incidents that were plain, and those whose data key was wrapped anew; which could not
    be decrypted; how many were left because somebody works on them; entries that stay plain."""

    key_id: str = ""
    encrypted: int = 0
    rewrapped: int = 0
    unreadable: tuple[str, ...] = ()
    left: int = 0
    plain_entries: int = 0

    @property
    def complete(self) -> bool:
        return not (self.unreadable or self.left)

    def plus(self, more: Reencrypted) -> Reencrypted:
        """Both together; what is left, and what was unreadable, as the later one says."""
        return replace(
            more, encrypted=self.encrypted + more.encrypted, rewrapped=self.rewrapped + more.rewrapped,
            unreadable=tuple(dict.fromkeys((*self.unreadable, *more.unreadable))),
        )  # fmt: skip


# ---------------------------------------------------------------- opening


def agree(ledger: Ledger, keys: CipherKeys | None) -> None:
    """See that this host has the cipher keys of the ledger. The first one that opens an empty ledger encrypts it.

    Raises:
        UsageError: one is needed that was not given.
        LedgerError: the ledger cannot be asked, or not marked.
    """
    known = ledger._asked(pins.ciphers)
    if keys is None:
        if known:
            raise UsageError(
                f"this ledger is encrypted by the cipher key with the id {known[0]}: give Executor(..., cipher_key=...)"
            )
        return
    require(known, keys)
    if not known:
        ledger.write(partial(_first, ledger, keys))


def require(known: tuple[str, ...], keys: CipherKeys) -> None:
    """Refuse when a cipher key of the ledger is not among these.

    Raises:
        UsageError: its id is in the text.
    """
    missing = [one for one in known if not keys.knows([one])]
    if missing:
        raise UsageError(
            f"this ledger is encrypted by cipher keys that were not given, with the id {', '.join(missing)}: give all "
            "of them, the newest first"
        )


def _first(ledger: Ledger, keys: CipherKeys, connection: sa.Connection) -> None:
    now = ledger._time(connection)
    pins.expect_ciphers(connection, now)
    if pins.ciphers(connection, lock=True, change=True):
        return
    if connection.execute(sa.select(effects.c.key).limit(1)).first() is None:
        _mark(connection, (keys.newest,), now)


def _mark(connection: sa.Connection, ids: tuple[str, ...], now: int) -> None:
    """Say by which cipher keys the ledger is encrypted, and let the database take nothing plain."""
    pins.name_ciphers(connection, ids, now)
    try:
        for statement in _GUARD[connection.dialect.name]:
            connection.exec_driver_sql(statement)
    except sa.exc.ProgrammingError:
        raise LedgerError(
            "the ledger cannot be marked as encrypted by this role: let the owner of its tables run "
            "`counterfoil db reencrypt`"
        ) from None


def encryption(engine: sa.Engine) -> Encryption:
    """How far a ledger is encrypted. Reads, and needs no key.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: the database does not answer.
    """
    with engine.execution_options(isolation_level="AUTOCOMMIT", **{READS: True}).connect() as connection:
        ids = pins.ciphers(connection)
        if not ids:
            return Encryption()
        plain, earlier = _not_by(connection, ids[0])
        return Encryption(key_ids=ids, plain=plain, earlier=earlier, plain_entries=_plain_entries(connection))


def _not_by(connection: sa.Connection, key_id: str) -> tuple[int, int]:
    """How many effects and incidents are plain, and how many are under another key."""
    total = [0, 0]
    wrapped = incidents.c.detail["data_key"].as_string()
    for name in (effects.c.data_key, wrapped):
        asked = sa.select(sa.func.count(), sa.func.count(name), sa.func.count(sa.case((_by(name, key_id), 1))))
        every, some, mine = connection.execute(
            asked.select_from(name.table if name is not wrapped else incidents)
        ).one()
        total[0] += every - some
        total[1] += some - mine
    return total[0], total[1]


def _by(name: Any, key_id: str) -> Any:
    return name.like(f"{key_id}.%")


def _plain_entries(connection: sa.Connection) -> int:
    asked = sa.select(sa.func.count()).where(entries.c.detail[CONCEALED].as_string().is_(None))
    return int(connection.execute(asked.select_from(entries)).scalar_one())


# ---------------------------------------------------------------- encrypting what is there


def reencrypt(
    ledger: Ledger,
    keys: CipherKeys,
    *,
    by: str,
    batch: int = BATCH,
    told: Callable[[Reencrypted], object] = lambda _: None,
) -> Reencrypted:
    """Let the newest of these keys encrypt from now on, and bring all that is there under it.

    Each batch is one transaction. What a crash leaves is done when it is run again. When nothing is left under an
    earlier key, it is needed no more.

    Args:
        ledger: of which database; opened with the same keys.
        keys: all that the ledger needs, the newest first.
        by: who does it; it stands in the entries.
        batch: effects, or incidents, in one transaction.
        told: called after each batch with the sums so far.

    Raises:
        UsageError: a key that is needed is not among these.
        LedgerError: the database does not answer, or its role may not make a trigger.
    """
    newest = keys.newest
    ledger.write(partial(_switch, ledger, keys))
    done = Reencrypted(key_id=newest)
    for _ in range(PASSES):
        for step in (_Effects(ledger, keys, by, batch), _Incidents(ledger, keys, by, batch)):
            after: Any = step.start
            while after is not None:
                more, after = ledger.write(partial(step.work, after=after))
                done = done.plus(more)
                told(done)
        finished = ledger.write(partial(_finish, ledger, newest))
        done = done.plus(replace(finished, left=finished.left - len(done.unreadable)))
        if not done.left:
            break
    _sweep_file(ledger)
    return done


def _switch(ledger: Ledger, keys: CipherKeys, connection: sa.Connection) -> None:
    now = ledger._time(connection)
    pins.expect_ciphers(connection, now)
    known = pins.ciphers(connection, lock=True, change=True)
    require(known, keys)
    _mark(connection, (keys.newest, *(one for one in known if one != keys.newest)), now)


def _finish(ledger: Ledger, newest: str, connection: sa.Connection) -> Reencrypted:
    """Name the earlier keys no more, when nothing is under them: nobody can be about to write by one, who holds it."""
    known = pins.ciphers(connection, lock=True, change=True)
    plain, earlier = _not_by(connection, newest)
    if known[:1] == (newest,) and not earlier:
        pins.name_ciphers(connection, (newest,), ledger._time(connection))
    return Reencrypted(key_id=newest, left=plain + earlier, plain_entries=_plain_entries(connection))


@dataclass(frozen=True, slots=True)
class _Step:
    ledger: Ledger
    keys: CipherKeys
    by: str
    size: int


class _Effects(_Step):
    start: Final = b""

    def work(self, connection: sa.Connection, after: bytes) -> tuple[Reencrypted, bytes | None]:
        """A batch of effects after a key, and the last key of it."""
        newest = self.keys.newest
        other = (effects.c.key > after) & (effects.c.data_key.is_(None) | ~_by(effects.c.data_key, newest))
        # An attempt that is under way may be that of a host that was not told: it can still write down how it ended.
        unknown = effects.c.verdict == str(Verdict.EFFECT_UNKNOWN)
        other &= ~(unknown & (effects.c.lease_until >= self.ledger._time(connection)))
        found = _locked(connection, sa.select(effects).where(other).order_by(effects.c.key).limit(self.size))
        done = Reencrypted(key_id=newest)
        for one in found:
            if one["data_key"] is None:
                self._encrypt(connection, one)
                done = replace(done, encrypted=done.encrypted + 1)
                continue
            key = bytes(one["key"])
            try:
                wrapped = self.keys.rewrapped(one["data_key"], newest, key)
            except Unreadable:
                done = replace(done, unreadable=(*done.unreadable, one["id"]))
                continue
            connection.execute(sa.update(effects).where(effects.c.key == key).values(data_key=wrapped))
            done = replace(done, rewrapped=done.rewrapped + 1)
        return done, bytes(found[-1]["key"]) if len(found) == self.size else None

    def _encrypt(self, connection: sa.Connection, one: Mapping[str, Any]) -> None:
        """Conceal a plain effect. It is a change like any other, with its entry, so that its seals go on holding; its
        age stays, because nothing new is known of it."""
        key, version = bytes(one["key"]), one["version"] + 1
        data_key = self.keys.fresh(self.keys.newest, key)
        columns = concealed_columns(data_key, one) | {"data_key": data_key.wrapped, "version": version}
        connection.execute(sa.update(effects).where(effects.c.key == key).values(columns))
        detail = {"verdict": str(Verdict(one["verdict"])), "key_id": self.keys.newest}
        entry = {
            "key": key, "seq": version, "attempt": 0, "event": "encrypted", "actor": self.by, "fence": one["attempts"],
            "detail": concealed_entry(data_key, version, detail), "at": self.ledger._time(connection),
        }  # fmt: skip
        connection.execute(sa.insert(entries), entry)


class _Incidents(_Step):
    start: Final = 0

    def work(self, connection: sa.Connection, after: int) -> tuple[Reencrypted, int | None]:
        """A batch of incidents after a number, and the last number of it."""
        newest = self.keys.newest
        wrapped = incidents.c.detail["data_key"].as_string()
        other = (incidents.c.number > after) & (wrapped.is_(None) | ~_by(wrapped, newest))
        found = _locked(connection, sa.select(incidents).where(other).order_by(incidents.c.number).limit(self.size))
        done = Reencrypted(key_id=newest)
        for one in found:
            had = incident_key(one["detail"])
            try:
                if had is None:
                    detail = concealed_incident(self.keys, newest, one)
                    done = replace(done, encrypted=done.encrypted + 1)
                else:
                    detail = with_incident_key(one["detail"], self.keys.rewrapped(had, newest, of_incident(one)))
                    done = replace(done, rewrapped=done.rewrapped + 1)
            except Unreadable:
                done = replace(done, unreadable=(*done.unreadable, f"incident {one['number']}"))
                continue
            connection.execute(sa.update(incidents).where(incidents.c.number == one["number"]).values(detail=detail))
        return done, found[-1]["number"] if len(found) == self.size else None


def _locked(connection: sa.Connection, asked: sa.Select[Any]) -> Any:
    if connection.dialect.name != "sqlite":  # who is at work on one is left to it, for a later pass
        asked = asked.with_for_update(skip_locked=True)
    return connection.execute(asked).mappings().all()


def _sweep_file(ledger: Ledger) -> None:
    """Take what was plain out of a SQLite file and its log: what was overwritten stands in free pages until then."""
    if ledger.engine.dialect.name != "sqlite":
        return
    sweeping = ledger.engine.execution_options(isolation_level="AUTOCOMMIT", **{READS: True})
    with suppress(sa.exc.SQLAlchemyError), sweeping.connect() as connection:
        assert cipher_of(connection) is not None
        for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
            connection.exec_driver_sql(statement)
