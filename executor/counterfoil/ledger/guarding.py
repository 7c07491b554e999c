"""The guards before the ledger: every statement that asks them, counts for them, or pauses a tool.

`admit` runs in the transaction of a begin, after the effect's row was written; a refusal rolls all of that back
(`GuardRefuses`), so that it occupies no key and uses up nothing. Rows are locked in one order: effect, task, tool,
repeats. What is decided is decided by `guard`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol, TypeVar

import sqlalchemy as sa

from counterfoil.effect import Row
from counterfoil.guard import breaker, budget, loop
from counterfoil.guard.asking import Admitted, Asks, Blocked
from counterfoil.guard.breaker import Health, Sign
from counterfoil.guard.budget import Account, Budget
from counterfoil.guard.loop import End, Repeats
from counterfoil.ledger import accounts, notices, twins
from counterfoil.ledger.dialect import inserting, upsert
from counterfoil.ledger.repeating import TOOL, counted, insisted, set_counted, tally
from counterfoil.ledger.schema import tools
from counterfoil.ledger.standing import Standing, set_circuit, standing, standings
from counterfoil.text import storable

T = TypeVar("T")

OPENED: Final = "breaker_opened"
# Refusals that are no incident, but counted, for a model may go on after them.
INSISTED: Final = ("paused", "breaker_open")


class GuardRefuses(Exception):
    """A guard refuses the attempt: what was written for it must be rolled back."""

    def __init__(self, blocked: Blocked) -> None:
        super().__init__(blocked.code)
        self.blocked = blocked


class Read(Protocol):
    """Asks a question outside any transaction."""

    def __call__(self, question: Callable[[sa.Connection], T], /) -> T: ...


class Write(Protocol):
    """Runs some work in one transaction of the ledger's own."""

    def __call__(self, work: Callable[[sa.Connection], T], /) -> T: ...


def admit(
    connection: sa.Connection, asks: Asks, claim: str, now: int, *, begun: Row | None, there: Standing | None = None
) -> Admitted:
    """Let one attempt through, and count it. `begun`: the effect's row with what the begin has written; `there`: what
    is known of its tool in this transaction. A refusal has written nothing but a task's row with its budget.

    Raises:
        GuardRefuses: a guard is against it. With `asks.enforce` False only a pause is; the others are noted.
        UsageError: the task has another budget.
    """
    # Who has not been told that there is no account of the task looks for it under its lock.
    counts = there is None or there.kept or asks.budget is not None or asks.cost is not None
    there = there or standings(connection, [asks])[0]
    if there.paused:
        raise GuardRefuses(Blocked("paused"))
    # From unknown a resend takes the same money that is held already.
    cost = asks.cost if begun is None or begun.open_attempts.bit_count() == 1 else None
    account = accounts.locked(connection, asks, now) if counts else None
    circuit = there.circuit
    # Where guards only note, what an earlier call of the same transaction has noted counts too.
    mine, of_tool = (there if asks.enforce else standings(connection, [asks])[0]).repeats
    for blocked in (_by_budget(account, asks, cost), _by_loop(mine, of_tool, asks)):
        _heed(connection, asks, blocked, now)
    probes = False
    if asks.breaker is not None and circuit.opened_at is not None:
        circuit = standing(connection, asks, lock=True).circuit
        wait_us = breaker.wait_us(circuit, asks.breaker, now)
        _heed(connection, asks, Blocked("breaker_open", wait_us=wait_us) if wait_us else None, now)
        probes = circuit.opened_at is not None and not wait_us
    is_new = begun is not None and begun.open_attempts.bit_count() == 1
    if asks.twin is not None and begun is not None and is_new:
        _heed(connection, asks, twins.held(connection, begun, asks.twin, now), now)
        twins.note(connection, begun, asks.twin, now)
    if account is not None and not asks.enforce:
        account = accounts.locked(connection, asks, now)  # what was noted just now stands in it
    if account is not None:
        account = budget.admitted(account, asks.tool, asks.turn, cost)
        accounts.write(connection, asks, account, now)
        if begun is not None and cost is not None:
            accounts.reserve(connection, begun, account)
    if probes:
        circuit = breaker.probing(circuit, claim, now + asks.lease_us)
        set_circuit(connection, asks.tenant, asks.tool, circuit)
    return Admitted(mine, circuit)


def _by_budget(account: Account | None, asks: Asks, cost: tuple[str, int] | None) -> Blocked | None:
    hit = None if account is None else budget.over(account, asks.tool, asks.turn, cost)
    if hit is None:
        return None
    return Blocked("budget_exhausted", hit.cap, hit.limit, hit.used, hit.wanted, hit.unit)


def _by_loop(mine: Repeats, of_tool: Repeats, asks: Asks) -> Blocked | None:
    hit = None if asks.loop is None else loop.limit_hit(mine, of_tool, asks.loop)
    return None if hit is None else Blocked("repeated_call", *hit)


def _heed(connection: sa.Connection, asks: Asks, blocked: Blocked | None, now: int) -> None:
    if blocked is None:
        return
    if asks.enforce:
        raise GuardRefuses(blocked)
    told(connection, asks, blocked, now)


def told(connection: sa.Connection, asks: Asks, blocked: Blocked, now: int) -> Blocked:
    """Count a refusal, and raise an incident when its cap is hit for the first time; whether the model must stop."""
    match blocked.code:
        case "budget_exhausted":
            account = accounts.locked(connection, asks, now)
            if account is not None and blocked.cap not in account.told:
                accounts.write(connection, asks, replace(account, told=(*account.told, blocked.cap)), now)
                _incident(connection, asks, blocked, now)
        case "possible_duplicate":  # where it is refused the user is asked, and nobody else need be
            _incident(connection, asks, blocked, now)
        case "repeated_call" if asks.similar is not None:
            similar = TOOL if blocked.cap == "tool_failures" else asks.similar
            before = counted(connection, asks, similar, lock=True)
            after = replace(before, blocked=before.blocked + 1)
            set_counted(connection, asks, similar, after, now)
            if not before.blocked:
                _incident(connection, asks, blocked, now)
            return replace(blocked, stop=after.blocked >= loop.STOPS_AT)
        case code if code in INSISTED and (asks.enforce or code == "paused"):
            return insisted(connection, asks, blocked, now)
    return blocked


def _incident(connection: sa.Connection, asks: Asks, blocked: Blocked, now: int) -> None:
    notices.enter_about(connection, asks.tenant, asks.tool, asks.task, blocked.code, blocked.detail(asks), now)


# ---------------------------------------------------------------- a tool's breaker, and its pause


def weigh(connection: sa.Connection, asks: Asks, health: Health, claim: str | None, now: int) -> None:
    """Count what the end of an attempt says of the service behind its tool; opening is an incident."""
    seen = standing(connection, asks).circuit
    if health.sign is not Sign.FAULT and breaker.after(seen, health, claim, now) == seen:
        return
    if seen == breaker.CLOSED:  # a row to lock
        insert = inserting(connection, tools)
        place = {"tenant": asks.tenant, "tool": asks.tool, "failures": 0}
        connection.execute(insert.values(place).on_conflict_do_nothing())
    before = standing(connection, asks, lock=True).circuit
    after = breaker.after(before, health, claim, now)
    if after == before:
        return
    set_circuit(connection, asks.tenant, asks.tool, after)
    if after.opened_at is not None and before.opened_at is None:
        detail = {"failures": after.failures, "open_s": health.breaker.open_s, "actor": asks.actor}
        notices.enter_about(connection, asks.tenant, asks.tool, asks.task, OPENED, detail, now)


def uncounted(connection: sa.Connection, asks: Asks) -> Admitted | None:
    """What the guards say where nothing is to be written for it: no budget, no breaker that is not closed; else None.

    Raises:
        GuardRefuses: the tool is paused.
    """
    there = standings(connection, [asks])[0]
    if there.paused:
        raise GuardRefuses(Blocked("paused"))
    if asks.budget is not None or there.kept or there.circuit.opened_at is not None:
        return None
    mine, of_tool = there.repeats
    return None if _by_loop(mine, of_tool, asks) is not None else Admitted(mine, there.circuit)


class Guards:
    """What is asked of the guards outside a begin. Each method raises as `Ledger.apply` does."""

    def __init__(self, write: Write, read: Read, time: Callable[[sa.Connection], int]) -> None:
        self._write = write
        self._read = read
        self._time = time

    def admit(self, asks: Asks, claim: str) -> Admitted | Blocked:
        """Let one attempt of a read-only tool through, which has no row, and count it."""
        try:
            free = self._read(lambda one: uncounted(one, asks))
            if free is not None:
                return free
            return self._write(lambda one: admit(one, asks, claim, self._time(one), begun=None))
        except GuardRefuses as refused:
            return self.told(asks, refused.blocked)

    def told(self, asks: Asks, blocked: Blocked) -> Blocked:
        """Write down a refusal, after what it refused was rolled back."""
        if blocked.code == "possible_duplicate" or (blocked.code in INSISTED and asks.similar is None):
            return blocked
        return self._write(lambda one: told(one, asks, blocked, self._time(one)))

    def weigh(self, asks: Asks, health: Health, claim: str) -> None:
        """Count the end of an attempt of a read-only tool."""
        self._write(lambda one: weigh(one, asks, health, claim, self._time(one)))

    def tally(self, asks: Asks, end: End, answer: str | None = None) -> Repeats:
        """Count the end of a call for the loop guard."""
        return self._write(lambda one: tally(one, asks, end, answer, self._time(one)))

    def polled(self, asks: Asks, answer: str) -> Repeats:
        """Count a question about an effect that is not known. `blocked` says how often it has been asked too often."""

        def work(connection: sa.Connection) -> Repeats:
            now = self._time(connection)
            assert asks.similar is not None
            before = counted(connection, asks, asks.similar, lock=True)
            hit = None if asks.loop is None else loop.polls_hit(before, answer, asks.loop)
            if hit is not None:
                told(connection, asks, Blocked("repeated_call", *hit), now)
                if asks.enforce:
                    return replace(before, blocked=before.blocked + 1)
            return replace(tally(connection, asks, End.POLLED, answer, now), blocked=0)

        return self._write(work)

    def refused_input(self, asks: Asks) -> Blocked | None:
        """Count a call whose arguments did not fit; the refusal, when it has been made too often already."""

        def work(connection: sa.Connection) -> Blocked | None:
            now = self._time(connection)
            assert asks.similar is not None
            mine, of_tool = standings(connection, [asks])[0].repeats
            blocked = _by_loop(mine, of_tool, asks)
            if blocked is None or not asks.enforce:
                tally(connection, asks, End.WRONG, None, now)
            if blocked is None:
                return None
            done = told(connection, asks, blocked, now)
            return done if asks.enforce else None

        return self._write(work)

    def account(self, tenant: str, task: str) -> Account:
        """What a task has used up."""
        return self._read(lambda one: accounts.read(one, tenant, task))

    def declare(self, tenant: str, task: str, given: Budget | None) -> Account:
        """Give a task its budget. Raises `UsageError` too: it has another one."""
        return self._write(lambda one: accounts.declare(one, tenant, task, given, self._time(one)))

    def pause(self, tool: str, tenant: str, *, by: str, why: str) -> None:
        """Let nothing begin with a tool; of one tenant, or of `EVERYBODY`."""
        self._write(lambda one: self._pause(one, tool, tenant, (self._time(one), storable(by), storable(why))))

    def resume(self, tool: str, tenant: str) -> bool:
        """Let attempts begin again; False when that tool of that tenant was not paused."""
        return self._write(lambda one: self._pause(one, tool, tenant, (None, None, None)))

    @staticmethod
    def _pause(
        connection: sa.Connection, tool: str, tenant: str, word: tuple[int | None, str | None, str | None]
    ) -> bool:
        content = dict(zip(("paused_at", "paused_by", "paused_why"), word, strict=True))
        place = (tools.c.tenant == tenant) & (tools.c.tool == tool)
        before = connection.execute(sa.select(tools.c.paused_at).where(place)).scalar()
        if before is not None or word[0] is not None:
            upsert(connection, tools, {"tenant": tenant, "tool": tool}, content, failures=0)
        return before is not None
