"""resolve and reconcile settle what can be settled, say what cannot, and never send."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from counterfoil import Executor, ManualClock, SystemClock, tool

WORD = ("--by", "N. N.", "--why", "asked the bank")


def shown(run: Any, told: Any, effect: str) -> Any:
    return run("show", effect, "--json", "--ledger", told.url).json


def open_shop() -> list[str]:
    """Let the shop's world be looked at; the orders in it."""
    file = Path(os.environ["SHOP_WORLD"])
    world = json.loads(file.read_text())
    file.write_text(json.dumps(world | {"open": True}))
    orders: list[str] = world["orders"]
    return orders


@pytest.mark.parametrize(("flag", "verdict"), [("--applied", "effect_applied"), ("--no-effect", "no_effect")])
def test_a_person_settles_a_doubt(run: Any, told: Any, flag: str, verdict: str) -> None:
    """The verdict, the name and the reason stand in the ledger, and the doubt is gone."""
    version = shown(run, told, told.doubt)["version"]
    ran = run("resolve", told.doubt[:12], flag, *WORD, "--version", version, "--json", "--ledger", told.url)
    assert (ran.code, ran.json["verdict"], ran.json["proof"]) == (0, verdict, "operator")
    assert (ran.json["version_read"], ran.json["version_given"]) == (version, True)
    last = shown(run, told, told.doubt)["history"][-1]
    assert (last["event"], last["actor"], last["detail"]["why"]) == ("resolved", "N. N.", "asked the bank")
    assert run("doubts", "--json", "--ledger", told.url).json == []


def test_what_the_tool_would_have_returned_can_be_given(run: Any, told: Any) -> None:
    """With --value a later call of the same effect is answered with that value."""
    value = '{"payment": "pi_bank"}'
    ran = run("resolve", told.doubt, "--applied", *WORD, "--value", value, "--json", "--ledger", told.url)
    assert ran.json["value"] == {"payment": "pi_bank"}


def test_without_a_version_the_present_one_is_taken_and_told(run: Any, told: Any) -> None:
    """The command says at which version it read the effect, and shows it as it was and as it is."""
    version = shown(run, told, told.doubt)["version"]
    ran = run("resolve", told.doubt, "--no-effect", *WORD, "--ledger", told.url)
    assert ran.code == 0
    before, after = ran.out.split("is now:")
    assert f"at version {version}, as it was read just now" in before
    assert "effect_unknown" in before
    assert "no_effect (operator)" in after


def test_a_stale_version_is_refused(run: Any, told: Any) -> None:
    """Whoever decides on what has changed since gets exit code 4, and nothing is written."""
    before = shown(run, told, told.doubt)
    version = before["version"] - 1
    ran = run("resolve", told.doubt, "--no-effect", *WORD, "--version", version, "--ledger", told.url)
    assert (ran.code, ran.out) == (4, "")
    assert f"at version {before['version']}" in ran.err
    assert shown(run, told, told.doubt)["history"] == before["history"]


def test_what_is_settled_is_not_settled_again(run: Any, told: Any) -> None:
    """An applied effect is not declared absent: exit code 4, and it stays applied."""
    ran = run("resolve", told.applied, "--no-effect", *WORD, "--ledger", told.url)
    assert (ran.code, ran.out) == (4, "")
    assert "settled already (effect_applied)" in ran.err
    assert shown(run, told, told.applied)["verdict"] == "effect_applied"


def test_nobody_decides_while_an_attempt_may_still_send(run: Any, ledger_url: str) -> None:
    """While the tool runs, exit code 4: what it does next may contradict the word."""
    seen: list[Any] = []

    @tool(key=("order",))
    def slow(order: str) -> str:
        """Do it, while a person wants to decide."""
        seen.append(run("resolve", "cf-", "--no-effect", *WORD, "--ledger", ledger_url))
        return order

    with Executor(ledger_url, [slow]) as executor:
        assert executor.call("slow", {"order": "A"}).ok
    assert (seen[0].code, seen[0].out) == (4, "")
    assert "may still be sending" in seen[0].err


@pytest.mark.parametrize(
    ("wrong", "told_to"),
    [
        ((*WORD,), "--applied or --no-effect"),
        (("--applied", "--no-effect", *WORD), "--applied or --no-effect"),
        (("--applied", "--by", "N. N."), "--why TEXT"),
        (("--applied", "--by", " ", "--why", "seen"), "--by NAME"),
        (("--no-effect", *WORD, "--value", "1"), "goes with --applied"),
        (("--applied", *WORD, "--value", "{payment}"), "takes JSON"),
        (("--applied", *WORD, "--value", "NaN"), "takes JSON"),
        (("--applied", *WORD, "--version", "four"), "--version"),
    ],
)
def test_half_a_word_is_no_word(run: Any, told: Any, wrong: tuple[str, ...], told_to: str) -> None:
    """Without exactly one verdict, a name and a reason: exit code 1, how to mend it, and nothing written."""
    before = shown(run, told, told.doubt)["history"]
    ran = run("resolve", told.doubt, *wrong, "--ledger", told.url)
    assert (ran.code, ran.out) == (1, "")
    assert told_to in ran.err
    assert shown(run, told, told.doubt)["history"] == before


def test_an_effect_that_is_not_there_cannot_be_resolved(run: Any, told: Any) -> None:
    """Exit code 1: no effect of this id."""
    ran = run("resolve", "cf-nobody", "--applied", *WORD, "--ledger", told.url)
    assert (ran.code, ran.out) == (1, "")
    assert "no effect has this id" in ran.err


@pytest.mark.parametrize("executor", ["executor", "asynchronous"])
def test_reconcile_settles_what_the_world_shows(run: Any, told: Any, executor: str) -> None:
    """The lost charge is found and nothing is charged again, with either kind of executor; a second run has no work."""
    orders = open_shop()
    arguments = ("reconcile", "--app", f"shop:{executor}", "--json", "--ledger", told.url)
    ran = run(*arguments)
    assert ran.code == 0
    assert ran.json == {"looked": 1, "applied": 1, "no_effect": 0, "unknown": 0, "incidents": 0}
    assert "the shop looks" in ran.err
    assert shown(run, told, told.doubt)["proof"] == "found"
    assert open_shop() == orders
    assert run(*arguments).json["looked"] == 0
    assert run("reconcile", "--app", f"shop:{executor}", "--ledger", told.url).out.startswith("looked at 0: 0 applied")


def test_reconcile_goes_on_until_nothing_is_due(run: Any, ledger_url: str, shop: Any) -> None:
    """More effects than fit in one batch are all settled by one command; --limit ends it earlier."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COUNTERFOIL_LEDGER", ledger_url)
        with shop.executor(ManualClock(SystemClock().wall_us() - 7_200_000_000)) as executor:
            for number in range(45):
                executor.call("charge", {"order": f"lost-{number}", "amount_minor": 1})
    open_shop()
    arguments = ("reconcile", "--app", "shop:executor", "--json", "--ledger", ledger_url)
    assert run(*arguments, "--limit", 3).json["applied"] == 3
    assert run(*arguments).json["applied"] == 42


def test_reconcile_shows_a_person_how_far_it_is(told: Any, shop: Any) -> None:
    """On a terminal the progress is seen on stderr; stdout has the result alone."""
    open_shop()
    ours, theirs = pty.openpty()
    environment = os.environ | {"COUNTERFOIL_LEDGER": told.url, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-m", "counterfoil.cli", "reconcile", "--app", "shop:executor", "--json"],
        env=environment, stdout=subprocess.PIPE, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        assert process.stdout is not None
        seen = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                seen += os.read(ours, 4096)
            except OSError:  # the other end of the terminal is closed
                break
        out = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert json.loads(out)["applied"] == 1
    assert b"looking at what is due" in seen


def test_reconcile_refuses_another_ledger_than_it_is_told(
    run: Any, told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An application that opens its own ledger is not mistaken for one that works on --ledger."""
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert run("db", "upgrade", "--ledger", other).code == 0
    (tmp_path / "stubborn.py").write_text(f"from counterfoil import Executor\nexecutor = Executor({other!r})\n")
    monkeypatch.chdir(tmp_path)
    ran = run("reconcile", "--app", "stubborn:executor", "--ledger", told.url)
    assert (ran.code, ran.out) == (1, "")
    assert "opens another ledger" in ran.err
    monkeypatch.setenv("COUNTERFOIL_LEDGER", told.url)
    assert run("reconcile", "--app", "stubborn:executor").code == 1
    monkeypatch.delenv("COUNTERFOIL_LEDGER")
    assert run("reconcile", "--app", "stubborn:executor").code == 0
    assert run("reconcile", "--app", "stubborn:executor", "--ledger", other).code == 0
    del sys.modules["stubborn"]


def test_reconcile_does_not_make_a_ledger(run: Any, tmp_path: Path) -> None:
    """A misspelt name is an error, not an empty ledger in which nothing is ever due."""
    ran = run("reconcile", "--app", "shop:executor", "--ledger", f"sqlite:///{tmp_path / 'tpyo.db'}")
    assert (ran.code, ran.out) == (3, "")
    assert not (tmp_path / "tpyo.db").exists()


def test_a_word_is_not_written_into_a_ledger_that_changed_meanwhile(run: Any, told: Any) -> None:
    """The version that stands in the command is what counts, not the one at the time of writing."""
    version = shown(run, told, told.doubt)["version"]
    open_shop()
    assert run("reconcile", "--app", "shop:executor", "--ledger", told.url).code == 0
    ran = run("resolve", told.doubt, "--no-effect", *WORD, "--version", version, "--ledger", told.url)
    assert ran.code == 4
    assert shown(run, told, told.doubt)["verdict"] == "effect_applied"
