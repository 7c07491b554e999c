"""Many episodes of four agents at three fault levels, as a table: `python -m episodes.table [--write]`, run in `tests`.

Owns the counting. Payments are counted at the provider once everything under way has landed; what an agent said is held
against that.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from episodes.agents import AGENTS
from episodes.market import Market

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "what-a-retry-costs.md"
LEVELS: Final = {"one request in twenty": 0.05, "one in five": 0.2, "one in two": 0.5}
EPISODES: Final = 1000


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of an agent's episodes at one level."""

    agent: str
    level: str
    episodes: int = 0
    doubled: int = 0
    reached: int = 0
    untrue: int = 0
    reported: int = 0
    requests: int = 0

    def plus(self, payments: int, said: str, requests: int) -> Tally:
        """The tally with one more episode."""
        true = {"done": payments > 0, "not done": payments == 0, "reported": True}[said]
        return Tally(
            self.agent,
            self.level,
            self.episodes + 1,
            self.doubled + (payments > 1),
            self.reached + (payments == 1 and said == "done"),
            self.untrue + (not true),
            self.reported + (said == "reported"),
            self.requests + requests,
        )


def played(agent: str, level: str, seeds: Iterable[int]) -> Tally:
    """Play one agent's episodes, each with a ledger and a world of its own."""
    tally = Tally(agent, level)
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            market = Market(seed, LEVELS[level])
            said = AGENTS[agent](market, f"sqlite:///{folder}/{seed}.db")
            tally = tally.plus(market.settled(), said, market.requests)
    return tally


def page(tallies: Iterable[Tally]) -> str:
    """The table as a page of the documentation."""
    lines = [
        "# What a retry costs",
        "",
        "Four agents want one payment each time, at a provider that keeps no keys. A request meets a fault with the",
        "given chance: its answer is lost, it is lost itself, it lands up to 20 s late, the provider acts and answers",
        "500, refuses the connection, throttles, or the agent's process is interrupted and started again. A look fails",
        "half as often, and may miss for up to 5 s what has landed. After eight faults of an episode the world is well",
        "again. Each agent meets the same seeds, on a clock that is set and not waited for.",
        "",
        "The first agent repeats what failed, up to five times. The second never does. The third looks once after a",
        "failure and repeats when it sees nothing. The fourth calls through Counterfoil, with `grace_s` as long as a",
        "request may be late plus a look may lag, and obeys the next action of each message: it reads nothing else.",
        "",
        "| faults | agent | episodes | paid twice | paid once, said so | untrue | left to a person | requests |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {one.level} | {one.agent} | {one.episodes} | {one.doubled} | {one.reached} | {one.untrue} | {one.reported} "
        f"| {one.requests} |"
        for one in tallies
    ]
    lines += [
        "",
        "*Untrue*: the agent said at the end that it was paid where it was not, or the reverse. What no agent can win:",
        "where the provider never answers and cannot be looked at, nobody knows, and it is left to a person. What the",
        "fourth agent wins rests on the declared grace; [the promise](promise.md) says what happens where a request",
        "lands later than that. Made by `python -m episodes.table --write`, run in `tests`.",
        "",
    ]
    return "\n".join(lines)


def main(words: list[str]) -> int:
    """Play all, show the table, and write the page when asked."""
    tallies = []
    for level in LEVELS:
        for agent in AGENTS:
            tallies.append(played(agent, level, range(EPISODES)))
            print(tallies[-1], file=sys.stderr, flush=True)  # noqa: T201
    text = page(tallies)
    if "--write" in words:
        PAGE.write_text(text, encoding="utf-8")
    print(text)  # noqa: T201
    return 1 if any(one.doubled or one.untrue for one in tallies if "Counterfoil" in one.agent) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
