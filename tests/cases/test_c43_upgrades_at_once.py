"""C43: several replicas upgrade the schema at once (rhesis-ai/rhesis #2545, sqlalchemy/alembic #633).

Six processes give the command `counterfoil db upgrade` in the same moment, and then each carries out one action. The
audit command runs all the while.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import sqlalchemy as sa
from cases.processes import hear, playing, say
from cases.scene import WAIT_S, database, post
from provider import Provider

from counterfoil import Effect, Executor, LedgerError, Policy, Tool, Verdict, tool
from counterfoil.cli import main as command_line
from counterfoil.ledger import schema
from counterfoil.ledger.connect import database_file
from counterfoil.ledger.upgrade import downgrade, upgrade

PROCESSES = 6
NO_LEDGER = 3
MADE = "the ledger is made, with schema"
ALREADY = "the ledger has schema"


def command(*arguments: str, complaints: io.StringIO | None = None) -> tuple[int, str, str]:
    """Give a command of `counterfoil` in this process: exit code, what it printed, what it complained of."""
    said, complained = io.StringIO(), complaints or io.StringIO()
    before = sys.argv
    sys.argv = ["counterfoil", *arguments]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(complained):
            command_line()
        code: Any = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return int(code), said.getvalue(), complained.getvalue()


def action_tool(provider: Provider) -> Tool[..., Any]:
    @tool(key=("number",), sends="once", policy=Policy(timeout_s=10.0))
    def act(effect: Effect, number: int) -> dict[str, str]:
        """Carry out one action."""
        return post(provider, effect, {"number": number})

    return act


def upgrade_and_act(ledger: str, provider: str, number: int) -> dict[str, Any]:
    """The play: everything is loaded, then the command, then one action."""
    import alembic.command  # noqa: F401 - it takes long, and the six are to meet at the database

    say("ready")
    hear()
    code, said, complained = command("db", "upgrade", "--ledger", ledger)
    with Executor(ledger, tools=[action_tool(Provider.at(provider))]) as executor:
        seen = executor.call("act", {"number": number})
    return {"code": code, "said": said, "complained": complained, "verdict": seen.verdict, "text": seen.text}


def audit_all_the_while(ledger: str) -> dict[str, Any]:
    """The play: the audit command without pause, until it has shown six effects; how often it ended in which way."""
    say("ready")
    ends: dict[str, int] = {}
    end = time.monotonic() + 3 * WAIT_S
    while time.monotonic() < end:
        code, said, complained = command("effects", "--json", "--ledger", ledger)
        name = f"{code} {complained.strip()}"
        ends[name] = ends.get(name, 0) + 1
        if code == 0 and len(json.loads(said)) == PROCESSES:
            return ends
    raise TimeoutError(ends)


def upgrade_together(ledger: str, provider: Provider) -> tuple[list[dict[str, Any]], dict[str, int]]:
    with ExitStack() as stack:
        audit = stack.enter_context(playing(audit_all_the_while, ledger=ledger))
        children = [
            stack.enter_context(playing(upgrade_and_act, ledger=ledger, provider=provider.url, number=number))
            for number in range(PROCESSES)
        ]
        for child in [audit, *children]:
            assert child.heard() == "ready"
        for child in children:
            child.tell("go")
        return [child.result() for child in children], audit.result()


def versions(ledger: str) -> list[str]:
    with database(ledger) as engine, engine.connect() as connection:
        return list(connection.execute(sa.select(schema.version_table.c.version_num)).scalars())


@pytest.mark.parametrize("start", ["nothing", "an older revision"])
def test_six_upgrade_and_act_while_the_audit_reads(empty_url: str, provider: Provider, start: str) -> None:
    """All six end well and are applied; one made the tables, five found them; the audit saw none or a whole one."""
    if start == "an older revision":  # while there is one revision, the older one is the empty base of it
        upgrade(empty_url)
        downgrade(empty_url, "base")
        assert versions(empty_url) == []
    done, audited = upgrade_together(empty_url, provider)

    assert [(one["code"], one["complained"]) for one in done if one["code"]] == []
    for one in done:
        assert one["verdict"] == Verdict.EFFECT_APPLIED, one["text"]
        assert "already exists" not in one["said"] + one["complained"]
    assert sorted(one["said"].startswith(MADE) for one in done) == [False] * (PROCESSES - 1) + [True]
    assert sum(one["said"].startswith(ALREADY) and "already" in one["said"] for one in done) == PROCESSES - 1
    assert versions(empty_url) == [schema.REVISION], "one line of history, and one row that says where it stands"

    assert {name.partition(" ")[0] for name in audited} <= {"0", str(NO_LEDGER)}, audited
    for name in audited:
        assert name.strip() == "0" or "ledger" in name
        assert "Traceback" not in name
    provider.quiesce()
    assert provider.count() == len({one["reference"] for one in provider.effects()}) == PROCESSES


def test_reading_commands_never_write(empty_url: str) -> None:
    """Asked of an empty database they say that there is no ledger, and leave it as empty as it was."""
    for arguments in (["effects"], ["doubts"], ["incidents"], ["show", "cf-a"], ["db", "check"]):
        code, _, complained = command(*arguments, "--ledger", empty_url)
        assert (code, complained.startswith("counterfoil: ")) == (NO_LEDGER, True), arguments
        assert "ledger" in complained
    with database(empty_url) as engine:
        file = database_file(engine)
        if file is None:
            assert sa.inspect(engine).get_table_names() == []
        else:
            assert list(file.parent.glob("*.db*")) == []


def set_version(ledger: str, version: str) -> None:
    with database(ledger) as engine, engine.begin() as connection:
        connection.execute(sa.update(schema.version_table).values(version_num=version))


def test_a_newer_schema_is_refused(ledger_url: str, provider: Provider) -> None:
    """An executor that meets a ledger of the future touches neither it nor the world; so do the commands."""
    set_version(ledger_url, "9999")
    with pytest.raises(LedgerError, match=r"newer .*upgrade the package"):
        Executor(ledger_url, tools=[action_tool(provider)])
    for arguments in (["effects"], ["db", "check"], ["db", "upgrade"]):
        code, _, complained = command(*arguments, "--ledger", ledger_url)
        assert (code, "newer" in complained) == (NO_LEDGER, True), (arguments, complained)
    assert versions(ledger_url) == ["9999"]
    set_version(ledger_url, schema.REVISION)
    with Executor(ledger_url) as executor:
        assert executor.audit.effects() == []
    assert provider.requests() == []


class Aloud(io.StringIO):
    """Says each line to the test as soon as it is written."""

    def write(self, text: str) -> int:
        if text.strip():
            assert sys.__stdout__ is not None
            with contextlib.redirect_stdout(sys.__stdout__):
                say({"complained": text})
        return super().write(text)


def upgrade_alone(ledger: str) -> dict[str, Any]:
    """The play: the command alone, whose complaints the test reads as they come."""
    say("ready")
    hear()
    code, said, _ = command("db", "upgrade", "--ledger", ledger, complaints=Aloud())
    return {"code": code, "said": said}


@contextlib.contextmanager
def held(ledger: str) -> Iterator[None]:
    """What another upgrade holds while it works: the advisory lock of PostgreSQL, the one write lock of SQLite."""
    with database(ledger) as engine, engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            raw = connection.connection.driver_connection
            assert raw is not None
            raw.isolation_level = None
            raw.execute("BEGIN IMMEDIATE")
            yield
            raw.execute("ROLLBACK")
        else:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(schema.UPGRADE_LOCK)))
            yield
            connection.rollback()


def test_who_must_wait_says_so(empty_url: str) -> None:
    """While another upgrade works, the command says that it waits, and ends well when its turn comes."""
    with playing(upgrade_alone, ledger=empty_url) as child:
        assert child.heard() == "ready"
        with held(empty_url):
            child.tell("go")
            line = child.heard_within(WAIT_S / 4)
            assert line is not None, "it waits in silence"
            assert "wait" in line["complained"], line
        assert child.result()["code"] == 0
    assert versions(empty_url) == [schema.REVISION]
