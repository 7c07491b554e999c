"""Live many seeds: `python -m simulation.run --seeds 200000 [--from N] [--jobs 2] [--json FILE]` (in tests/).

Shows how far it is, the table of what was reached, and seeds per second; prints each failing seed with the decisions
that it needs, and the command that replays it. Exit 1 when there was a violation.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from simulation.report import table
from simulation.shrink import to_text
from simulation.trial import Stage, on_server, stage

BATCH = 100
AHEAD = 2
SHRINKS_MOST = 5


@dataclass
class Total:
    """What came of a run. `reached` counts the seeds that reached something, `hits` how often all did."""

    seeds: int = 0
    seconds: float = 0.0
    hits: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Total) -> None:
        self.seeds += other.seeds
        self.hits += other.hits
        self.reached += other.reached
        self.failures += other.failures


def batch(here: Stage, seeds: range, *, shrinks: bool = True) -> Total:
    """Live some seeds in this process."""
    total = Total()
    for seed in seeds:
        trial = here.run(seed)
        total.seeds += 1
        total.hits.update(trial.hits)
        total.reached.update(trial.hits.keys())
        if trial.violations:
            words = [f"seed {seed}: {violation}" for violation in trial.violations]
            if shrinks and len(total.failures) < SHRINKS_MOST:
                kept = to_text(here.shrunk(trial))
                words.append(f"    python -m simulation.replay {seed} --trace --kept '{kept}'")
            total.failures.append("\n".join(words))
    return total


def run(seeds: range, jobs: int) -> Iterator[Total]:
    """Live seeds in `jobs` processes; the total so far, after each batch."""
    begun = time.monotonic()
    total = Total()
    parts = [seeds[place : place + BATCH] for place in range(0, len(seeds), BATCH)]
    with ExitStack() as stack:
        urls: list[str | None] = [None] * jobs
        if any(on_server(seed) for seed in seeds):
            from postgres import running_postgres

            server = stack.enter_context(running_postgres())
            urls = [server.url(server.create()) for _ in range(jobs)]
        context = multiprocessing.get_context("spawn")
        asked, told = context.SimpleQueue(), context.SimpleQueue()
        workers = [context.Process(target=_work, args=(url, asked, told), daemon=True) for url in urls]
        for worker in workers:
            worker.start()
        left = iter(parts)
        for part in islice(left, AHEAD * jobs):  # a pipe holds only so much: all of them at once could wait for ever
            asked.put(part)
        for _ in parts:
            total.add(told.get())
            if (part_ahead := next(left, None)) is not None:
                asked.put(part_ahead)
            total.seconds = time.monotonic() - begun
            yield total
        for _ in workers:
            asked.put(None)
        for worker in workers:
            worker.join()


def whole(seeds: range, jobs: int) -> Total:
    """Live seeds to the last of them."""
    return deque(run(seeds, jobs), maxlen=1).pop()


def _work(url: str | None, asked: multiprocessing.SimpleQueue[range | None],
          told: multiprocessing.SimpleQueue[Total]) -> None:  # fmt: skip
    with stage(url) as here:
        while (part := asked.get()) is not None:
            told.put(batch(here, part))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2000)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures there")
    asked = parser.parse_args()
    total, shown = Total(), 0
    for total in run(range(asked.first, asked.first + asked.seeds), asked.jobs):
        sys.stdout.write("".join(f"{failure}\n" for failure in total.failures[shown:]))
        sys.stdout.flush()
        shown = len(total.failures)
        pace = total.seeds / max(total.seconds, 0.001)
        sys.stderr.write(f"\r{total.seeds} seeds, {pace:.0f}/s, {len(total.failures)} failing ")
        sys.stderr.flush()
    sys.stderr.write("\n")
    sys.stdout.write(table(total.seeds, total.hits, total.reached) + "\n")
    sys.stdout.write(f"{total.seeds} seeds in {total.seconds:.0f} s, {len(total.failures)} with violations\n")
    if asked.json is not None:
        figures = {"seeds": total.seeds, "seconds": total.seconds, "hits": total.hits, "reached": total.reached,
                   "failures": total.failures}  # fmt: skip
        asked.json.write_text(json.dumps(figures, sort_keys=True, indent=1))
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
