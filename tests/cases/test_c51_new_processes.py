"""C51: a new process changes neither when the breaker opened nor what it has counted."""

from __future__ import annotations

from typing import Any

from cases.processes import playing
from guards.failing import Service, act_tool

from counterfoil import Breaker, Executor, ManualClock

START_US = 1_800_000_000_000_000


def life(url: str, second: float, ends: list[str], whats: str) -> list[str]:
    """A process that is born at this second, calls once for each letter, and ends: the codes it heard."""
    clock = ManualClock(START_US + round(second * 1_000_000))
    tool = act_tool(Service(*ends), breaker=Breaker(failures=5, open_s=2))
    with Executor(url, [tool], clock=clock) as executor:
        return [executor.call("act", {"what": what}, task=what).code for what in whats]


def lived(**given: Any) -> list[str]:
    """What a process of that life heard."""
    with playing(life, **given) as child:
        heard: list[str] = child.result()
        return heard


def test_the_cool_down_is_not_begun_anew(ledger_url: str) -> None:
    """Opened at second 0; a process each half second is refused, until two seconds are over: then one probe."""
    assert lived(url=ledger_url, second=0, ends=["down"] * 5, whats="abcde") == ["unavailable"] * 5
    for second in (0.5, 1.5):
        assert lived(url=ledger_url, second=second, ends=[], whats="f") == ["breaker_open"]
    assert lived(url=ledger_url, second=2, ends=[], whats="fg") == ["ok", "ok"]


def test_what_is_counted_is_kept(ledger_url: str) -> None:
    """Four failures in one process, the fifth in another one: it is open."""
    assert lived(url=ledger_url, second=0, ends=["down"] * 4, whats="abcd") == ["unavailable"] * 4
    assert lived(url=ledger_url, second=0.5, ends=["down"], whats="ef") == ["unavailable", "breaker_open"]
