"""Playing one scenario through one driver, with Counterfoil or without: what was heard, how it ended, what happened.

Owns the interruptions: a real SIGKILL of a real process, and a real cancellation of the coroutine.
"""

from __future__ import annotations

import asyncio
import atexit
import re
import signal
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from adapters.conformance.driver import Driver, Ended
from adapters.conformance.house import TASK, House
from adapters.conformance.model import Call, Model, Told
from adapters.conformance.scenarios import Scenario
from crash.nursery import Nursery
from provider import Provider

LATER_S: Final = 3600.0
END_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Life:
    """A conversation in a process of its own. `out` is where a fault of the process is told."""

    scenario: str
    driver: str
    ledger: str
    provider: str
    store: str
    stock: bool
    out: str


@dataclass(frozen=True, slots=True)
class Played:
    """What came of it. `ended` is None where the stock behaviour ended with an exception."""

    called: tuple[tuple[Call, ...], ...]
    told: tuple[tuple[Told, ...], ...]
    ended: Ended | None
    effects: int
    sends: int

    @property
    def heard(self) -> tuple[tuple[str, ...], ...]:
        """The texts, with EFFECT and N for what differs from run to run."""
        return tuple(tuple(_plain(one.text) for one in told) for told in self.told)


def play(
    scenario: Scenario, driver: Driver, ledger: str, provider: Provider, *, stock: bool = False, guarded: str = ""
) -> Played:
    """Play it to its end, and count at the provider once nothing is under way.

    `guarded`: with the framework's own tool, made of a "plain" function or of one that is "awaited".
    """
    house = House(ledger, provider, real_time=scenario.real_time)
    if guarded:
        house.existing = driver.existing(house.knowing(awaited=guarded == "awaited"))
    with tempfile.TemporaryDirectory() as folder:
        return _played(scenario, driver, house, Path(folder), stock)


def _played(scenario: Scenario, driver: Driver, house: House, store: Path, stock: bool) -> Played:
    provider = house.provider
    scenario.faults(provider)
    if scenario.budget is not None and not stock:
        house.give(scenario.budget)
    resumes = scenario.interrupted is not None
    if scenario.interrupted == "killed":
        _killed(scenario, driver, house, store, stock)
    elif scenario.interrupted == "cancelled":
        asyncio.run(_cancelled(scenario, driver, house, store, stock))
    if resumes:
        provider.release()
        provider.quiesce()
        house = replace(house, later_s=LATER_S)
    model = Model(scenario.turns, house, stock, resumed=resumes, asked=int(resumes))
    ended = asyncio.run(conversation(driver, house, model, store, stock, resumes))
    if ended is not None and ended.told:
        model.heard.append(list(ended.told))
    provider.release()
    provider.quiesce()
    return Played(
        called=tuple(model.called),
        told=tuple(map(tuple, model.heard)),
        ended=ended,
        effects=provider.count(),
        sends=sum(one["method"] == "POST" for one in provider.requests()),
    )


async def conversation(
    driver: Driver, house: House, model: Model, store: Path, stock: bool, resumes: bool = False
) -> Ended | None:
    """One conversation, with Counterfoil or without."""
    if not stock:
        return await driver.converse(house, model, task=TASK, store=store, resumes=resumes)
    try:
        await driver.stock(house.bare(), model, store=store, resumes=resumes)
    except Exception:  # noqa: BLE001 - how a framework ends without Counterfoil is its own affair
        return None
    return Ended()


def _plain(text: str) -> str:
    """The text with EFFECT and N for what differs from run to run."""
    return re.sub(r"effect_id \S+ in \d+ s", "effect_id EFFECT in N s", text)


# ---------------------------------------------------------------- interruptions


def _killed(scenario: Scenario, driver: Driver, house: House, store: Path, stock: bool) -> None:
    out = store.with_name(f"{store.name}.out")
    life = Life(scenario.name, driver.name, house.ledger, house.provider.url, str(store), stock, str(out))
    born = nursery().begin(life)
    try:
        house.provider.await_parked(timeout_s=END_S)
    finally:
        born.kill()
    assert born.ended.result(END_S) == -signal.SIGKILL
    assert not out.exists()


@cache
def nursery() -> Nursery:
    """Where the processes come from. It is started once and ends with this process, whose end closes its input."""
    made = Nursery("adapters.conformance.lives")
    atexit.register(made.__exit__, None, None, None)
    return made


async def _cancelled(scenario: Scenario, driver: Driver, house: House, store: Path, stock: bool) -> None:
    running = asyncio.create_task(conversation(driver, house, Model(scenario.turns, house, stock), store, stock))
    await asyncio.to_thread(house.provider.await_parked)
    running.cancel()
    try:
        await running
    except asyncio.CancelledError:
        return
    raise AssertionError("the conversation swallowed its cancellation")
