"""A secret, and a cipher key, are exchanged while several hosts begin effects: no call gets two identities."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from crash.story import Stage
from crash.truth import Story
from races.exchanging import AWAY, NEW, OLD, pay_at, words
from races.rounds import await_file

from counterfoil import Executor
from counterfoil.ledger.cipher import CipherKeys, key_id
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.reencryption import encryption, reencrypt

HOSTS, ORDERS, SWITCHED_AFTER = 3, 16, 4
PATIENCE_S = 60.0


def exchanged(
    stage: Stage, folder: Path, hosts: list[dict[str, Any]], exchange: Callable[[], object]
) -> list[dict[str, Any]]:
    """Let the hosts make the same calls at once, and exchange something in their midst; what each was told."""
    life = replace(stage.life(Story("T0", "none", None)), part="races.exchanging")
    detail = {"orders": ORDERS, "go": str(folder / "go"), "secret": ["old"], "cipher": [], "insists": True}
    lives = [
        replace(life, out=f"{life.out}-{n}", ready=str(folder / f"ready{n}"), detail=detail | host)
        for n, host in enumerate(hosts)
    ]
    born = [stage.nursery.begin(one) for one in lives]
    for one in lives:
        await_file(Path(one.ready))
    (folder / "go").touch()
    until = time.monotonic() + PATIENCE_S
    while stage.provider.count() < SWITCHED_AFTER:
        assert time.monotonic() < until, "the hosts do not begin"
        time.sleep(0.002)
    exchange()
    assert [one.ended.result(PATIENCE_S) for one in born] == [0] * len(lives)
    stage.provider.quiesce()
    return [stage.record(one) for one in lives]


def each_once(stage: Stage, executor: Executor, told: list[dict[str, Any]]) -> None:
    """Every call of those that know the new word is one row, one request and one effect, and was carried out."""
    rows = executor.audit.effects(limit=10 * ORDERS)
    assert Counter(row.echo for row in rows).most_common(1)[0][1] == 1, "no call has two identities"
    assert len(rows) == ORDERS
    assert Counter(one["reference"] for one in stage.provider.effects()) == {row.id: 1 for row in rows}
    assert len(stage.provider.requests()) == ORDERS
    for host in told:
        assert {codes[-1] for codes in host["told"]} <= {"ok", "replayed"}
    assert sum(codes[-1] == "ok" for host in told for codes in host["told"]) <= ORDERS


def refuses_from_then_on(host: dict[str, Any]) -> None:
    """Whoever was not told of the new word is let in no more, and opens the ledger no more."""
    codes = [one[-1] for one in host["told"]]
    assert codes[-1] == AWAY
    assert host["refused_later"]
    done = [place for place, code in enumerate(codes) if code != AWAY]
    assert len(done) < ORDERS, "the exchange fell into its calls"


def test_a_secret_is_exchanged_among_hosts_that_begin(stage: Stage, tmp_path: Path) -> None:
    """Three hosts with both secrets and one with the old one make the same calls; one switches in their midst. Each
    call is one effect, and the host that does not know the newest begins nothing any more."""
    Executor(stage.ledger_url, [pay_at(stage.provider)], secret=OLD).close()  # the first secret writes
    both = Executor(stage.ledger_url, [pay_at(stage.provider)], secret=[NEW, OLD])
    hosts: list[dict[str, Any]] = [{"secret": ["new", "old"]} for _ in range(HOSTS)]
    with both:
        *told, old = exchanged(stage, tmp_path, [*hosts, {"insists": False}], both.switch_secret)
        each_once(stage, both, told)
    refuses_from_then_on(old)


def test_a_ledger_is_encrypted_among_hosts_that_begin(stage: Stage, tmp_path: Path) -> None:
    """Three hosts with the cipher key and one without make the same calls; it is switched on in their midst. Each call
    is one effect, nothing is left in plain, and the host without it begins nothing any more."""
    keys = CipherKeys.given(words(["new"]))
    assert keys is not None
    plain = Executor(stage.ledger_url, [pay_at(stage.provider)], secret=OLD)
    with plain:
        ledger = Ledger(plain._engine, cipher_keys=keys)
        hosts: list[dict[str, Any]] = [{"cipher": ["new"]} for _ in range(HOSTS)]
        # One effect before they come, so that it is not yet encrypted when the first of them opens it.
        assert plain.call("pay", {"order": "first", "card": "4242"}, task="x").code == "ok"
        *told, without = exchanged(
            stage, tmp_path, [*hosts, {"insists": False}], lambda: reencrypt(ledger, keys, by="N.", batch=2)
        )
        reencrypt(ledger, keys, by="N.")
        seen = encryption(ledger.engine)
        assert (seen.key_ids, seen.plain, seen.earlier) == ((key_id(NEW),), 0, 0)
    with Executor(stage.ledger_url, [pay_at(stage.provider)], secret=OLD, cipher_key=NEW) as executor:
        (row,) = [one for one in executor.audit.effects(task="x") if one.task == "x"]
        assert [entry.event for entry in executor.audit.history(row.id)] == ["begun", "returned", "encrypted"]
        rest = [one for one in executor.audit.effects(limit=10 * ORDERS) if one.task != "x"]
        assert Counter(one.echo for one in rest).most_common(1)[0][1] == 1
        assert len(rest) == ORDERS
        assert Counter(one["reference"] for one in stage.provider.effects())[row.id] == 1
        assert set(Counter(one["reference"] for one in stage.provider.effects()).values()) == {1}
        assert len(stage.provider.requests()) == ORDERS + 1
    for host in told:
        assert {codes[-1] for codes in host["told"]} <= {"ok", "replayed"}
    refuses_from_then_on(without)
