"""The statements on `repeats`: what the loop guard has counted in one turn of a task, and who goes on after a refusal.

Each runs inside a transaction of the ledger's own. What is counted is decided by `guard.loop`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from counterfoil.effect import MICROSECONDS
from counterfoil.guard import loop
from counterfoil.guard.asking import Asks, Blocked
from counterfoil.guard.loop import End, Repeats
from counterfoil.ledger.dialect import upsert
from counterfoil.ledger.schema import repeats
from counterfoil.text import storable

# The place of what is counted for a tool, whatever its arguments.
TOOL: Final = b""
# Who comes so much before the time that was named has waited, by a clock of his own.
SLACK_US: Final = MICROSECONDS


# What is counted for one tool in one turn of a task.
IN_TURN: Final = (
    (repeats.c.tenant == sa.bindparam("of_tenant"))
    & (repeats.c.task == sa.bindparam("of_task"))
    & (repeats.c.turn == sa.bindparam("of_turn"))
    & (repeats.c.tool == sa.bindparam("of_tool"))
)
_IN_TURN = sa.select(repeats).where(IN_TURN)
_OF_PLACE = _IN_TURN.where(repeats.c.similar == sa.bindparam("of_similar"))
_OF_PLACE_LOCKED = _OF_PLACE.with_for_update()


def tally(connection: sa.Connection, asks: Asks, end: End, answer: str | None, now: int) -> Repeats:
    """Count the end of a call; what is counted for its similarity then. Earlier turns of the task are forgotten."""
    if not asks.task or asks.similar is None:
        return loop.NONE
    after = loop.counted(counted(connection, asks, asks.similar, lock=True), end, answer)
    set_counted(connection, asks, asks.similar, after, now)
    if end in (End.WRONG, End.PASSING):
        set_counted(connection, asks, TOOL, loop.counted(counted(connection, asks, TOOL, lock=True), end), now)
    earlier = (repeats.c.tenant == asks.tenant) & (repeats.c.task == storable(asks.task))
    connection.execute(sa.delete(repeats).where(earlier & (repeats.c.turn < (asks.turn or 0))))
    return after


def insisted(connection: sa.Connection, asks: Asks, blocked: Blocked, now: int) -> Blocked:
    """Count a refusal that no limit of the loop guard made: a pause, an open breaker. Who goes on is told to stop.

    Counted apart, for a refusal is no failure of the call. Who waits as long as he was told is not going on.
    """
    if asks.similar is None or not asks.task:
        return blocked
    until = now + blocked.wait_us if blocked.wait_us else None
    mine, of_tool = (
        loop.refused(counted(connection, asks, place, lock=True), until, now + SLACK_US)
        for place in (_refused(blocked, asks.similar), _refused(blocked, TOOL))
    )
    set_counted(connection, asks, _refused(blocked, asks.similar), mine, now)
    set_counted(connection, asks, _refused(blocked, TOOL), of_tool, now)
    return replace(blocked, stop=loop.insists(mine, of_tool, asks.loop))


def _refused(blocked: Blocked, similar: bytes) -> bytes:
    return hashlib.sha256(b"refused\0" + blocked.code.encode() + b"\0" + similar).digest()


# ---------------------------------------------------------------- one place


def counted(connection: sa.Connection, asks: Asks, similar: bytes, *, lock: bool = False) -> Repeats:
    """What is counted in one place; with `lock`, nobody else counts there until COMMIT."""
    place = _repeat(asks, similar)
    asked = _OF_PLACE
    if lock and connection.dialect.name != "sqlite":
        nothing: dict[str, Any] = {"wrong": 0, "passing": 0, "same": 0, "blocked": 0, "at": 0}
        connection.execute(postgresql.insert(repeats).values(place | nothing).on_conflict_do_nothing())
        asked = _OF_PLACE_LOCKED
    found = connection.execute(asked, _bound(place)).first()
    return loop.NONE if found is None else of_row(found)


def of_row(found: sa.Row[Any]) -> Repeats:
    """What a row of `repeats` says."""
    return Repeats(found.wrong, found.passing, found.same, found.answer, found.blocked)


def set_counted(connection: sa.Connection, asks: Asks, similar: bytes, after: Repeats, now: int) -> None:
    """Write what is counted in one place."""
    content: dict[str, Any] = {"wrong": after.wrong, "passing": after.passing, "same": after.same}
    content |= {"answer": after.answer, "blocked": after.blocked, "at": now}
    upsert(connection, repeats, _repeat(asks, similar), content)


def _repeat(asks: Asks, similar: bytes) -> dict[str, Any]:
    turn = asks.turn or 0
    return {"tenant": asks.tenant, "task": storable(asks.task), "turn": turn, "tool": asks.tool, "similar": similar}


def _bound(place: Mapping[str, Any]) -> dict[str, Any]:
    return {f"of_{name}": value for name, value in place.items()}
