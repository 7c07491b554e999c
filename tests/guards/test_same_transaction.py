"""Guards before a tool that is in one transaction with the ledger: refused before it writes, booked when it commits."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from outside import Make

from counterfoil import Budget, Effect, Executor, Rejected, Tool, UsageError, tool

TEN = Budget(spend={"eur": 1000})


def reserve_tool() -> Tool[..., Any]:
    """Writes one row into a table of the ledger's own database, or refuses."""

    @tool(key=("room",), same_transaction=True, cost=lambda a: ("eur", a["cents"]))
    def reserve(effect: Effect, room: str, cents: int) -> str:
        """Reserve one room. Use it when it is wanted."""
        effect.connection.execute(sa.text("INSERT INTO rooms (room) VALUES (:room)"), {"room": room})
        if room == "taken":
            raise Rejected("taken", "it is taken")
        return room

    return reserve


def rooms(url: str) -> list[str]:
    """The rooms that are reserved."""
    engine = sa.create_engine(url)
    try:
        with engine.connect() as connection:
            return [str(one) for one in connection.execute(sa.text("SELECT room FROM rooms ORDER BY room")).scalars()]
    finally:
        engine.dispose()


@pytest.fixture
def executor(executor_of: Make, ledger_url: str) -> Executor:
    """An executor of the tool, with its table."""
    engine = sa.create_engine(ledger_url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE rooms (room TEXT)"))
    engine.dispose()
    return executor_of(reserve_tool(), budget=TEN)


def test_refused_before_it_writes_and_booked_with_the_commit(executor: Executor, ledger_url: str) -> None:
    """What is refused by the tool leaves nothing reserved; what exceeds the budget is not begun; a pause holds."""

    def code(room: str, cents: int) -> str:
        return executor.call("reserve", {"room": room, "cents": cents}, task="t").code

    assert [code("taken", 1000), code("a", 700), code("b", 400), code("c", 300)] == [
        "taken",
        "ok",
        "budget_exhausted",
        "ok",
    ]
    executor.pause("reserve", by="Ada", why="a bad day")
    assert [code("d", 0), code("a", 700)] == ["paused", "replayed"]
    assert rooms(ledger_url) == ["a", "c"]
    assert executor.task("t").spent == {"eur": 1000}
    assert executor.audit.spending("t")[-1]["reserved"] == 0


def test_two_budgets_for_one_task_are_told(executor: Executor, executor_of: Make) -> None:
    """Another host with another budget is the developer's mistake here too."""
    assert executor.call("reserve", {"room": "a", "cents": 1}, task="t").code == "ok"
    other = executor_of(reserve_tool(), budget=Budget(spend={"eur": 1}))
    with pytest.raises(UsageError, match="the same budget on every host"):
        other.call("reserve", {"room": "b", "cents": 1}, task="t")
