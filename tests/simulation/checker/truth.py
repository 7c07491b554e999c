"""The ledger's verdicts against the world: no effect means none, applied means at least one, and never two.

Owns the three rules that the promise is made of. What excuses a breach stands in `excuses`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from simulation.checker.excuses import doubles, is_excused
from simulation.checker.reading import APPLIED, Closing, Commit, Effect, Landing, structured

# Proofs by the attempt itself: it never had an effect, not even one that was taken back.
BY_ITSELF = ("never_sent", "rejected", "spoken", "same_transaction")


def no_effect(effect: Effect) -> Iterator[str]:
    """A proven attempt has had no effect, and never has one."""
    for closing in effect.closings:
        if closing.proof == "applied":
            continue
        for landing in effect.landings:
            false = landing.attempt == closing.attempt and _is_false(closing, landing)
            if false and not is_excused(effect, closing, landing):
                yield (
                    f"no_effect: effect {effect.id}: attempt {closing.attempt} was closed as {closing.proof} "
                    f"(event {closing.commit.number}) and has an effect (event {landing.number})"
                )


def _is_false(closing: Closing, landing: Landing) -> bool:
    number = closing.commit.number
    if closing.proof in BY_ITSELF or landing.number > number:
        return True
    return landing.undone is None or landing.undone > number


def applied(effect: Effect) -> Iterator[str]:
    """Applied means that an effect came to be before, and it stays applied."""
    for commit in effect.commits:
        if commit.verdict_before == APPLIED and commit.verdict != APPLIED:
            yield f"latch: effect {effect.id}: applied became {commit.verdict} (event {commit.number})"
        if commit.verdict == APPLIED and commit.verdict_before != APPLIED:
            yield from _latched(effect, commit)
    yield from _references(effect)


def _latched(effect: Effect, commit: Commit) -> Iterator[str]:
    row = commit.row
    proof, attempt = str(row.get("proof")), int(row.get("settled_attempt") or 0)
    where = f"effect {effect.id}: applied by {proof} (event {commit.number})"
    joint = effect.tool.tier == "T5"  # the effect and the commit are one moment: either may be logged first
    there = [one for one in effect.landings if one.number < commit.number or (joint and one.at <= commit.at)]
    original = effect.undoes if effect.undo_kind == "revoke" else None
    if original is not None:  # a revoke that finds the effect there has ended as well: it has taken nothing back
        there += [one for one in original.landings if one.number < commit.number]
    if not there and not _applied_excused(effect, proof, commit):
        yield f"applied: {where}, and nothing had landed by then"
    before = commit.before or {}
    if (
        proof == "returned"
        and before.get("revoked_at") is not None
        and attempt <= int(before.get("revoked_through") or 0)
    ):
        yield f"applied: {where}, and a revoke had decided for attempt {attempt} before"
    found = any(one.get("answer") == "found" and one.number < commit.number for one in effect.of("looked"))
    if proof == "found" and not effect.undoing and not (found and effect.tool.looks):
        yield f"applied: {where}, and no look had found it"


def _applied_excused(effect: Effect, proof: str, commit: Commit) -> bool:
    match proof:
        case "returned":
            return effect.broke("returned_without_acting", before=commit.number)
        case "found":
            looks = effect.tool.looks or bool(effect.undoing)
            lied = effect.broke("look_lied", before=commit.number)
            return looks and (lied or any(one.broke("look_lied") for one in effect.undoing))
        case "operator":
            return effect.broke("operator")
        case _:
            return False


def _references(effect: Effect) -> Iterator[str]:
    """What the row says it is proven by came to be for this effect, not for another one (F17)."""
    landed = {one.reference for one in effect.landings}
    if effect.row is None or None in landed or effect.undo_kind is not None or effect.undoing:
        return
    if effect.broke("look_lied", "returned_without_acting"):
        return
    for name in structured(effect.row.get("references") or "[]"):
        if name not in landed:
            yield f"applied: effect {effect.id}: the row claims {name!r}, which never landed for it"


def once(effect: Effect) -> Iterator[str]:
    """Never two effects of one key, unless the world broke a condition that the tool relies on."""
    if effect.undo_kind == "revoke" or effect.shared_undo or effect.tool.idempotent:
        return  # acknowledged twice is still taken back; an idempotent tool's second request changes nothing
    for landing in effect.landings:
        if landing.count > 1 and not doubles(effect, landing, landing):
            where = f"twice: effect {effect.id}: attempt {landing.attempt} (event {landing.number})"
            yield f"{where} has {landing.count} effects"
    for first, second in combinations(effect.landings, 2):
        if not _in_turn(effect, first, second) and not doubles(effect, first, second):
            yield (
                f"twice: effect {effect.id}: attempts {first.attempt} and {second.attempt} both have an effect "
                f"(events {first.number} and {second.number})"
            )
    if effect.tool.tier == "T5" and (effect.row or {}).get("verdict") != APPLIED and effect.landings:
        yield f"twice: effect {effect.id}: it stands without its record (event {effect.landings[0].number})"


def _in_turn(effect: Effect, first: Landing, second: Landing) -> bool:
    """Whether the first was taken back before the second was begun, and was known to be."""
    begun = effect.begin_of(second.attempt)
    if begun is None or first.undone is None or first.attempt == second.attempt:
        return False
    return first.undone < begun.number and begun.verdict_before == "no_effect"
