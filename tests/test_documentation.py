"""What the documentation shows is what happens."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

import pytest
import stripe

from counterfoil import Breaker, Budget, KeyPolicy, LoopGuard, Policy
from counterfoil_tools.servers import localstripe

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorials" / "first-tool.md"
LOSES_THE_ANSWER = '    raise TimeoutError("the answer was lost")\n'


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)


def run(code: str, folder: Path, **environment: str) -> str:
    """What a program prints that runs in `folder`; it has to end well."""
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_example_of_the_readme_charges_once_and_then_replays(tmp_path: Path) -> None:
    """The example runs as it stands; run again, it tells the same verdict and the provider has one payment."""
    (example,) = python_blocks(ROOT / "README.md")
    with localstripe() as server:
        for _ in range(2):
            told = run(example, tmp_path, STRIPE_KEY="sk_test_1", STRIPE_URL=server.url)
            assert told.startswith("effect_applied")
        client = stripe.StripeClient("sk_test_1", base_addresses={"api": server.url})
        assert len(client.v1.payment_intents.list().data) == 1


def test_the_tutorial_goes_as_it_says(tmp_path: Path) -> None:
    """First returned, then replayed, and after a lost answer found; the postbox has one letter for each subject."""
    letters, lost = python_blocks(TUTORIAL)
    assert lost == LOSES_THE_ANSWER
    assert run(letters, tmp_path).startswith("effect_applied returned False\n")
    assert run(letters, tmp_path).startswith("effect_applied returned True\n")
    careless = letters.replace("    return {", LOSES_THE_ANSWER + "    return {", 1).replace("Thank you", "Good news")
    assert run(careless, tmp_path).startswith("effect_applied found False\n")
    posted = (tmp_path / "postbox.txt").read_text().splitlines()
    assert [line.partition(" to ")[2] for line in posted] == ["Ada: Thank you", "Ada: Good news"]


def test_errors_read_as_the_page_says(tmp_path: Path) -> None:
    """Run as one program, the page's refusals print the texts on it, and its descriptions pass the check."""
    page = ROOT / "docs" / "how-to" / "write-errors-a-model-can-act-on.md"
    (said,) = re.findall(r"^```text\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    code = "\n".join(python_blocks(page))
    assert run(code, tmp_path) == said
    checked = "from counterfoil.catalogue import flaws\nprint(flaws([charge, send_invoice]))\n"
    assert run(code + checked, tmp_path).endswith("\n[]\n")


def test_taking_back_goes_as_it_says(tmp_path: Path) -> None:
    """Run as one program, the blocks of the page print what the page says that they print."""
    page = ROOT / "docs" / "how-to" / "take-back-an-effect.md"
    (said,) = re.findall(r"^```text\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert run("\n".join(python_blocks(page)), tmp_path) == said


def test_keeping_and_pruning_goes_as_it_says(tmp_path: Path) -> None:
    """The program of the page prints what the page says: charged once, pruned, and then expired."""
    page = ROOT / "docs" / "how-to" / "keep-and-prune.md"
    (program,) = python_blocks(page)
    (said,) = re.findall(r"^```text\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    scripts = str(Path(sys.executable).parent)
    assert run(program, tmp_path, PATH=f"{scripts}{os.pathsep}{os.environ['PATH']}", PYTHONUNBUFFERED="1") == said


def test_adopting_in_stages_goes_as_it_says(tmp_path: Path) -> None:
    """Run as one program, the blocks of the page print what the page says that they print."""
    page = ROOT / "docs" / "how-to" / "adopt-in-stages.md"
    said = re.findall(r"^```text\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    assert run("\n".join(python_blocks(page)), tmp_path) == "".join(said)


@pytest.mark.parametrize("name", ["choose-a-key", "keep-secrets-out"])
def test_keys_and_secrets_go_as_the_pages_say(tmp_path: Path, name: str) -> None:
    """Run as one program, the blocks of each page print what the page says that they print."""
    page = ROOT / "docs" / "how-to" / f"{name}.md"
    said = re.findall(r"^```text\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert run("\n".join(python_blocks(page)), tmp_path, PATH=path, PYTHONUNBUFFERED="1") == "".join(said)


def test_the_page_on_one_transaction_goes_as_it_says(tmp_path: Path) -> None:
    """Reserved together with its record, then replayed: the table holds one reservation."""
    page = (ROOT / "docs" / "how-to" / "same-transaction.md").read_text()
    (block,) = re.findall(r"^   ```python\n(.*?)^   ```$", page, re.DOTALL | re.MULTILINE)
    example = textwrap.dedent(block)
    assert run(example, tmp_path) == "effect_applied same_transaction False\n"
    assert run(example, tmp_path) == "effect_applied same_transaction True\n"
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as reading:
        assert reading.execute("SELECT room, day, guest FROM reservations").fetchall() == [("12", "2026-03-04", "Ada")]


@pytest.mark.parametrize("declared", [Policy, KeyPolicy, Breaker, LoopGuard, Budget])
def test_the_policy_table_has_every_member_with_its_default(declared: type[Any]) -> None:
    """No member is missing from the table, none is invented, and each default is the one in force."""
    page = "## `Policy`\n" + (ROOT / "docs" / "reference" / "policy.md").read_text()
    table = page.partition(f"## `{declared.__name__}`")[2].partition("\n## ")[0]
    said = dict(re.findall(r"^\| `(\w+)` \| (?:`(.+?)`|required) \|", table, re.MULTILINE))
    assert said == {item.name: _default(item).replace("'", '"') for item in fields(declared)}


def _default(item: Field[Any]) -> str:
    if item.default_factory is not MISSING:
        return repr(item.default_factory())
    return "" if item.default is MISSING else repr(item.default)


def test_each_condition_of_the_promise_links_to_a_test_that_there_is() -> None:
    """In the README every condition has links; each names a file, and where it names a test, one that is in it."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    promise = text.partition("## The promise\n")[2].partition("\n## ")[0]
    conditions = re.split(r"^- ", promise, flags=re.MULTILINE)[1:]
    assert len(conditions) == 6
    for condition in conditions:
        assert "](tests/" in condition, condition
    for path, _, name in (link.partition("#") for link in re.findall(r"\]\(((?:tests|docs)/[^)]+)\)", promise)):
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), name
