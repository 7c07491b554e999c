"""Ways to make a liar of an honest history: each takes one and returns it changed, or None where there is nothing to.

They work on the history itself, not on how it was written, so they also spoil what the simulation writes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

History: TypeAlias = dict[str, Any]
Event: TypeAlias = dict[str, Any]
Corruption: TypeAlias = Callable[[History], Iterator[History]]
CORRUPTIONS: dict[str, Corruption] = {}


def corrupts(spoil: Corruption) -> Corruption:
    """Enter a way to spoil."""
    CORRUPTIONS[spoil.__name__] = spoil
    return spoil


def at(history: History, kind: str) -> Iterator[tuple[int, Event]]:
    for number, event in enumerate(history["events"]):
        if event["kind"] == kind:
            yield number, event


def _begins(history: History) -> Iterator[tuple[int, Event]]:
    seen: dict[str, int] = {}
    for number, event in at(history, "committed"):
        if event["row"]["attempts"] > seen.get(event["effect"], 0):
            yield number, event
        seen[event["effect"]] = event["row"]["attempts"]


def without(history: History, *numbers: int) -> History:
    spoiled = copy.deepcopy(history)
    spoiled["events"] = [one for number, one in enumerate(spoiled["events"]) if number not in numbers]
    return spoiled


def with_event(history: History, number: int, **changes: Any) -> History:
    spoiled = copy.deepcopy(history)
    spoiled["events"][number] |= changes
    return spoiled


def _row(history: History, number: int, **changes: Any) -> History:
    return with_event(history, number, row=history["events"][number]["row"] | changes)


def _breakages(history: History) -> bool:
    return any(at(history, "broke"))


def _excused(history: History) -> bool:
    """Whether it needs an excuse. A person's word needs none: what was under way is that person's own risk."""
    return any(event["condition"] != "operator" for _, event in at(history, "broke"))


def is_joint(history: History) -> bool:
    return bool(history["tools"]["pay"]["tier"] == "T5")


# ---------------------------------------------------------------- the world


@corrupts
def a_second_landing(history: History) -> Iterator[History]:
    """The attempt acts twice."""
    for number, event in at(history, "landed"):
        if event["made"] == "effect" and not _breakages(history):
            spoiled = copy.deepcopy(history)
            spoiled["events"].insert(number + 1, event | {"reference": "twin"})
            yield spoiled


@corrupts
def a_landing_that_never_was(history: History) -> Iterator[History]:
    """What was applied is not there."""
    numbers = [number for number, event in at(history, "landed") if event["made"] == "effect"]
    if any(event["row"]["verdict"] == "effect_applied" for _, event in at(history, "committed")) and numbers:
        yield without(history, *numbers)


@corrupts
def a_landing_after_the_proof(history: History) -> Iterator[History]:
    """What was proven to have had none lands in the end."""
    for _, event in at(history, "committed"):
        row = event["row"]
        mine = row["verdict"] == "no_effect" and row["id"] == "e" and row["proof"] != "operator"
        if mine and not _breakages(history):
            spoiled = copy.deepcopy(history)
            landed = {"kind": "landed", "effect": "e", "attempt": row["attempts"], "key": row["provider_key"]}
            last = spoiled["events"][-1]["at"]
            spoiled["events"].append(landed | {"at": last, "reference": "late", "count": 1, "made": "effect"})
            yield spoiled


@corrupts
def an_excuse_taken_away(history: History) -> Iterator[History]:
    """Nothing was broken after all."""
    if _excused(history):
        yield without(history, *(number for number, _ in at(history, "broke")))


@corrupts
def an_excuse_of_another_kind(history: History) -> Iterator[History]:
    """Another condition was broken, on which nothing here rests."""
    if _excused(history):
        spoiled = copy.deepcopy(history)
        for _, event in at(spoiled, "broke"):
            event["condition"] = "stone"
        yield spoiled


@corrupts
def an_excuse_of_another_effect(history: History) -> Iterator[History]:
    """It was broken for somebody else."""
    if _excused(history):
        spoiled = copy.deepcopy(history)
        for _, event in at(spoiled, "broke"):
            event["effect"] = "other"
        yield spoiled


@corrupts
def nothing_was_taken_back(history: History) -> Iterator[History]:
    """What was revoked stands."""
    numbers = [number for number, _ in at(history, "undone")]
    landed = [number for number, event in at(history, "landed") if event["made"] == "effect"]
    revoked = any(event["row"]["proof"] == "revoked" for _, event in at(history, "committed"))
    if numbers and landed and revoked and landed[0] < numbers[0]:
        yield without(history, *numbers)


@corrupts
def the_look_never_was(history: History) -> Iterator[History]:
    """What was found or absent was never asked for."""
    numbers = [number for number, event in at(history, "looked") if event["answer"] != "unclear"]
    proofs = [event["row"]["proof"] for _, event in at(history, "committed")]
    if numbers and {"found", "absent_after_grace"} & set(proofs):
        yield without(history, *numbers)


# ---------------------------------------------------------------- sends


@corrupts
def sent_before_its_begin(history: History) -> Iterator[History]:
    """The request leaves before the begin is durable."""
    begins = {event["row"]["attempts"]: number for number, event in _begins(history) if event["effect"] == "e"}
    for number, event in at(history, "sent"):
        if not is_joint(history):
            spoiled = copy.deepcopy(history)
            spoiled["events"].insert(begins[event["attempt"]], spoiled["events"].pop(number))
            yield spoiled


@corrupts
def sent_as_an_attempt_that_never_began(history: History) -> Iterator[History]:
    """The fence of the request is nobody's."""
    for number, event in at(history, "sent"):
        if not is_joint(history):
            yield with_event(history, number, attempt=event["attempt"] + 7)


@corrupts
def sent_by_a_stranger(history: History) -> Iterator[History]:
    """Another host sends what this one began."""
    for number, _ in at(history, "sent"):
        if not is_joint(history):
            yield with_event(history, number, host="Z")


# ---------------------------------------------------------------- rows


@corrupts
def a_begin_left_out(history: History) -> Iterator[History]:
    """The begin was not durable."""
    for number, _ in _begins(history):
        if not is_joint(history):
            yield without(history, number)


@corrupts
def the_last_commit_left_out(history: History) -> Iterator[History]:
    """The row changed, and nobody committed it."""
    numbers = [number for number, event in at(history, "committed") if event["effect"] == "e"]
    yield without(history, numbers[-1])


@corrupts
def a_verdict_swapped(history: History) -> Iterator[History]:
    """A settled row says the contrary."""
    other = {"no_effect": "effect_applied", "effect_applied": "no_effect"}
    for number, event in at(history, "committed"):
        if event["row"]["verdict"] in other:
            yield _row(history, number, verdict=other[event["row"]["verdict"]])


@corrupts
def sends_until_goes_back(history: History) -> Iterator[History]:
    """The last possible send is forgotten."""
    seen: set[str] = set()
    for number, event in at(history, "committed"):
        if event["effect"] in seen:
            yield _row(history, number, sends_until=event["row"]["sends_until"] - 60)
        seen.add(event["effect"])


@corrupts
def absence_proves_too_early(history: History) -> Iterator[History]:
    """`absent_from` leaves the grace out."""
    for number, event in at(history, "committed"):
        row = event["row"]
        if row["verdict"] == "effect_unknown" and row["absent_from"] is not None and event["effect"] == "e":
            yield _row(history, number, absent_from=row["sends_until"])


@corrupts
def an_attempt_is_skipped(history: History) -> Iterator[History]:
    """The fence jumps."""
    for number, event in _begins(history):
        yield _row(history, number, attempts=event["row"]["attempts"] + 1)


@corrupts
def an_attempt_is_opened_again(history: History) -> Iterator[History]:
    """A place that was closed is open once more."""
    for number, event in at(history, "committed"):
        if event["row"]["verdict"] == "no_effect":
            yield _row(history, number, open_attempts=1)


@corrupts
def a_key_changes_by_itself(history: History) -> Iterator[History]:
    """The provider key is another one after a settle."""
    begins = {number for number, _ in _begins(history)}
    for number, _ in at(history, "committed"):
        if number not in begins:
            yield _row(history, number, provider_key="e-k9")


@corrupts
def a_doubt_without_a_next_look(history: History) -> Iterator[History]:
    """Unknown, and nothing is due."""
    for number, event in at(history, "committed"):
        if event["row"]["verdict"] == "effect_unknown":
            yield _row(history, number, look_at=None)


@corrupts
def a_row_deleted(history: History) -> Iterator[History]:
    """The effect is gone from the ledger."""
    spoiled = copy.deepcopy(history)
    spoiled["tables"]["effects"] = [one for one in spoiled["tables"]["effects"] if one["id"] != "e"]
    yield spoiled


# ---------------------------------------------------------------- entries and incidents


@corrupts
def an_entry_left_out(history: History) -> Iterator[History]:
    """The book has a gap."""
    for place in range(len(history["tables"]["entries"])):
        spoiled = copy.deepcopy(history)
        del spoiled["tables"]["entries"][place]
        yield spoiled


@corrupts
def entries_reordered(history: History) -> Iterator[History]:
    """Two entries of one effect change places."""
    entries = history["tables"]["entries"]
    for place in range(len(entries) - 1):
        first, second = entries[place], entries[place + 1]
        if first["key"] == second["key"] and not is_joint(history):
            spoiled = copy.deepcopy(history)
            spoiled["tables"]["entries"][place]["seq"] = second["seq"]
            spoiled["tables"]["entries"][place + 1]["seq"] = first["seq"]
            yield spoiled


@corrupts
def an_entry_rewritten(history: History) -> Iterator[History]:
    """The book says another verdict than the row."""
    for place, entry in enumerate(history["tables"]["entries"]):
        if not is_joint(history):
            spoiled = copy.deepcopy(history)
            other = "no_effect" if entry["detail"]["verdict"] != "no_effect" else "effect_applied"
            spoiled["tables"]["entries"][place]["detail"]["verdict"] = other
            yield spoiled


@corrupts
def an_absence_asked_earlier(history: History) -> Iterator[History]:
    """The look that proved was asked before absence proves."""
    for place, entry in enumerate(history["tables"]["entries"]):
        if entry["event"] == "absent":
            spoiled = copy.deepcopy(history)
            spoiled["tables"]["entries"][place]["detail"]["asked_at"] = 112
            yield spoiled


@corrupts
def an_incident_left_out(history: History) -> Iterator[History]:
    """What a person should see is not there."""
    for place, one in enumerate(history["tables"]["incidents"]):
        if one["kind"] != "applied_more_than_once" or any(at(history, "looked")):
            spoiled = copy.deepcopy(history)
            del spoiled["tables"]["incidents"][place]
            if not (one["kind"] == "applied_more_than_once" and any(at(history, "broke"))):
                yield spoiled
