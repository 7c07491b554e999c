"""Whether a history keeps the promise: one sentence for each violation, nothing for a history that keeps it.

The entrance of the checker. It knows what HISTORY.md says and nothing of the library or the simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from simulation.checker import beginning, book, ending, sending, telling, truth
from simulation.checker.reading import Effect, World, read


def check(history: dict[str, Any]) -> list[str]:
    """The violations of a history, each as `rule: effect id: what (event numbers)`; empty when it is fine.

    Raises:
        KeyError: the history lacks something that HISTORY.md demands.

    Example:
        >>> nothing = {"effects": [], "entries": [], "incidents": []}
        >>> check({"margin_us": 1, "tools": {}, "events": [], "tables": nothing, "quiet": True})
        []
    """
    world = read(history)
    found = [*telling.told(world), *telling.waited(world)]
    for effect in world.effects.values():
        found += _one(world, effect)
    return list(dict.fromkeys(found))


def _one(world: World, effect: Effect) -> Iterator[str]:
    yield from truth.no_effect(effect)
    yield from truth.applied(effect)
    yield from truth.once(effect)
    yield from beginning.begins(world, effect)
    yield from beginning.keys(effect)
    yield from beginning.closings(world, effect)
    yield from sending.sent(world, effect)
    yield from book.entries(effect)
    yield from book.bounds(world, effect)
    yield from book.audits(effect)
    yield from ending.incidents(world, effect)
    yield from ending.quiet(world, effect)
