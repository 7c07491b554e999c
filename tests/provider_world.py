"""What is true at the provider: its effects, its keys, what is armed, and what is still under way.

Owns the durable, append-only file: each effect and each request is one line of JSON, on the disk (fsync) before
anything is answered. Knows nothing of HTTP. Standard library only.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from provider import Answer, Fault

LOOKS = frozenset({"stale", "error", "hang", "empty", "double", "look_alike"})


@dataclass
class Armed:
    fault: Fault
    times: int | None
    skip: int
    reference: str | None

    def take(self, looks: bool, reference: str | None) -> bool:
        """True when this one is for the request at hand; counts it."""
        if (self.fault.kind in LOOKS) is not looks or self.reference not in (None, reference) or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass
class Stored:
    """What is remembered of a key. `answer` is None while the first request is at work."""

    request: tuple[str, Any]
    first_at: float
    answer: Answer | None = None


@dataclass
class World:
    """Everything that is true at the provider, under one lock."""

    file: Path
    changed: threading.Condition = field(default_factory=threading.Condition)
    effects: list[dict[str, Any]] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: dict[str, Stored] = field(default_factory=dict)
    stones: set[str] = field(default_factory=set)
    armed: list[Armed] = field(default_factory=list)
    retention_s: float | None = None
    concurrent: str = "refuse"
    replays_refusals: bool = False
    advanced_s: float = 0.0
    releases: int = 0
    parked: int = 0
    late: int = 0

    def __post_init__(self) -> None:
        self.out = self.file.open("a+b")
        self.out.seek(0)
        whole = 0
        for line in self.out:
            if not line.endswith(b"\n"):
                break  # torn by a crash while it was written: it was never answered
            self._remember(json.loads(line))
            whole += len(line)
        self.out.truncate(whole)

    def now(self) -> float:
        return time.time() + self.advanced_s

    def write(self, what: str, **members: Any) -> dict[str, Any]:
        """Append one line and put it on the disk; the caller holds the lock."""
        line = {"what": what, **members, "at": self.now()}
        self.out.write(json.dumps(line).encode() + b"\n")
        self.out.flush()
        os.fsync(self.out.fileno())
        self._remember(line)
        return line

    def forget(self) -> None:
        """Be as on the first day; the caller holds the lock, and nothing is under way."""
        self.out.truncate(0)
        for each in (self.effects, self.requests, self.keys, self.stones, self.armed):
            each.clear()
        self.retention_s, self.concurrent, self.replays_refusals, self.advanced_s = None, "refuse", False, 0.0

    def _remember(self, line: dict[str, Any]) -> None:
        match line["what"]:
            case "effect":
                self.effects.append({name: line[name] for name in ("id", "reference", "key", "body", "at")})
            case "request":
                self.requests.append({name: value for name, value in line.items() if name != "what"})
            case "stone":
                self.stones.add(line["key"])
            case "key":
                answer = Answer(line["status"], line["answer"])
                self.keys[line["key"]] = Stored((line["reference"], line["body"]), line["first_at"], answer)

    def wait(self, seconds: float | None) -> None:
        """Until so many seconds are over, or the next release; the lock is free meanwhile."""
        release = self.releases
        with self.parking():
            self.changed.wait_for(lambda: self.releases != release, seconds)

    @contextmanager
    def parking(self) -> Iterator[None]:
        """What happens inside waits for a release: a test can tell that it has come so far."""
        with self.changed:
            self.parked += 1
            self.changed.notify_all()
        try:
            yield
        finally:
            with self.changed:
                self.parked -= 1

    def matching(self, reference: str | None) -> list[dict[str, Any]]:
        return [effect for effect in self.effects if reference in (None, effect["reference"])]

    # ------------------------------------------------------------ one request arrives

    def arrive(self, request: dict[str, Any], work_s: float | None = 0.0, refusal: Answer | None = None) -> Answer:
        """Key first, then the work, then the effect, then the key again. `work_s` None: until the next release."""
        with self.changed:
            known = self._known(request)
            if known is not None:
                return known
            key, first_at = request["key"], self.now()
            keyed = key is not None and self.retention_s is not None
            if keyed and self.concurrent != "racy":
                self.keys[key] = Stored((request["reference"], request["body"]), first_at)
            if work_s != 0.0:
                self.wait(work_s)
            if key in self.stones:
                return Answer(410, {"error": "revoked"})
            answer = refusal or Answer(201, self._act(request))
            if keyed and (refusal is None or self.replays_refusals):
                stored = {"status": answer.status, "answer": answer.body, "first_at": first_at}
                self.write("key", key=key, reference=request["reference"], body=request["body"], **stored)
            elif keyed:
                self.keys.pop(key, None)
            self.changed.notify_all()
            return answer

    def revoke(self, reference: str, keys: list[str]) -> Answer:
        """The effects that are there already; without any, a stone for each key."""
        with self.changed:
            there = self.matching(reference)
            for key in keys if not there else []:
                self.write("stone", key=key)
            return Answer(200, there)

    def _known(self, request: dict[str, Any]) -> Answer | None:
        if self.retention_s is None or request["key"] is None:
            return None
        stored = self.keys.get(request["key"])
        if stored is None or self.now() - stored.first_at > self.retention_s:
            return None
        if stored.request != (request["reference"], request["body"]):
            return Answer(422, {"error": "key_reused"})
        if stored.answer is None and self.concurrent == "wait":
            self.changed.wait_for(lambda: self.keys.get(request["key"]) is not stored or stored.answer is not None)
            return self._known(request)
        return stored.answer or Answer(409, {"error": "in_progress"})

    def _act(self, request: dict[str, Any]) -> dict[str, Any]:
        name = f"ef_{len(self.effects) + 1}"
        members = {"id": name, "reference": request["reference"], "key": request["key"], "body": request["body"]}
        self.write("effect", **members)
        return members

    def arrive_late(self, request: dict[str, Any], seconds: float | None) -> None:
        """The request is still under way: it arrives later, in a thread of its own."""
        with self.changed:
            self.late += 1

        def arrive() -> None:
            with self.changed:
                self.wait(seconds)
            self.arrive(request)
            with self.changed:
                self.late -= 1
                self.changed.notify_all()

        threading.Thread(target=arrive, daemon=True).start()


def control(world: World, content: dict[str, Any]) -> Answer:
    """What a test arranges. Unknown members are refused."""
    changes: dict[str, Callable[[Any], object]] = {
        "arm": lambda value: world.armed.append(Armed(**value | {"fault": Fault(**value["fault"])})),
        "disarm": lambda _: world.armed.clear(),
        "dedupe": lambda value: vars(world).update(value),
        "advance_s": lambda value: setattr(world, "advanced_s", world.advanced_s + value),
        "release": lambda _: setattr(world, "releases", world.releases + 1),
        "forget": lambda _: world.forget(),
    }
    unknown = content.keys() - changes.keys()
    if unknown:
        return Answer(400, {"error": f"unknown: {sorted(unknown)}"})
    with world.changed:
        for name, value in content.items():
            changes[name](value)
        world.changed.notify_all()
    return Answer(200, {})
