"""Marked secrets in every kind of field and on every way that a call can end: none gets out."""

from __future__ import annotations

import base64
import contextlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from adapters.conftest import Heard, heard
from cli.conftest import Ran, Run, run, shop
from identity import vault
from told.test_hygiene import everything_told, raw

from counterfoil import Executor, Incident, ManualClock, Observation, SystemClock, UsageError

__all__ = ["heard", "run", "shop"]
MARKS = ("7f3a9d", *vault.MARK.values(), vault.SECRET.decode(), vault.CIPHER_KEY.decode())
COMMANDS = (
    ["effects"], ["effects", "--json"], ["doubts"], ["doubts", "--json"], ["incidents", "--closed"],
    ["incidents", "--json"], ["stats"], ["stats", "--by", "code", "--json"], ["status"], ["db", "check"],
    ["db", "tenants"], ["audit", "seal"], ["audit", "verify"], ["audit", "verify", "--json"], ["audit", "export"],
    ["audit", "export", "--format", "csv"],
)  # fmt: skip
CONFLICTING = ("use_returned_unclear", "use_plain_unclear", "use_timeout_found")
WITH_APP = (
    ["reconcile"], ["reconcile", "--json"], ["tools"], ["tools", "--json"], ["tools", "--markdown"], ["schemas"],
    ["audit", "seal"], ["audit", "verify"],
)  # fmt: skip


def leaked(text: str) -> list[str]:
    """The marks in a text, also in base64 and hexadecimal, as far as they stand there by themselves."""
    others = {mark: (mark.encode().hex(), base64.b64encode(mark.encode()).decode()) for mark in MARKS}
    return [mark for mark in MARKS if mark in text or any(one in text for one in others[mark])]


def bad_calls(executor: Executor, name: str) -> list[Observation]:
    """Calls that are refused before anything begins, with a secret at each place."""
    arguments = vault.ARGUMENTS
    wrong: list[Any] = [
        {"order": "A", **arguments, "pasword": vault.ALL},
        {"order": "A", **arguments, "login": vault.ALL},
        {"order": "A", **arguments, "words": {"x": vault.ALL}},
        {"order": "A", **arguments, "account": {"user": "u", "password": [vault.ALL]}},
        {"order": "A", "marked": vault.ALL},
        json.dumps({"order": "A", **arguments})[:-1],
        '{"order": "A", "marked": "' + vault.ALL + '", "marked": "' + vault.ALL + '"}',
        [vault.ALL],
        vault.ALL.encode() + b"\xff",
    ]
    seen = [
        executor.call(name, one, task=f"wrong-{number}", context=vault.context()) for number, one in enumerate(wrong)
    ]
    assert {one.code for one in seen} == {"invalid_arguments"}
    return seen


def commands(run: Run, ledger_url: str, ids: list[str]) -> list[Ran]:
    """What every command that only reads or seals has to say."""
    outputs = [run(*words, "--ledger", ledger_url) for words in COMMANDS]
    outputs += [run("show", one, "--ledger", ledger_url) for one in ids]
    outputs += [run("show", ids[0], "--json", "--ledger", ledger_url)]
    outputs += [run(*words, "--app", "identity.vault:executor", "--ledger", ledger_url) for words in WITH_APP]
    assert {one.code for one in outputs} == {0}
    return outputs


def encrypted(run: Run, ledger_url: str, clock: ManualClock, archive: Path) -> list[Ran]:
    """Encrypt the ledger, make more calls in it, and prune it, as an operator would."""
    outputs = [run("db", "reencrypt", *words, "--ledger", ledger_url) for words in ([], ["--json"])]
    with vault.executor(clock) as executor:
        for one in vault.TOOLS[:5]:
            executor.call(one.name, {"order": "B", **vault.ARGUMENTS}, task="t5", context=vault.context())
    clock.advance(60)
    asked = ("prune", "--older-than", "0s", "--export", archive, "--ledger", ledger_url)
    outputs += [run(*asked), run(*asked, "--json"), run("audit", "archive", archive), run("db", "check")]
    assert {one.code for one in outputs} == {0}
    assert "use_" in outputs[4].out, "there is something to search"
    return outputs


def test_no_planted_secret_gets_out(
    ledger_url: str,
    tmp_path: Path,
    run: Run,
    heard: Heard,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not in a message, a log record, a span, an incident, an exception, a repr, the tables, the raw file or any output
    of a command, of an encrypted ledger and of one that is not; the calls end as they should all the same."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", ledger_url)
    monkeypatch.setenv("COUNTERFOIL_SECRET", vault.SECRET.decode())
    caplog.set_level(logging.DEBUG)
    incidents: list[Incident] = []
    told: list[str] = []

    def rings(incident: Incident) -> None:
        incidents.append(incident)
        raise RuntimeError(vault.MARK["hidden"])  # it is logged

    clock = ManualClock(SystemClock().wall_us() - 7_200_000_000)
    with vault.executor(clock, observer=heard.telemetry, on_incident=rings) as executor:
        for one in vault.TOOLS:
            arguments = {"order": f"A-{one.name}", **vault.ARGUMENTS}
            # The third has another secret: a conflict. Where it may begin anew, nobody knows the first one any more.
            for number in range(3 if one.name in CONFLICTING else 2):
                asked = arguments | ({"marked": "mk-another-7f3a9d"} if number == 2 else {})
                try:
                    seen = executor.call(
                        one.name, asked, task=f"t{number}", call_id=str(number), context=vault.context()
                    )
                except SystemExit:  # the tool's own way out goes through to the caller, who has its text from the tool
                    continue
                assert seen.code not in ("invalid_arguments", "ledger_unavailable"), seen
                told.append(everything_told(seen))
        told += [everything_told(one) for one in bad_calls(executor, vault.TOOLS[0].name)]
        told += [everything_told(one) for one in executor.rollback("t0", context=vault.context()).values()]
        with contextlib.suppress(UsageError):
            executor.call(vault.TOOLS[0].name, vault.ARGUMENTS, key=" ")
        clock.advance(7_000)
        told += [repr(executor.reconcile()), repr(executor), repr(vars(executor)), repr(executor.schemas())]
        audit = executor.audit
        told += [repr(audit.effects()), repr(audit.doubts()), repr(audit.incidents(closed=True))]
        told += [repr((audit.history(row.id), audit.sightings(row.id))) for row in audit.effects()]
        verdicts = {row.tool: str(row.verdict) for row in audit.effects()}
        ids = [row.id for row in audit.effects()]
    assert (verdicts["use_returned_unclear"], verdicts["use_timeout_found"]) == ("effect_applied", "effect_applied")
    assert verdicts["use_before_sending_unclear"] == verdicts["use_rejected_unclear"] == "no_effect"
    assert verdicts["use_plain_unclear"] == "effect_unknown"
    outputs = commands(run, ledger_url, ids)
    dumps = [raw(ledger_url)]
    monkeypatch.setenv("COUNTERFOIL_CIPHER_KEYS", vault.CIPHER_KEY.hex())
    outputs += encrypted(run, ledger_url, clock, tmp_path / "archive.jsonl") + commands(run, ledger_url, ids)
    dumps += [raw(ledger_url), (tmp_path / "archive.jsonl").read_text()]
    for number, text in enumerate(told):
        assert leaked(text) == [], (number, text)
    for ran in outputs:
        assert leaked(ran.out + ran.err) == []
    spans = [(one.name, dict(one.attributes or {}), one.status.description) for one in heard.spans()]
    events = [(one.name, dict(one.attributes or {})) for span in heard.spans() for one in span.events]
    assert spans, "there is something to search"
    assert leaked(repr(spans) + repr(events)) == []
    assert caplog.records, "there is something to search"
    assert leaked(caplog.text + repr([vars(record) for record in caplog.records])) == []
    assert incidents, "there is something to search"
    assert leaked(repr(incidents)) == []
    for dump in dumps:
        assert "use_" in dump, "there is something to search"
        assert leaked(dump) == []
    captured = capfd.readouterr()
    assert leaked(captured.out + captured.err) == []
