"""The budget of a task: how many calls and how much money, and what a refusal, a success or a doubt does to it.

Owns the arithmetic. Money is reserved when an attempt begins, becomes spent when the effect is applied, is released
when it is proven to have none, and stays reserved while nothing is known. What turns out later is booked unasked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from counterfoil.effect import Row, Verdict
from counterfoil.errors import UsageError

AMOUNT_MAX = 10**15
UNIT_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one task may use up. None: no limit. A call is an attempt: one that is tried again within a call counts
    again; what is answered from the ledger does not count.

    Args:
        calls_per_turn: attempts in one turn.
        calls_per_task: attempts in all.
        calls_per_tool: attempts of each tool in the task: one number for all, or a number for each name.
        spend: money by unit, in minor units: {"eur": 5000} is 50 euros. Where it names any, a unit that it does not
            name may not be spent at all.

    Raises:
        UsageError: a number out of range, or no limit at all; says how to mend it.

    Example:
        >>> Budget(calls_per_turn=20, spend={"eur": 5000}).spend
        {'eur': 5000}
    """

    calls_per_turn: int | None = None
    calls_per_task: int | None = None
    calls_per_tool: int | Mapping[str, int] | None = None
    spend: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        per_tool = self.calls_per_tool
        by_name = dict(per_tool) if isinstance(per_tool, Mapping) else {"": per_tool}
        counts = {"calls_per_turn": self.calls_per_turn, "calls_per_task": self.calls_per_task}
        counts |= {f"calls_per_tool{f'[{name!r}]' if name else ''}": one for name, one in by_name.items()}
        for name, value in counts.items():
            if value is not None and not _is_whole(value, 1):
                raise UsageError(f"Budget({name}={value!r}): give a whole number, 1 or more, or leave it out")
        if not isinstance(self.spend, Mapping):
            raise UsageError('Budget(spend=...) takes minor units by unit, for example {"eur": 5000} for 50 euros')
        for unit, amount in self.spend.items():
            check_amount(f"Budget(spend={{{unit!r}: {amount!r}}})", unit, amount)
        if not self.as_json():
            raise UsageError("Budget() without a limit limits nothing: give calls_per_task= or spend=, or no budget")

    def as_json(self) -> dict[str, Any]:
        """The budget as JSON data, the same for equal budgets."""
        per_tool = self.calls_per_tool
        content: dict[str, Any] = {"calls_per_turn": self.calls_per_turn, "calls_per_task": self.calls_per_task}
        content["calls_per_tool"] = dict(sorted(per_tool.items())) if isinstance(per_tool, Mapping) else per_tool
        content["spend"] = dict(sorted(self.spend.items()))
        return {name: value for name, value in content.items() if value not in (None, {})}

    @classmethod
    def of_json(cls, content: Mapping[str, Any]) -> Budget:
        """The budget that `as_json` wrote."""
        return cls(**content)

    def of_tool(self, tool: str) -> int | None:
        """How many attempts this tool has."""
        per_tool = self.calls_per_tool
        return per_tool.get(tool) if isinstance(per_tool, Mapping) else per_tool

    def of_unit(self, unit: str) -> int | None:
        """How much of this unit may be spent; None: no limit."""
        return self.spend.get(unit, 0) if self.spend else None


def check_amount(where: str, unit: object, amount: object) -> None:
    """Refuse what is no sum of money.

    Raises:
        UsageError: the unit is no short word, the amount no whole number from 0 on.
    """
    if not isinstance(unit, str) or not unit.strip() or len(unit) > UNIT_MAX:
        raise UsageError(f'{where}: the unit is a short word, for example "eur"')
    if not _is_whole(amount, 0):
        raise UsageError(f"{where}: the amount is a whole number of minor units (cents), 0 or more")


def _is_whole(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= AMOUNT_MAX


@dataclass(frozen=True, slots=True)
class Account:
    """What a task has used up. `turn` is its latest; `told`: the caps whose hit a person has been told of."""

    budget: Budget | None = None
    turn: int | None = None
    calls: int = 0
    turn_calls: int = 0
    tool_calls: Mapping[str, int] = field(default_factory=dict)
    reserved: Mapping[str, int] = field(default_factory=dict)
    spent: Mapping[str, int] = field(default_factory=dict)
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Over:
    """A cap that is hit: `used` of `limit` are used up, and `wanted` more were asked for."""

    cap: str
    limit: int
    used: int
    wanted: int = 1
    unit: str = ""


def over(account: Account, tool: str, turn: int | None, cost: tuple[str, int] | None) -> Over | None:
    """The cap that one more attempt would exceed. `cost` None: nothing is to be reserved.

    Example:
        >>> over(Account(Budget(calls_per_task=1), calls=1), "charge", None, None).cap
        'calls_per_task'
    """
    budget = account.budget
    if budget is None:
        return None
    in_turn = 0 if _is_new(account, turn) else account.turn_calls
    seen = (
        ("calls_per_task", budget.calls_per_task, account.calls),
        ("calls_per_tool", budget.of_tool(tool), account.tool_calls.get(tool, 0)),
        ("calls_per_turn", budget.calls_per_turn, in_turn),
    )
    if cost is not None:
        unit, amount = cost
        limit, used = budget.of_unit(unit), account.reserved.get(unit, 0) + account.spent.get(unit, 0)
        if limit is not None and used + amount > limit:
            return Over(f"spend.{unit}", limit, used, amount, unit)
    return next((Over(cap, limit, used) for cap, limit, used in seen if limit is not None and used >= limit), None)


def _is_new(account: Account, turn: int | None) -> bool:
    """A turn later than any before. What comes late from an earlier one counts in the present one."""
    return turn is not None and (account.turn is None or turn > account.turn)


def admitted(account: Account, tool: str, turn: int | None, cost: tuple[str, int] | None) -> Account:
    """The account once the attempt has begun."""
    fresh = _is_new(account, turn)
    reserved = dict(account.reserved)
    if cost is not None:
        reserved[cost[0]] = reserved.get(cost[0], 0) + cost[1]
    return replace(
        account,
        turn=turn if fresh else account.turn,
        calls=account.calls + 1,
        turn_calls=1 if fresh else account.turn_calls + 1,
        tool_calls={**account.tool_calls, tool: account.tool_calls.get(tool, 0) + 1},
        reserved=reserved,
    )


@dataclass(frozen=True, slots=True)
class Booking:
    """What a change of an effect does to its task's account: so much is no longer reserved, so much more is spent."""

    unit: str
    freed: int
    spent: int

    def columns(self, row: Row) -> dict[str, int]:
        """The columns of the effect that go with it."""
        return {"cost_held": row.cost_held - self.freed, "cost_charged": row.cost_charged + self.spent}


def booking(row: Row, columns: Mapping[str, Any]) -> Booking | None:
    """What becomes of the money of an effect when `columns` change; None when nothing does.

    An effect that there is twice has been paid twice.
    """
    verdict = columns.get("verdict", row.verdict)
    if row.cost_unit is None or verdict is Verdict.EFFECT_UNKNOWN:
        return None
    owed = row.cost_amount * max(1, columns.get("count", row.count)) if verdict is Verdict.EFFECT_APPLIED else 0
    more = max(0, owed - row.cost_charged)
    return Booking(row.cost_unit, row.cost_held, more) if row.cost_held or more else None


def booked(account: Account, done: Booking) -> tuple[Account, Over | None]:
    """The account after it, and the cap that it exceeds, if it does: the truth is booked whatever the cap says."""
    reserved = {**account.reserved, done.unit: account.reserved.get(done.unit, 0) - done.freed}
    spent = {**account.spent, done.unit: account.spent.get(done.unit, 0) + done.spent}
    after = replace(account, reserved=reserved, spent=spent)
    limit = None if account.budget is None else account.budget.of_unit(done.unit)
    used = reserved[done.unit] + spent[done.unit]
    if limit is None or done.spent <= done.freed or used <= limit:
        return after, None
    return after, Over(f"spend.{done.unit}", limit, used, done.spent, done.unit)
