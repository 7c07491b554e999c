"""Run the fault table: `PYTHONPATH=tests python -m faults.table [--write] [WORDS]`.

Runs every cell (with WORDS: those whose names contain them) on both databases, some at once, and shows how far it is.
With `--write` it writes docs/reference/faults.md; otherwise it says which rows differ from that page. Exit 0 only if
both databases agree in every cell, nothing is wrong with any, and the page is (or was) as it should be.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from conftest import DATABASES, prepare_ledger
from crash.nursery import Nursery
from crash.story import closed_port
from faults.cell import LIVES, Ending, Theatre, played, wrong
from faults.faults import CELLS, Cell
from faults.page import PAGE, line, page, row
from postgres import running_postgres

AT_ONCE: Final = 4 * (os.cpu_count() or 1)  # they mostly wait for disks and for each other


@contextmanager
def opened() -> Iterator[Theatre]:
    """A theatre with a server, a nursery and templates of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="cf-faults-") as name,
        running_postgres() as server,
        Nursery(LIVES) as nursery,
        closed_port() as port,
    ):
        folder = Path(name)
        prepare_ledger(f"sqlite:///{folder / 'template.db'}")
        template = server.create()
        prepare_ledger(server.url(template))
        yield Theatre(nursery, server, (folder / "template.db", template), folder, port)


def run(cells: Sequence[Cell], at: Theatre, databases: Iterable[str]) -> Iterator[tuple[Cell, str, Ending]]:
    """Run cells, some at once; each ending as it comes."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        running = {
            threads.submit(played, cell, database, at): (cell, database) for cell in cells for database in databases
        }
        try:
            for done in as_completed(running):
                cell, database = running[done]
                yield cell, database, done.result()
        finally:
            threads.shutdown(cancel_futures=True)


def problems(endings: dict[Cell, dict[str, Ending]]) -> Iterator[str]:
    """What is wrong in any cell, and where the databases differ."""
    for cell, by_database in endings.items():
        for database, ending in by_database.items():
            yield from (f"{cell.name} on {database}: {problem}" for problem in wrong(cell, ending))
        if len(set(by_database.values())) > 1:
            yield f"{cell.name}: the databases differ: {by_database}"


def main(arguments: Sequence[str]) -> int:
    """Run, show, compare or write."""
    words = [word for word in arguments if word != "--write"]
    writes = "--write" in arguments
    cells = [cell for cell in CELLS if all(word in cell.name for word in words)]
    if writes and words:
        sys.exit("a page is written whole: leave the words out")
    endings: dict[Cell, dict[str, Ending]] = {}
    start, total = time.monotonic(), len(cells) * len(DATABASES)
    with opened() as at:
        for number, (cell, database, ending) in enumerate(run(cells, at, DATABASES), 1):
            endings.setdefault(cell, {})[database] = ending
            _say(f"{number:4} of {total}  {time.monotonic() - start:5.0f} s  {database:<10}  {cell.name}")
    found = list(problems(endings))
    first = {cell: by_database[DATABASES[0]] for cell, by_database in endings.items()}
    if writes and not found:
        PAGE.write_text(page(first), "utf-8")
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    changed = [cell for cell in cells if row(text, cell) != line(cell, first[cell])]
    for cell in changed:
        _say(f"{cell.name}\n  page {row(text, cell)}\n  now  {line(cell, first[cell])}")
    for problem in found:
        _say(f"WRONG  {problem}")
    _say(f"{len(cells)} cells on {len(DATABASES)} databases, {len(found)} wrong, {len(changed)} not as on the page")
    return 1 if found or changed else 0


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
