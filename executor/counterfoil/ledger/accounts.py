"""The statements on `tasks` and `task_entries`: what a task has used up of its budget, and the book of its money.

Each runs inside a transaction of the ledger's own, and each change holds the lock of the task's row from its reading to
COMMIT, so that whoever asks for the same budget waits and sees it. What is decided is decided by `guard.budget`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias

import sqlalchemy as sa

from counterfoil.effect import Row
from counterfoil.errors import UsageError
from counterfoil.guard.asking import Asks
from counterfoil.guard.budget import Account, Booking, Budget, Over, booked
from counterfoil.ledger import notices
from counterfoil.ledger.dialect import inserting
from counterfoil.ledger.schema import task_entries, tasks
from counterfoil.text import storable

# Who set a task's budget: the task's own host, or the executor for all of its tasks.
Source: TypeAlias = Literal["task", "executor"]
OVERRUN: Final = "budget_overrun"
# The row of one task.
NAMED: Final = (tasks.c.tenant == sa.bindparam("of_tenant")) & (tasks.c.task == sa.bindparam("of_task"))


def locked(connection: sa.Connection, asks: Asks, now: int) -> Account | None:
    """The account of the task, its row locked until COMMIT; None where nothing is counted for it.

    Raises:
        UsageError: the executor gives its tasks another budget than this one was begun with.
    """
    if not asks.task:
        return None
    tenant, task = asks.tenant, storable(asks.task)
    found = _row(connection, tenant, task)
    if found is None and (asks.budget is not None or asks.cost is not None):
        _make(connection, tenant, task, now, asks.budget, "executor")
        found = _row(connection, tenant, task)
    if found is None:
        return None
    stored = found["budget"]
    if asks.budget is not None and stored is None:
        _set_budget(connection, tenant, task, asks.budget, "executor")
        return replace(_account(found), budget=asks.budget)
    if asks.budget is not None and found["budget_of"] == "executor" and stored != asks.budget.as_json():
        raise _differs(task, stored, asks.budget)
    return _account(found)


def declare(connection: sa.Connection, tenant: str, task: str, budget: Budget | None, now: int) -> Account:
    """Give a task its budget, before its first call; the account as it is.

    Raises:
        UsageError: it has another one already.
    """
    name = storable(task)
    if budget is not None:
        _make(connection, tenant, name, now, budget, "task")
    found = _row(connection, tenant, name)
    if found is None:
        return Account()
    if budget is not None and found["budget"] is None:
        _set_budget(connection, tenant, name, budget, "task")
        return replace(_account(found), budget=budget)
    if budget is not None and found["budget"] != budget.as_json():
        raise _differs(name, found["budget"], budget)
    return _account(found)


def read(connection: sa.Connection, tenant: str, task: str) -> Account:
    """The account of a task as it stands; an empty one where nothing was counted."""
    found = connection.execute(sa.select(tasks).where(_of(tenant, storable(task)))).mappings().first()
    return Account() if found is None else _account(dict(found))


def write(connection: sa.Connection, asks: Asks, account: Account, now: int) -> None:
    """Write the account that was read with `locked`."""
    _write(connection, asks.tenant, storable(asks.task), account, now)


def unmake(connection: sa.Connection, asks: Asks, now: int) -> None:
    """Take out again what `locked` has made for a call of this moment that was refused, if nothing was counted."""
    made = (tasks.c.created_at == now) & (tasks.c.updated_at == now) & tasks.c.budget_of.is_distinct_from("task")
    unused = _of(asks.tenant, storable(asks.task)) & made & (tasks.c.calls == 0) & (tasks.c.seq == 0)
    connection.execute(sa.delete(tasks).where(unused))


def reserve(connection: sa.Connection, row: Row, account: Account) -> None:
    """Note in the task's book what the begin of `row` has reserved: `account` is as it is after it."""
    if row.cost_unit is not None:
        _note(connection, row, account, "reserved", row.cost_unit, row.cost_amount)


def book(connection: sa.Connection, row: Row, done: Booking) -> None:
    """Settle what was reserved for the effect in its task's account. Never refused: it is the truth.

    What exceeds the cap by that is an incident.
    """
    found = _row(connection, row.tenant, storable(row.task))
    if found is None:
        return
    account, over = booked(_account(found), done)
    for event, amount in (("spent", done.spent), ("released", max(0, done.freed - done.spent))):
        if amount:
            _note(connection, row, account, event, done.unit, amount)
    _write(connection, row.tenant, storable(row.task), account, row.now)
    if over is not None:
        notices.enter(connection, row, OVERRUN, _told(row, over), row.now)


def entries(connection: sa.Connection, tenant: str, task: str) -> list[dict[str, Any]]:
    """The book of a task's money, oldest first: what happened, and what was reserved and spent then."""
    mine = (task_entries.c.tenant == tenant) & (task_entries.c.task == storable(task))
    asked = sa.select(task_entries).where(mine).order_by(task_entries.c.seq)
    return [dict(one) for one in connection.execute(asked).mappings()]


# ---------------------------------------------------------------- details


def _told(row: Row, over: Over) -> dict[str, Any]:
    told = {"task": row.task, "cap": over.cap, "limit": over.limit, "used": over.used, "unit": over.unit}
    return told | {"wanted": over.wanted, "actor": row.holder or ""}


def _of(tenant: str, task: str) -> Any:
    return (tasks.c.tenant == tenant) & (tasks.c.task == task)


_ROW: Final = sa.select(tasks).where(NAMED)
_ROW_LOCKED: Final = _ROW.with_for_update()


def _row(connection: sa.Connection, tenant: str, task: str) -> Mapping[str, Any] | None:
    asked = _ROW if connection.dialect.name == "sqlite" else _ROW_LOCKED
    found = connection.execute(asked, {"of_tenant": tenant, "of_task": task}).mappings().first()
    return None if found is None else dict(found)


def _make(connection: sa.Connection, tenant: str, task: str, now: int, budget: Budget | None, source: Source) -> None:
    """Make the task's row, unless another was first; then this waits for the other's COMMIT."""
    insert = inserting(connection, tasks)
    values: dict[str, Any] = {"tenant": tenant, "task": task, "created_at": now, "updated_at": now, "seq": 0}
    values |= {"budget": sa.null() if budget is None else budget.as_json()}
    values |= {"budget_of": None if budget is None else source, **_columns(Account())}
    connection.execute(insert.values(values).on_conflict_do_nothing())


def _set_budget(connection: sa.Connection, tenant: str, task: str, budget: Budget, source: Source) -> None:
    values = {"budget": budget.as_json(), "budget_of": source}
    connection.execute(sa.update(tasks).where(_of(tenant, task)).values(values))


def _account(found: Mapping[str, Any]) -> Account:
    return Account(
        budget=None if found["budget"] is None else Budget.of_json(found["budget"]),
        turn=found["turn"],
        calls=found["calls"],
        turn_calls=found["turn_calls"],
        tool_calls=found["tool_calls"],
        reserved=found["reserved"],
        spent=found["spent"],
        told=tuple(found["told"]),
    )


def _columns(account: Account) -> dict[str, Any]:
    return {
        "turn": account.turn,
        "calls": account.calls,
        "turn_calls": account.turn_calls,
        "tool_calls": dict(account.tool_calls),
        "reserved": dict(account.reserved),
        "spent": dict(account.spent),
        "told": list(account.told),
    }


def _write(connection: sa.Connection, tenant: str, task: str, account: Account, now: int) -> None:
    connection.execute(sa.update(tasks).where(_of(tenant, task)).values(**_columns(account), updated_at=now))


def _note(connection: sa.Connection, row: Row, account: Account, event: str, unit: str, amount: int) -> None:
    task = storable(row.task)
    raised = sa.update(tasks).where(_of(row.tenant, task)).values(seq=tasks.c.seq + 1).returning(tasks.c.seq)
    values = {"tenant": row.tenant, "task": task, "key": row.key, "event": event, "unit": unit, "amount": amount}
    values |= {"reserved": account.reserved.get(unit, 0), "spent": account.spent.get(unit, 0), "at": row.now}
    values["seq"] = connection.execute(raised).scalar_one()
    connection.execute(sa.insert(task_entries).values(values))


def _differs(task: str, stored: Mapping[str, Any] | None, given: Budget) -> UsageError:
    return UsageError(
        f"the task {task!r} has the budget {Budget.of_json(stored or {})!r} already, and here it is given {given!r}: "
        "give one task the same budget on every host, or take another name for another task"
    )
