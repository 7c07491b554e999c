"""What a transition decides: write this, it was written before, or a guard does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Decision:
    """What to write: the changed columns, the entry that explains them, the incidents it raises.

    `event` None writes no entry and no new version: only the push of `sends_until` and the look schedule do that.
    """

    columns: Mapping[str, Any]
    event: str | None
    attempt: int
    actor: str
    detail: Mapping[str, Any] = field(default_factory=dict)
    incidents: tuple[tuple[str, Mapping[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class Repeated:
    """The same change had been written before: nothing to write, and it counts as done."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The guard named here does not hold: nothing to write."""

    guard: str
