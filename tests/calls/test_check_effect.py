"""`check_effect`: the legal move when something is unknown. It looks, and never sends; on both databases."""

from __future__ import annotations

from typing import Any

from outside import Make, World

from counterfoil import Tool, Verdict

GOOD = {"order": "A", "amount": 5}


def test_it_settles_a_doubt_by_looking(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """An unknown effect is looked at once; what is found is told as applied, with its value."""
    executor = executor_of(charge)
    world.next, world.looks = ["ack_lost"], ["raises"] * 20
    unknown = executor.call("charge", GOOD)
    assert unknown.verdict is Verdict.EFFECT_UNKNOWN
    assert f"check_effect with effect_id {unknown.effect_id}" in unknown.next_action
    still = executor.call("check_effect", {"effect_id": unknown.effect_id})
    assert still.code == "effect_unknown"
    world.looks.clear()
    seen = executor.call("check_effect", f'{{"effect_id": "{unknown.effect_id}"}}')
    assert (seen.code, seen.verdict, seen.value) == ("verified", Verdict.EFFECT_APPLIED, {"amount": 5})
    assert len(world.requests) == 1


def test_it_tells_every_end(charge: Tool[..., Any], world: World, executor_of: Make) -> None:
    """Applied is replayed, absence is told as no effect; it begins nothing either way."""
    executor = executor_of(charge)
    done = executor.call("charge", GOOD)
    assert executor.call("check_effect", {"effect_id": done.effect_id}).code == "replayed"
    world.next, world.looks = ["request_lost"], ["raises"] * 20
    lost = executor.call("charge", {"order": "B", "amount": 5})
    world.looks.clear()
    world.clock.advance(100)
    seen = executor.call("check_effect", {"effect_id": lost.effect_id})
    assert (seen.code, seen.verdict) == ("unavailable", Verdict.NO_EFFECT)
    assert len(world.requests) == 2


def test_it_knows_what_it_does_not_know(charge: Tool[..., Any], executor_of: Make) -> None:
    """A wrong id, a part of one, or other arguments: told, and nothing else."""
    executor = executor_of(charge)
    effect_id = str(executor.call("charge", GOOD).effect_id)
    for wrong in ("cf-nothing", effect_id[:10], "%"):
        assert executor.call("check_effect", {"effect_id": wrong}).code == "not_found"
    for arguments in ({}, {"effect_id": 7}, {"effect_id": effect_id, "more": 1}, "{"):
        assert executor.call("check_effect", arguments).code == "invalid_arguments"


def test_another_tenant_sees_nothing(charge: Tool[..., Any], executor_of: Make) -> None:
    """An id of one tenant is not found by another."""
    effect_id = executor_of(charge, tenant="T1").call("charge", GOOD).effect_id
    assert executor_of(charge, tenant="T2").call("check_effect", {"effect_id": effect_id}).code == "not_found"


def test_it_stands_in_the_schemas(charge: Tool[..., Any], executor_of: Make) -> None:
    """A model is shown it beside the tools."""
    assert [one["name"] for one in executor_of(charge).schemas()] == ["charge", "check_effect"]
