"""The page of the fault table: Markdown from endings, and what a page says, read back.

Owns the words and the shape of docs/reference/faults.md, which is never written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from faults.cell import KILLED, Ending, Told
from faults.faults import AWAY_S, CELLS, FAULTS, Cell
from faults.tiers import (
    GRACE_S,
    JOINT_PATIENCE_S,
    MARGIN_S,
    PATIENCE_S,
    RETENTION_S,
    TIERS,
    TIMEOUT_S,
    WAIT_S,
    Tier,
)

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "faults.md"
COMMAND: Final = "PYTHONPATH=tests python -m faults.table --write"

_INTRO: Final = f"""\
# Faults

What comes of one call when something goes wrong, for each tier and each fault. Nothing on this page was written by
hand: a program made every row, by real processes that call, are killed, are stopped and look, against a provider in
another process that counts its effects itself. Each row was run on SQLite and on PostgreSQL, and both came to the same.

## How to read it

Each row is one payment, for one order:

1. **The first call** meets the fault. It is told a code and a {{term}}`verdict`; a process that was killed is told
   nothing. Where another process called meanwhile, what that one was told comes second.
2. **An hour of looking**: another process reconciles whenever a look is due, until nothing is unknown or the hour is
   over. A doubt that is left then is an incident (`doubt_left`), and T4 revokes it. The row says how the effect stands,
   and by which {{term}}`proof`.
3. **The same call again**, made by a third process, is told this.
4. **At last**, when nothing is under way any more: how the effect stands, the effects that the provider counts, the
   looks and the attempts it took, and the incidents that were raised.

Read a row from its end: more than one effect may stand only where the row says that the provider breaks its word, and
`no_effect` never stands beside an effect. `effect_unknown` in the end is no failure: where nothing can be proven,
nothing is sent again, and a person decides.

## How it is made

```sh
{COMMAND}
```

The program is `tests/faults`. Without `--write` it only says which rows would change; with words, such as `t2 late`, it
runs only the rows whose names contain them. The tests run some of the rows each time and compare them with this page.

The declared times, in seconds: `timeout_s` {TIMEOUT_S:g}, `grace_s` {GRACE_S:g} where there is one, `patience_s`
{PATIENCE_S:g} (T5: {JOINT_PATIENCE_S:g}), `wait_s` {WAIT_S:g}, a provider that remembers keys, or an idempotent window,
for {RETENTION_S:g}, `attempts_max` 3, and a clock margin of {MARGIN_S:g}. The tools declare `sends="marked"` unless the
row says otherwise, and the key policy `concurrent=True`. The processes of a row share one clock, which the program
sets: waiting moves it on, so that an hour of looking takes a moment, and a row is the same on any machine. The
{AWAY_S:g} s without a database are real.

On PostgreSQL the replies to COMMIT are lost by a proxy that ends the connection when the server has carried it out, and
the database is away behind the same proxy. A SQLite file has no connection to cut: there the driver's COMMIT counts and
then fails, and the file is locked by another connection (T5, which holds that lock itself: every statement fails).
"""
_HEAD: Final = (
    "| what goes wrong | the first call is told | after an hour of looking | the same call again is told "
    "| at last | effects | looks | attempts | incidents |"
)
_RULE: Final = "|---" * 5 + "|--:" * 3 + "|---|"


def page(endings: Mapping[Cell, Ending]) -> str:
    """The whole page."""
    parts = [_INTRO]
    for tier in TIERS:
        parts += [f"## {tier.title}", tier.says]
        lines = [line(cell, endings[cell]) for cell in CELLS if cell.tier == tier]
        parts.append("\n".join([_HEAD, _RULE, *lines]))
        parts += list(missing(tier))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def line(cell: Cell, ending: Ending) -> str:
    """One row."""
    first, *others = map(_told, ending.first)
    cells = (
        cell.fault.title,
        first + "".join(f"; the other: {other}" for other in others),
        _stands(ending.settled),
        _told(ending.again),
        _stands(ending.ended),
        str(ending.effects),
        str(ending.looks),
        str(ending.attempts),
        ", ".join(f"`{kind}`" for kind in ending.incidents),
    )
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def missing(tier: Tier) -> Iterator[str]:
    """What cannot happen to a tier, in one sentence."""
    reasons: dict[str, list[str]] = {}
    for fault in FAULTS:
        reason = fault.missing(tier)
        if reason is not None:
            reasons.setdefault(reason, []).append(fault.title)
    told = "; ".join(f"{reason}: {' / '.join(titles)}" for reason, titles in reasons.items())
    if told:
        yield f"Not in this table {told}."


def section(text: str, tier: Tier) -> str:
    """What the page says of one tier."""
    return text.partition(f"\n## {tier.title}\n")[2].partition("\n## ")[0]


def row(text: str, cell: Cell) -> str | None:
    """The row of a cell, as it stands on the page; None where there is none."""
    begins = f"| {cell.fault.title} |"
    rows = [one for one in section(text, cell.tier).splitlines() if one.startswith(begins)]
    return rows[0] if len(rows) == 1 else None


def counted(row: str) -> tuple[str, int]:
    """The last verdict of a row, and its effects."""
    cells = [one.strip() for one in re.split(r"(?<!\\)\|", row)[1:-1]]
    return cells[4].split("`")[1], int(cells[5])


def _told(told: Told) -> str:
    if told.verdict is None:
        return f"({KILLED})"
    return f"`{told.verdict}`" if told.code == told.verdict else f"`{told.code}`, `{told.verdict}`"


def _stands(told: Told) -> str:
    if told.verdict is None:
        return "nothing is on record"
    return f"`{told.verdict}`" if told.proof is None else f"`{told.verdict}` by `{told.proof}`"
