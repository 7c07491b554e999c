"""tools, schemas and --app: an application is found and described, and its mistakes are said with how to mend them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from counterfoil.ledger.connect import bare_engine
from counterfoil.ledger.schema import version_table


def test_tools_tell_what_a_declaration_buys(run: Any, ledger_url: str) -> None:
    """Each tool with its tier and what that means, its key, its timeout and its grace."""
    ran = run("tools", "--app", "shop:executor", "--json", "--ledger", ledger_url)
    assert ran.code == 0
    seen = {one["name"]: (one["tier"], one["key"], one["timeout_s"], one["grace_s"]) for one in ran.json}
    assert seen == {
        "charge": ("T2", ["order"], 1, 5),
        "invite": ("T0", ["guest"], 30.0, None),
        "refund": ("T3", ["order"], 2, 3),
        "price": (None, None, 30.0, None),
    }
    page = run("tools", "--app", "shop:executor", "--ledger", ledger_url).out
    assert "charge  T2: finds it, or proves that it is absent" in page
    assert "invite  T0: stops at unknown; a person decides" in page
    assert "price  read-only" in page
    assert max(len(line) for line in page.splitlines()) <= 80


def test_a_tool_that_can_be_revoked_is_listed(run: Any, ledger_url: str) -> None:
    """The highest tier that the application's tools have is listed with its meaning like the others."""
    ran = run("tools", "--app", "desk:executor", "--ledger", ledger_url)
    assert (ran.code, "reserve  T4: takes it back, or finds it" in ran.out) == (0, True)


def test_schemas_are_those_of_the_executor(run: Any, ledger_url: str, shop: Any) -> None:
    """--json prints exactly what `executor.schemas()` gives; a person sees names, descriptions and arguments."""
    arguments = ("schemas", "--app", "shop:executor", "--ledger", ledger_url)
    ran = run(*arguments, "--json")
    with shop.executor() as executor:
        assert ran.json == executor.schemas()
    page = run(*arguments).out
    assert "Charge the customer's card once for one order." in page
    assert "note: string, may be left out" in page


def test_what_an_application_prints_does_not_disturb_json(run: Any, ledger_url: str) -> None:
    """The shop prints while it is imported: that goes to stderr."""
    sys.modules.pop("shop", None)
    ran = run("tools", "--app", "shop:executor", "--json", "--ledger", ledger_url)
    assert isinstance(ran.json, list)
    assert "the shop opens" in ran.err


@pytest.mark.parametrize(
    ("app", "told_to"),
    [
        ("", "module:object"),
        ("shop", "module:object"),
        ("shop:", "module:object"),
        ("nowhere:executor", "there is no module nowhere"),
        ("shop:exekutor", "shop has no exekutor"),
        ("shop:world.missing", "has no world.missing"),
        ("shop:TOOLS", "of the type tuple"),
        ("shop:Executor", "of the type type"),
        ("shop:nothing", "returns a NoneType"),
        ("shop:coroutine", "coroutine function"),
        ("shop:failing", "raises RuntimeError"),
        ("shop:world", "returns a dict"),
    ],
)
@pytest.mark.parametrize("command", ["tools", "schemas", "reconcile"])
def test_an_app_that_cannot_be_used_is_said(run: Any, command: str, app: str, told_to: str, tmp_path: Path) -> None:
    """Exit code 1 and one line that says what --app takes or what went wrong; what was raised stays unsaid."""
    ran = run(command, "--app", app)
    assert (ran.code, ran.out) == (1, "")
    line = ran.err.splitlines()[-1]
    assert told_to in line
    assert "hunter2" not in ran.err
    assert str(tmp_path) not in line


def test_an_app_is_needed(run: Any) -> None:
    """Without --app the command says what it takes, with an example."""
    ran = run("tools")
    assert ran.code == 1
    assert "--app shop.agent:executor" in ran.err


def test_an_app_is_found_in_the_current_folder(ledger_url: str, shop: Any) -> None:
    """A real process, started in the folder of the application."""
    run = subprocess.run(
        [sys.executable, "-P", "-m", "counterfoil.cli", "tools", "--app", "shop:executor", "--ledger", ledger_url],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "charge  T2" in run.stdout


@pytest.mark.parametrize(("version", "told_to"), [("0000", "counterfoil db upgrade"), ("9999", "upgrade the package")])
@pytest.mark.parametrize(
    "command",
    [
        ("effects",),
        ("show", "cf-a"),
        ("doubts", "--max-age", "1"),
        ("incidents",),
        ("resolve", "cf-a", "--applied", "--by", "N. N.", "--why", "seen"),
        ("reconcile", "--app", "shop:executor"),
        ("reconcile", "--app", "shop:asynchronous"),
        ("db", "check"),
    ],
    ids=" ".join,
)
def test_every_command_that_opens_a_ledger_refuses_another_schema_version(
    run: Any, ledger_url: str, command: tuple[str, ...], version: str, told_to: str
) -> None:
    """An older or newer ledger: exit code 3, what to do, and nothing on stdout."""
    engine = bare_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(version_table.update().values(version_num=version))
    engine.dispose()
    ran = run(*command, "--ledger", ledger_url)
    assert (ran.code, ran.out) == (3, "")
    assert f"schema {version}" in ran.err
    assert told_to in ran.err


def test_describing_an_application_does_not_open_its_ledger(run: Any, tmp_path: Path) -> None:
    """`tools` and `schemas` create nothing, whatever ledger the application names."""
    ledger = f"sqlite:///{tmp_path / 'not-there.db'}"
    for command in ("tools", "schemas"):
        assert isinstance(run(command, "--app", "shop:executor", "--json", "--ledger", ledger).json, list)
    assert list(tmp_path.glob("not-there*")) == []
