"""A conversation in a process of its own, which is killed: `crash.nursery` imports this once and forks for each.

Owns nothing but that: what is played is `playing`'s. Every framework is imported before the first fork.
"""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

from adapters.conformance.drivers import driver, installed
from adapters.conformance.house import House
from adapters.conformance.model import Model
from adapters.conformance.playing import Life, conversation
from adapters.conformance.scenarios import SCENARIOS
from provider import Provider

IMPORTED = ()  # what a life needs is imported here already
_DRIVERS = {name: driver(name) for name in installed()}
# A fork has one thread only: what another one held would be held for ever.
assert threading.active_count() == 1


def from_json(line: str) -> Life:
    """The life in one line of JSON."""
    return Life(**json.loads(line))


def live(life: Life) -> None:
    """Hold the conversation."""
    scenario = next(one for one in SCENARIOS if one.name == life.scenario)
    house = House(life.ledger, Provider.at(life.provider))
    model = Model(scenario.turns, house, life.stock)
    asyncio.run(conversation(_DRIVERS[life.driver], house, model, Path(life.store), life.stock))
