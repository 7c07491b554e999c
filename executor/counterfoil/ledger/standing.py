"""How a tool stands for a tenant: its breaker, and whether a person has paused it.

Owns the reading of these columns of `tools`, and the writing of the breaker's; and the one reading of all that a begin
asks the guards' tables. What it means is decided by `guard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.guard import loop
from counterfoil.guard.asking import Asks
from counterfoil.guard.breaker import CLOSED, Circuit
from counterfoil.guard.loop import Repeats
from counterfoil.ledger.accounts import NAMED
from counterfoil.ledger.dialect import upsert
from counterfoil.ledger.repeating import IN_TURN, TOOL, of_row
from counterfoil.ledger.schema import repeats, tasks, tools
from counterfoil.text import storable

# The tenant whose pause holds for everybody; no executor may have it.
EVERYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tool stands for a tenant: its breaker, and whether it is paused.

    Where the guards' other tables are read too (`standings`), it also says whether anything is counted for the call's
    task, and what had been counted for the call and for its tool.
    """

    circuit: Circuit = CLOSED
    paused: bool = False
    kept: bool = False
    repeats: tuple[Repeats, Repeats] = (loop.NONE, loop.NONE)


_STANDING = sa.select(
    tools.c.tool, tools.c.tenant, tools.c.paused_at, tools.c.failures, tools.c.opened_at, tools.c.probe_claim,
    tools.c.probe_until,
)  # fmt: skip
_FOR_TENANT = (tools.c.tool == sa.bindparam("of_tool")) & tools.c.tenant.in_((sa.bindparam("of_tenant"), EVERYBODY))
_OF_TOOL = _STANDING.where(_FOR_TENANT)
_OF_TOOL_LOCKED = _STANDING.where(
    (tools.c.tool == sa.bindparam("of_tool")) & (tools.c.tenant == sa.bindparam("of_tenant"))
).with_for_update()
_CIRCUIT: Final = ("paused_at", "failures", "opened_at", "probe_claim", "probe_until")
_COUNTS: Final = ("task", "turn", "similar", "wrong", "passing", "same", "answer", "blocked")


def standing(connection: sa.Connection, asks: Asks, *, lock: bool = False) -> Standing:
    """How the tool stands now. `lock`: its row, where there is one, is held until COMMIT; a pause is not asked for."""
    asked = _OF_TOOL_LOCKED if lock and connection.dialect.name != "sqlite" else _OF_TOOL
    found = connection.execute(asked, {"of_tool": asks.tool, "of_tenant": asks.tenant}).all()
    return _standing(found, asks)


def standings(connection: sa.Connection, asked: Sequence[Asks]) -> list[Standing]:
    """How the tools of several calls stand, in one reading for all."""
    if len(asked) == 1:
        return [standing_of(connection.execute(OF_CALL, asked_of(asked[0])).all(), asked[0])]
    wanted: dict[str, Any] = {"of_tools": sorted({one.tool for one in asked})}
    wanted |= {"of_tenants": sorted({one.tenant for one in asked})}
    wanted |= {"of_tasks": sorted({storable(one.task) for one in asked})}
    wanted |= {"of_similars": [TOOL, *{one.similar for one in asked if one.similar is not None}]}
    found = connection.execute(_OF_CALLS, wanted).all()
    return [standing_of(found, one) for one in asked]


def asked_of(asks: Asks) -> dict[str, Any]:
    """What `OF_CALL` is asked with."""
    asked = {"of_tool": asks.tool, "of_tenant": asks.tenant, "of_task": storable(asks.task), "of_turn": asks.turn or 0}
    return asked | {"of_similar": TOOL if asks.similar is None else asks.similar}


def standing_of(found: Sequence[Any], asks: Asks) -> Standing:
    """What the rows of one reading, for this call and perhaps for others, say of it."""
    task, counts = storable(asks.task), {}
    kept = False
    for one in found:
        if one.part == _TASK:
            kept |= (one.tenant, one.name) == (asks.tenant, task)
        elif one.part == _COUNTED and (one.tenant, one.task, one.turn) == (asks.tenant, task, asks.turn or 0):
            counts[one.name, bytes(one.similar)] = of_row(one)
    repeats = (loop.NONE, loop.NONE)
    if task and asks.similar is not None:
        repeats = (counts.get((asks.tool, asks.similar), loop.NONE), counts.get((asks.tool, TOOL), loop.NONE))
    mine = [one for one in found if one.part == _TOOL and one.name == asks.tool]
    return replace(_standing(mine, asks), kept=bool(task) and kept, repeats=repeats)


def _standing(found: Sequence[Any], asks: Asks) -> Standing:
    circuit, paused = CLOSED, False
    for one in found:
        if one.tenant not in (asks.tenant, EVERYBODY):
            continue
        paused |= one.paused_at is not None
        if one.tenant == asks.tenant:
            circuit = Circuit(one.failures, one.opened_at, one.probe_claim, one.probe_until)
    return Standing(circuit, paused)


# ---------------------------------------------------------------- three tables in one reading

_TASK, _TOOL, _COUNTED = "task", "tool", "counted"
_PARTS: Final = {  # which columns of which table a part has; of the others it has none
    _TASK: (tasks, {"name": tasks.c.task}),
    _TOOL: (tools, {"name": tools.c.tool, **{name: tools.c[name] for name in _CIRCUIT}}),
    _COUNTED: (repeats, {"name": repeats.c.tool, **{name: repeats.c[name] for name in _COUNTS}}),
}


def _part(part: str, place: sa.ColumnElement[bool]) -> sa.Select[Any]:
    table, known = _PARTS[part]
    columns = {**_PARTS[_TOOL][1], **_PARTS[_COUNTED][1]}
    return sa.select(
        sa.literal_column(f"'{part}'", sa.String).label("part"),
        table.c.tenant,
        *(known.get(name, sa.cast(sa.null(), column.type)).label(name) for name, column in columns.items()),
    ).where(place)


def _among(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    return column.in_(sa.bindparam(f"of_{column.name}s", expanding=True))


# Asked with `asked_of`, understood by `standing_of`.
OF_CALL: Final = sa.union_all(
    _part(_TASK, NAMED),
    _part(_TOOL, _FOR_TENANT),
    _part(_COUNTED, IN_TURN & repeats.c.similar.in_((sa.bindparam("of_similar"), TOOL))),
)
_OF_CALLS: Final = sa.union_all(
    _part(_TASK, _among(tasks.c.tenant) & _among(tasks.c.task)),
    _part(_TOOL, _among(tools.c.tool)),
    _part(_COUNTED, _among(repeats.c.tenant) & _among(repeats.c.task) & _among(repeats.c.similar)),
)


def set_circuit(connection: sa.Connection, tenant: str, tool: str, circuit: Circuit) -> None:
    """Write the breaker of a tool down."""
    content: dict[str, Any] = {"failures": circuit.failures, "opened_at": circuit.opened_at}
    content |= {"probe_claim": circuit.probe_claim, "probe_until": circuit.probe_until}
    upsert(connection, tools, {"tenant": tenant, "tool": tool}, content)
