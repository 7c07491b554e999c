"""effects, show, doubts and incidents tell what is in the ledger, and leave it as it was."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from counterfoil.ledger.connect import bare_engine
from counterfoil.ledger.schema import metadata

READING = (
    *(("effects",), ("show", "cf-"), ("doubts",), ("incidents",), ("db", "check")),
    *(("audit", "verify"), ("audit", "export")),
)
RESOLVE = ("resolve", "cf-", "--applied", "--by", "N. N.", "--why", "seen at the bank")


def ids(ran: Any) -> list[str]:
    assert ran.code == 0, ran.err
    return [row["effect_id"] for row in ran.json]


def test_effects_come_newest_first_with_all_that_is_known(run: Any, told: Any) -> None:
    """Every effect of every tenant, newest first, as one JSON array with instants in UTC with offset."""
    ran = run("effects", "--json", "--ledger", told.url)
    assert ids(ran) == [told.north, told.doubt, told.refused, told.applied]
    one = ran.json[-1]
    assert (one["verdict"], one["proof"], one["value"]) == ("effect_applied", "returned", {"payment": "pi_A-1"})
    assert one["created_at"].endswith("+00:00")
    assert datetime.fromisoformat(one["created_at"]).utcoffset() is not None


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (("--verdict", "effect_unknown"), ["doubt"]),
        (("--tool", "invite"), ["north"]),
        (("--task", "trip-43"), ["refused"]),
        (("--tenant", "north"), ["north"]),
        (("--where", "order=A-1"), ["applied"]),
        (("--where", "amount_minor=7"), ["doubt"]),
        (("--where", "order=A-1", "--where", "amount_minor=7"), []),
        (("--where", "guest=Zoë"), ["north"]),
        (("--limit", "2"), ["north", "doubt"]),
        (("--tool", "charge", "--limit", "1"), ["doubt"]),
    ],
)
def test_effects_are_filtered(run: Any, told: Any, filters: tuple[str, ...], expected: list[str]) -> None:
    """Each filter leaves exactly the effects that it names; several narrow each other."""
    assert ids(run("effects", *filters, "--json", "--ledger", told.url)) == [getattr(told, name) for name in expected]


def test_since_counts_instants_whatever_their_offset(run: Any, told: Any) -> None:
    """Effects that were created at that instant or later, also when it is written with another offset."""
    (doubt,) = run("effects", "--verdict", "effect_unknown", "--json", "--ledger", told.url).json
    instant = datetime.fromisoformat(doubt["created_at"])
    elsewhere = instant.astimezone(datetime.fromisoformat("2026-01-01T00:00:00+05:30").tzinfo)
    for since in (instant, elsewhere):
        assert ids(run("effects", "--since", since.isoformat(), "--json", "--ledger", told.url)) == [
            told.north,
            told.doubt,
        ]


@pytest.mark.parametrize(
    ("wrong", "told_to"),
    [
        (("--verdict", "done"), "no_effect, effect_unknown, effect_applied"),
        (("--since", "2026-03-04T09:00:00"), "UTC offset"),
        (("--since", "yesterday"), "UTC offset"),
        (("--where", "order"), "name=value"),
        (("--where", "=A"), "name=value"),
        (("--where", "order=A", "--where", "order=B"), "twice"),
        (("--limit", "0"), "--limit"),
        (("--colour", "red"), "--colour"),
    ],
)
def test_a_filter_that_makes_no_sense_is_a_usage_error(
    run: Any, told: Any, wrong: tuple[str, ...], told_to: str
) -> None:
    """Exit code 1, a line on stderr that says what to write instead, and nothing on stdout."""
    ran = run("effects", *wrong, "--json", "--ledger", told.url)
    assert (ran.code, ran.out) == (1, "")
    assert told_to in ran.err


def test_show_tells_one_effect_with_its_history(run: Any, told: Any) -> None:
    """The effect, each entry with who and when, and the calls that were answered from the ledger."""
    seen = run("show", told.applied, "--json", "--ledger", told.url).json
    assert seen["effect_id"] == told.applied
    assert [(entry["seq"], entry["event"]) for entry in seen["history"]] == [(1, "begun"), (2, "returned")]
    assert all(entry["at"].endswith("+00:00") and entry["actor"] for entry in seen["history"])
    assert [(one["call_id"], one["turn"], one["code"]) for one in seen["sightings"]] == [("call_9x", 3, "replayed")]


def test_a_unique_beginning_of_an_id_is_enough(run: Any, told: Any) -> None:
    """With or without `cf-`, in whatever case, the beginning of an id names the effect as long as it is one."""
    others = [told.refused, told.doubt, told.north]
    length = next(size for size in range(4, 32) if not any(other[:size] == told.applied[:size] for other in others))
    beginning = told.applied[:length]
    for name in (beginning, beginning.removeprefix("cf-"), beginning.upper()):
        assert run("show", name, "--json", "--ledger", told.url).json["effect_id"] == told.applied
    for name in ("cf-", "cf-!", "cf-%", "cf-_"):
        ran = run("show", name, "--ledger", told.url)
        assert (ran.code, ran.out) == (1, "")
        assert ("more than one" if name == "cf-" else "no effect") in ran.err


def test_doubts_end_with_code_2_when_one_is_too_old(run: Any, told: Any) -> None:
    """A doubt of almost two hours: too old for an hour, not for a day; it is listed either way."""
    for seconds, code in ((3600, 2), (86_400, 0)):
        ran = run("doubts", "--max-age", seconds, "--json", "--ledger", told.url)
        assert ran.code == code
        assert [row["effect_id"] for row in ran.json] == [told.doubt]
    assert run("doubts", "--ledger", told.url).code == 0


def test_no_doubts_are_no_reason_to_worry(run: Any, ledger_url: str) -> None:
    """An empty ledger has no doubt, however small the age that is asked for."""
    ran = run("doubts", "--max-age", 0, "--ledger", ledger_url)
    assert (ran.code, ran.out) == (0, "no doubts\n")
    assert run("doubts", "--max-age", 0, "--json", "--ledger", ledger_url).json == []


def test_incidents_say_what_a_person_should_see(run: Any, told: Any) -> None:
    """The doubt that nobody settled in time stands there with its effect."""
    (seen,) = run("incidents", "--json", "--ledger", told.url).json
    assert (seen["kind"], seen["effect_id"], seen["tool"]) == ("doubt_left", told.doubt, "charge")
    assert seen["at"].endswith("+00:00")
    assert seen["closed_at"] is None
    assert "doubt_left" in run("incidents", "--ledger", told.url).out


def test_pages_fit_80_columns(run: Any, told: Any) -> None:
    """What a person reads is no wider than a plain terminal, and names the effects in full."""
    for command in (("effects",), ("show", told.applied), ("show", told.doubt), ("doubts",), ("incidents",)):
        ran = run(*command, "--ledger", told.url)
        assert ran.code == 0
        assert max(len(line) for line in ran.out.splitlines()) <= 80
        assert (told.applied if told.applied in command else told.doubt) in ran.out
        assert "+00:00" in ran.out


def test_nothing_that_a_model_wrote_reaches_the_terminal_as_a_command(run: Any, ledger_url: str, shop: Any) -> None:
    """Escape sequences, markup and signs that turn the direction of writing are shown, not obeyed."""
    nasty = "\x1b]0;owned\x07\u202e[bold]red[/bold]\x9b31m"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COUNTERFOIL_LEDGER", ledger_url)
        with shop.executor() as executor:
            executor.call("charge", {"order": "A", "amount_minor": 1, "note": nasty}, task=nasty)
    for command in (("effects",), ("show", "cf-"), ("effects", "--json"), ("show", "cf-", "--json")):
        ran = run(*command, "--ledger", ledger_url)
        assert ran.code == 0
        assert not set(ran.out) & {"\x1b", "\x07", "\u202e", "\x9b"}
        assert "]0;owned" in ran.out
    assert run("effects", "--json", "--ledger", ledger_url).json[0]["task"] == nasty


def content(url: str) -> dict[str, list[Any]]:
    engine = bare_engine(url)
    with engine.connect() as connection:
        rows = {table.name: sorted(map(repr, connection.execute(sa.select(table)))) for table in metadata.sorted_tables}
    engine.dispose()
    return rows


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_changes_nothing(run: Any, told: Any, command: tuple[str, ...]) -> None:
    """After a reading command every row is as before."""
    before = content(told.url)
    command = (*command[:-1], told.doubt) if command[0] == "show" else command
    assert run(*command, "--ledger", told.url).code == 0
    assert content(told.url) == before


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_needs_no_right_to_write(run: Any, told: Any, command: tuple[str, ...]) -> None:
    """On PostgreSQL a role that may only read is enough; on SQLite file and folder stay as they were, byte by byte."""
    command = (*command[:-1], told.doubt) if command[0] == "show" else command
    url = sa.make_url(told.url)
    if url.get_backend_name() == "sqlite":
        folder = Path(url.database or "").parent
        before = files(folder)
        assert run(*command, "--ledger", told.url).code == 0
        assert files(folder) == before
        return
    engine = bare_engine(told.url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'reader') THEN"
            " CREATE ROLE reader LOGIN; END IF; END $$"
        )
        connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
    engine.dispose()
    ran = run(*command, "--ledger", url.set(username="reader").render_as_string(hide_password=False))
    assert (ran.code, ran.err) == (0, "")


def files(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file.is_file()}


CRASH = """
import os, sys
from counterfoil import Executor, tool
@tool(key=("order",))
def pay(order: str) -> str:
    "Pay."
    os._exit(9)
Executor(sys.argv[1], [pay]).call("pay", {"order": "A"})
"""


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_reading_after_a_crash_leaves_the_log_as_it_is(run: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    """What a killed process left in SQLite's log is read, and neither written into the file nor removed."""
    file = tmp_path / "ledger.db"
    url = f"sqlite:///{file}"
    assert subprocess.run([sys.executable, "-c", CRASH, url], check=False).returncode == 9
    log = Path(f"{file}-wal")
    before = (file.read_bytes(), log.read_bytes())
    assert len(before[1]) > 0
    ran = run(*command, "--ledger", url)
    assert ran.code == 0
    assert (file.read_bytes(), log.read_bytes()) == before
    if command[0] in ("effects", "doubts"):
        assert "effect_unknown (in progress)" in ran.out


@pytest.mark.parametrize(
    "command", [*READING, ("resolve", "cf-", "--applied", "--by", "x", "--why", "y")], ids=" ".join
)
@pytest.mark.parametrize("empty", [False, True])
def test_a_missing_ledger_is_said_and_not_made(run: Any, tmp_path: Path, command: tuple[str, ...], empty: bool) -> None:
    """No file, or an empty one: exit code 3, one line, and the folder is as it was."""
    file = tmp_path / "ledger.db"
    if empty:
        file.touch()
    before = files(tmp_path)
    ran = run(*command, "--ledger", f"sqlite:///{file}")
    assert ran.code == 3
    assert "there is no ledger at this path" in ran.err
    assert str(tmp_path) not in ran.err
    assert files(tmp_path) == before


def test_the_ledger_may_come_from_the_environment(run: Any, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """COUNTERFOIL_LEDGER names the ledger; --ledger goes before it; without either the command says so."""
    assert "COUNTERFOIL_LEDGER" in run("effects").err
    assert run("effects").code == 1
    monkeypatch.setenv("COUNTERFOIL_LEDGER", told.url)
    assert len(run("effects", "--json").json) == 4
    monkeypatch.setenv("COUNTERFOIL_LEDGER", "sqlite:///nowhere/ledger.db")
    assert len(run("effects", "--json", "--ledger", told.url).json) == 4


def test_an_effect_that_is_being_worked_on_is_no_left_doubt(run: Any, ledger_url: str, shop: Any) -> None:
    """While an attempt runs, the effect is listed as in progress."""
    seen: list[Any] = []

    def look() -> None:
        seen.append(run("doubts", "--max-age", 3600, "--ledger", ledger_url))

    from counterfoil import Executor, tool

    @tool(key=("order",))
    def slow(order: str) -> str:
        """Do it, and ask the command line meanwhile."""
        look()
        return order

    with Executor(ledger_url, [slow]) as executor:
        assert executor.call("slow", {"order": "A"}).ok
    assert seen[0].code == 0
    assert "in progress" in seen[0].out
