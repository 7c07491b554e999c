"""Everything that only reads: effects, their history, doubts, incidents. For people who audit the ledger.

Never writes and never creates. Instants leave as text in UTC with offset.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import sqlalchemy as sa

from counterfoil.effect import MICROSECONDS, Entry, Incident, Row, Verdict
from counterfoil.errors import LedgerUnavailable, UsageError
from counterfoil.ledger import accounts
from counterfoil.ledger.concealed import cipher_of, reveal_entry
from counterfoil.ledger.connect import READS
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.notices import to_incident
from counterfoil.ledger.rows import COLUMNS, to_row
from counterfoil.ledger.schema import effects, entries, incidents, sightings, tools
from counterfoil.ledger.standing import EVERYBODY
from counterfoil.ledger.stats import CodeStat, Group, Stat, coded, grouped
from counterfoil.text import storable

T = TypeVar("T")


def instant_text(instant: int | None) -> str | None:
    """An instant as ISO 8601 in UTC with offset.

    Example:
        >>> instant_text(0)
        '1970-01-01T00:00:00.000000+00:00'
    """
    if instant is None:
        return None
    seconds, rest = divmod(instant, MICROSECONDS)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest).isoformat(timespec="microseconds")


def described(row: Row) -> dict[str, Any]:
    """An effect as JSON data, for people: instants as text, no keys of bytes."""
    return {
        "effect_id": row.id,
        "tenant": row.tenant,
        "tool": row.tool,
        "task": row.task,
        "verdict": str(row.verdict),
        "proof": None if row.proof is None else str(row.proof),
        "code": row.code,
        "reason": row.reason,
        "attempts": row.attempts,
        "open_attempts": row.open_attempts.bit_count(),
        "version": row.version,
        "count": row.count,
        "complete": row.complete,
        "references": list(row.references),
        "undone_by": row.undone_by,
        "revoke_by": row.revoke_by,
        "undo_kind": row.undo_kind,
        "arguments": json.loads(row.echo),
        "value": None if row.value is None else json.loads(row.value),
        "value_note": row.value_note,
        "provider_keys": list(row.provider_keys),
        "looks": row.looks,
        "live": row.live,
        "created_at": instant_text(row.created_at),
        "begun_at": instant_text(row.begun_at),
        "updated_at": instant_text(row.updated_at),
        "pruned_at": instant_text(row.pruned_at),
        "lease_until": instant_text(row.lease_until),
        "sends_until": instant_text(row.sends_until),
        "absent_from": instant_text(row.absent_from),
        "look_at": instant_text(row.look_at),
        "unknown_since": instant_text(row.unknown_since) if row.verdict is Verdict.EFFECT_UNKNOWN else None,
        "age_s": round((row.now - row.unknown_since) / MICROSECONDS, 3),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolState:
    """What the guards of one tool have to say. `tenant` "*" is everybody; `opened_at` None: its breaker is closed."""

    tool: str
    tenant: str
    failures: int
    opened_at: int | None
    probing: bool
    paused_at: int | None
    paused_by: str | None
    paused_why: str | None


class Audit:
    """Reading the ledger. `tenant` None sees all tenants.

    Raises (each method):
        LedgerUnavailable: the database does not answer.
    """

    def __init__(self, ledger: Ledger, *, tenant: str | None = None) -> None:
        self._ledger = ledger
        self._tenant = tenant

    def effects(
        self,
        *,
        verdict: Verdict | str | None = None,
        tool: str | None = None,
        task: str | None = None,
        tenant: str | None = None,
        since: datetime | None = None,
        where: Mapping[str, str] | None = None,
        limit: int = 100,
    ) -> list[Row]:
        """Effects, newest first. `since` is an aware instant; `where` compares arguments, as text, by name.

        Raises:
            UsageError: a naive `since`, or a verdict that does not exist.
        """
        condition = self._mine()
        if verdict is not None:
            condition &= effects.c.verdict == str(_verdict(verdict))
        for column, wanted in ((effects.c.tool, tool), (effects.c.task, task), (effects.c.tenant, tenant)):
            if wanted is not None:
                condition &= column == wanted
        if since is not None:
            if since.tzinfo is None:
                raise UsageError("since needs a UTC offset, for example 2026-03-04T09:00:00+00:00")
            condition &= effects.c.created_at >= round(since.timestamp() * MICROSECONDS)
        order = (effects.c.created_at.desc(), effects.c.id)
        if not where:
            return self._rows(condition, order, limit)
        rows = self._rows(condition, order, None)
        return [row for row in rows if _matches(row, where)][:limit]

    def effect(self, name: str) -> Row:
        """The effect of a public id, or of the beginning of one that is enough to tell it.

        Raises:
            UsageError: there is none, or more than one.
        """
        wanted = name.lower() if name.lower().startswith("cf-") else f"cf-{name.lower()}"
        escaped = wanted.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        condition = self._mine() & effects.c.id.like(f"{escaped}%", escape="\\")
        rows = self._rows(condition, (effects.c.id,), 2)
        exact = [row for row in rows if row.id == wanted]
        if len(rows) > 1 and not exact:
            raise UsageError("more than one effect begins like this: give more of its id")
        if not rows:
            raise UsageError("no effect has this id")
        return (exact or rows)[0]

    def history(self, effect_id: str) -> list[Entry]:
        """The entries of an effect, oldest first.

        Raises:
            UsageError: no effect has this id.
        """
        row = self.effect(effect_id)
        asked = sa.select(entries).where(entries.c.key == row.key).order_by(entries.c.seq)

        def read(connection: sa.Connection) -> list[Entry]:
            keys = cipher_of(connection)
            found = connection.execute(asked).all()
            told = [reveal_entry(keys, row.data_key, row.key, one.seq, one.detail) for one in found]
            return [
                Entry(one.seq, one.attempt, one.event, one.actor, detail, one.at)
                for one, detail in zip(found, told, strict=True)
            ]

        return self._read(read)

    def sightings(self, effect_id: str) -> list[dict[str, Any]]:
        """The calls that were answered from the ledger, oldest first."""
        key = self.effect(effect_id).key
        asked = sa.select(sightings).where(sightings.c.key == key).order_by(sightings.c.number)
        return [
            {"call_id": one.call_id, "task": one.task, "turn": one.turn, "code": one.code, "at": instant_text(one.at)}
            for one in self._all(asked)
        ]

    def doubts(self, *, limit: int = 1000) -> list[Row]:
        """Unknown effects, oldest first."""
        condition = self._mine() & (effects.c.verdict == str(Verdict.EFFECT_UNKNOWN))
        return self._rows(condition, (effects.c.unknown_since, effects.c.id), limit)

    def incidents(self, *, closed: bool = False, task: str | None = None, limit: int = 1000) -> list[Incident]:
        """Open incidents (with `closed=True`, all; of one task, if it is named), newest first."""
        condition: Any = sa.true() if closed else incidents.c.closed_at.is_(None)
        if self._tenant is not None:
            condition &= incidents.c.tenant == self._tenant
        if task is not None:
            condition &= incidents.c.task == storable(task)
        asked = sa.select(incidents).where(condition).order_by(incidents.c.number.desc()).limit(limit)
        return self._read(
            lambda connection: [to_incident(one, cipher_of(connection)) for one in connection.execute(asked)]
        )

    def guards(self) -> list[ToolState]:
        """The tools that a breaker or a pause has something to say about, by name."""
        said = tools.c.paused_at.is_not(None) | (tools.c.failures > 0) | tools.c.opened_at.is_not(None)
        if self._tenant is not None:
            said &= tools.c.tenant.in_((self._tenant, EVERYBODY))
        asked = sa.select(tools).where(said).order_by(tools.c.tool, tools.c.tenant)
        return [
            ToolState(
                tool=one.tool,
                tenant=one.tenant,
                failures=one.failures,
                opened_at=one.opened_at,
                probing=one.probe_claim is not None,
                paused_at=one.paused_at,
                paused_by=one.paused_by,
                paused_why=one.paused_why,
            )
            for one in self._all(asked)
        ]

    def spending(self, task: str, tenant: str = "") -> list[dict[str, Any]]:
        """What was reserved, released and spent of a task's budget, oldest first, with the sums after each."""
        owner = tenant if self._tenant is None else self._tenant
        return self._read(lambda connection: accounts.entries(connection, owner, task))

    def stats(self, *, by: Group = "tool") -> list[Stat]:
        """Sums over the whole ledger by `day` (UTC, oldest first) or `tool`.

        Raises:
            UsageError: another `by`.
        """
        if by not in ("day", "tool"):
            raise UsageError('stats(by=...) takes "day" or "tool"; code_stats() counts codes')
        now = self._ledger.now()
        return self._read(lambda connection: grouped(connection, by, self._tenant, now))

    def code_stats(self) -> list[CodeStat]:
        """How often each code was told of each tool."""
        return self._read(lambda connection: coded(connection, self._tenant))

    def _mine(self) -> Any:
        return sa.true() if self._tenant is None else effects.c.tenant == self._tenant

    def _rows(self, condition: Any, order: tuple[Any, ...], limit: int | None) -> list[Row]:
        now = self._ledger.now()
        asked = sa.select(*COLUMNS).where(condition).order_by(*order).limit(limit)
        return self._read(
            lambda connection: [to_row(one, now, cipher_of(connection)) for one in connection.execute(asked).mappings()]
        )

    def _all(self, asked: Any) -> list[Any]:
        return self._read(lambda connection: list(connection.execute(asked)))

    def _read(self, question: Callable[[sa.Connection], T]) -> T:
        engine = self._ledger.engine.execution_options(isolation_level="AUTOCOMMIT", **{READS: True})
        try:
            with engine.connect() as connection:
                return question(connection)
        except sa.exc.SQLAlchemyError:
            raise LedgerUnavailable("the ledger's database does not answer", certain=True) from None


def _verdict(name: Verdict | str) -> Verdict:
    try:
        return Verdict(name)
    except ValueError:
        raise UsageError(f"a verdict is one of {', '.join(Verdict)}") from None


def _matches(row: Row, where: Mapping[str, str]) -> bool:
    arguments = json.loads(row.echo)
    return all(name in arguments and _text(arguments[name]) == wanted for name, wanted in where.items())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
