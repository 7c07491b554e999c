"""C62: a row stays pending after every restart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import sqlalchemy as sa
from cases.paying import SECOND, START_US

from counterfoil import Absent, Effect, Executor, Found, ManualClock, Policy, Proof, Row, Unclear, Verdict, tool
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.rows import all_columns
from counterfoil.ledger.schema import effects

YEAR = 365 * 86_400 * SECOND
OWNERS = (None, "gone:1:dead", "here:2:alive")
LEASES = (0, START_US - 10 * SECOND, START_US + 30 * SECOND, START_US + YEAR)
SITUATIONS = ("there", "absent", "raises", "hidden", "no tool", "bad arguments", "bad json")
LOOKS = (0, START_US - 5 * SECOND, START_US + 20 * SECOND)


def unknown(number: int, owner: str | None, lease: int, situation: str, look_at: int) -> Row:
    arguments = {"bad arguments": '{"colour":"red"}', "bad json": "{"}.get(situation, '{"order":"A"}')
    return Row(
        key=number.to_bytes(32, "big"), id=f"cf-{number}-{situation.replace(' ', '-')}", tenant="",
        tool="gone" if situation == "no tool" else "pay", task="", fingerprint=b"f" * 32, canonical_version=1,
        arguments=arguments, echo='{"order":"A"}', verdict=Verdict.EFFECT_UNKNOWN, attempts=2,
        open_attempts=1 + number % 3, holder=owner, lease_until=lease, sends_until=START_US - 20 * SECOND,
        absent_from=START_US - 15 * SECOND, look_at=look_at, review_at=START_US + 40 * SECOND, grace_us=SECOND,
        audit_us=60 * SECOND, review_us=60 * SECOND, begun_at=START_US - 60 * SECOND,
        unknown_since=START_US - 60 * SECOND, created_at=START_US - 60 * SECOND, updated_at=START_US - 60 * SECOND,
    )  # fmt: skip


def settled(number: int, proof: Proof, verified: bool) -> Row:
    verdict = Verdict.EFFECT_APPLIED if proof in (Proof.RETURNED, Proof.FOUND) else Verdict.NO_EFFECT
    row = unknown(number, None, 0, "there", START_US)
    content = {name: getattr(row, name) for name in row.__dataclass_fields__}
    content |= {
        "verdict": verdict,
        "proof": proof,
        "open_attempts": 0,
        "verified": verified,
        "id": f"cf-{number}-there",
    }
    return Row(**content | {"conditional_at": START_US if proof is Proof.ABSENT_AFTER_GRACE else None, "count": 1})


@pytest.fixture
def executor(ledger_url: str) -> Iterator[Executor]:
    """The reconciler of an application whose tool must never be run."""

    @tool(key=("order",), policy=Policy(timeout_s=5, grace_s=1))
    def pay(effect: Effect, order: str) -> str:
        """Pay for one order."""
        raise AssertionError("reconcile never sends")

    @pay.postcondition
    def paid(effect: Effect) -> Found[str] | Absent | Unclear:
        if effect.id.endswith("raises"):
            raise SystemExit(3)
        if effect.id.endswith("hidden"):
            return Unclear("the list is not complete")
        return Found("seen", reference=effect.id) if effect.id.endswith("there") else Absent()

    with Executor(ledger_url, [pay], clock=ManualClock(START_US)) as made:
        yield made


def one_minute(executor: Executor) -> None:
    clock: Any = executor._clock
    for _ in range(20):
        clock.advance(3)
        executor.reconcile(limit=1000)


def insert(executor: Executor, rows: list[Row]) -> None:
    with executor._engine.begin() as connection:
        connection.execute(sa.insert(effects), [all_columns(row) for row in rows])


def test_no_state_is_skipped_in_silence(executor: Executor) -> None:
    """Every unknown row, whoever holds it and whatever its lease, is settled in a minute or listed for a person with a
    reason; settled rows stay settled; nothing is sent."""
    states = list(enumerate(product(OWNERS, LEASES, SITUATIONS, LOOKS)))
    rows = [unknown(number, *state) for number, state in states]
    closed = [settled(1000 + n, *state) for n, state in enumerate(product(Proof, (True, False)))]
    insert(executor, rows + closed)
    one_minute(executor)
    after = {row.id: row for row in executor.audit.effects(limit=10_000)}
    listed = {one.effect_id: one.detail["reason"] for one in executor.audit.incidents() if one.kind == "doubt_left"}
    for row, (_, (_, lease, situation, _)) in zip(rows, states, strict=True):
        over = lease < START_US + YEAR
        wanted = {"there": Verdict.EFFECT_APPLIED, "absent": Verdict.NO_EFFECT}.get(situation) if over else None
        assert after[row.id].verdict is (wanted or Verdict.EFFECT_UNKNOWN), row
        assert (row.id in listed) is (wanted is None), row
        assert listed.get(row.id, "settled")
    for row in closed:
        latched = row.verdict is Verdict.EFFECT_APPLIED or after[row.id].proof is Proof.FOUND
        assert after[row.id].verdict is (Verdict.EFFECT_APPLIED if latched else Verdict.NO_EFFECT)


@pytest.mark.parametrize("column", ["look_at", "review_at"])
def test_the_ledger_takes_no_doubt_that_nobody_would_look_at(executor: Executor, column: str) -> None:
    """An unknown effect without a next look, or without a time at which a person is told, cannot be written."""
    row = unknown(1, None, 0, "there", START_US)
    content = {name: getattr(row, name) for name in row.__dataclass_fields__} | {column: None}
    with pytest.raises(sa.exc.IntegrityError):
        insert(executor, [Row(**content)])


IS_BAD = "NEW.id = 'cf-0-there' AND NEW.version <> OLD.version"
REFUSES = {
    "sqlite": (f"CREATE TRIGGER refuse BEFORE UPDATE ON effects WHEN {IS_BAD} BEGIN SELECT RAISE(ABORT, 'no'); END",),
    "postgresql": (
        "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION 'no'; END $$ LANGUAGE plpgsql",
        f"CREATE TRIGGER refuse BEFORE UPDATE ON effects FOR EACH ROW WHEN ({IS_BAD}) EXECUTE FUNCTION refuse()",
    ),
}


def test_a_bad_row_does_not_stop_the_rows_behind_it(executor: Executor, ledger_url: str) -> None:
    """The oldest effect cannot be written, whatever the look says: those behind it are settled, and it is listed."""
    insert(executor, [unknown(number, None, 0, "there", number) for number in range(3)])
    engine = open_engine(ledger_url)
    with engine.begin() as connection:
        for statement in REFUSES[engine.dialect.name]:
            connection.exec_driver_sql(statement)
    engine.dispose()
    one_minute(executor)
    verdicts = {row.id: row.verdict for row in executor.audit.effects()}
    assert verdicts == {
        "cf-0-there": Verdict.EFFECT_UNKNOWN,
        "cf-1-there": Verdict.EFFECT_APPLIED,
        "cf-2-there": Verdict.EFFECT_APPLIED,
    }
    assert [one.effect_id for one in executor.audit.incidents()] == ["cf-0-there"]
