"""Effects with and without Counterfoil, through each framework, as a table: `python -m adapters.table [--write]`.

Run it in `tests`, without arguments to see, with names of drivers to make their columns alone (the others stay as the
page has them). Owns the page; the scenarios and how they are played are the conformance suite's.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from adapters.conformance.driver import Driver
from adapters.conformance.drivers import driver, installed
from adapters.conformance.playing import play
from adapters.conformance.scenarios import SCENARIOS, Scenario
from provider import Provider

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "frameworks-compared.md"
LEFT_OUT: Final = "–"


def counted(scenario: Scenario, through: Driver, *, stock: bool) -> int:
    """Play one scenario with a ledger and a provider of its own; the effects at the provider."""
    with tempfile.TemporaryDirectory() as folder, Provider.start(Path(folder) / "provider.jsonl") as provider:
        return play(scenario, through, f"sqlite:///{folder}/ledger.db", provider, stock=stock).effects


def column(through: Driver) -> dict[str, str]:
    """A driver's cells by scenario: without, then with."""
    cells = {}
    for scenario in SCENARIOS:
        if scenario.interrupted == "cancelled" and not through.cancellable:
            cells[scenario.says] = LEFT_OUT
            continue
        without, under = (counted(scenario, through, stock=stock) for stock in (True, False))
        cells[scenario.says] = f"{without} → {under}"
        print(through.name, scenario.name, cells[scenario.says], file=sys.stderr, flush=True)  # noqa: T201
    return cells


def page(columns: Mapping[str, Mapping[str, str]]) -> str:
    """The table as a page of the documentation."""
    names = list(columns)
    lines = [
        "# Frameworks compared",
        "",
        "The same conversation is held twice through each framework: with its stock kind of tool, and with the same",
        "function behind Counterfoil. Each cell counts the payments at the provider, without → with. One is wanted,",
        "none where the provider declines or forbids it. The model follows a script, the same for both, and repeats",
        "its call as models do; it obeys nothing that it reads. The provider keeps no keys and runs in a process of",
        "its own; kills are SIGKILL.",
        "",
        f"| what happens | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    lines += [
        f"| {scenario.says} | {' | '.join(columns[name].get(scenario.says, LEFT_OUT) for name in names)} |"
        for scenario in SCENARIOS
    ]
    lines += [
        "",
        f"{LEFT_OUT}: a blocking loop cannot be cancelled. The stock tools are written as the manuals have them. With",
        "the OpenAI API: a loop of one's own that gives the model the text of an error. With the Anthropic API: the",
        "SDK's `tool_runner`. With MCP: a server's `@server.tool()` under a host that gives every result to the model.",
        "With Pydantic AI: a tool that raises `ModelRetry`. With LangChain: a `@tool` under `ToolRetryMiddleware`, two",
        "retries. With LangGraph: a `ToolNode` under a `RetryPolicy`, three attempts. With the OpenAI Agents SDK: a",
        "`@function_tool`. With Strands: a `@tool`, and a hook that has a failed one run once more. What was",
        "interrupted is taken up from what each keeps in files: a checkpoint, a session, stored messages; the",
        "`tool_runner` keeps nothing and begins again. What Counterfoil wins rests on the declared postcondition and",
        "grace: see [the promise](promise.md). Made by `python -m adapters.table --write`, run in `tests`.",
        "",
    ]
    return "\n".join(lines)


def written() -> dict[str, dict[str, str]]:
    """What the page has by now."""
    if not PAGE.exists():
        return {}
    rows = [re.split(r" *\| *", line.strip("| ")) for line in PAGE.read_text("utf-8").splitlines() if line[:2] == "| "]
    head, *body = rows
    return {name: {row[0]: row[place] for row in body} for place, name in enumerate(head) if place > 0}


def main(words: list[str]) -> int:
    """Play, show the table, and write the page when asked; 1 when Counterfoil did not keep what the suite says."""
    names = [word for word in words if not word.startswith("--")] or installed()
    columns = {name: written().get(name, {}) for name in [*installed(), *written()]}
    for name in names:
        columns[name] = column(driver(name))
    text = page(columns)
    if "--write" in words:
        PAGE.write_text(text, encoding="utf-8")
    print(text)  # noqa: T201
    return 0 if all(kept(columns[name]) for name in names) else 1


def kept(cells: Mapping[str, str]) -> bool:
    """Whether a column has, with Counterfoil, what the suite says."""
    wanted = {scenario.says: str(scenario.effects) for scenario in SCENARIOS}
    return all(cell == LEFT_OUT or cell.rpartition(" ")[2] == wanted[says] for says, cell in cells.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
