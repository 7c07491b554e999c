"""What a begin brings for the guards to judge, and what they answer when they refuse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from counterfoil.guard.breaker import CLOSED, Breaker, Circuit
from counterfoil.guard.budget import Budget
from counterfoil.guard.loop import NONE, LoopGuard, Repeats


@dataclass(frozen=True, slots=True)
class Twin:
    """How a look-alike is judged. `confirmed`: a separate one is wanted, so that it is only noted. `asks_model`: the
    model itself may confirm it, with an `occurrence`."""

    window_us: int
    confirmed: bool = False
    asks_model: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """One attempt before the guards. Without a task there is nothing to count in: `task` is then "".

    `similar` None: no loop guard. `budget`: what a task without one of its own gets. `enforce` False: a refusal is only
    noted, but for that of a pause, which is a person's word. `lease_us`: how long a probe may take.
    """

    tenant: str
    tool: str
    task: str = ""
    turn: int | None = None
    actor: str = ""
    similar: bytes | None = None
    cost: tuple[str, int] | None = None
    budget: Budget | None = None
    loop: LoopGuard | None = None
    breaker: Breaker | None = None
    twin: Twin | None = None
    enforce: bool = True
    lease_us: int = 0


@dataclass(frozen=True, slots=True)
class Blocked:
    """A refusal: nothing was begun. `cap` names the limit that was hit; `stop`: the model has gone on before.

    `twin` is the id of a look-alike, begun `age_us` ago; `unknown`: whether it was carried out is not known.
    """

    code: str
    cap: str = ""
    limit: int = 0
    used: int = 0
    wanted: int = 0
    unit: str = ""
    wait_us: int = 0
    stop: bool = False
    twin: str = ""
    unknown: bool = False
    age_us: int = 0
    asks_model: bool = False

    def detail(self, asks: Asks) -> dict[str, Any]:
        """What an incident says of it: what, who, how much."""
        told: dict[str, Any] = {"task": asks.task, "turn": asks.turn, "actor": asks.actor, "cap": self.cap}
        told |= {"limit": self.limit, "used": self.used, "wanted": self.wanted, "unit": self.unit}
        told |= {"alike": self.twin} if self.twin else {}
        told["refused"] = asks.enforce
        return {name: one for name, one in told.items() if one not in ("", None)}


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the guards had counted for this call when they let it through."""

    repeats: Repeats = NONE
    circuit: Circuit = CLOSED
