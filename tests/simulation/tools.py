"""The declared tools of the simulation: one for each variant of a tier, over one seeded provider.

They are declared once; what an episode changes is what `SET` leads to. Times are short, so that graces, retentions and
audits all fall into one episode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import sqlalchemy as sa
from simulation.scheduler import MICROSECONDS, Machine
from simulation.store import Store
from simulation.world import Answer, Landing, Manners, Request, World

from counterfoil import (
    Absent,
    Content,
    Effect,
    Forbidden,
    Found,
    KeyPolicy,
    Policy,
    Rejected,
    Revoked,
    Throttled,
    Tool,
    Unclear,
    tool,
)

TIMEOUT_S, GRACE_S, RETENTION_S, LOOK_S = 2.0, 3.0, 16.0, 1.5
REVIEW_S, AUDIT_S = 40.0, 60.0


@dataclass
class Setting:
    """Where the tools are at work now."""

    world: World
    store: Store
    here: Callable[[], Machine]


class _Set:
    """The present setting: one for the process, changed for each episode."""

    now: Setting | None = None

    @property
    def world(self) -> World:
        assert self.now is not None
        return self.now.world

    @property
    def here(self) -> Machine:
        assert self.now is not None
        return self.now.here()

    @property
    def store(self) -> Store:
        assert self.now is not None
        return self.now.store


SET = _Set()


@dataclass(frozen=True)
class Kind:
    """A tool of the simulation, and what is true of its provider."""

    name: str
    tool: Tool[Any, Any]
    manners: Manners
    alike: bool = False


def _policy(**more: Any) -> Policy:
    plain: dict[str, Any] = {"timeout_s": TIMEOUT_S, "patience_s": 2.5, "wait_s": 0.5, "wait_max_s": 2.0}
    plain |= {"review_after_s": REVIEW_S, "audit_s": AUDIT_S, "look_timeout_s": LOOK_S}
    return Policy(**plain | more)


def _paid(answer: Answer, effect: Effect) -> str:
    """What a client library makes of an answer."""
    match answer.status:
        case 201:
            effect.reference = answer.reference
            return str(answer.reference)
        case 0:
            raise TimeoutError
        case 429:
            raise Throttled(answer.retry_after_s)
        case 500:
            raise RuntimeError("status 500")
        case status:
            raise Rejected("declined", "the card was declined", status=status)


class Body:
    """The function of a tool and its look."""

    def __init__(self, manners: Manners, *, sends: str = "anywhere", alike: bool = False) -> None:
        self.manners = manners
        self._sends = sends
        self._alike = alike

    def pay(self, effect: Effect, order: str, amount: int, note: Annotated[str, Content] = "") -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        world, machine = SET.world, SET.here
        at_work = world.functions.setdefault(effect.id, [])
        at_work.append(machine)
        deadline = world.scheduler.now + round(effect.remaining_s * MICROSECONDS)
        checked_at = world.scheduler.now
        try:
            world.scheduler.point("function before")
            if world.shows("slow function"):
                world.scheduler.sleep(world.chance.between("function waits", 0.1, 5.0))
            if world.shows("refuses the connection"):
                raise ConnectionRefusedError
            request = Request(
                effect.id, effect.attempt, effect.provider_key, f"{order} {amount} {note}", self.manners, 0
            )
            patience_s = effect.remaining_s
            if world.shows("patient client"):
                patience_s += world.chance.between("client waits", 0.1, 4.0)
            if self._sends != "marked":
                answer = world.send(machine, request, marked=False, deadline=deadline, checked_at=checked_at,
                                    patience_s=patience_s)  # fmt: skip
            else:
                with effect.sending():
                    answer = world.send(machine, request, marked=True, deadline=deadline,
                                        checked_at=world.scheduler.now, patience_s=patience_s)  # fmt: skip
            world.scheduler.point("function after")
            return _paid(answer, effect)
        finally:
            at_work.remove(machine)

    def paid(self, effect: Effect) -> Found[str] | Absent | Unclear:
        """Look for the payment."""
        arguments = effect.arguments
        group = f"{arguments['order']} {arguments['amount']} {arguments.get('note', '')}" if self._alike else None
        try:
            shown = SET.world.look(SET.here, effect.id, group=group)
        except PermissionError:
            raise Forbidden("the credential may not look") from None
        return _evidence(shown, alike=self._alike)


def _evidence(shown: list[Landing], *, alike: bool = False) -> Found[str] | Absent | Unclear:
    if not shown:
        return Absent()
    complete = all(one.complete for one in shown)
    names = [one.reference for one in shown]
    return Found(names[0], reference=names, complete=complete, matches="look_alike" if alike else "key")


def _joint(effect: Effect, order: str, amount: int) -> str:
    """Note one order as paid in the ledger's own database."""
    world, machine, store = SET.world, SET.here, SET.store
    connection = effect.connection
    ended = store.opened(machine.slot, connection)
    at_work = world.functions.setdefault(effect.id, [])
    at_work.append(machine)
    try:
        insert = "INSERT INTO simulated_rows (effect, attempt, reference) VALUES (:effect, :attempt, :reference)"
        reference = f"row-{effect.id}-{effect.attempt}-{world.number}"
        world.number += 1
        connection.execute(sa.text(insert), {"effect": effect.id, "attempt": effect.attempt, "reference": reference})
        if store.is_sqlite:  # a server would make others wait for this transaction inside a statement
            world.told("holds", host=machine.name)
            world.scheduler.point("function before")
            if world.shows("slow function"):
                world.scheduler.sleep(world.chance.between("function waits", 0.1, 3.0))
        if world.shows("declines"):
            world.told("refused", effect=effect.id, attempt=effect.attempt, key=effect.provider_key)
            raise Rejected("declined", "the card was declined", status=402)
        if world.shows("fails before acting"):
            raise RuntimeError("status 500")
        effect.reference = reference
        return reference
    finally:
        at_work.remove(machine)
        ended()


def _undoing(manners: Manners, *, stone: bool) -> Callable[[Effect], Any]:
    def take_back(effect: Effect) -> Any:
        """Take the payment back."""
        world, machine, original = SET.world, SET.here, effect.original
        at_work = world.functions.setdefault(effect.id, [])
        at_work.append(machine)
        now = world.scheduler.now
        deadline = now + round(effect.remaining_s * MICROSECONDS)
        try:
            request = Request(effect.id, effect.attempt, effect.provider_key, "", manners, 0)
            answer = world.take_back(machine, request, original.id, original.provider_keys, stone=stone,
                                     deadline=deadline, checked_at=now, patience_s=effect.remaining_s)  # fmt: skip
            if answer.status == 0:
                raise TimeoutError
            if answer.status == 402:
                raise Rejected("declined", "no refund for this one", status=402)
            if answer.status == 500:
                raise RuntimeError("status 500")
            if not stone:
                effect.reference = answer.reference
                return answer.reference
            return Found(answer.reference, reference=answer.reference) if answer.status == 200 else Revoked()
        finally:
            at_work.remove(machine)

    return take_back


def _kind(
    name: str, manners: Manners, policy: Policy, *, sends: Any = "anywhere", looks: bool = False, alike: bool = False,
    idempotent: bool = False, revokes: bool = False, refunds: bool = False,
) -> Kind:  # fmt: skip
    body = Body(manners, sends=sends, alike=alike)

    def pay(effect: Effect, order: str, amount: int, note: Annotated[str, Content] = "") -> str:
        """Pay for one order. Use it when the customer has confirmed the total."""
        return body.pay(effect, order, amount, note)

    declared: Tool[Any, Any] = tool(key=("order",), name=name, sends=sends, idempotent=idempotent, policy=policy)(pay)
    if looks:
        declared.postcondition(body.paid)
    if revokes:
        declared.revoke(policy=_policy())(_undoing(Manners(keyed=True), stone=True))
    if refunds:
        undo = Manners(grace_us=round(GRACE_S * MICROSECONDS), keyed=True)
        refund = declared.compensation(policy=_policy(grace_s=GRACE_S))(_undoing(undo, stone=False))
        refund.postcondition(lambda effect: _evidence(SET.world.look(SET.here, effect.id)))
    return Kind(name, declared, manners, alike)


def _kinds() -> dict[str, Kind]:
    grace = round(GRACE_S * MICROSECONDS)
    retention = round(RETENTION_S * MICROSECONDS)
    plain, graced = Manners(), Manners(grace_us=grace)
    keyed = Manners(grace_us=grace, retention_us=retention, keyed=True)
    racy = Manners(grace_us=grace, retention_us=retention, keyed=True, serialised=False)
    storing = Manners(grace_us=grace, retention_us=retention, keyed=True, stores_refusals=True)
    again = Manners(grace_us=grace, retention_us=retention, idempotent=True)
    serial, race = KeyPolicy(RETENTION_S, concurrent=True), KeyPolicy(RETENTION_S)
    stored = KeyPolicy(RETENTION_S, concurrent=True, replays_refusals=True)
    made = [
        _kind("t2-anywhere", graced, _policy(grace_s=GRACE_S), looks=True),
        _kind("t2-marked", graced, _policy(grace_s=GRACE_S, patience_s=8.0), sends="marked", looks=True, refunds=True),
        _kind("t2-once", graced, _policy(grace_s=GRACE_S, verify="always"), sends="once", looks=True),
        _kind("t2-alike", graced, _policy(grace_s=GRACE_S), looks=True, alike=True),
        _kind("t3", keyed, _policy(grace_s=GRACE_S, key_policy=serial), sends="marked"),
        _kind("t3-racy", racy, _policy(grace_s=GRACE_S, key_policy=race, patience_s=7.0)),
        _kind("t3-stored", storing, _policy(grace_s=GRACE_S, key_policy=stored), sends="once"),
        _kind("t3-idempotent", again, _policy(grace_s=GRACE_S, idempotent_window_s=RETENTION_S), idempotent=True),
        _kind("t3-looks", keyed, _policy(grace_s=GRACE_S, key_policy=serial, patience_s=7.0), looks=True, refunds=True),
        _kind("t3-racy-looks", racy, _policy(grace_s=GRACE_S, key_policy=race), looks=True),
        _kind("t0", plain, _policy(patience_s=1.0)),
        _kind("t0-once", plain, _policy(patience_s=1.0), sends="once"),
        _kind("t1", plain, _policy(), looks=True, sends="marked"),
        _kind("t4", plain, _policy(patience_s=1.0), revokes=True),
        _kind("t4-looks", graced, _policy(grace_s=GRACE_S), looks=True, revokes=True, refunds=True),
    ]
    joint: Tool[Any, Any] = tool(key=("order",), name="t5", same_transaction=True, policy=_policy())(_joint)
    made.append(Kind("t5", joint, plain))
    return {one.name: one for one in made}


KINDS = _kinds()


def described(kind: Kind) -> dict[str, dict[str, Any]]:
    """A tool and those that take its effects back, as the history names them."""
    whole = {}
    for one in (kind.tool, kind.tool.revoke_tool, kind.tool.compensation_tool):
        if one is not None:
            policy = one.policy
            retention = kind.manners.retention_us if one is kind.tool else None
            whole[one.name] = {
                "grace_us": None if policy.grace_s is None else round(policy.grace_s * MICROSECONDS),
                "timeout_us": round(policy.timeout_s * MICROSECONDS),
                "retention_us": retention,
                "tier": one.tier,
                "looks": one.postcondition_function is not None,
                "revokes": one.revoke_tool is not None,
                "concurrent": kind.manners.serialised or kind.manners.idempotent,
                "idempotent": one.idempotent,
                "replays_refusals": kind.manners.stores_refusals if one is kind.tool else None,
            }
    return whole
