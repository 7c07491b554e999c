"""How often what happened: sums over the ledger, by day, tool or code. Only reads.

Owns the questions of `counterfoil stats`. What leaves no row (calls with invalid arguments, reads) is not in the ledger
and so not here: metrics count those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

import sqlalchemy as sa

from counterfoil.effect import MICROSECONDS, Verdict
from counterfoil.ledger.schema import effects, entries, incidents, sightings

DAY_US: Final = 86_400 * MICROSECONDS
LOOKED: Final = ("looked", "found", "absent", "found_before_revoke")
Group: TypeAlias = Literal["day", "tool"]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stat:
    """The sums of one group.

    Args:
        group: the day in UTC (`2026-03-04`) or the tool.
        effects: effects asked for, in this group.
        applied: those that are applied now.
        no_effect: those that had none.
        unknown: those that are unknown now.
        recovered: applied ones that took more than one attempt.
        attempts: runs of the tool's function.
        looks: postconditions asked.
        replayed: calls answered from the ledger.
        incidents: incidents raised.
        oldest_unknown_s: age in seconds of the oldest one that is unknown now; None where there is none.
    """

    group: str
    effects: int = 0
    applied: int = 0
    no_effect: int = 0
    unknown: int = 0
    recovered: int = 0
    attempts: int = 0
    looks: int = 0
    replayed: int = 0
    incidents: int = 0
    oldest_unknown_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeStat:
    """How often a code stands in the ledger as what was told: in entries, and for calls answered from it."""

    tool: str
    code: str
    entries: int = 0
    replayed: int = 0


def grouped(connection: sa.Connection, by: Group, tenant: str | None, now: int) -> list[Stat]:
    """The sums by day (oldest first) or tool (by name)."""
    sums: dict[Any, dict[str, Any]] = {}
    for asked in _questions(by, tenant):
        for group, *counted in connection.execute(asked):
            names = [column.name for column in list(asked.selected_columns)[1:]]
            sums.setdefault(group, {}).update(zip(names, counted, strict=True))
    return [_stat(group, sums[group], by, now) for group in sorted(sums)]


def coded(connection: sa.Connection, tenant: str | None) -> list[CodeStat]:
    """How often each code was told of each tool, by tool and code."""
    code = entries.c.detail["code"].as_string()
    of_entries = (
        sa.select(effects.c.tool, code, sa.func.count())
        .join_from(entries, effects, effects.c.key == entries.c.key)
        .where(_of(tenant, effects.c.tenant) & code.is_not(None))
        .group_by(effects.c.tool, code)
    )
    of_sightings = (
        sa.select(effects.c.tool, sightings.c.code, sa.func.count())
        .join_from(sightings, effects, effects.c.key == sightings.c.key)
        .where(_of(tenant, effects.c.tenant))
        .group_by(effects.c.tool, sightings.c.code)
    )
    told = {(tool, name): count for tool, name, count in connection.execute(of_entries)}
    seen = {(tool, name): count for tool, name, count in connection.execute(of_sightings)}
    return [
        CodeStat(tool=tool, code=name, entries=told.get((tool, name), 0), replayed=seen.get((tool, name), 0))
        for tool, name in sorted(told.keys() | seen.keys())
    ]


def _questions(by: Group, tenant: str | None) -> Iterable[sa.Select[Any]]:
    def asked(column: Any, at: Any, source: Any, owner: Any, sums: dict[str, Any]) -> sa.Select[Any]:
        group = at // DAY_US if by == "day" else column
        counted = [expression.label(name) for name, expression in sums.items()]
        return sa.select(group, *counted).select_from(source).where(_of(tenant, owner)).group_by(group)

    of_entries = entries.join(effects, effects.c.key == entries.c.key)
    of_sightings = sightings.join(effects, effects.c.key == sightings.c.key)
    tool, mine = effects.c.tool, effects.c.tenant
    yield asked(tool, effects.c.created_at, effects, mine, _effect_sums())
    yield asked(tool, entries.c.at, of_entries, mine, _entry_sums())
    yield asked(tool, sightings.c.at, of_sightings, mine, {"replayed": sa.func.count()})
    yield asked(incidents.c.tool, incidents.c.at, incidents, incidents.c.tenant, {"incidents": sa.func.count()})


def _effect_sums() -> dict[str, Any]:
    applied = effects.c.verdict == str(Verdict.EFFECT_APPLIED)
    unknown = effects.c.verdict == str(Verdict.EFFECT_UNKNOWN)
    return {
        "effects": sa.func.count(),
        "applied": _count(applied),
        "no_effect": _count(effects.c.verdict == str(Verdict.NO_EFFECT)),
        "unknown": _count(unknown),
        "recovered": _count(applied & (effects.c.attempts > 1)),
        "oldest": sa.func.min(sa.case((unknown, effects.c.unknown_since))),
    }


def _entry_sums() -> dict[str, Any]:
    return {"attempts": _count(entries.c.event == "begun"), "looks": _count(entries.c.event.in_(LOOKED))}


def _count(condition: Any) -> Any:
    return sa.func.count(sa.case((condition, 1)))


def _of(tenant: str | None, column: Any) -> Any:
    return sa.true() if tenant is None else column == tenant


def _stat(group: Any, sums: dict[str, Any], by: Group, now: int) -> Stat:
    oldest = sums.pop("oldest", None)
    age_s = None if oldest is None else round((now - oldest) / MICROSECONDS, 3)
    return Stat(group=_day(group).isoformat() if by == "day" else group, oldest_unknown_s=age_s, **sums)


def _day(number: int) -> date:
    return (_EPOCH + timedelta(days=int(number))).date()
