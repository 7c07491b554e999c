"""T5: the effect and its record are one transaction, on both databases with real tables: both are there, or neither."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import pytest
import sqlalchemy as sa
from cutting import Cut, away, commits
from outside import Make, MakeAsync
from sqlalchemy.orm import Session

from counterfoil import (
    DeadlinePassed,
    Effect,
    Executor,
    Incident,
    ManualClock,
    Observation,
    Policy,
    Proof,
    Rejected,
    Throttled,
    Tool,
    UsageError,
    Verdict,
    tool,
)

ORDER = {"number": "A", "cents": 500}
POLICY = Policy(timeout_s=5, patience_s=5, attempts_max=3)
orders = sa.Table("orders", sa.MetaData(), sa.Column("number", sa.Text), sa.Column("cents", sa.Integer))
Doing: TypeAlias = Callable[[Effect], object]


def nothing(effect: Effect) -> None:
    """Returns, and that is all."""


def order_tool(then: Doing = nothing, policy: Policy = POLICY, **declared: Any) -> Tool[..., Any]:
    """A tool whose effect is one row in the ledger's own database; after it has written it does `then`."""

    @tool(key=("number",), same_transaction=True, policy=policy, **declared)
    def order(effect: Effect, number: str, cents: int) -> dict[str, str]:
        """Enter one order."""
        effect.connection.execute(sa.insert(orders), {"number": number, "cents": cents})
        then(effect)
        return {"order": number}

    return order


@pytest.fixture
def book(ledger_url: str) -> Iterator[sa.Engine]:
    """The application's own engine on the ledger's database, where its table is."""
    engine = sa.create_engine(ledger_url)
    orders.create(engine)
    yield engine
    engine.dispose()


def entered(book: sa.Engine) -> int:
    """How many orders there are, as anybody else sees them."""
    with book.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(orders)).scalar_one()


def events(executor: Executor, seen: Observation) -> list[str]:
    return [entry.event for entry in executor.audit.history(str(seen.effect_id))]


# ---------------------------------------------------------------- together


def test_the_effect_and_its_record_are_committed_together(book: sa.Engine, executor_of: Make) -> None:
    """One COMMIT carries begin, the function's writes and the settle; the same call again is replayed."""
    executor = executor_of(order_tool())
    with commits(executor._engine, []) as happened:
        seen = executor.call("order", ORDER)
    assert happened == ["counts"]
    assert (seen.code, seen.verdict, seen.proof) == ("ok", Verdict.EFFECT_APPLIED, Proof.SAME_TRANSACTION)
    assert (seen.value, entered(book), events(executor, seen)) == ({"order": "A"}, 1, ["begun", "returned"])
    again = executor.call("order", ORDER)
    assert (again.code, again.value, again.attempts, entered(book)) == ("replayed", {"order": "A"}, 1, 1)
    assert executor.call("order", ORDER | {"cents": 1}).code == "key_conflict"


def test_nobody_sees_a_half_of_it(book: sa.Engine, executor_of: Make) -> None:
    """While the function runs, neither its row nor the begin is visible to anybody else."""
    seen: list[tuple[int, int]] = []
    executor = executor_of(order_tool(lambda _: seen.append((entered(book), len(executor.audit.effects())))))
    assert executor.call("order", ORDER).ok
    assert seen == [(0, 0)]


def test_a_session_and_a_savepoint_work_in_it(book: sa.Engine, executor_of: Make) -> None:
    """An ORM session may join, and a part may be undone: neither ends the ledger's transaction."""

    def work(effect: Effect) -> None:
        part = effect.connection.begin_nested()
        effect.connection.execute(sa.insert(orders), {"number": "undone", "cents": 0})
        part.rollback()
        with Session(effect.connection) as session:
            session.execute(sa.insert(orders), {"number": "kept", "cents": 0})
            session.commit()

    executor = executor_of(order_tool(work))
    assert executor.call("order", ORDER).proof is Proof.SAME_TRANSACTION
    with book.connect() as connection:
        assert connection.execute(sa.select(orders.c.number)).scalars().all() == ["A", "kept"]


def test_an_incident_of_it_is_told_once_all_is_free(book: sa.Engine, executor_of: Make) -> None:
    """Who is told of an incident that the settle raised finds it committed, and may call again at once."""
    told: list[tuple[str, Verdict, str]] = []

    def name_it(effect: Effect) -> None:
        if len(effect.arguments["number"]) == 1:
            effect.reference = "R-1"

    def hear(one: Incident) -> None:
        verdict = executor.audit.effect(str(one.effect_id)).verdict
        again = executor.call("order", {"number": f"after {one.number}", "cents": 1})
        told.append((one.kind, verdict, again.code))

    executor = executor_of(order_tool(name_it), on_incident=hear)
    assert executor.call("order", ORDER).ok
    assert told == []
    assert executor.call("order", {"number": "B", "cents": 1}).ok
    assert told == [("reference_shared", Verdict.EFFECT_APPLIED, "ok")] * 2


# ---------------------------------------------------------------- undone


def raising(problem: BaseException) -> Doing:
    def raise_it(effect: Effect) -> None:
        raise problem

    return raise_it


def test_a_refusal_keeps_its_words_and_leaves_nothing(book: sa.Engine, executor_of: Make) -> None:
    """What was written before the refusal is rolled back; the record of the attempt stands, proven by the refusal."""
    executor = executor_of(order_tool(raising(Rejected("sold_out", "there are none left", hint="Order another one."))))
    seen = executor.call("order", ORDER)
    assert (seen.code, seen.verdict, seen.proof) == ("sold_out", Verdict.NO_EFFECT, Proof.REJECTED)
    assert "there are none left" in seen.text
    assert seen.next_action == "Order another one."
    assert (entered(book), events(executor, seen)) == (0, ["begun", "closed"])


@pytest.mark.parametrize("problem", [ValueError("a bug"), KeyError("order"), DeadlinePassed("late")], ids=repr)
def test_any_other_exception_had_no_effect(book: sa.Engine, executor_of: Make, problem: Exception) -> None:
    """Whatever is raised, the transaction is rolled back: no effect, and the audit knows of the attempt."""
    executor = executor_of(order_tool(raising(problem)))
    seen = executor.call("order", ORDER)
    assert (seen.code, seen.verdict, seen.proof) == ("unavailable", Verdict.NO_EFFECT, Proof.SAME_TRANSACTION)
    assert "all of it was undone" in seen.text
    assert (seen.attempts, entered(book), events(executor, seen)) == (1, 0, ["begun", "closed"])


def test_a_listed_error_is_a_refusal_even_when_it_is_the_databases(book: sa.Engine, executor_of: Make) -> None:
    """A constraint that refuses the row is a refusal where the tool says so; on PostgreSQL too, where the transaction
    is broken by it."""
    with book.begin() as connection:
        connection.execute(sa.text("CREATE UNIQUE INDEX one_each ON orders (number)"))
        connection.execute(sa.insert(orders), {"number": "A", "cents": 1})
    executor = executor_of(order_tool(rejects=(sa.exc.IntegrityError,)))
    seen = executor.call("order", ORDER)
    assert (seen.code, seen.proof, entered(book)) == ("rejected", Proof.REJECTED, 1)


def test_a_swallowed_error_of_the_database_commits_nothing(book: sa.Engine, executor_of: Make) -> None:
    """A function that swallows an error and returns has its way only if the transaction still holds."""

    def swallow(effect: Effect) -> None:
        with pytest.raises(sa.exc.DBAPIError):
            effect.connection.execute(sa.text("SELECT * FROM no_such_table"))

    executor = executor_of(order_tool(swallow))
    seen = executor.call("order", ORDER)
    assert entered(book) == (seen.verdict is Verdict.EFFECT_APPLIED)
    assert seen.verdict is (Verdict.EFFECT_APPLIED if book.dialect.name == "sqlite" else Verdict.NO_EFFECT)


@pytest.mark.parametrize("passing", [sa.exc.OperationalError("UPDATE", {}, Cut()), Throttled(0.5)], ids=["lock", "429"])
def test_a_passing_trouble_is_tried_again(book: sa.Engine, executor_of: Make, passing: Exception) -> None:
    """What was undone may be run again within the call, as often as `attempts_max`: a deadlock, a wish to wait."""
    left: list[Exception] = [passing] * 2

    def stumble(effect: Effect) -> None:
        if left:
            raise left.pop()

    executor = executor_of(order_tool(stumble))
    seen = executor.call("order", ORDER)
    assert (seen.code, seen.attempts, entered(book)) == ("ok", 3, 1)
    assert events(executor, seen) == ["begun", "closed", "begun", "closed", "begun", "returned"]
    left.extend([passing] * 3)
    assert executor.call("order", {"number": "B", "cents": 1}).verdict is Verdict.NO_EFFECT
    assert (left, entered(book)) == ([], 1)


def test_an_exit_in_the_function_goes_through_and_leaves_nothing(book: sa.Engine, executor_of: Make) -> None:
    """SystemExit is rolled back and recorded, then reaches the caller."""
    executor = executor_of(order_tool(raising(SystemExit(3))))
    with pytest.raises(SystemExit):
        executor.call("order", ORDER)
    (row,) = executor.audit.effects()
    assert (row.verdict, row.proof, entered(book)) == (Verdict.NO_EFFECT, Proof.SAME_TRANSACTION, 0)


def test_a_settle_that_is_declined_rolls_back(book: sa.Engine, executor_of: Make) -> None:
    """The row was changed meanwhile, so the settle finds nothing to settle: zero rows are no answer here (F11a)."""

    def meddle(effect: Effect) -> None:
        effect.connection.execute(
            sa.text("UPDATE effects SET verdict = 'no_effect', proof = 'operator', open_attempts = 0")
        )

    executor = executor_of(order_tool(meddle))
    seen = executor.call("order", ORDER)
    assert (seen.verdict, seen.proof, entered(book)) == (Verdict.NO_EFFECT, Proof.SAME_TRANSACTION, 0)


# ---------------------------------------------------------------- COMMIT


@pytest.mark.parametrize(("fate", "attempts"), [("lost before", 2), ("lost after", 1)])
def test_the_reply_to_commit_is_lost(book: sa.Engine, executor_of: Make, fate: str, attempts: int) -> None:
    """It had counted: applied, not run again. It had not: no effect, run again within the call (C39)."""
    executor = executor_of(order_tool())
    with commits(executor._engine, [fate]):
        seen = executor.call("order", ORDER)
    assert (seen.code, seen.proof, seen.attempts) == ("ok", Proof.SAME_TRANSACTION, attempts)
    assert entered(book) == 1
    assert events(executor, seen) == ["begun", "closed"] * (attempts - 1) + ["begun", "returned"]


def test_what_cannot_be_asked_after_commit_is_never_no_effect(
    book: sa.Engine, executor_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is gone with the reply: it may have been carried out, and the next call knows."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)
    executor = executor_of(order_tool())
    with commits(executor._engine, ["gone"]):
        seen = executor.call("order", ORDER)
    assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
    assert "may have been" in seen.text
    assert (executor.call("order", ORDER).code, entered(book)) == ("replayed", 1)


def test_a_ledger_that_is_away_runs_nothing(
    book: sa.Engine, executor_of: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a begin the function is not called; a begin that fails is tried again for a while."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)
    called: list[Effect] = []
    away_now: list[Any] = []

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("before", "Transact"):
            away_now.append(away(executor._engine))
            away_now[0].__enter__()

    executor = executor_of(order_tool(called.append), observer=watch)
    seen = executor.call("order", ORDER)
    away_now[0].__exit__(None, None, None)
    assert (seen.code, called, entered(book)) == ("ledger_unavailable", [], 0)
    assert "this call sent nothing" in seen.text


@pytest.mark.parametrize("ledger_url", ["postgresql"], indirect=True)
def test_a_commit_that_is_still_under_way_is_waited_for(book: sa.Engine, executor_of: Make) -> None:
    """The server stands at COMMIT and its client has lost it: only a write on the key waits for the end (F11b).

    (On SQLite COMMIT is the client's own work: where the client has lost its connection, it is over.)
    """
    with book.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION stand() RETURNS trigger LANGUAGE plpgsql AS "
            "'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END'"
        )
        connection.exec_driver_sql(
            "CREATE CONSTRAINT TRIGGER standing AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION stand()"
        )
    executor = executor_of(order_tool())
    lost: list[bool] = []

    def lose(connection: sa.Connection) -> None:
        if not lost:
            lost.append(True)
            raw: Any = connection.connection.driver_connection
            raw.pgconn.send_query(b"COMMIT")
            raw.close()
            raise sa.exc.OperationalError("COMMIT", {}, Cut())

    sa.event.listen(executor._engine, "commit", lose)
    asked = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'")
    with book.connect() as gate, ThreadPoolExecutor() as threads:
        gate.execute(sa.text("SELECT pg_advisory_lock(7)"))
        calling = threads.submit(executor.call, "order", ORDER)
        while not gate.execute(asked).scalar_one():
            assert not calling.done(), calling.result()
        gate.execute(sa.text("SELECT pg_advisory_unlock(7)"))
        seen = calling.result()
    assert (seen.code, seen.attempts, entered(book), lost) == ("ok", 1, 1, [True])


# ---------------------------------------------------------------- two at once


class Standing:
    """A function that stands in its transaction until it is let go."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, effect: Effect) -> None:
        self.inside.set()
        assert self.go_on.wait(30)


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_second_caller_hears_the_end_of_the_first(book: sa.Engine, executor_of: Make, hosts: int) -> None:
    """It waits in the database and replays what the first has done; the function ran once."""
    standing = Standing()
    waiting = threading.Event()

    def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
        if standing.inside.is_set() and (moment, step) == ("before", "Transact"):
            waiting.set()

    first = executor_of(order_tool(standing), observer=watch)
    second = first if hosts == 1 else executor_of(order_tool(standing), observer=watch)
    with ThreadPoolExecutor() as threads:
        one = threads.submit(first.call, "order", ORDER)
        assert standing.inside.wait(10)
        other = threads.submit(second.call, "order", ORDER)
        assert waiting.wait(10)
        standing.go_on.set()
        assert (one.result().code, other.result().code) == ("ok", "replayed")
    assert entered(book) == 1


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_second_caller_without_patience_hears_in_progress(book: sa.Engine, executor_of: Make, hosts: int) -> None:
    """It answers within its patience, as unknown and in progress, and has run nothing."""
    standing = Standing()
    hasty = Policy(timeout_s=5, patience_s=0.2)
    first = executor_of(order_tool(standing, hasty))
    second = first if hosts == 1 else executor_of(order_tool(standing, hasty))
    with ThreadPoolExecutor() as threads:
        one = threads.submit(first.call, "order", ORDER)
        assert standing.inside.wait(10)
        asked = time.monotonic()
        seen = second.call("order", ORDER)
        waited_s = time.monotonic() - asked
        standing.go_on.set()
        assert waited_s < 10
        assert (seen.code, seen.verdict) == ("in_progress", Verdict.EFFECT_UNKNOWN)
        assert seen.effect_id == one.result().effect_id
    assert (second.call("order", ORDER).code, entered(book)) == ("replayed", 1)


def test_check_effect_does_not_deny_what_is_under_way(book: sa.Engine, executor_of: Make) -> None:
    """No reading sees an effect whose transaction is open: it is told as in progress, and afterwards as it ended."""
    standing = Standing()
    executor = executor_of(order_tool(standing, Policy(timeout_s=5, patience_s=0.2)))
    other = executor_of(order_tool(standing))
    with ThreadPoolExecutor() as threads:
        one = threads.submit(executor.call, "order", ORDER)
        assert standing.inside.wait(10)
        name = {"effect_id": executor.call("order", ORDER).effect_id}
        told = [asked.call("check_effect", name) for asked in (executor, other)]
        standing.go_on.set()
        assert one.result().ok
    assert [(seen.code, seen.verdict, seen.effect_id) for seen in told] == [
        ("in_progress", Verdict.EFFECT_UNKNOWN, name["effect_id"])
    ] * 2
    assert executor.call("check_effect", name).verdict is Verdict.EFFECT_APPLIED
    assert executor.call("check_effect", {"effect_id": "cf-" + "a" * 28}).code == "not_found"


# ---------------------------------------------------------------- the deadline


def test_an_overrun_is_rolled_back_before_commit(book: sa.Engine, clock: ManualClock, executor_of: Make) -> None:
    """The function returned after its deadline while its caller still waited: nothing of it is committed."""
    executor = executor_of(order_tool(lambda _: clock.advance(7)))
    seen = executor.call("order", ORDER)
    assert (seen.verdict, seen.proof, seen.attempts) == (Verdict.NO_EFFECT, Proof.SAME_TRANSACTION, 1)
    assert (entered(book), events(executor, seen)) == (0, ["begun", "closed"])


def test_a_caller_that_gives_up_knows_that_nothing_is_committed(
    book: sa.Engine, clock: ManualClock, executor_of: Make
) -> None:
    """The function stands beyond all patience: its caller hears no effect, and it cannot commit any more."""
    standing = Standing()

    def overrun(effect: Effect) -> None:
        if not standing.inside.is_set():
            clock.advance(60)
            standing(effect)
            with pytest.raises(DeadlinePassed):
                effect.connection.execute(sa.insert(orders), {"number": "late", "cents": 0})

    executor = executor_of(order_tool(overrun))
    seen = executor.call("order", ORDER)
    assert (seen.verdict, seen.proof, seen.attempts) == (Verdict.NO_EFFECT, Proof.SAME_TRANSACTION, 1)
    standing.go_on.set()
    again = executor.call("order", ORDER)  # waits in the database until the first has been rolled back
    assert (again.code, entered(book)) == ("ok", 1)


# ---------------------------------------------------------------- misuse


def swallowing(effect: Effect) -> None:
    with pytest.raises(UsageError):
        effect.connection.commit()


def raw_commit(effect: Effect) -> None:
    raw: Any = effect.connection.connection.driver_connection
    raw.execute("COMMIT")


@pytest.mark.parametrize(
    "misuse",
    [
        lambda effect: effect.connection.commit(),
        lambda effect: effect.connection.rollback(),
        lambda effect: effect.connection.close(),
        lambda effect: effect.connection.get_transaction().commit(),
        lambda effect: effect.connection.execute(sa.text("commit")),
        lambda effect: effect.connection.exec_driver_sql(" ROLLBACK"),
        swallowing,
    ],
    ids=["commit", "rollback", "close", "transaction", "text", "driver", "swallowed"],
)
def test_a_function_may_not_end_the_transaction(book: sa.Engine, executor_of: Make, misuse: Doing) -> None:
    """It is refused before it counts, told to the developer, and nothing is left but the record of the attempt."""
    executor = executor_of(order_tool(misuse))
    with pytest.raises(UsageError, match="must not commit, roll back or close"):
        executor.call("order", ORDER)
    (row,) = executor.audit.effects()
    assert (row.verdict, row.proof, entered(book)) == (Verdict.NO_EFFECT, Proof.SAME_TRANSACTION, 0)


@pytest.mark.parametrize("then", [nothing, raising(ValueError())], ids=["returns", "raises"])
def test_a_commit_behind_our_back_is_never_told_as_no_effect(book: sa.Engine, executor_of: Make, then: Doing) -> None:
    """The driver's own COMMIT cannot be refused; it is noticed, and the effect is unknown, whatever comes after it."""

    def behind(effect: Effect) -> None:
        raw_commit(effect)
        then(effect)

    executor = executor_of(order_tool(behind))
    seen = executor.call("order", ORDER)
    assert (seen.code, seen.verdict, entered(book)) == ("effect_unknown", Verdict.EFFECT_UNKNOWN, 1)
    assert events(executor, seen) == ["begun", "lost"]
    assert executor.call("order", ORDER).code == "effect_unknown"
    assert entered(book) == 1


def test_only_such_a_tool_is_given_a_connection(executor_of: Make) -> None:
    """A tool that is not declared so finds no connection, and is told how to mend it."""
    told: list[str] = []

    @tool(key=("number",))
    def order(effect: Effect, number: str) -> None:
        """Enter one order."""
        with pytest.raises(UsageError) as refused:
            effect.connection.close()
        told.append(str(refused.value))

    assert executor_of(order).call("order", {"number": "A"}).ok
    assert "same_transaction=True" in told[0]


# ---------------------------------------------------------------- the event loop


def test_an_asynchronous_executor_does_the_same(book: sa.Engine, async_executor_of: MakeAsync) -> None:
    """The function runs in a thread; effect and record are one there too."""

    async def run() -> None:
        async with async_executor_of(order_tool()) as executor:
            seen, again = [await executor.call("order", ORDER) for _ in range(2)]
            assert (seen.code, seen.proof, again.code) == ("ok", Proof.SAME_TRANSACTION, "replayed")

    asyncio.run(run())
    assert entered(book) == 1


def test_a_cancelled_call_commits_nothing(book: sa.Engine, async_executor_of: MakeAsync) -> None:
    """Cancelled while the function stands: nothing is committed, and the attempt is recorded when it has ended."""
    standing = Standing()
    recorded = threading.Event()

    async def run() -> None:
        async with async_executor_of(order_tool(standing)) as executor:
            sa.event.listen(executor._engine, "commit", lambda _: recorded.set())
            calling = asyncio.create_task(executor.call("order", ORDER))
            await asyncio.to_thread(standing.inside.wait, 10)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            standing.go_on.set()
            assert await asyncio.to_thread(recorded.wait, 30)
            assert (await executor.call("order", ORDER)).attempts == 2

    asyncio.run(run())
    assert entered(book) == 1
