"""How a tool stands for a tenant: its breaker, and whether a person has paused it.

Owns the reading of these columns of `tools`, and the writing of the breaker's. What they mean is decided by `guard`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.guard.asking import Asks
from counterfoil.guard.breaker import CLOSED, Circuit
from counterfoil.guard.loop import Repeats
from counterfoil.ledger.accounts import are_kept
from counterfoil.ledger.dialect import upsert
from counterfoil.ledger.repeating import counted_of
from counterfoil.ledger.schema import tools

# The tenant whose pause holds for everybody; no executor may have it.
EVERYBODY: Final = "*"


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tool stands for a tenant: its breaker, and whether it is paused.

    Read together with several others, it also says whether anything is counted for the call's task, and what had been
    counted for the call and for its tool.
    """

    circuit: Circuit = CLOSED
    paused: bool = False
    kept: bool = True
    repeats: tuple[Repeats, Repeats] | None = None


_STANDING = sa.select(
    tools.c.tool, tools.c.tenant, tools.c.paused_at, tools.c.failures, tools.c.opened_at, tools.c.probe_claim,
    tools.c.probe_until,
)  # fmt: skip
_OF_TOOL = _STANDING.where(
    (tools.c.tool == sa.bindparam("of_tool")) & tools.c.tenant.in_((sa.bindparam("of_tenant"), EVERYBODY))
)
_OF_TOOL_LOCKED = _STANDING.where(
    (tools.c.tool == sa.bindparam("of_tool")) & (tools.c.tenant == sa.bindparam("of_tenant"))
).with_for_update()
_OF_TOOLS = _STANDING.where(tools.c.tool.in_(sa.bindparam("of_tools", expanding=True)))


def standing(connection: sa.Connection, asks: Asks, *, lock: bool = False) -> Standing:
    """How the tool stands now. `lock`: its row, where there is one, is held until COMMIT; a pause is not asked for."""
    asked = _OF_TOOL_LOCKED if lock and connection.dialect.name != "sqlite" else _OF_TOOL
    found = connection.execute(asked, {"of_tool": asks.tool, "of_tenant": asks.tenant}).all()
    return _standing(found, asks)


def standings(connection: sa.Connection, asked: Sequence[Asks]) -> list[Standing]:
    """How the tools of several calls stand, in three readings for all."""
    kept, repeats = are_kept(connection, asked), counted_of(connection, asked)
    if len(asked) == 1:
        return [replace(standing(connection, asked[0]), kept=kept[0], repeats=repeats[0])]
    found = connection.execute(_OF_TOOLS, {"of_tools": sorted({one.tool for one in asked})}).all()
    there = {(one.tenant, one.tool): _standing([row for row in found if row.tool == one.tool], one) for one in asked}
    return [
        replace(there[one.tenant, one.tool], kept=kept[place], repeats=repeats[place])
        for place, one in enumerate(asked)
    ]


def _standing(found: Sequence[Any], asks: Asks) -> Standing:
    circuit, paused = CLOSED, False
    for one in found:
        if one.tenant not in (asks.tenant, EVERYBODY):
            continue
        paused |= one.paused_at is not None
        if one.tenant == asks.tenant:
            circuit = Circuit(one.failures, one.opened_at, one.probe_claim, one.probe_until)
    return Standing(circuit, paused)


def set_circuit(connection: sa.Connection, tenant: str, tool: str, circuit: Circuit) -> None:
    """Write the breaker of a tool down."""
    content: dict[str, Any] = {"failures": circuit.failures, "opened_at": circuit.opened_at}
    content |= {"probe_claim": circuit.probe_claim, "probe_until": circuit.probe_until}
    upsert(connection, tools, {"tenant": tenant, "tool": tool}, content)
