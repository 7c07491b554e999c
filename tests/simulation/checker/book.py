"""The ledger's own account: entries without a gap, one for each change, and instants that never go back.

Compares the raw tables and the committed rows with each other; the world is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checker.reading import NO, UNKNOWN, Commit, Effect, World, places, structured

EXPLAINED = (
    "verdict",
    "proof",
    "attempts",
    "open_attempts",
    "provider_key",
    "undone_by",
    "revoke_by",
    "revoked_through",
)
LAST = ("verdict", "proof", "attempts", "open_attempts", "version")


def entries(effect: Effect) -> Iterator[str]:
    """Entries are contiguous, agree with the rows that were committed with them, and count the begins."""
    where = f"book: effect {effect.id}"
    if effect.row is None:
        if effect.commits:
            yield f"{where}: its row is gone, and was committed (event {effect.commits[-1].number})"
        return
    last = effect.commits[-1] if effect.commits else None
    if last is None or any(effect.row.get(name) != last.row.get(name) for name in LAST):
        number = None if last is None else last.number
        yield f"{where}: the row changed without a commit after event {number}"
    numbers = [int(one["seq"]) for one in effect.entries]
    version = int(effect.row["version"])
    if numbers != list(range(1, version + 1)):
        yield f"{where}: version {version} and the entries {numbers}"
    begun = [int(one["attempt"]) for one in effect.entries if one["event"] == "begun"]
    if begun != list(range(1, int(effect.row["attempts"]) + 1)):
        yield f"{where}: {effect.row['attempts']} attempts and begins of {begun}"
    fences = [int(one["fence"]) for one in effect.entries]
    if fences != sorted(fences):
        yield f"{where}: fences went back: {fences}"
    for commit in effect.commits:
        yield from _explained(effect, commit)


def _explained(effect: Effect, commit: Commit) -> Iterator[str]:
    where = f"book: effect {effect.id} (event {commit.number})"
    row, before = commit.row, commit.before or {}
    version, was = int(row["version"]), int(before.get("version") or 0)
    changed = [name for name in EXPLAINED if row.get(name) != before.get(name)]
    if version < was or (changed and version == was):
        yield f"{where}: {', '.join(changed) or 'version'} changed at version {was} without an entry"
    if commit.entries not in (-1, version):
        yield f"{where}: version {version} was committed with {commit.entries} entries"
    entry = effect.entry(version)
    if entry is None:
        return
    said = (structured(entry["detail"]) or {}).get("verdict")
    if said != row["verdict"]:
        yield f"{where}: the row became {row['verdict']}, its entry says {said}"
    if int(entry["fence"]) != int(row["attempts"]):
        yield f"{where}: the entry of version {version} has fence {entry['fence']}, the row {row['attempts']} attempts"
    if int(entry["at"]) != int(row["updated_at"]):
        yield f"{where}: the entry of version {version} is of {entry['at']}, the row of {row['updated_at']}"


def bounds(world: World, effect: Effect) -> Iterator[str]:
    """`sends_until` and `absent_from` never decrease; what is open was begun; unknown is what has something open."""
    for commit in effect.commits:
        row, before = commit.row, commit.before
        where = f"bounds: effect {effect.id} (event {commit.number})"
        opened = int(row["open_attempts"])
        if (commit.verdict == UNKNOWN) != (opened != 0):
            yield f"{where}: {commit.verdict} with open attempts {opened:#x}"
        if opened != sum(1 << ((one - 1) % 60) for one in places(row)):
            yield f"{where}: open attempts {opened:#x} of {row['attempts']} begun"
        reopened = places(row) - places(before) - {int(row["attempts"])} if before is not None else set()
        if before is not None and (reopened or (not commit.begins and places(row) - places(before))):
            yield f"{where}: attempts {sorted(places(row) - places(before))} were opened again"
        if commit.verdict == UNKNOWN and (row.get("look_at") is None or row.get("review_at") is None):
            yield f"{where}: a doubt without a next look or a review"
        yield from _instants(world, effect, commit, where)
        if before is not None:
            yield from _never_back(commit, where)


def _never_back(commit: Commit, where: str) -> Iterator[str]:
    row, before = commit.row, commit.before
    assert before is not None
    if int(row["sends_until"]) < int(before["sends_until"]):
        yield f"{where}: sends_until went back from {before['sends_until']} to {row['sends_until']}"
    old, new = before.get("absent_from"), row.get("absent_from")
    if old is not None and new is not None and int(new) < int(old):
        yield f"{where}: absent_from went back from {old} to {new}"
    if commit.verdict_before == UNKNOWN and commit.verdict == UNKNOWN and old is None and new is not None:
        yield f"{where}: absence began to prove while an attempt without a grace was open"


def _instants(world: World, effect: Effect, commit: Commit, where: str) -> Iterator[str]:
    """Absence counts from the last possible send of every attempt, with grace and margin (P4)."""
    row = commit.row
    absent_from = row.get("absent_from")
    if commit.verdict != UNKNOWN or absent_from is None:
        return
    grace = row.get("grace_us") if effect.undo_kind == "revoke" else effect.tool.grace_us
    if grace is None:
        yield f"{where}: absence is to prove for a tool without a grace"
    elif int(absent_from) < int(row["sends_until"]) + int(grace) + world.margin_us:
        yield f"{where}: absent_from {absent_from} does not cover sends_until {row['sends_until']} + grace + margin"


def audits(effect: Effect) -> Iterator[str]:
    """What was closed on a condition is looked at again until its audit ends, whatever its verdict is now (F15)."""
    if effect.broke("clock"):
        return
    closed: int | None = None
    for commit in effect.commits:
        row = commit.row
        new = commit.verdict == NO and commit.verdict_before == UNKNOWN
        if new and row.get("proof") in ("absent_after_grace", "operator"):
            closed = int(row["updated_at"])
        if closed is None or commit.verdict == UNKNOWN or row.get("look_at") is not None:
            continue
        if int(row["updated_at"]) < closed + int(row.get("audit_us") or 0):
            yield f"audit: effect {effect.id} (event {commit.number}): closed on a condition, and nobody looks again"
