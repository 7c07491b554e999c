"""Tenants: a ledger of several wants to know whose effect each is, and none of them sees another's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Run, run, shop
from outside import Make, World

from counterfoil import Effect, Executor, ManualClock, SystemClock, Tool, UsageError, Verdict, tool

__all__ = ["run", "shop"]
# As a text of the other tenant would look, wherever it came through.
MARK = "of-the-south"


@pytest.fixture
def order(world: World) -> Tool[..., Any]:
    """A tool whose effects and values carry the mark of who asked."""

    @tool(key=("name",))
    def create_order(effect: Effect, name: str, whose: str) -> dict[str, str]:
        """Create one order. Use it when the customer has chosen."""
        world.act(effect)
        effect.reference = f"ref-{whose}"
        return {"order": f"{name} {whose}"}

    return create_order


def test_the_first_tenant_marks_a_ledger(order: Tool[..., Any], executor_of: Make) -> None:
    """Once a tenant was the first to use a ledger, an executor without one is refused, and nothing happens."""
    executor_of(order, tenant="north").call("create_order", {"name": "A", "whose": "x"})
    with pytest.raises(UsageError, match=r"several tenants: give Executor\(..., tenant=...\)"):
        executor_of(order)
    executor_of(order, tenant="south")


def test_a_ledger_without_tenants_stays_so(order: Tool[..., Any], executor_of: Make) -> None:
    """Where an effect without a tenant came first, nobody is locked out by the first tenant."""
    executor_of(order).call("create_order", {"name": "A", "whose": "x"})
    executor_of(order, tenant="north").call("create_order", {"name": "A", "whose": "x"})
    executor_of(order)


def test_an_operator_says_whether_a_tenant_is_needed(
    ledger_url: str, order: Tool[..., Any], executor_of: Make, run: Run
) -> None:
    """`db tenants --require` marks the ledger and `--allow-none` takes the mark away, whatever was first."""
    executor_of(order).call("create_order", {"name": "A", "whose": "x"})
    assert run("db", "tenants", "--ledger", ledger_url).out == "an executor need not be given a tenant\n"
    assert run("db", "tenants", "--require", "--json", "--ledger", ledger_url).json == {"tenant_required": True}
    with pytest.raises(UsageError, match="several tenants"):
        executor_of(order)
    assert run("db", "tenants", "--allow-none", "--ledger", ledger_url).code == 0
    executor_of(order, tenant="north")
    executor_of(order)


@pytest.fixture
def clock() -> ManualClock:
    """Two days ago, so that a prune by the real clock finds what is old."""
    return ManualClock(SystemClock().wall_us() - 172_800_000_000)


def south_seen(ledger_url: str, executor: Executor, run: Run, south_id: str, archive: Path) -> str:
    """Everything that the tenant of an executor can be told: calls, audit, and commands that name the tenant."""
    told: list[Any] = [executor.call("create_order", {"name": "A", "whose": "north"}, task="t").as_dict()]
    told += [executor.call("create_order", {"name": "A", "whose": "again"}, task="t").as_dict()]
    told += [executor.call("check_effect", {"effect_id": south_id}).as_dict()]
    audit = executor.audit
    told += [audit.effects(), audit.effects(tenant="south"), audit.doubts(), audit.incidents(closed=True)]
    told += [audit.guards(), audit.stats(), audit.stats(by="day"), audit.code_stats(), audit.spending("t", "south")]
    for asked in (audit.effect, audit.history, audit.sightings):
        with pytest.raises(UsageError, match="no effect has this id"):
            asked(south_id)
    with pytest.raises(UsageError, match="no effect has this id"):
        executor.resolve(south_id, "no_effect", by="me", why="so", version=1)
    with pytest.raises(UsageError, match="no incident"):
        executor.close_incident(1, by="me", why="so")
    told += [executor.reconcile(), list(executor.rollback("t"))]
    for words in (["effects"], ["doubts"], ["stats"], ["stats", "--by", "code"], ["incidents", "--closed"], ["status"]):
        ran = run(*words, "--tenant", "north", "--ledger", ledger_url)
        told.append((ran.out, ran.err))
    ran = run("show", south_id, "--tenant", "north", "--ledger", ledger_url)
    assert (ran.code != 0, "no effect has this id" in ran.err) == (True, True)
    told.append(ran.out)
    told += [
        run("audit", "export", *form, "--tenant", "north", "--ledger", ledger_url) for form in ([], ["--format", "csv"])
    ]
    prune = ("prune", "--older-than", "0s", "--tenant", "north", "--export", archive, "--ledger", ledger_url)
    ran = run(*prune, "--json")
    assert ran.json["pruned"] == 1
    told += [ran, run(*prune), archive.read_text(), run("audit", "archive", archive)]
    theirs = run("effects", "--tenant", "south", "--json", "--ledger", ledger_url).json
    assert [one["pruned_at"] for one in theirs] == [None] * 9
    return repr(told)


@pytest.mark.parametrize("cipher_key", [None, b"k" * 32], ids=["plain", "encrypted"])
def test_nothing_of_one_tenant_is_told_to_another(
    ledger_url: str,
    order: Tool[..., Any],
    world: World,
    executor_of: Make,
    run: Run,
    cipher_key: bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same key, first with other and then with equal arguments, is an effect of its own for each tenant (C25); no
    message, listing, count, export or archive of the one holds a word or a number of the other, and it can settle and
    prune nothing there."""
    monkeypatch.setenv("COUNTERFOIL_CIPHER_KEYS", "" if cipher_key is None else cipher_key.hex())
    south = executor_of(order, tenant="south", cipher_key=cipher_key)
    first = south.call("create_order", {"name": "A", "whose": MARK}, task="t")
    for number in range(7):
        south.call("create_order", {"name": f"B{number} {MARK}", "whose": MARK}, task=MARK, call_id=MARK)
    world.next = ["ack_lost"]
    doubt = south.call("create_order", {"name": f"C {MARK}", "whose": MARK}, task="t")
    assert doubt.verdict is Verdict.EFFECT_UNKNOWN
    south.pause("create_order", by=MARK, why=MARK)
    world.clock.advance(100_000)
    assert south.reconcile().incidents == 1
    south.resume("create_order")

    north = executor_of(order, tenant="north", cipher_key=cipher_key)
    seen = south_seen(ledger_url, north, run, str(first.effect_id), tmp_path / "archive.jsonl")
    assert MARK not in seen
    assert str(first.effect_id) not in seen
    (mine,) = north.audit.effects()
    assert (mine.tenant, mine.verdict) == ("north", Verdict.EFFECT_APPLIED)
    (counted,) = north.audit.stats()
    assert (counted.effects, counted.unknown, counted.incidents) == (1, 0, 0)
    east = executor_of(order, tenant="east", cipher_key=cipher_key)
    same = east.call("create_order", {"name": "A", "whose": MARK}, task="t")
    assert (same.code, same.effect_id != first.effect_id) == ("ok", True)
    everything = json.dumps(run("effects", "--json", "--ledger", ledger_url).json)
    assert MARK in everything, "an operator who names no tenant sees all"


@pytest.mark.parametrize(("one", "other"), [("a:b", "a"), ("a/b", "a"), ('a","tool":"x', "a"), ("á", "a")])
def test_a_tenant_with_a_separator_is_nobody_else(
    order: Tool[..., Any], world: World, executor_of: Make, one: str, other: str
) -> None:
    """However tenants, tools and keys are spelt, the parts of a key cannot be shifted into each other."""
    rest = one.removeprefix(other)
    first = executor_of(order, tenant=one).call("create_order", {"name": "b", "whose": "x"}, key="k")
    second = executor_of(order, tenant=other).call("create_order", {"name": "b", "whose": "x"}, key=f"{rest}k")
    assert (first.code, second.code) == ("ok", "ok")
    assert first.effect_id != second.effect_id
    assert len(world.requests) == 2


@pytest.mark.parametrize("name", ["a\x00b", "a\ud800", "*", 7])
def test_a_tenant_that_no_database_keeps_is_refused(executor_of: Make, name: Any) -> None:
    """NUL, half of a character, the name of everybody and what is no text: an error that says so, before anything."""
    with pytest.raises(UsageError, match="tenant"):
        executor_of(tenant=name)
