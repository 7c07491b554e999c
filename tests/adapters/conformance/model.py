"""A model that follows a script, whatever framework it sits in.

Owns what the model says, and keeps what reached it: the results of its calls, as the framework put them into the next
request. A driver turns a reply into the framework's form of a response, and a request into `Told`s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

# In the arguments of a call: the effect that the last result named.
THE_EFFECT: Final = "THE_EFFECT"
_EFFECT_ID: Final = re.compile(r"effect_id (\S+) in")


@dataclass(frozen=True, slots=True)
class Call:
    """One call that the model makes. Its id is minted when it is made."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model does in one round: these calls, or an end. `before` happens in the world before that."""

    calls: tuple[Call, ...] = ()
    before: Callable[[Any], None] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """One result as it reached the model.

    `id` is the id of the call that it answers; `error` the framework's flag, None where it has none.
    """

    id: str
    text: str
    error: bool | None = None


@dataclass
class Model:
    """Plays `turns`, then ends. `where` is handed to what happens before a turn; `called` has the calls by round,
    `heard` their results.

    With `stock` there is no Counterfoil: the calls of `check_effect` are left out, because nobody offers it. With
    `resumed` the first round was played before: a framework that has kept the calls brings their results, one that has
    lost them asks again, and is given them again, under new ids.
    """

    turns: Sequence[Turn]
    where: Any = None
    stock: bool = False
    resumed: bool = False
    heard: list[list[Told]] = field(default_factory=list)
    called: list[tuple[Call, ...]] = field(default_factory=list)
    asked: int = 0

    def reply(self, told: Sequence[Told] = ()) -> tuple[Call, ...]:
        """The calls of the next round, () at the end; `told` are the results of the round before."""
        if told:
            self.heard.append(list(told))
            self.resumed = False
        mark = "again" if self.resumed else "call"
        self.asked, self.resumed = (0 if self.resumed else self.asked), False
        while self.asked < len(self.turns):
            turn = self.turns[self.asked]
            self.asked += 1
            if turn.before is not None:
                turn.before(self.where)
            calls = [one for one in turn.calls if not (self.stock and one.name == "check_effect")]
            if calls or not turn.calls:
                made = tuple(self._made(one, f"{mark}_{self.asked}_{place}", told) for place, one in enumerate(calls))
                self.called += [made] if made else []
                return made
        return ()

    def _made(self, call: Call, name: str, told: Sequence[Told]) -> Call:
        named = _EFFECT_ID.search(told[-1].text) if told else None
        arguments = {
            name: named[1] if named and value == THE_EFFECT else value for name, value in call.arguments.items()
        }
        return Call(call.name, arguments, name)
