"""When an attempt may begin, which provider key it carries, and what closes it: the begin predicate, seen from outside.

All comparisons of instants here are between columns of the ledger's own clock, so they hold whatever clocks did.
"""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checker.reading import APPLIED, NO, UNKNOWN, Closing, Commit, Effect, World, places, structured

FINAL = ("never_sent", "rejected", "spoken", "revoked", "same_transaction")
ANSWERED = ("rejected", "spoken", "revoked")
SAME_IN_RESEND = ("provider_key", "arguments", "fingerprint", "key_first_begun_at")


def begins(world: World, effect: Effect) -> Iterator[str]:
    """Each begin is permitted: from no effect, or the same again under a key that is still known (P2)."""
    joint = effect.tool.tier == "T5"
    for commit in effect.commits:
        if not commit.begins:
            continue
        row, before = commit.row, commit.before
        attempt = int(row["attempts"])
        where = f"begin: effect {effect.id}: attempt {attempt} (event {commit.number})"
        if attempt != 1 + (0 if before is None else int(before["attempts"])):
            yield f"{where} was committed without a begin before it"
        if not joint and (commit.verdict != UNKNOWN or attempt not in places(row)):
            yield f"{where} was not durably unknown before it ran"
        entry = effect.entry(int(row["version"]))
        if not joint and entry is not None and (entry["event"], int(entry["attempt"])) != ("begun", attempt):
            yield f"{where} first shows in a row whose entry is {entry['event']} of attempt {entry['attempt']}"
        if not joint and int(row["sends_until"]) < int(row["begun_at"]) + effect.tool.timeout_us:
            yield f"{where} may send after the row's sends_until"
        if before is None:
            yield from _undo_begun(world, effect, commit, where)
            continue
        if before.get("revoke_by") is not None:
            yield f"{where} began while a revoke had no known end"
        if commit.verdict_before == APPLIED:
            yield f"{where} began although the effect is applied"
        if commit.verdict_before == UNKNOWN:
            yield from _resent(world, effect, commit, where)
        if commit.verdict_before == NO and not joint and places(row) != {attempt}:
            yield f"{where} opened others beside itself"


def _resent(world: World, effect: Effect, commit: Commit, where: str) -> Iterator[str]:
    row, before, tool = commit.row, commit.before, effect.tool
    assert before is not None
    revoke = effect.undo_kind == "revoke"  # idempotent by declaration
    if not revoke and (tool.retention_us is None or not before.get("keyed")):
        yield f"{where} began while an earlier one was open, without a key"
        return
    changed = [name for name in SAME_IN_RESEND if row.get(name) != before.get(name)]
    if changed:
        yield f"{where} was sent again with another {', '.join(changed)}"
    if not places(before) <= places(row):
        yield f"{where} closed an earlier attempt by beginning"
    begun = int(row["begun_at"])
    if begun <= int(before["lease_until"]):
        yield f"{where} began while another held the claim"
    if revoke:
        return
    grace, margin = tool.grace_us or 0, world.margin_us
    arrives = begun + tool.timeout_us + grace + margin
    if arrives > int(row["key_first_begun_at"]) + (tool.retention_us or 0):
        yield f"{where} can arrive after the provider's retention"
    if not tool.concurrent and begun <= int(before["sends_until"]) + grace + margin:
        yield f"{where} began while an earlier request could be under way at a provider that races"


def _undo_begun(world: World, effect: Effect, commit: Commit, where: str) -> Iterator[str]:
    original = effect.undoes
    if effect.undo_kind != "compensation" or original is None:
        return
    present = original.current(commit.number)
    if present is None or present.verdict != APPLIED:
        yield f"{where} compensates what was not applied"
        return
    last = int(present.row["sends_until"]) + int(present.row.get("grace_us") or 0) + world.margin_us
    if int(present.row["attempts"]) > 1 and int(commit.row["begun_at"]) <= last:
        yield f"{where} compensates while a second request may be under way"


def keys(effect: Effect) -> Iterator[str]:
    """The provider key changes only when each attempt under it was closed for good and one was answered (F13)."""
    for commit in effect.commits:
        row, before = commit.row, commit.before
        if before is None:
            continue
        where = f"effect {effect.id} (event {commit.number})"
        old, new = before.get("provider_key"), row.get("provider_key")
        from_none = commit.begins and commit.verdict_before == NO
        changed = row.get("fingerprint") != before.get("fingerprint")
        if changed and not (from_none and _all_final(effect, commit, None)):
            yield f"key: {where}: other arguments took the place of ones that may still have an effect"
        if old == new:
            if from_none and before.get("proof") == "revoked":
                yield f"key: {where}: a key that a revoke has named is sent again"
            continue
        answered = any(one.proof in ANSWERED for one in _under(effect, commit, old))
        if not from_none or not answered or not _all_final(effect, commit, old):
            yield f"key: {where}: the provider key was renewed while an attempt under it was not closed for good"


def _under(effect: Effect, commit: Commit, key: object) -> list[Closing]:
    """The present closings of the attempts under a key (None: of all), as of a commit."""
    found = []
    for attempt in range(1, int((commit.before or {}).get("attempts") or 0) + 1):
        begun = effect.begin_of(attempt)
        closing = effect.closing_of(attempt, commit.number)
        if begun is not None and closing is not None and key in (None, begun.row.get("provider_key")):
            found.append(closing)
    return found


def _all_final(effect: Effect, commit: Commit, key: object) -> bool:
    return all(one.proof in FINAL for one in _under(effect, commit, key))


def closings(world: World, effect: Effect) -> Iterator[str]:
    """What closes an attempt may close it: P1 its own, absence only by P4, a person only when nothing can send."""
    for commit in effect.commits:
        mine = [one for one in effect.closings if one.commit is commit]
        proofs = {one.proof for one in mine}
        where = f"closing: effect {effect.id} (event {commit.number})"
        unproven = proofs - {*FINAL, "absent_after_grace", "operator", "applied"}
        if unproven:
            yield f"{where}: attempts {[one.attempt for one in mine]} were closed without a proof"
        if proofs & {"never_sent", "rejected", "spoken"}:
            yield from _by_itself(effect, commit, mine, where)
        if "absent_after_grace" in proofs:
            yield from _by_absence(world, effect, commit, where)
        if "operator" in proofs:
            yield from _by_operator(effect, commit, where)
        if "revoked" in proofs:
            yield from _by_revoke(effect, commit, where)
        if "same_transaction" in proofs and effect.tool.tier != "T5":
            yield f"{where}: the tool has no transaction with the ledger"


def _by_itself(effect: Effect, commit: Commit, mine: list[Closing], where: str) -> Iterator[str]:
    spoken = [one.attempt for one in mine if one.proof == "spoken"]
    if spoken and (not effect.tool.keyed or effect.tool.replays_refusals is False):
        yield f"{where}: a refusal of another attempt closed {spoken}"
    if len(mine) > 1 and any(one.proof == "never_sent" for one in mine):
        yield f"{where}: never_sent closed more than its own attempt: {[one.attempt for one in mine]}"
    entry = effect.entry(int(commit.row["version"])) or {}
    by = int(entry.get("attempt") or 0)
    if len(mine) == 1 and entry and by != mine[0].attempt:
        yield f"{where}: attempt {by} said it, attempt {mine[0].attempt} was closed"
    for one in mine:
        if one.proof == "rejected" and not _was_refused(effect, one.attempt, commit.number):
            yield f"{where}: attempt {one.attempt} had sent, was not refused, and was closed as rejected"
        if one.proof == "never_sent" and not effect.broke("client_resent"):
            for kind in ("refused", "deduplicated"):
                reached = [seen.number for seen in effect.of(kind) if seen.get("attempt") == one.attempt]
                if reached:
                    yield f"{where}: attempt {one.attempt} reached the provider (event {reached[0]}): not never_sent"


def _was_refused(effect: Effect, attempt: int, number: int) -> bool:
    """Whether the world declined the attempt, or it never asked: a tool may refuse before it sends."""
    answers = [*effect.of("refused"), *effect.of("deduplicated"), *effect.of("landed")]
    sent = any(one.get("attempt") == attempt and one.number < number for one in effect.of("sent"))
    return not sent or any(one.get("attempt") == attempt and one.number < number for one in answers)


def _by_absence(world: World, effect: Effect, commit: Commit, where: str) -> Iterator[str]:
    before = commit.before or {}
    absent_from = before.get("absent_from")
    if effect.undo_kind is None and not effect.tool.absence_proves:
        yield f"{where}: absence proves nothing for a tool without a look or a grace"
        return
    if absent_from is None:
        yield f"{where}: absence was taken for a proof while an attempt without a grace was open"
        return
    detail = structured((effect.entry(int(commit.row["version"])) or {}).get("detail")) or {}
    asked = detail.get("asked_at")
    if asked is None or int(asked) <= int(absent_from):
        yield f"{where}: absence was asked for at {asked}, not after absent_from {absent_from}"
    # A clock that jumped further than the margin may tell the look another time than it told the executor just before.
    least = 0 if effect.broke("clock") else int(absent_from) - world.margin_us
    if not _has_looked(effect, commit, least):
        yield f"{where}: no look that was asked after absent_from {absent_from} answered that it is absent"


def _has_looked(effect: Effect, commit: Commit, asked_after: int) -> bool:
    answers = ("absent", "found") if effect.of("alike") else ("absent",)
    return any(
        one.number < commit.number and one.get("answer") in answers and int(one.data["asked_at"]) > asked_after
        for one in effect.of("looked")
    )


def _by_operator(effect: Effect, commit: Commit, where: str) -> Iterator[str]:
    before = commit.before or {}
    if int(commit.row["updated_at"]) <= int(before.get("sends_until") or 0):
        yield f"{where}: an operator decided while an attempt could still send"


def _by_revoke(effect: Effect, commit: Commit, where: str) -> Iterator[str]:
    through = int(commit.row.get("revoked_through") or 0)
    if through < int(commit.row["attempts"]):
        yield f"{where}: a revoke of attempts up to {through} closed attempt {commit.row['attempts']}"
    begun = effect.begin_of(int(commit.row["attempts"]))
    acted = [
        landing.number
        for one in effect.undoing
        for landing in one.landings
        if one.undo_kind == "revoke" and begun is not None and begun.number < landing.number < commit.number
    ]
    believed = any(one.broke("look_lied", "returned_without_acting", "operator") for one in effect.undoing)
    if not acted and not believed:
        yield f"{where}: no revoke acted between the last begin and this"
