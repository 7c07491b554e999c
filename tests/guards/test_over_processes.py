"""Every guard over three real processes at once: what one has counted, opened or paused holds in the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from cases.processes import Child, hear, playing, say

from counterfoil import (
    Absent,
    Breaker,
    Budget,
    Effect,
    Executor,
    LoopGuard,
    ManualClock,
    Policy,
    Rejected,
    Tool,
    tool,
)

START_US = 1_800_000_000_000_000
BURST = 6
ONE_LINE = threading.Lock()
MODES = ("enforce", "enforce", "observe")


class Outside:
    """The services behind the tools: files that all processes see. `down` is there: they refuse the connection."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def asked(self, name: str) -> list[str]:
        """Who asked the service of this name, one word for each request."""
        file = self.folder / name
        return file.read_text("utf-8").split() if file.exists() else []

    def ask(self, name: str, word: str) -> None:
        """One request."""
        with (self.folder / name).open("a", encoding="utf-8") as book:
            book.write(f"{word}\n")

    def switch(self, name: str, *, on: bool) -> None:
        """Put a switch on or off."""
        (self.folder / name).touch() if on else (self.folder / name).unlink(missing_ok=True)

    def is_on(self, name: str) -> bool:
        """Whether that switch is on."""
        return (self.folder / name).exists()


def tools_of(outside: Outside) -> list[Tool[..., Any]]:
    """Four tools: one that is always refused, one that may be down, one that works, one whose answer is lost."""

    @tool(key=("what",), policy=Policy(timeout_s=60, attempts_max=1, breaker=None))
    def refuse(what: str) -> None:
        """Do what is refused. Use it when it is wanted."""
        outside.ask("refuse", what)
        raise Rejected("card_declined", "the card was declined")

    @tool(key=("what",), sends="once",
          policy=Policy(timeout_s=600, attempts_max=1, breaker=Breaker(failures=5, open_s=60)))  # fmt: skip
    def reach(what: str) -> str:
        """Reach a service. Use it when it is wanted."""
        outside.ask("reach", what)
        if outside.is_on("down"):
            raise ConnectionRefusedError
        while not outside.is_on("go on"):  # the probe is at work until the others have heard their refusals
            time.sleep(0.002)
        return "reached"

    @tool(key=("what",), sends="once", policy=Policy(timeout_s=60, attempts_max=3, wait_s=0.5, breaker=None))
    def try_hard(what: str) -> str:
        """Do one thing, three times if need be. Use it when it is wanted."""
        outside.ask("try_hard", what)
        raise ConnectionRefusedError

    @tool(key=("what",), policy=Policy(timeout_s=5, patience_s=0.1, grace_s=1_000_000, breaker=None))
    def lose(what: str) -> None:
        """Do what nobody answers. Use it when it is wanted."""
        raise TimeoutError

    @lose.postcondition
    def lost(effect: Effect) -> Absent:
        outside.ask("looks", effect.id)
        return Absent()

    return [refuse, reach, try_hard, lose]


def host(url: str, folder: str, mode: Any) -> None:
    """A process that does what it is told, line by line, and says what it heard."""
    clock = ManualClock(START_US)
    tools = tools_of(Outside(Path(folder)))
    settings: dict[str, Any] = {"clock": clock, "mode": mode, "loop_guard": LoopGuard(same_answers=3)}
    with Executor(url, tools, budget=Budget(calls_per_task=40, calls_per_tool={"try_hard": 4}), **settings) as executor:
        say("ready")
        while (order := hear()) is not None:
            match order:
                case ["at", seconds]:
                    clock.advance((START_US - clock.wall_us()) / 1_000_000 + seconds)
                    say("at")
                case ["pause", name]:
                    executor.pause(name, by="Ada", why="a bad day")
                    say("paused")
                case ["resume", name]:
                    say(executor.resume(name))
                case ["burst", name, words]:
                    threads = [threading.Thread(target=one_of_a_burst, args=(executor, name, word)) for word in words]
                    for one in threads:
                        one.start()
                    for one in threads:
                        one.join()
                case [name, argument, task]:
                    given = {"effect_id": argument} if name == "check_effect" else {"what": argument}
                    seen = executor.call(name, given, task=task, turn=1)
                    say([seen.code, seen.stop, seen.effect_id])
                case ["incidents"]:
                    say([[one.kind, one.tool, one.detail.get("refused")] for one in executor.audit.incidents()])


def one_of_a_burst(executor: Executor, name: str, word: str) -> None:
    """One call of many at once, in a task of its own."""
    code = executor.call(name, {"what": word}, task=word).code
    with ONE_LINE:
        say(code)


def listen(child: Child, heard: Queue[str]) -> None:
    """Hear what the calls of a burst say, each as soon as it is said."""
    for _ in range(BURST):
        heard.put(child.heard())


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    """The services, all of which work."""
    made = Outside(tmp_path / "outside")
    made.folder.mkdir()
    return made


@pytest.fixture
def hosts(ledger_url: str, outside: Outside) -> Iterator[list[Child]]:
    """Two processes that enforce, and one that only observes."""
    with ExitStack() as stack:
        children = [
            stack.enter_context(playing(host, url=ledger_url, folder=str(outside.folder), mode=mode)) for mode in MODES
        ]
        for child in children:
            assert child.heard() == "ready"
        yield children


def told(child: Child, *order: Any) -> Any:
    """What a process says to one order."""
    child.tell(order)
    return child.heard()


def test_every_guard_holds_over_processes(hosts: list[Child], outside: Outside) -> None:
    """Three processes on one ledger, two of which enforce: each guard is met in one of them and holds in the others,
    but for the one that observes, which is stopped by nothing but a pause."""
    one, other, observer = hosts
    loop_guard(one, other, observer, outside)
    polls(one, other)
    pause(one, other, observer)
    retries(one, other, outside)
    breaker(one, other, observer, outside)
    incidents = told(one, "incidents")
    assert sorted(map(tuple, incidents)) == [
        ("breaker_opened", "reach", None),
        ("budget_exhausted", "try_hard", True),
        ("repeated_call", "check_effect", True),
        ("repeated_call", "refuse", False),
    ]


def loop_guard(one: Child, other: Child, observer: Child, outside: Outside) -> None:
    """A failure in each process: the third process notes that it would refuse, and the first two refuse; the second
    refusal, wherever, stops the run."""
    assert [told(child, "refuse", "x", "loop")[0] for child in (one, other)] == ["card_declined"] * 2
    assert told(observer, "refuse", "x", "loop")[:2] == ["card_declined", None]
    assert told(other, "refuse", "x", "loop")[:2] == ["repeated_call", "repeated_call"]
    assert told(one, "refuse", " x ", "loop")[:2] == ["repeated_call", "repeated_call"]
    assert outside.asked("refuse") == ["x"] * 3


def polls(one: Child, other: Child) -> None:
    """A doubt that is asked about in turns by two processes: they share the limit of equal answers."""
    code, _, effect_id = told(one, "lose", "x", "polls")
    assert code == "effect_unknown"
    seen = [told(child, "check_effect", effect_id, "polls") for child in (one, other, one, other, one)]
    assert [stop for _, stop, _ in seen] == [None] * 4 + ["repeated_call"]


def pause(one: Child, other: Child, observer: Child) -> None:
    """Paused by one, refused by all; resumed by another, it goes on for all."""
    assert told(one, "pause", "lose") == "paused"
    refused = [told(child, "lose", "y", f"pause {place}")[0] for place, child in enumerate((one, other, observer))]
    assert refused == ["paused"] * 3
    assert told(other, "resume", "lose") is True
    assert told(one, "lose", "y", "pause")[0] == "effect_unknown"


def retries(one: Child, other: Child, outside: Outside) -> None:
    """A call is tried three times in place; the tries count in the ledger, so that of the four that the task has, the
    other process has one left: it is not tried again in place."""
    assert told(one, "try_hard", "x", "tries")[0] == "unavailable"
    assert told(other, "try_hard", "y", "tries")[0] == "budget_exhausted"
    assert outside.asked("try_hard") == ["x", "x", "x", "y"]


def breaker(one: Child, other: Child, observer: Child, outside: Outside) -> None:
    """Five failures over three processes open it for all that enforce. A minute later two processes call with six
    threads each: one call is the probe, and the eleven others hear a refusal while it is at work."""
    outside.switch("down", on=True)
    for number, child in enumerate((one, other, observer, one, other)):
        assert told(child, "reach", f"f{number}", f"f{number}")[0] == "unavailable"
    assert [told(child, "reach", "x", "open")[0] for child in (one, other)] == ["breaker_open"] * 2
    assert len(outside.asked("reach")) == 5
    outside.switch("down", on=False)
    for child in (one, other):
        assert told(child, "at", 61) == "at"
    for number, child in enumerate((one, other)):
        child.tell(["burst", "reach", [f"b{number}-{thread}" for thread in range(BURST)]])
    heard: Queue[str] = Queue()
    listeners = [threading.Thread(target=listen, args=(child, heard), daemon=True) for child in (one, other)]
    for listener in listeners:
        listener.start()
    assert [heard.get(timeout=60) for _ in range(2 * BURST - 1)] == ["breaker_open"] * (2 * BURST - 1)
    outside.switch("go on", on=True)
    assert heard.get(timeout=60) == "ok"
    for listener in listeners:
        listener.join(60)
    assert len(outside.asked("reach")) == 6
    assert told(other, "reach", "later", "later")[0] == "ok"
