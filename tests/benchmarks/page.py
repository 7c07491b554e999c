"""The page of the documentation that shows the figures, with its charts: made whole from a run's results.

Owns the words. What they claim beyond the figures is how each side was run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import chart, report
from benchmarks.matrix import CALLERS, SIDES
from benchmarks.peers import PEERS

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation"
NAME: Final = "performance"
OUR_INSTALLATIONS: Final = {"counterfoil": "Counterfoil", "counterfoil[postgres]": "Counterfoil with psycopg"}
COMMANDS: Final = {
    "quick": "cd tests && ../.venv/bin/python -m benchmarks.run --quick --write",
    "ordinary": "cd tests && ../.venv/bin/python -m benchmarks.run --write",
    "long": "cd tests && ../.venv/bin/python -m benchmarks.run --long --write",
}

OPENING: Final = """\
What a call costs, beside what the drivers and what others cost. Made by one command, which anybody can run; the
figures below are of one machine, and the ratios carry over better than the rates."""
GROWTH: Final = """\
Effects are written in bulk, in the shape of real ones, with their entries. Calls by `Executor` on that ledger and on an
empty one take turns. Replays go around among 2,000 effects of the ledger."""
SLOW: Final = """\
The same first calls while every flush of every side and of the server takes {slow_ms:g} ms longer, which a small
library makes it do that is loaded before the C library: so does a disk in the network. On this machine's own disk
writing 4 KiB durably takes {fast_us} µs, so that what is measured above is Python and not the commits that are shared.
The targets count this machine's own disk."""
OWN_PYTHON: Final = """\
One caller's first call on the blocking executor, µs. The driver's time is what passes inside `execute`, `commit` and
`rollback` of sqlite3 or psycopg, whose connections count it; the rest of the call is ours and SQLAlchemy's. Beside it
the same by processor time, and the call with every step of the ledger left out, as the observer sees them."""
AGAIN: Final = """\
This page is made by the following, from a fresh clone. The peers get environments of their own in the user's cache;
Powertools needs a `redis-server` on the machine and is left out where there is none, and so is the slower disk where
there is no C compiler.

```sh
python3 -m venv .venv && .venv/bin/pip install -e '.[benchmarks]'
{command}
```

`--quick` takes two minutes, `--long` hours. `--only first-call --ledger sqlite --json results.json` measures one part
and puts it into a file of results that is there; `--render` shows, or with `--write` writes, what such a file holds."""

READING: Final = """\
## How to read it

- A **first call** validates, names the effect, begins it durably, runs a tool that does nothing, and settles it
  durably: two commits. A **replay** is the same call again: one indexed read. **Settling a doubt** is a call that
  finds an earlier one without an end, looks, finds the effect and writes that down: one commit.
- Each caller makes its next call when the one before has been answered. The rate is counted while all of them are
  busy. The sides take turns, round by round, and each figure is the median of its rounds. p50 and p99 are over all
  calls of all rounds. Each call names its task; a task has eight calls. None has a turn, a budget or a twin window.
- **(a)** is the raw driver, sqlite3 or psycopg 3, writing the same rows: the effect and the entry that explains it,
  with the same columns and contents, in two transactions. Its parameters are made before the clock runs, it decides
  nothing and guards nothing. On PostgreSQL each caller has a connection, and 256 callers share 32. On SQLite all
  share one connection behind a lock. Its replay reads the whole row by its key; its doubt is a read, an update and
  an entry in one transaction. **(b)** is two tiny statements in autocommit.
- Counterfoil is measured twice: `Executor` called by threads, and `AsyncExecutor` called by tasks of one loop. A
  target counts the better of the two. Both have `attempts_max=1024`: the default, 64, refuses what would run
  beyond.
- Every side keeps what it has acknowledged: SQLite with `synchronous=FULL` in write-ahead mode, PostgreSQL with
  `fsync` and `synchronous_commit` on, over a UNIX socket, Redis with an append-only file and `appendfsync always`.
  Every side runs in a process of its own on the same disk.
- The peers do other things besides, and none does the same. DBOS runs a workflow of one step, with 32 connections
  and its file in write-ahead mode. LangGraph invokes a graph of one node with `durability="sync"`. Powertools makes
  a function idempotent. Their replay is the same call again.
"""


def write(results: dict[str, Any], folder: Path = FOLDER) -> list[Path]:
    """Write the page and its charts; which files they are."""
    drawn = dict(charts(results))
    files = {folder / f"{NAME}-{name}.svg": content for name, content in drawn.items()}
    files[folder / f"{NAME}.md"] = text(results, list(drawn))
    for file, content in files.items():
        file.write_text(content, encoding="utf-8")
    return list(files)


def text(results: dict[str, Any], drawn: Sequence[str]) -> str:
    """The page."""
    made = results["made"]
    parts = [
        "# Performance",
        OPENING,
        _busy(results),
        "## Targets, met or not",
        _targets(results),
        *(_image(name) for name in drawn),
        READING.rstrip(),
        "## The figures",
        *_tables(results),
        *_slow(results),
        *_growth(results),
        *_costs(results),
        "## Where and with what",
        _machine(made),
        "## Run it yourself",
        AGAIN.format(command=COMMANDS[made["effort"]]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def charts(results: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The charts by name; one for which nothing was measured is not drawn."""
    for ledger, title in report.LEDGER_TITLES.items():
        groups = {
            report.KIND_TITLES["first"] + f", {callers} caller{'s' if callers > 1 else ''}": {
                spec.title: cell[spec.key].get("rate") for spec in SIDES if spec.key in cell
            }
            for callers in CALLERS
            if (cell := report.at(results, ledger, "first", callers))
        }
        if groups:
            yield f"first-{ledger}", chart.bars(f"First calls per second, {title}", groups, "calls per second")
    growth = {
        f"{title}, {kind}, {callers}": [(float(size), float(found[key]["cost"])) for size, found in sizes.items()]
        for ledger, title in report.LEDGER_TITLES.items()
        if (sizes := results.get("growth", {}).get(ledger))
        for kind in ("first", "replay")
        for callers in (1, 32)
        if (key := f"{kind}-{callers}") in next(iter(sizes.values()))
    }
    if growth and all(len(line) > 1 for line in growth.values()):
        title = "What a call costs in a full ledger (an empty one's is 1)"
        yield "growth", chart.lines(title, growth, "effects in the ledger", "times", logarithmic=True)
    memory = {
        report.LEDGER_TITLES[ledger]: [(float(calls), float(mib)) for calls, mib in found["lasting"]["series"]]
        for ledger, found in results.get("memory", {}).items()
    }
    if memory:
        yield "memory", chart.lines("Memory of the process while calls come and go", memory, "calls made", "MiB")


# ---------------------------------------------------------------- details


def _busy(results: dict[str, Any]) -> str:
    if not report.is_busy(results):
        return ""
    said = f"a load of {report.load(results):g} on {results['made']['machine']['cores']} cores"
    return f"**Other work ran on this machine at the same time, {said}: what stands here is noise.**"


def _image(name: str) -> str:
    titles = {
        "first-sqlite": "First calls per second on SQLite",
        "first-postgresql": "First calls per second on PostgreSQL",
        "growth": "The cost of a call as the ledger grows",
        "memory": "Memory over many calls",
    }
    return f"![{titles[name]}]({NAME}-{name}.svg)"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    rule = ["---" if index < left else "---:" for index in range(len(head))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))


def _targets(results: dict[str, Any]) -> str:
    rows = [
        (one.name, report.LEDGER_TITLES[one.ledger], one.wanted, one.shown, one.verdict)
        for one in report.targets(results)
    ]
    return _table(("target", "ledger", "wanted", "measured", ""), rows, left=2)


def _tables(results: dict[str, Any]) -> Iterator[str]:
    for ledger, title in report.LEDGER_TITLES.items():
        for kind, named in report.KIND_TITLES.items():
            rows = report.matrix_rows(results, ledger, kind)
            if rows:
                head = report.MATRIX_HEAD
                yield f"### {title}: {named}"
                yield _table((head[1], head[0], *head[2:]), [(row[1], row[0], *row[2:]) for row in rows])
    settled = results.get("reconcile", {})
    if settled:
        said = ", ".join(f"{report.number(one['rate'])} on {report.LEDGER_TITLES[key]}" for key, one in settled.items())
        yield f"One process's `reconcile` settles so many doubts a second: {said}."


def _slow(results: dict[str, Any]) -> Iterator[str]:
    if "slow_cells" not in results:
        return
    fast_us, slow_us = results["made"]["flush_us"]
    yield "### A slower disk"
    yield SLOW.format(slow_ms=slow_us / 1000, fast_us=fast_us)
    head = ("ledger", "side", "callers", *report.MATRIX_HEAD[2:])
    rows = [
        (title, row[1], row[0], *row[2:])
        for ledger, title in report.LEDGER_TITLES.items()
        for row in report.matrix_rows(results, ledger, "first", "slow_cells")
    ]
    yield _table(head, rows, left=2)


def _growth(results: dict[str, Any]) -> Iterator[str]:
    rows = [
        (
            report.LEDGER_TITLES[ledger], f"{int(size):,}", what.replace("-", " of "),
            report.number(one["empty_rate"]), report.number(one["full_rate"]), f"{one['cost']:.2f}",
        )
        for ledger, sizes in results.get("growth", {}).items()
        for size, found in sizes.items()
        for what, one in found.items()
    ]  # fmt: skip
    if rows:
        yield "### Growth"
        yield GROWTH
        yield _table(("ledger", "effects", "calls, callers", "empty, calls/s", "full, calls/s", "cost"), rows)


def _costs(results: dict[str, Any]) -> Iterator[str]:
    if "memory" in results:
        yield "### Memory"
        yield _table(
            ("ledger", "1,000 concurrent calls, MiB", "left of them, MiB", "calls in a row", "first MiB", "last MiB"),
            [
                (
                    report.LEDGER_TITLES[ledger],
                    f"{one['concurrent']['held_mib']:.1f}", f"{one['concurrent']['left_mib']:.1f}",
                    f"{one['lasting']['calls']:,}",
                    f"{one['lasting']['series'][0][1]:.1f}", f"{one['lasting']['series'][-1][1]:.1f}",
                )
                for ledger, one in results["memory"].items()
            ],
        )  # fmt: skip
    if "python" in results:
        yield "### Our own Python"
        yield OWN_PYTHON
        head = (
            "ledger",
            "whole call",
            "in the driver",
            "the rest",
            "the rest, processor",
            "without the ledger's steps",
        )
        names = ("wall_us", "driver_us", "without_driver_us", "without_driver_cpu_us", "without_ledger_us")
        yield _table(
            head,
            [
                (report.LEDGER_TITLES[ledger], *(report.number(one[name]) for name in names))
                for ledger, one in results["python"].items()
            ],
        )
    if "footprint" in results:
        titles = {**OUR_INSTALLATIONS, **{peer.name: peer.title for peer in PEERS}}
        yield "### Import and size"
        yield _table(
            ("", "import, ms", "installed, MiB", "packages"),
            [
                (
                    titles[name],
                    report.number(one["import_ms"]),
                    f"{one['installed_mib']:.1f}",
                    str(len(one["packages"])),
                )
                for name, one in results["footprint"].items()
            ],
        )


def _machine(made: dict[str, Any]) -> str:
    machine = made["machine"]
    kind = f"{machine['processor']}, {machine['cores']} cores, {machine['memory']} of memory, {machine['system']}"
    lines = [f"{kind}, Python {machine['python']}."]
    runs: dict[tuple[str, str], list[str]] = {}
    for name, part in made["parts"].items():
        runs.setdefault((part["at"], part["effort"]), []).append(name)
    lines += [f"{at}, {effort} run: {', '.join(names)}." for (at, effort), names in runs.items()]
    if "server" in made:
        shown = ", ".join(f"{name} {value}" for name, value in made["server"].items() if name != "server_version")
        lines.append(f"PostgreSQL {made['server']['server_version']} with {shown}.")
    titles = {spec.key: spec.title for spec in SIDES}
    peers = {spec.key: spec.peer for spec in SIDES}
    for key, versions in made["versions"].items():
        if not versions:
            continue
        licence = made["licences"].get(peers[key] or "")
        said = ", ".join(f"{name} {version}" for name, version in versions.items())
        lines.append(f"{titles[key]}: {said}{f' (licence {licence})' if licence else ''}.")
    return "\n".join(f"- {line}" for line in lines)
