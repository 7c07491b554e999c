"""Live one seed again: `python -m simulation.replay SEED [--kept DECISIONS] [--trace] [--history FILE]` (in tests/).

Exit 1 when the checker finds a violation.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from simulation.shrink import from_text
from simulation.trial import stage


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seed", type=int)
    parser.add_argument("--kept", help="the decisions that may be other than their defaults, as a run prints them")
    parser.add_argument("--trace", action="store_true", help="print every step")
    parser.add_argument("--history", type=Path, help="write the history there, as JSON")
    asked = parser.parse_args()
    kept = None if asked.kept is None else from_text(asked.kept)
    with stage() as here:
        trial = here.run(asked.seed, kept, traced=asked.trace)
    lines = [*trial.trace, *trial.violations] or ["no violation"]
    sys.stdout.write("\n".join(lines if trial.violations else [*lines, "no violation"]) + "\n")
    if asked.history is not None:
        asked.history.write_text(trial.text)
    return 1 if trial.violations else 0


if __name__ == "__main__":
    sys.exit(main())
