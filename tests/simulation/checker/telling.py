"""What was told was true: of some instant between the call and its answer, and after what the call itself had begun.

The rows are held to the world by `truth`; here each observation is held to a row that stood at such an instant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from simulation.checker.reading import APPLIED, NO, UNKNOWN, Commit, Effect, Event, World

# About the call's own other arguments: it says nothing of the effect that has the key.
ABOUT_ITSELF = ("key_conflict",)
UNDO = ("look_lied", "returned_without_acting", "operator", "stone")
_FORBIDS = re.compile(r"^(next action: )?(do not|never|stop)\b", re.IGNORECASE)
_INVITES = re.compile(
    r"^(next action: )?(please )?(call|use|try|send|repeat|retry|resend|ask for)\b.*"
    r"\b(again|same arguments|another|other|further|anew|retry)\b|\b(try again|retry|call again)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """An observation, and the call that it answers."""

    event: Event
    call: Event

    @property
    def where(self) -> str:
        return f"told: effect {self.event.get('effect')}: call {self.event.get('call')} (event {self.event.number})"


def told(world: World) -> Iterator[str]:
    """Every observation of the history."""
    calls = {one.get("call"): one for one in world.events if one.kind == "call"}
    ends = {one.get("call"): one.number for one in world.events if one.kind in ("told", "raised")}
    for event in world.events:
        if event.kind != "told":
            continue
        call = calls.get(event.get("call"))
        if call is None or call.number > event.number:
            yield f"told: call {event.get('call')} was answered and never made (event {event.number})"
            continue
        one = Told(event, call)
        yield from _shape(one)
        effect = world.effects.get(str(event.get("effect")))
        if event.get("effect") is not None and event.get("code") not in ABOUT_ITSELF:
            yield from _true(world, one, effect or Effect(str(event.get("effect"))), ends)


def _shape(one: Told) -> Iterator[str]:
    verdict, ok = one.event.get("verdict"), bool(one.event.get("ok"))
    if ok and verdict == UNKNOWN:
        yield f"{one.where}: ok, and unknown"
    if ok and verdict == NO and one.event.get("effect") is not None:
        yield f"{one.where}: ok, and no effect"
    if one.event.get("code") in ABOUT_ITSELF and (ok or verdict != NO):
        yield f"{one.where}: key_conflict speaks of its own arguments, which had no effect, and says {verdict}"
    if verdict == UNKNOWN:
        for name in ("next_action", "text"):
            for sentence in re.split(r"(?<=[.;!?])\s+|\n", str(one.event.get(name) or "")):
                if _INVITES.search(sentence) and not _FORBIDS.match(sentence):
                    yield f"{one.where}: unknown, and {name} invites another attempt: {sentence!r}"


def _true(world: World, one: Told, effect: Effect, ends: dict[object, int]) -> Iterator[str]:
    verdict, proof = one.event.get("verdict"), one.event.get("proof")
    begun = _begun_by(world, one, effect, ends)
    if verdict == UNKNOWN:
        return
    shown = [row for row in _shown(one, effect, begun) if row is not None]
    agree = [row for row in shown if row.verdict == verdict and proof in (None, row.row.get("proof"))]
    if verdict == NO and effect.tool.tier == "T5" and _joint(world, one, effect, ends):
        return
    if not agree:
        after = f" after its begin (event {begun.number})" if begun is not None else ""
        yield f"{one.where}: {verdict} by {proof}, and no row said so between call and answer{after}"
    elif verdict == APPLIED:
        yield from _ended(one, effect)


def _shown(one: Told, effect: Effect, begun: Commit | None) -> list[Commit | None]:
    """The rows that stood at some instant of the call, from the begin of its own last attempt on."""
    start = one.call.number if begun is None else begun.number + 1
    during = [commit for commit in effect.commits if start <= commit.number < one.event.number]
    return [effect.current(start), *during]


def _begun_by(world: World, one: Told, effect: Effect, ends: dict[object, int]) -> Commit | None:
    """The last begin that was surely this call's own."""
    during = [
        commit for commit in effect.commits if commit.begins and one.call.number < commit.number < one.event.number
    ]
    mine = [commit for commit in during if _is_own(world, one, commit, ends)]
    return mine[-1] if mine else None


def _others(world: World, one: Told, commit: Commit, ends: dict[object, int]) -> bool:
    """Whether another call on the same host was open at a commit, so that it may be that one's."""
    return any(
        other.kind == "call"
        and other.get("call") != one.call.get("call")
        and other.get("host") == commit.host
        and other.number < commit.number < ends.get(other.get("call"), len(world.events))
        for other in world.events
    )


def _joint(world: World, one: Told, effect: Effect, ends: dict[object, int]) -> bool:
    """In one transaction a call may answer before its end is recorded: then what it began never comes to stand."""
    start = effect.current(one.call.number)
    if start is not None and start.verdict == APPLIED:
        return False
    stands = [commit for commit in effect.commits if commit.begins and commit.verdict == APPLIED]
    return not any(commit.number > one.call.number and _is_own(world, one, commit, ends) for commit in stands)


def _is_own(world: World, one: Told, commit: Commit, ends: dict[object, int]) -> bool:
    """Whether a begin was surely made by this call."""
    if commit.call is not None:
        return bool(commit.call == one.call.get("call"))
    return commit.host == one.call.get("host") and not _others(world, one, commit, ends)


def _ended(one: Told, effect: Effect) -> Iterator[str]:
    """Taken back is told as ended, never as done; and ended only of what was taken back."""
    code, ok = one.event.get("code"), bool(one.event.get("ok"))
    at_call = effect.current(one.call.number)
    at_end = effect.current(one.event.number)
    if ok and at_call is not None and at_call.row.get("undone_by") is not None:
        yield f"{one.where}: {code}, and it had been taken back before the call (event {at_call.number})"
    if code != "ended":
        return
    if at_end is None or at_end.row.get("undone_by") is None:
        yield f"{one.where}: ended, and nothing is recorded as taking it back"
    number = one.event.number
    acted = any(seen.number < number for seen in effect.of("undone")) or any(
        landing.number < number for undo in effect.undoing for landing in undo.landings
    )
    believed = any(undo.broke(*UNDO) for undo in effect.undoing)
    if not acted and not believed:
        yield f"{one.where}: ended, and nothing took it back in the world"


def waited(world: World) -> Iterator[str]:
    """A call that waited for another's attempt answers with its end: it does not begin (F25). From optional events."""
    for event in world.events:
        effect = world.effects.get(str(event.get("effect")))
        if event.kind != "waited" or effect is None:
            continue
        for commit in effect.commits:
            mine = commit.begins and commit.call is not None and commit.call == event.get("call")
            if mine and commit.number > event.number:
                yield (
                    f"waiter: effect {effect.id}: call {commit.call} waited (event {event.number}) and then began "
                    f"(event {commit.number})"
                )
