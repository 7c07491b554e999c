"""A history, read into effects: what was committed, sent and landed, in the order in which it happened.

Owns the shapes that the rules look at. Judges nothing. Shares no code with the library: all names are those of
HISTORY.md, and the columns are read as a raw SELECT gives them, on either database.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Raw = Mapping[str, Any]
NO, UNKNOWN, APPLIED = "no_effect", "effect_unknown", "effect_applied"
PLACES = 60  # of the set of open attempts: attempt n has place (n - 1) mod 60


@dataclass(frozen=True, slots=True)
class Tool:
    """What a tool declares, as far as a rule depends on it. Durations are microseconds."""

    name: str
    tier: str = "T0"
    timeout_us: int = 0
    grace_us: int | None = None
    retention_us: int | None = None
    looks: bool = False
    revokes: bool = False
    concurrent: bool = True
    idempotent: bool = False
    replays_refusals: bool | None = None

    @property
    def absence_proves(self) -> bool:
        return self.looks and self.grace_us is not None

    @property
    def keyed(self) -> bool:
        return self.retention_us is not None


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `number` is its place in the history."""

    number: int
    at: int
    kind: str
    data: Raw

    def get(self, name: str, default: Any = None) -> Any:
        return self.data.get(name, default)


@dataclass(frozen=True, slots=True)
class Commit:
    """The row of an effect after a durable commit, and before it (None: there was none)."""

    number: int
    at: int
    host: Any
    call: Any
    entries: int
    row: Raw
    before: Raw | None

    @property
    def verdict(self) -> str:
        return str(self.row["verdict"])

    @property
    def verdict_before(self) -> str | None:
        return None if self.before is None else str(self.before["verdict"])

    @property
    def begins(self) -> bool:
        return int(self.row["attempts"]) > (0 if self.before is None else int(self.before["attempts"]))


@dataclass(slots=True)
class Landing:
    """An effect that came to be; `undone` is the number of the event since which it stands no longer."""

    number: int
    at: int
    attempt: int
    key: Any
    reference: Any
    count: int
    undone: int | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """An attempt was proven, by `proof`, in a commit. `applied`: the effect was settled as applied. `spoken`: another
    attempt's refusal was taken to speak for it too."""

    attempt: int
    proof: str
    commit: Commit


@dataclass(slots=True)
class Effect:
    """All that the history says of one effect."""

    id: str
    tool: Tool = field(default_factory=lambda: Tool(""))
    commits: list[Commit] = field(default_factory=list)
    landings: list[Landing] = field(default_factory=list)
    events: dict[str, list[Event]] = field(default_factory=dict)
    closings: list[Closing] = field(default_factory=list)
    undoing: list[Effect] = field(default_factory=list)  # the effects that take this one back
    undoes: Effect | None = None
    undo_kind: str | None = None
    row: Raw | None = None  # as the tables have it at the end
    entries: list[Raw] = field(default_factory=list)
    incidents: list[Raw] = field(default_factory=list)
    shared_undo: bool = False  # an undo was logged under the original's name, so who acted is not certain

    @property
    def key(self) -> str | None:
        return hexed(self.commits[-1].row.get("key")) if self.commits else None

    def of(self, kind: str) -> list[Event]:
        return self.events.get(kind, [])

    def begin_of(self, attempt: int) -> Commit | None:
        return next((one for one in self.commits if one.begins and int(one.row["attempts"]) >= attempt), None)

    def current(self, number: int) -> Commit | None:
        """The last commit before the event of this number."""
        found = None
        for one in self.commits:
            if one.number >= number:
                break
            found = one
        return found

    def closing_of(self, attempt: int, before: int) -> Closing | None:
        """How the attempt had been closed by the event of this number."""
        closed = [one for one in self.closings if one.attempt == attempt and one.commit.number < before]
        return closed[-1] if closed else None

    def broke(self, *conditions: str, before: int | None = None) -> bool:
        """Whether the world broke one of these conditions for this effect (before the event of this number)."""
        return any(
            one.get("condition") in conditions and (before is None or one.number < before) for one in self.of("broke")
        )

    def entry(self, version: int) -> Raw | None:
        return next((one for one in self.entries if int(one["seq"]) == version), None)


@dataclass(slots=True)
class World:
    """The history as the rules see it."""

    margin_us: int
    quiet: bool
    events: list[Event]
    effects: dict[str, Effect]
    tools: dict[str, Tool]

    @property
    def end(self) -> int:
        return max((one.at for one in self.events), default=0)


def hexed(value: Any) -> str | None:
    """A column of bytes as plain hexadecimal text."""
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    return str(value).lower().removeprefix("\\x").removeprefix("0x")


def structured(value: Any) -> Any:
    """A JSON column: one database gives text, the other the value."""
    return json.loads(value) if isinstance(value, str) else value


def places(row: Raw | None) -> set[int]:
    """The numbers of the attempts that the row holds open."""
    if row is None:
        return set()
    attempts, opened = int(row["attempts"]), int(row["open_attempts"])
    numbers = range(max(1, attempts - PLACES + 1), attempts + 1)
    return {number for number in numbers if opened >> ((number - 1) % PLACES) & 1}


def read(history: Raw) -> World:
    """Read a history.

    Raises:
        KeyError: it lacks what HISTORY.md demands.
    """
    events = [Event(number, int(one["at"]), str(one["kind"]), one) for number, one in enumerate(history["events"])]
    tools = {name: _tool(name, declared) for name, declared in history["tools"].items()}
    effects: dict[str, Effect] = {}
    for event in events:
        name = event.get("effect")
        if name is None:
            continue
        effect = effects.setdefault(str(name), Effect(str(name)))
        effect.events.setdefault(event.kind, []).append(event)
        if event.kind == "committed":
            _commit(effect, event)
    world = World(int(history["margin_us"]), bool(history["quiet"]), events, effects, tools)
    _everywhere(world)
    _tables(world, history["tables"])
    for effect in effects.values():
        _land(effect)
        _undone(effect)
    _link(world)
    for effect in effects.values():
        _close(effect)
    return world


def _tool(name: str, declared: Raw) -> Tool:
    fields = ("tier", "timeout_us", "grace_us", "retention_us", "looks", "revokes", "concurrent", "idempotent")
    return Tool(
        name,
        **{one: declared[one] for one in fields if one in declared},
        replays_refusals=declared.get("replays_refusals"),
    )


def _commit(effect: Effect, event: Event) -> None:
    row = event.data["row"]
    before = effect.commits[-1].row if effect.commits else None
    effect.commits.append(
        Commit(event.number, event.at, event.get("host"), event.get("call"), int(event.get("entries", -1)), row, before)
    )
    effect.undo_kind = row.get("undo_kind")


def _everywhere(world: World) -> None:
    """A clock that jumped, or another breakage that names no effect, is every effect's."""
    shared = [one for one in world.events if one.kind == "broke" and one.get("effect") is None]
    for effect in world.effects.values():
        if shared:
            effect.events["broke"] = sorted(effect.of("broke") + shared, key=lambda one: one.number)


def _tables(world: World, tables: Raw) -> None:
    by_key: dict[str | None, Effect] = {}
    for row in tables["effects"]:
        effect = world.effects.setdefault(str(row["id"]), Effect(str(row["id"])))
        effect.row = row
        by_key[hexed(row["key"])] = effect
    for effect in world.effects.values():
        name = effect.row or (effect.commits[-1].row if effect.commits else None)
        if name is not None:
            effect.tool = world.tools.get(str(name["tool"]), Tool(str(name["tool"])))
            by_key.setdefault(hexed(name["key"]), effect)
    for row in tables["entries"]:
        if (owner := by_key.get(hexed(row["key"]))) is not None:
            owner.entries.append(row)
    for row in tables["incidents"]:
        owner = world.effects.get(str(row.get("effect_id"))) or by_key.get(hexed(row.get("key")))
        if owner is not None:
            owner.incidents.append(row)
    for effect in world.effects.values():
        effect.entries.sort(key=lambda one: int(one["seq"]))


def _land(effect: Effect) -> None:
    for event in effect.of("landed"):
        if event.get("made") == "undo" and effect.undo_kind is None:
            continue  # logged under the original's name: `_link` gives it to who acted
        count = int(event.get("count") or 1)
        effect.landings.append(
            Landing(
                event.number, event.at, int(event.get("attempt") or 0), event.get("key"), event.get("reference"), count
            )
        )


def _undone(effect: Effect) -> None:
    for event in effect.of("undone"):
        standing = [one for one in effect.landings if one.number < event.number and one.undone is None]
        named = [one for one in standing if event.get("reference") in (None, one.reference)]
        for landing in named or standing[:1]:
            landing.undone = event.number


def _link(world: World) -> None:
    by_key: dict[str | None, Effect] = {
        effect.key: effect for effect in world.effects.values() if effect.key is not None
    }
    for effect in world.effects.values():
        original = by_key.get(hexed(effect.commits[-1].row.get("undoes"))) if effect.commits else None
        if effect.undo_kind is None or original is None:
            continue
        effect.undoes = original
        original.undoing.append(effect)
        acted = [one for one in original.of("landed") if one.get("made") == "undo"]
        for event in acted:
            effect.shared_undo = True
            effect.landings.append(Landing(event.number, event.at, 0, event.get("key"), event.get("reference"), 1))
        effect.landings.sort(key=lambda one: one.number)


def _close(effect: Effect) -> None:
    """Which attempts each commit closed, and by which proof."""
    for commit in effect.commits:
        row, verdict = commit.row, commit.verdict
        was, now = places(commit.before), places(row)
        if commit.begins:
            was |= {int(row["attempts"])}
        for attempt in sorted(was - now):
            effect.closings.append(Closing(attempt, _proof(effect, commit, attempt), commit))
        revoked = verdict == NO and row.get("proof") == "revoked" and commit.before is not None
        if revoked and commit.before is not None and commit.before.get("proof") != "revoked":
            named = range(1, int(row.get("revoked_through") or 0) + 1)
            effect.closings += [Closing(one, "revoked", commit) for one in named if one not in was - now]


def _proof(effect: Effect, commit: Commit, attempt: int) -> str:
    if commit.verdict == APPLIED:
        return "applied"
    entry = effect.entry(int(commit.row["version"])) or {}
    detail = structured(entry.get("detail")) or {}
    proof = str(commit.row.get("proof") if commit.verdict == NO else detail.get("proof"))
    by = int(commit.row["settled_attempt"] or 0) if commit.verdict == NO else int(entry.get("attempt") or 0)
    return "spoken" if proof == "rejected" and by not in (0, attempt) else proof
