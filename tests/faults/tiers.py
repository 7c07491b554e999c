"""The tiers T0 to T5 of the fault table: one and the same payment, declared in as many ways.

Owns the declarations and their times. What a request, a look or a withdrawal does is its `Hands`' matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias

from counterfoil import Absent, Effect, Found, KeyPolicy, Policy, Revoked, Tool, Unclear, tool
from counterfoil.effect import Sends

TIMEOUT_S: Final = 10.0
GRACE_S: Final = 60.0
PATIENCE_S: Final = 5.0
WAIT_S: Final = 1.0
MARGIN_S: Final = 2.0  # of the executor: how far clocks may differ
RETENTION_S: Final = 86_400.0
JOINT_PATIENCE_S: Final = 1.0  # T5 waits for a lock in the database, and that takes real time

Receipt: TypeAlias = dict[str, str]
Key: TypeAlias = Literal["none", "provider_key", "id"]


class Hands(Protocol):
    """What the tools of all tiers do to the world."""

    def prepare(self) -> None:
        """What comes before the first byte."""

    def send(self, effect: Effect, key: str | None) -> Receipt:
        """One request that pays."""

    def look(self, effect: Effect) -> Found[Receipt] | Absent | Unclear:
        """Search for the payment by `effect.id`."""

    def withdraw(self, effect: Effect) -> Revoked | Found[Receipt]:
        """Lay a stone under every key of the original."""

    def write(self, effect: Effect) -> Receipt:
        """Pay by a row in the ledger's own database."""


def policy(grace_s: float | None = None, **more: Any) -> Policy:
    """The declared times."""
    times: dict[str, Any] = {"timeout_s": TIMEOUT_S, "patience_s": PATIENCE_S, "wait_s": WAIT_S, "grace_s": grace_s}
    return Policy(**times | more)


def _pay(
    hands: Hands, sends: Sends, the_policy: Policy, *, key: Key = "none", looks: bool = False, idempotent: bool = False
) -> Tool[..., Any]:
    @tool(key=("order",), sends=sends, policy=the_policy, idempotent=idempotent)
    def pay(effect: Effect, order: str, amount: int) -> Receipt:
        """Pay for one order."""
        hands.prepare()
        with effect.sending():
            return hands.send(effect, {"none": None, "provider_key": effect.provider_key, "id": effect.id}[key])

    if looks:
        pay.postcondition(hands.look)
    return pay


def _t0(hands: Hands, sends: Sends) -> Tool[..., Any]:
    return _pay(hands, sends, policy())


def _t1(hands: Hands, sends: Sends) -> Tool[..., Any]:
    return _pay(hands, sends, policy(), looks=True)


def _t2(hands: Hands, sends: Sends) -> Tool[..., Any]:
    return _pay(hands, sends, policy(GRACE_S), looks=True)


def _keyed_policy() -> Policy:
    return policy(GRACE_S, key_policy=KeyPolicy(retention_s=RETENTION_S, concurrent=True))


def _t3_keyed(hands: Hands, sends: Sends) -> Tool[..., Any]:
    return _pay(hands, sends, _keyed_policy(), key="provider_key")


def _t3_looking(hands: Hands, sends: Sends) -> Tool[..., Any]:
    return _pay(hands, sends, _keyed_policy(), key="provider_key", looks=True)


def _t3_idempotent(hands: Hands, sends: Sends) -> Tool[..., Any]:
    return _pay(hands, sends, policy(GRACE_S, idempotent_window_s=RETENTION_S), key="id", idempotent=True)


def _t4(hands: Hands, sends: Sends) -> Tool[..., Any]:
    pay = _pay(hands, sends, policy(), key="provider_key")
    pay.revoke(policy=policy())(hands.withdraw)
    return pay


def _t5(hands: Hands, _sends: Sends) -> Tool[..., Any]:
    @tool(key=("order",), same_transaction=True, policy=policy(patience_s=JOINT_PATIENCE_S))
    def pay(effect: Effect, order: str, amount: int) -> Receipt:
        """Pay for one order."""
        hands.prepare()
        return hands.write(effect)

    return pay


@dataclass(frozen=True, slots=True)
class Tier:
    """One column of the design's table. `remembers`: the provider knows keys. `looks`: there is a postcondition."""

    name: str
    title: str
    says: str
    declare: Callable[[Hands, Sends], Tool[..., Any]]
    remembers: bool = False
    looks: bool = False

    @property
    def joint(self) -> bool:
        return self.name == "t5"


TIERS: Final = (
    Tier("t0", "T0: nothing declared", "What is not proven by the attempt itself stays for a person.", _t0),
    Tier("t1", "T1: a postcondition", "A look can say that it was applied, never that it was not.", _t1, looks=True),
    Tier("t2", "T2: a postcondition and `grace_s`", "A look can say both.", _t2, looks=True),
    Tier(
        "t3-key",
        "T3: a key policy",
        "The provider knows the key: the same request may go out again, and answers as it did the first time.",
        _t3_keyed,
        remembers=True,
    ),
    Tier(
        "t3-key-look",
        "T3: a key policy and a postcondition",
        "A look comes first; the key keeps a late landing from becoming a second effect.",
        _t3_looking,
        remembers=True,
        looks=True,
    ),
    Tier(
        "t3-idempotent",
        "T3: `idempotent=True`",
        "The request names what it makes (`effect.id`): sent again it makes the same thing.",
        _t3_idempotent,
        remembers=True,
    ),
    Tier(
        "t4",
        "T4: a revoke",
        "What is still unknown an hour later is revoked (`executor.revoke`) before the second call is made.",
        _t4,
        remembers=True,
    ),
    Tier(
        "t5",
        "T5: `same_transaction=True`",
        "The effect is a row in the ledger's own database: here to send is to insert it, the provider is the database, "
        "and begin, effect and settle are made durable by one COMMIT.",
        _t5,
    ),
)  # fmt: skip
BY_NAME: Final = {one.name: one for one in TIERS}
