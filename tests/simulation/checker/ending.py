"""What a person must have been told, and what must be settled once everything is quiet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from simulation.checker.reading import APPLIED, NO, UNKNOWN, Effect, Event, Landing, World, structured


def incidents(world: World, effect: Effect) -> Iterator[str]:
    """Who was told no effect is corrected; two effects that the ledger was shown are an incident (F15)."""
    kinds = {str(one["kind"]) for one in effect.incidents}
    for commit in effect.commits:
        late = commit.verdict_before == NO and commit.verdict == APPLIED and not commit.begins
        if late and "late_effect" not in kinds:
            yield f"incident: effect {effect.id}: no effect became applied (event {commit.number}), and nobody is told"
    if not world.quiet or effect.undo_kind == "revoke" or effect.tool.idempotent or "applied_more_than_once" in kinds:
        return
    if effect.row is None or effect.row["verdict"] == UNKNOWN:
        return
    standing = [one for one in effect.landings if one.undone is None]
    for first, second in combinations(standing, 2):
        if _both_shown(world, effect, first, second) or _both_returned(effect, first, second):
            yield (
                f"incident: effect {effect.id}: it stands twice (events {first.number}, {second.number}), the ledger "
                "was shown it, and nobody is told"
            )


def _both_shown(world: World, effect: Effect, first: Landing, second: Landing) -> bool:
    """Whether a look found it later than a look may miss anything, saw the truth, and was heard.

    By a clock that jumped nobody knows when it was asked; a host that stood still has given a look up that answers when
    it goes on.
    """
    if effect.tool.grace_us is None or effect.broke("look_lied", "grace", "clock"):
        return False
    # It may be hidden until grace after the last possible send, however early it landed.
    hidden_until = max((int(one.row["absent_from"] or 0) for one in effect.commits), default=0)
    seen_from = max(first.at + effect.tool.grace_us, second.at + effect.tool.grace_us, hidden_until)
    return any(
        one.get("answer") == "found" and int(one.data["asked_at"]) > seen_from and not _given_up(world, effect, one)
        for one in effect.of("looked")
    )


def _given_up(world: World, effect: Effect, look: Event) -> bool:
    """Whether a host may have stood still while this look was under way."""
    since = max((one.number for one in effect.commits if one.number < look.number), default=0)
    return any(one.kind == "paused" and since < one.number < look.number for one in world.events)


def _both_returned(effect: Effect, first: Landing, second: Landing) -> bool:
    """Whether both attempts said so themselves, each with a name of its own, to the ledger."""
    if first.attempt == second.attempt or None in (first.reference, second.reference):
        return False
    said = {
        (int(one["attempt"]), (structured(one["detail"]) or {}).get("reference"))
        for one in effect.entries
        if one["event"] in ("returned", "returned_again")
    }
    return {(one.attempt, one.reference) for one in (first, second)} <= said and first.reference != second.reference


def quiet(world: World, effect: Effect) -> Iterator[str]:
    """When nothing is in flight and everybody has looked, no doubt is left that could be proven."""
    if not world.quiet or effect.row is None or effect.row["verdict"] != UNKNOWN:
        return
    row, where = effect.row, f"quiet: effect {effect.id}"
    if row.get("look_at") is None or row.get("review_at") is None:
        yield f"{where}: a doubt is left without a next look or a review"
    told = any(one["kind"] == "doubt_left" for one in effect.incidents)
    due = row.get("review_at")
    if due is not None and world.end > int(due) + world.margin_us and not told and not effect.broke("clock"):
        yield f"{where}: a doubt is older than its review at {due}, and no person is told"
    if effect.tool.tier == "T5":
        yield f"{where}: a doubt is left where effect and record are one transaction"
    if not effect.tool.looks or effect.of("alike"):
        return
    looked = effect.of("looked")
    last = looked[-1] if looked else None
    if last is not None and last.get("answer") == "found":
        yield f"{where}: a look found it (event {last.number}), and it is still unknown"
    absent_from = row.get("absent_from")
    if absent_from is None or not effect.tool.absence_proves or world.end <= int(absent_from) + world.margin_us:
        return
    if last is None or int(last.data["asked_at"]) <= int(absent_from):
        yield f"{where}: absence would prove since {absent_from}, and nobody has looked"
    elif last.get("answer") == "absent" and int(last.data["asked_at"]) > int(absent_from) + world.margin_us:
        yield f"{where}: it was absent (event {last.number}) after {absent_from}, and it is still unknown"
