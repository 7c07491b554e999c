"""Equal values have one key and unequal values two: every pair of 150 spellings of each type, on both databases."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from changing import terms
from identity.spelling import KINDS, Sample, samples
from unit.samples import one, valid

from counterfoil import ALL_ARGUMENTS, ManualClock
from counterfoil.arguments import Arguments
from counterfoil.changes import Begin
from counterfoil.identity import Identity, identify
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger

PAIRS = 10_000


def identity(arguments: Any, tool: str = "x") -> Identity:
    return identify(tenant="t", tool=tool, task="k", names=ALL_ARGUMENTS, identity_arguments=arguments)


def spelt(arguments: Arguments, sample: Sample, tool: str = "x") -> tuple[Identity, str]:
    """The identity of a spelling, and the arguments as they are kept."""
    found = valid(arguments, f'{{"x": {sample.text}}}')
    return identity(found.identity, tool), found.stored


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_are_equal_exactly_when_their_keys_are(kind: str) -> None:
    """Of more than 10,000 pairs of a type none shares a key without being equal, and none is equal with two keys; both
    sorts of pairs are among them."""
    arguments = one(KINDS[kind][0])
    named = [(spelt(arguments, sample)[0], sample) for sample in samples(kind)]
    pairs = list(combinations(named, 2))
    wrong = [(a.text, b.text) for (x, a), (y, b) in pairs if (x.key == y.key) != (a.reference == b.reference)]
    assert wrong == []
    equal = sum(a.reference == b.reference and a.text != b.text for (_, a), (_, b) in pairs)
    assert len(pairs) >= PAIRS
    assert sum(a.reference != b.reference for (_, a), (_, b) in pairs) > 100
    assert equal > 10 or kind in ("date", "bytes", "flag"), "there are equal values in different spellings"
    assert all((x.key == y.key) == (x.fingerprint == y.fingerprint) for (x, _), (y, _) in pairs)


def test_no_two_types_share_a_key_by_their_spelling() -> None:
    """Text is never taken for what it looks like: the kinds that JSON writes as text keep apart from text itself."""
    text = one(str)
    for kind in ("instant", "date", "time", "duration", "uuid", "bytes"):
        arguments = one(KINDS[kind][0])
        for sample in samples(kind)[:40]:
            assert spelt(arguments, sample)[0].key != spelt(text, sample)[0].key


def begun(kind: str, named: Identity, stored: str, number: int) -> Begin:
    """The begin of an effect with these arguments."""
    return Begin(
        key=named.key, id=named.id, tenant="t", tool=kind, task="k", turn=None, call_id=None, occurrence="",
        fingerprint=named.fingerprint, canonical_version=1, arguments=stored, echo=stored, holder="host:1",
        claim_id=f"c{number}", terms=terms(),
    )  # fmt: skip


def test_a_ledger_keeps_them_apart_and_gives_them_back(ledger_url: str) -> None:
    """Written and read back, the arguments of every spelling of every type make the key that they were written under;
    there are as many effects as there are values."""
    engine = open_engine(ledger_url)
    try:
        ledger = Ledger(engine, clock=ManualClock())
        values: set[tuple[str, Any]] = set()
        begins: dict[bytes, Begin] = {}
        of_kind = {kind: one(annotation) for kind, (annotation, _) in KINDS.items()}
        for kind, arguments in of_kind.items():
            for sample in samples(kind):
                named, stored = spelt(arguments, sample, kind)
                values.add((kind, sample.reference))
                begins.setdefault(named.key, begun(kind, named, stored, len(begins)))
        assert len(begins) == len(values) > 300
        ledger.apply(list(begins.values()))
        rows = Audit(ledger).effects(limit=len(begins) + 1)
        assert len(rows) == len(begins)
        for row in rows:
            arguments = of_kind[row.tool]
            assert isinstance(arguments.revive(row.arguments), dict)
            again = identity(valid(arguments, row.arguments).identity, row.tool)
            assert (again.key, again.fingerprint) == (row.key, row.fingerprint)
    finally:
        engine.dispose()
