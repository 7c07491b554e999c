"""`counterfoil audit` seals, verifies and exports, and says by its code whether all is as it was sealed."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import sqlalchemy as sa

from counterfoil.clock import ManualClock
from counterfoil.ledger.seals import EveryMinute, last_seal


def tamper(url: str, effect: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE effects SET arguments = '{}' WHERE id = :id"), {"id": effect})
    engine.dispose()


def test_a_sealed_ledger_is_as_it_was_sealed_until_somebody_touches_it(run: Any, told: Any) -> None:
    """Sealed once, the root stays good; a row that SQL changed is named, with code 6."""
    (made,) = run("audit", "seal", "--json", "--ledger", told.url).json
    assert (made["number"], made["effects"], made["secret_id"]) == (1, 4, None)
    assert run("audit", "seal", "--json", "--ledger", told.url).json == []
    seen = run("audit", "verify", "--root", made["root"], "--json", "--ledger", told.url)
    assert (seen.code, seen.json["ok"], seen.json["last"]["root"], seen.json["unsealed"]) == (0, True, made["root"], 0)
    tamper(told.url, told.applied)
    seen = run("audit", "verify", "--json", "--ledger", told.url)
    found = [(one["what"], one["how"], one["name"]) for one in seen.json["findings"]]
    assert (seen.code, seen.json["ok"], found) == (6, False, [("effect", "changed", told.applied)])


def test_a_person_reads_it_in_lines(run: Any, told: Any) -> None:
    """The root to keep, what was compared, what was found, and what a seal without a secret is worth."""
    assert "nothing is sealed yet" in run("audit", "verify", "--ledger", told.url).out
    out = run("audit", "seal", "--ledger", told.url).out
    assert out.startswith("sealed 4 effects and ")
    assert "root 1:" in out
    assert "no secret keys it" in " ".join(out.split())
    assert run("audit", "verify", "--ledger", told.url).out.startswith("as it was sealed: 4 effects, ")
    tamper(told.url, told.doubt)
    seen = run("audit", "verify", "--ledger", told.url)
    assert (seen.code, seen.out.splitlines()[0]) == (6, f"effect {told.doubt} was changed")
    assert run("audit", "seal", "--ledger", told.url).out == "nothing new to seal\n"


def test_the_secret_comes_from_the_environment(run: Any, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keyed seal is verified with its secret alone; a missing one is asked for by its id, a short one refused."""
    monkeypatch.setenv("COUNTERFOIL_SECRET", "a secret of a test, long enough")
    (made,) = run("audit", "seal", "--json", "--ledger", told.url).json
    assert run("audit", "verify", "--ledger", told.url).code == 0
    for other in ("", "another secret, long enough"):
        monkeypatch.setenv("COUNTERFOIL_SECRET", other)
        refused = run("audit", "verify", "--ledger", told.url)
        assert (refused.code, refused.out, made["secret_id"] in refused.err) == (1, "", True)
    monkeypatch.setenv("COUNTERFOIL_SECRET", "another secret, long enough\na secret of a test, long enough")
    assert run("audit", "verify", "--ledger", told.url).code == 0
    monkeypatch.setenv("COUNTERFOIL_SECRET", "short")
    assert "at least 16" in run("audit", "seal", "--ledger", told.url).err


def test_an_application_seals_with_its_secret(run: Any, told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--app` takes ledger and secret of the application; its ledger may be named, too."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", told.url)
    (made,) = run("audit", "seal", "--app", "shop:executor", "--json").json
    assert made["effects"] == 4
    assert run("audit", "verify", "--app", "shop:executor").code == 0


def test_an_export_has_every_entry_with_its_effect(run: Any, told: Any) -> None:
    """The same as JSON lines and as CSV; one tenant's alone where it is named."""
    lines = [json.loads(line) for line in run("audit", "export", "--ledger", told.url).out.splitlines()]
    cells = list(csv.DictReader(io.StringIO(run("audit", "export", "--format", "csv", "--ledger", told.url).out)))
    assert [one["effect_id"] for one in lines] == [one["effect_id"] for one in cells]
    assert [one["detail"] for one in lines] == [json.loads(one["detail"]) for one in cells]
    mine = [(one["seq"], one["event"], one["tool"]) for one in lines if one["effect_id"] == told.refused]
    assert mine == [(1, "begun", "charge"), (2, "closed", "charge")]
    assert lines[0]["at"].endswith("+00:00")
    north = run("audit", "export", "--tenant", "north", "--ledger", told.url).out
    assert {json.loads(line)["effect_id"] for line in north.splitlines()} == {told.north}


def test_a_watch_seals_once_a_minute(told: Any, shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round seals what is new, the rounds of the same minute do not; after it, whichever host comes first."""
    monkeypatch.setenv("COUNTERFOIL_LEDGER", told.url)
    clock = ManualClock()
    with shop.executor(clock) as executor:
        ours, others = (EveryMinute(executor._ledger, None) for _ in range(2))
        first = ours.after_round()
        assert first == last_seal(executor._ledger)
        executor.call("invite", {"guest": "Ann"})
        assert (ours.after_round(), others.after_round()) == (None, None)
        clock.advance(61)
        second = others.after_round()
        assert second is not None
        assert (second.number, second.effects, ours.after_round()) == (2, 1, None)
        clock.advance(61)
        assert (ours.after_round(), others.after_round()) == (None, None)
