"""Equal values have one key and unequal values two: every pair of 150 spellings of each type, on both databases."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from typing import Any

import pytest
from changing import One, terms
from identity.spelling import KINDS, Sample, samples
from unit.samples import one, valid

from counterfoil import ALL_ARGUMENTS, ManualClock
from counterfoil.arguments import Arguments
from counterfoil.changes import Begin
from counterfoil.identity import Identity, identify
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.ledger import Ledger

PAIRS = 10_000


def identity(arguments: Any) -> Identity:
    return identify(tenant="t", tool="x", task="k", names=ALL_ARGUMENTS, identity_arguments=arguments)


def spelt(arguments: Arguments, sample: Sample) -> tuple[Identity, str]:
    """The identity of a spelling, and the arguments as they are kept."""
    found = valid(arguments, f'{{"x": {sample.text}}}')
    return identity(found.identity), found.stored


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


def test_a_ledger_keeps_them_apart_and_gives_them_back(ledger_url: str) -> None:
    """Written and read back, the arguments of every spelling of every type make the key that they were written under;
    there are as many effects as there are values."""
    engine = open_engine(ledger_url)
    ledger = Ledger(engine, clock=ManualClock())
    distinct = 0
    for kind, (annotation, _) in KINDS.items():
        arguments = one(annotation)
        begins: dict[bytes, Begin] = {}
        references = defaultdict(set)
        for sample in samples(kind):
            named, stored = spelt(arguments, sample)
            references[named.key].add(sample.reference)
            begins[named.key] = One(ledger, tool=kind).begin(
                terms(), key=named.key, id=f"{named.id}-{kind}", tool=kind, fingerprint=named.fingerprint,
                arguments=stored, echo=stored, claim_id=f"c{distinct + len(begins)}", fresh=True,
            )  # fmt: skip
        assert all(len(one) == 1 for one in references.values())
        begins = {key: begin for key, begin in begins.items() if ledger.read(key) is None}
        ledger.apply(list(begins.values()))
        distinct += len(begins)
        for key in begins:
            row = ledger.read(key)
            assert row is not None
            revived = arguments.revive(row.arguments)
            assert isinstance(revived, dict), revived
            again = valid(arguments, row.arguments)
            assert (identity(again.identity).key, row.fingerprint) == (key, identity(again.identity).fingerprint)
    assert distinct > 300
    engine.dispose()
