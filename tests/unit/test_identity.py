"""The key of an effect: what enters it, what does not, and that no release changes one by accident."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.canonical_samples import VALUES

from counterfoil.errors import UsageError
from counterfoil.identity import (
    ALL_ARGUMENTS,
    CANONICAL_VERSION,
    AllArguments,
    Identity,
    NotCanonical,
    canonical,
    identify,
    provider_key,
)

GOLDEN = json.loads((Path(__file__).parent / "golden_identity.json").read_text())


CHARGE: dict[str, Any] = {
    "tenant": "t1", "tool": "charge", "task": "trip-42", "names": ("order",),
    "identity_arguments": {"order": "A-1", "cents": 500}, "explicit_key": None, "occurrence": None,
}  # fmt: skip
IDENTITIES: Mapping[str, dict[str, Any]] = {
    "by a name": CHARGE,
    "another order": CHARGE | {"identity_arguments": {"order": "A-2", "cents": 500}},
    "another tenant": CHARGE | {"tenant": "t2"},
    "another tool": CHARGE | {"tool": "refund"},
    "by two names": CHARGE | {"names": ("order", "cents")},
    "by all arguments": CHARGE | {"names": ALL_ARGUMENTS},
    "by all arguments in another task": CHARGE | {"names": ALL_ARGUMENTS, "task": "trip-43"},
    "by the caller": CHARGE | {"explicit_key": "k-1"},
    "a second time": CHARGE | {"occurrence": 2},
    "a second time, by all arguments": CHARGE | {"names": ALL_ARGUMENTS, "occurrence": "2"},
}


def named(name: str, **changes: Any) -> Identity:
    return identify(**{**IDENTITIES[name], **changes})


def recomputed() -> dict[str, Any]:
    """What the golden file should say. To freeze a new version on purpose, write this to it."""
    identities = {name: identify(**given) for name, given in IDENTITIES.items()}
    return {
        "version": CANONICAL_VERSION,
        "canonical": {name: canonical(value).decode() for name, value in VALUES.items()},
        "identities": {
            name: {"key": one.key.hex(), "id": one.id, "fingerprint": one.fingerprint.hex()}
            for name, one in identities.items()
        },
    }


# ---------------------------------------------------------------- the frozen form


def test_the_frozen_vectors_are_what_this_release_computes() -> None:
    """Every key that an earlier release wrote into a ledger is still found: at least 40 vectors hold byte for byte."""
    assert recomputed() == GOLDEN
    assert len(GOLDEN["canonical"]) + len(GOLDEN["identities"]) >= 40


def test_an_identity_has_the_shape_that_ledgers_and_providers_rely_on() -> None:
    """Key and fingerprint are 32 bytes; the id is a public name of at most 64 characters of [a-z0-9-]."""
    one = named("by a name")
    assert (len(one.key), len(one.fingerprint), len(one.id)) == (32, 32, 31)
    assert set(one.id) <= set(string.ascii_lowercase + string.digits + "-")
    assert provider_key(one.id, 3) == f"{one.id}-k3"
    assert one.key != one.fingerprint


# ---------------------------------------------------------------- the key


def test_named_arguments_identify_across_tasks_and_all_arguments_within_one() -> None:
    """key=("order",) ignores task and the other arguments; ALL_ARGUMENTS takes both (§5)."""
    by_name, by_all = named("by a name"), named("by all arguments")
    other = {"order": "A-1", "cents": 700}
    assert named("by a name", task="trip-99").key == by_name.key
    assert named("by a name", identity_arguments=other).key == by_name.key
    assert named("by all arguments", task="trip-99").key != by_all.key
    assert named("by all arguments", identity_arguments=other).key != by_all.key


def test_tenant_and_tool_are_always_part_of_the_key() -> None:
    """One tenant's or tool's key never answers another's, in every way of naming (C25)."""
    for name in ("by a name", "by all arguments", "by the caller"):
        keys = {named(name).key, named(name, tenant="t2").key, named(name, tool="refund").key}
        assert len(keys) == 3


def test_a_callers_key_takes_the_place_of_arguments_and_task() -> None:
    """An explicit key is scoped by tenant and tool alone, and is never the key that arguments make."""
    one = named("by the caller")
    assert one.key == named("by the caller", task="x", identity_arguments={}, names=ALL_ARGUMENTS).key
    assert one.key != named("by the caller", explicit_key="k-2").key
    assert one.key not in {named("by a name").key, named("by all arguments").key}
    for empty in ("", "  "):
        with pytest.raises(UsageError, match="key= is empty"):
            named("by a name", explicit_key=empty)


@pytest.mark.parametrize("name", ["by a name", "by all arguments", "by the caller"])
def test_an_occurrence_tells_wanted_repeats_apart(name: str) -> None:
    """None, "" and nothing are one; 2 and "2" are one; every other occurrence is another effect."""
    assert named(name, occurrence="").key == named(name, occurrence=None).key == named(name).key
    assert named(name, occurrence=2).key == named(name, occurrence="2").key
    keys = {named(name, occurrence=again).key for again in (None, 0, 1, 2, "two", "Two")}
    assert len(keys) == 6


def test_the_fingerprint_covers_all_identity_arguments_and_nothing_else() -> None:
    """The same key with other arguments shows in the fingerprint (C24); task and occurrence do not."""
    one = named("by a name")
    assert named("by a name", identity_arguments={"order": "A-1", "cents": 700}).fingerprint != one.fingerprint
    assert named("by a name", identity_arguments={"cents": 500.0, "order": "A-1"}).fingerprint == one.fingerprint
    assert named("by the caller", task="x", occurrence=3, tenant="t2").fingerprint == one.fingerprint
    assert named("by a name", tool="refund").fingerprint != one.fingerprint


@given(st.lists(st.text("ab:|\0", max_size=3), min_size=3, max_size=3))
def test_parts_of_a_key_cannot_run_into_each_other(parts: list[str]) -> None:
    """Moving a character from one part into the next makes another key: no text can forge its neighbour."""
    tenant, tool, task = parts

    def key(*given: str) -> bytes:
        return named("by all arguments", tenant=given[0], tool=given[1], task=given[2]).key

    shifted = (tenant + "a", tool, task), (tenant, "a" + tool, task), (tenant, tool, "a" + task)
    assert len({key(*one) for one in shifted}) == len(set(shifted)) == 3


def test_adding_an_optional_argument_to_the_key_changes_no_key() -> None:
    """A name in key= whose argument is left out as a default leaves the key as it was."""
    assert named("by a name", names=("order", "currency")).key == named("by a name").key
    assert isinstance(ALL_ARGUMENTS, AllArguments)


def test_what_cannot_be_canonical_never_becomes_a_key() -> None:
    """identify refuses what canonical refuses, and says which argument it is."""
    refused: Callable[[], Identity] = lambda: named("by a name", identity_arguments={"order": math.nan})  # noqa: E731
    with pytest.raises(NotCanonical, match="order must be a finite number"):
        refused()
