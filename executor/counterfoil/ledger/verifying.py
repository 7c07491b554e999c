"""Comparing a ledger with its seals: which entry or effect of a sealed part is not as it was sealed.

Only reads, all of it in one picture of the database, so that writers may go on: what they change after a seal has a
higher version, and is the next seal's. Three streams are walked in the order of keys, so memory does not grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Final, Literal, TypeAlias

import sqlalchemy as sa

from counterfoil.effect import Verdict
from counterfoil.errors import LedgerUnavailable, UsageError
from counterfoil.ledger import pins
from counterfoil.ledger.cipher import CipherKeys, Unreadable
from counterfoil.ledger.concealed import cipher_of
from counterfoil.ledger.picture import picture, stream
from counterfoil.ledger.schema import effects, entries, sealed, seals
from counterfoil.ledger.sealing import FORMAT, RAW_EFFECT, RAW_ENTRY, START, Digests, Leaf, fallen, raw
from counterfoil.ledger.seals import Seal, to_seal

What: TypeAlias = Literal["effect", "entry", "seal"]
How: TypeAlias = Literal["changed", "removed", "added", "reordered"]
_RAW_LEAF: Final = raw(sealed)
_TOLD_EVERY: Final = 1000
_MISSING_NAMED: Final = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it was sealed. `name` is the effect's id (or the beginning of its key, where there is no
    effect any more); for a seal, its number. `seq` is the entry's."""

    what: What
    how: How
    name: str
    seq: int | None = None
    remark: str = ""

    @property
    def text(self) -> str:
        """As a line for a person."""
        of = f"entry {self.seq} of {self.name}" if self.what == "entry" else f"{self.what} {self.name}"
        return f"{of} was {self.how}" + (f": {self.remark}" if self.remark else "")


@dataclass(slots=True)
class Verified:
    """What was compared, and what was found. `unsealed`: effects with changes that no seal holds yet; about those,
    nothing is said. `last`: the newest seal."""

    seals: int = 0
    effects: int = 0
    entries: int = 0
    unsealed: int = 0
    pruned: int = 0
    unkeyed: int = 0
    last: Seal | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.findings


def verify(
    engine: sa.Engine,
    secrets: Sequence[bytes] = (),
    *,
    root: str | None = None,
    told: Callable[[int], object] = lambda _: None,
) -> Verified:
    """Compare everything that is sealed with its seals.

    Args:
        engine: opened by `connect.open_engine`; reading is enough.
        secrets: those that keyed the seals.
        root: a root that was kept elsewhere, as it was printed, NUMBER:ROOT.
        told: called with the number of effects compared so far, now and then.

    Raises:
        UsageError: a seal is keyed by a secret that is not given, or of a newer format; `root` is none.
        LedgerUnavailable: the database does not answer.
    """
    kept = None if root is None else _kept(root)
    try:
        with picture(engine) as connection:
            return compared(connection, secrets, kept, told)
    except sa.exc.SQLAlchemyError:
        raise LedgerUnavailable("the ledger's database does not answer", certain=True) from None


def compared(
    connection: sa.Connection,
    secrets: Sequence[bytes],
    kept: tuple[int, str] | None = None,
    told: Callable[[int], object] = lambda _: None,
) -> Verified:
    """As `verify`, in the transaction of a connection. `kept` is a root's number and digits."""
    seen = Verified()
    chain = [to_seal(one) for one in connection.execute(sa.select(seals).order_by(seals.c.number))]
    digests = _digests(connection, secrets)
    _check_chain(connection, digests, seen)
    _check_effects(connection, digests, seen, told)
    seen.seals, seen.last = len(chain), chain[-1] if chain else None
    if kept is not None and not any((one.number, one.root.hex()) == kept for one in chain):
        seen.findings.append(Finding("seal", "changed", str(kept[0]), None, "it has not the root that was kept"))
    if secrets and chain and seen.unkeyed == len(chain):
        why = "no seal is keyed, and a secret is given"
        seen.findings.append(Finding("seal", "changed", str(chain[-1].number), None, why))
    return seen


# ---------------------------------------------------------------- the chain


def _kept(root: str) -> tuple[int, str]:
    number, colon, digits = root.strip().partition(":")
    if not (number.isdecimal() and colon and len(digits) == 2 * len(START)):
        raise UsageError("a root is as `audit seal` printed it: NUMBER:ROOT")
    return int(number), digits.lower()


def _digests(connection: sa.Connection, secrets: Sequence[bytes]) -> dict[int, Digests]:
    """What each seal was made with."""
    known: dict[str | None, Digests] = {None: Digests(None)}
    for secret in secrets:
        one = Digests(secret)
        known[one.secret_id] = one
    made = {}
    for number, form, secret_id in connection.execute(sa.select(seals.c.number, seals.c.format, seals.c.secret_id)):
        if form != FORMAT:
            raise UsageError(f"seal {number} is of format {form}, and this Counterfoil knows {FORMAT}")
        if secret_id not in known:
            raise UsageError(f"seal {number} is keyed by the secret with the id {secret_id}: give that secret")
        made[int(number)] = known[secret_id]
    return made


def _check_chain(connection: sa.Connection, digests: Mapping[int, Digests], seen: Verified) -> None:
    """Each seal is chained to the one before it, and holds what it held."""
    leaves = groupby(
        stream(connection, sa.select(*_RAW_LEAF).order_by(sealed.c.seal, sealed.c.key)), key=lambda one: one["seal"]
    )
    number, group = next(leaves, (None, iter(())))
    previous, before, keyed = START, 0, False
    for one in connection.execute(sa.select(seals).order_by(seals.c.number)).all():
        if one.number != before + 1:
            gap = f"{before + 1}" if one.number == before + 2 else f"{before + 1} to {one.number - 1}"
            seen.findings.append(Finding("seal", "removed", gap))
        while number is not None and number < one.number:
            seen.findings.append(Finding("seal", "removed", str(number), None, "what it held is there"))
            number, group = next(leaves, (None, iter(())))
        made = digests[one.number]
        mine: Iterator[Mapping[str, Any]] = iter(())
        if number == one.number:
            mine = group
        names = ("number", "format", "at", "effects", "entries", "secret_id", "previous")
        head = {name: getattr(one, name) for name in names}
        if made.root(head, (made.leaf(_leaf(leaf)) for leaf in mine)) != bytes(one.root):
            seen.findings.append(Finding("seal", "changed", str(one.number)))
        elif bytes(one.previous) != previous and one.number == before + 1:
            seen.findings.append(Finding("seal", "changed", str(one.number), None, "it follows another seal"))
        elif keyed and one.secret_id is None:
            seen.findings.append(Finding("seal", "changed", str(one.number), None, "it is not keyed; one before it is"))
        if number == one.number:
            number, group = next(leaves, (None, iter(())))
        keyed |= one.secret_id is not None
        seen.unkeyed += one.secret_id is None
        previous, before = bytes(one.root), one.number
    if number is not None:
        seen.findings.append(Finding("seal", "removed", str(number), None, "what it held is there"))


def _leaf(columns: Mapping[str, Any]) -> Leaf:
    return Leaf(**{name: columns[name] for name in Leaf.__slots__})


# ---------------------------------------------------------------- effects and entries


@dataclass(slots=True)
class _Effect:
    """All that there is under one key."""

    key: bytes
    row: Mapping[str, Any] | None = None
    entries: list[Mapping[str, Any]] = field(default_factory=list)
    leaves: list[tuple[int, Leaf]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"with the key {self.key.hex()[:16]}…" if self.row is None else str(self.row["id"])


def _check_effects(
    connection: sa.Connection, digests: Mapping[int, Digests], seen: Verified, told: Callable[[int], object]
) -> None:
    keys = cipher_of(connection)
    if keys is not None and not keys.knows(pins.ciphers(connection)):
        keys = None  # without all of them, one that does not open says nothing
    for number, one in enumerate(_effects(connection, seen), start=1):
        try:
            _check(one, digests, seen)
            _check_data_key(one, keys, seen)
        except (TypeError, ValueError):
            seen.findings.append(Finding("effect", "changed", one.name, None, "it holds what no ledger writes"))
        if number % _TOLD_EVERY == 0:
            told(number)


def _effects(connection: sa.Connection, seen: Verified) -> Iterator[_Effect]:
    """Walk effects, entries and leaves together, key by key."""
    asked = (
        sa.select(*RAW_EFFECT).order_by(effects.c.key),
        sa.select(*RAW_ENTRY).order_by(entries.c.key, entries.c.seq),
        sa.select(*_RAW_LEAF).order_by(sealed.c.key, sealed.c.seal),
    )
    walks = [_grouped(stream(connection, one), seen) for one in asked]
    heads = [next(walk, None) for walk in walks]
    while any(heads):
        key = min(head[0] for head in heads if head is not None)
        one = _Effect(key)
        for place, head in enumerate(heads):
            if head is None or head[0] != key:
                continue
            if place == 0:
                one.row = head[1][0]
            elif place == 1:
                one.entries = head[1]
            else:
                one.leaves = [(leaf["seal"], _leaf(leaf)) for leaf in head[1]]
            heads[place] = next(walks[place], None)
        yield one


def _grouped(rows: Iterator[Mapping[str, Any]], seen: Verified) -> Iterator[tuple[bytes, list[Mapping[str, Any]]]]:
    for key, group in groupby(rows, key=lambda one: one["key"]):
        if isinstance(key, bytes):
            yield key, list(group)
        else:  # SQLite takes anything for a key; nothing is ever begun under such a one
            seen.findings.append(Finding("effect", "added", repr(key)[:40], None, "its key is none"))


def _check(one: _Effect, digests: Mapping[int, Digests], seen: Verified) -> None:
    row = one.row
    if row is None:
        if one.leaves:
            seen.findings.append(Finding("effect", "removed", one.name, None, f"it is in seal {one.leaves[-1][0]}"))
        for entry in one.entries:
            if _covering(one, entry["seq"]) is None:
                seen.findings.append(Finding("entry", "added", one.name, entry["seq"], "there is no such effect"))
        return
    seen.effects += 1
    seen.entries += len(one.entries)
    seen.pruned += row["pruned_at"] is not None
    last = one.leaves[-1] if one.leaves else None
    sealed_version = 0 if last is None else last[1].version
    if last is None and row["sealed_version"] != 0:
        seen.findings.append(Finding("effect", "added", one.name, None, "no seal holds it, and it says that one does"))
    elif row["sealed_version"] != sealed_version:
        seen.findings.append(Finding("effect", "changed", one.name, None, "it says that it was sealed otherwise"))
    elif last is not None:
        _check_state(one, row, last[1], digests.get(last[0]), seen)
    seen.unsealed += row["version"] != sealed_version
    _check_book(one, row, digests, seen)


def _check_data_key(one: _Effect, keys: CipherKeys | None, seen: Verified) -> None:
    """A wrapped data key is in no seal, because an exchange of the cipher key wraps it anew: it must open."""
    if keys is None or one.row is None or one.row["data_key"] is None:
        return
    try:
        keys.opened(str(one.row["data_key"]), one.key)
    except Unreadable:
        why = "its data key does not open with the cipher keys that were given"
        seen.findings.append(Finding("effect", "changed", one.name, None, why))


def _check_state(one: _Effect, row: Mapping[str, Any], last: Leaf, digests: Digests | None, seen: Verified) -> None:
    """The state is the sealed one as long as the version is; a later version is explained by later entries."""
    if digests is None or not isinstance(row["version"], int) or row["version"] < last.version:
        seen.findings.append(Finding("effect", "changed", one.name, None, f"it was at version {last.version}"))
    elif row["version"] == last.version:
        if digests.state(row) != last.state:
            seen.findings.append(Finding("effect", "changed", one.name))
        elif row["verdict"] == str(Verdict.EFFECT_UNKNOWN) and fallen(row, last.least):
            seen.findings.append(Finding("effect", "changed", one.name, None, "what may only grow became less"))


def _check_book(one: _Effect, row: Mapping[str, Any], digests: Mapping[int, Digests], seen: Verified) -> None:
    """The entries count up to the effect's version without a gap, from 1 or from where a prune began anew."""
    there = {entry["seq"]: entry for entry in one.entries}
    first = min(there, default=1)
    if first != 1 and there[first]["event"] != "pruned":
        first = 1
    end = max((*there, *(leaf.version for _, leaf in one.leaves)), default=0)
    if row["version"] > end:
        why = f"its version is {row['version']}, and its book ends with entry {end}"
        seen.findings.append(Finding("effect", "changed", one.name, None, why))
    missing = (seq for seq in range(first, min(row["version"], end) + 1) if seq not in there)
    for seq in islice(missing, _MISSING_NAMED):
        seen.findings.append(Finding("entry", "removed", one.name, seq))
    for seq, entry in there.items():
        if not first <= seq <= row["version"]:
            seen.findings.append(Finding("entry", "added", one.name, seq))
            continue
        covering = _covering(one, seq)
        if covering is None:
            if one.leaves and seq <= one.leaves[-1][1].version:
                seen.findings.append(
                    Finding("entry", "added", one.name, seq, "no seal holds it, one after it is sealed")
                )
            continue
        number, mark = covering
        made = digests.get(number)
        if made is not None and made.entry(entry) != mark:
            was = _was(one, entry, made)
            if was is None:
                seen.findings.append(Finding("entry", "changed", one.name, seq))
            else:
                seen.findings.append(Finding("entry", "reordered", one.name, seq, f"it was entry {was}"))


def _covering(one: _Effect, seq: int) -> tuple[int, bytes] | None:
    """The seal that holds an entry, and the digest that it holds."""
    for number, leaf in one.leaves:
        mark = leaf.of(seq)
        if mark is not None:
            return number, mark
    return None


def _was(one: _Effect, entry: Mapping[str, Any], made: Digests) -> int | None:
    """The place that an entry had when it was sealed, where it had another one."""
    for _, leaf in one.leaves:
        for seq in range(leaf.first, leaf.first + len(leaf.entries) // len(START)):
            if made.entry({**entry, "seq": seq}) == leaf.of(seq):
                return seq
    return None
