"""How a decision is written: the row, guarded by the version that it was decided on, and the entry that explains it.

Owns the UPDATE of `effects` and the INSERT into `entries`. It decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from counterfoil.changes import Change
from counterfoil.effect import Row
from counterfoil.guard import Admitted, budget
from counterfoil.guard.budget import Booking
from counterfoil.ledger import accounts, concealed, notices
from counterfoil.ledger.rows import to_columns
from counterfoil.ledger.statements import ENTRY, GUARDED_UPDATE, MOVING, UNTOUCHED_UPDATE
from counterfoil.ledger.transaction import Transient
from counterfoil.ledger.whole import settle
from counterfoil.text import storable
from counterfoil.transition import Decision


@dataclass(slots=True)
class Writing:
    """What is to be written of one change: `content` in the row, until that is done, and the entry."""

    change: Change | None
    before: Row
    after: Row
    decision: Decision
    content: dict[str, Any] = field(default_factory=dict)
    booking: Booking | None = None
    shared: tuple[bytes, ...] = ()
    admitted: Admitted | None = None
    born: bool = False
    explained: bool = False

    @classmethod
    def of(cls, change: Change | None, row: Row, decision: Decision, shared: tuple[bytes, ...] = ()) -> Writing:
        """What a decision on a row comes to."""
        content = dict(decision.columns)
        booking = budget.booking(row, content)
        content |= {} if booking is None else booking.columns(row)
        if decision.event is not None:
            content |= {"version": row.version + 1, "updated_at": row.now}
        return cls(change, row, row.changed(content), decision, content, booking, shared)


def update(connection: sa.Connection, writings: Sequence[Writing]) -> None:
    """Write rows that this transaction holds.

    Raises:
        Transient: one was no longer the version that was decided on.
    """
    if _update(connection, writings, GUARDED_UPDATE) != len(writings):
        raise Transient


def update_untouched(connection: sa.Connection, writings: Sequence[Writing]) -> int:
    """Write rows that were read in earlier transactions; how many were still the same."""
    return _update(connection, writings, UNTOUCHED_UPDATE)


def update_whole(connection: sa.Connection, one: Writing) -> int:
    """Write one such row together with its entry, where the database takes that as one statement."""
    columns, told = _columns(connection, one), entry(connection, one.after, one.decision)
    one.content, one.explained = {}, settle(connection, columns, _untouched(one.before), told)
    return int(one.explained)


def _update(connection: sa.Connection, writings: Sequence[Writing], statement: sa.Update) -> int:
    """Those with the same columns go together, each group in the order of the keys."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for one in writings:
        values = _columns(connection, one)
        values |= _untouched(one.before) if statement is UNTOUCHED_UPDATE else _guarded(one.before)
        groups.setdefault(tuple(sorted(one.content)), []).append(values)
        one.content = {}
    done = 0
    for group in groups.values():
        done += connection.execute(statement, group if len(group) > 1 else group[0]).rowcount
    return done


def _columns(connection: sa.Connection, one: Writing) -> dict[str, Any]:
    return concealed.conceal(connection, one.before, to_columns(one.content))


def _guarded(before: Row) -> dict[str, Any]:
    return {"of_key": before.key, "of_version": before.version}


def _untouched(before: Row) -> dict[str, Any]:
    return _guarded(before) | {f"of_{name}": getattr(before, name) for name in MOVING}


def explain(connection: sa.Connection, writings: Sequence[Writing]) -> None:
    """Write the entries of changes that have none yet."""
    silent = [one for one in writings if one.decision.event is not None and not one.explained]
    entries = [entry(connection, one.after, one.decision) for one in silent]
    if entries:
        connection.execute(ENTRY, entries if len(entries) > 1 else entries[0])


def write(connection: sa.Connection, row: Row, decision: Decision) -> Row:
    """Write what was decided on one row that this transaction holds, with all that goes with it; the row after it.

    Raises:
        Transient: it was no longer the version that was decided on.
    """
    one = Writing.of(None, row, decision)
    update(connection, [one])
    if one.booking is not None:
        accounts.book(connection, one.after, one.booking)
    explain(connection, [one])
    for kind, detail in decision.incidents:
        notices.enter(connection, one.after, kind, dict(detail), one.after.now)
    return one.after


def entry(connection: sa.Connection, after: Row, decision: Decision) -> dict[str, Any]:
    """The entry of a decision; `after` is the row as it has made it."""
    return {
        "key": after.key,
        "seq": after.version,
        "attempt": decision.attempt,
        "event": decision.event,
        "actor": storable(decision.actor),
        "fence": after.attempts,
        "detail": concealed.conceal_entry(connection, after, {"verdict": str(after.verdict), **decision.detail}),
        "at": after.now,
    }
