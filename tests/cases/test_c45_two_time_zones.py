"""C45: SQLite drops the time zone, PostgreSQL keeps it (IBM/mcp-context-forge #3531).

One process writes in UTC-8, another reads and goes on in UTC+13, then the other way round. Where a path needs a certain
instant, both have a clock that is set to it; otherwise the clocks are the real ones.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cases.processes import playing
from cases.scene import find, post, sent
from provider import Provider

from counterfoil import Effect, Executor, KeyPolicy, ManualClock, Policy, Tool, UsageError, tool
from counterfoil.ledger.audit import described

WEST, EAST = "Etc/GMT+8", "Pacific/Apia"  # UTC-8 and UTC+13; the sign of Etc/GMT is the other way round
OFFSETS = {WEST: -8, EAST: 13}
ZONES = [pytest.param((WEST, EAST), id="UTC-8 to UTC+13"), pytest.param((EAST, WEST), id="UTC+13 to UTC-8")]
START_US = 1_800_000_000_000_000
SECOND = 1_000_000
TIMEOUT_S, GRACE_S, MARGIN_S, RETENTION_S = 10.0, 30.0, 2.0, 600.0
KEYS = KeyPolicy(retention_s=RETENTION_S, concurrent=True)
INSTANTS = (
    "created_at", "begun_at", "updated_at", "lease_until", "sends_until", "absent_from", "look_at", "review_at",
    "key_first_begun_at",
)  # fmt: skip


class Crash(BaseException):
    """Stands for the end of a process directly after its begin."""


def tools_at(provider: Provider) -> list[Tool[..., Any]]:
    timing = {"timeout_s": TIMEOUT_S, "grace_s": GRACE_S, "patience_s": 0.1, "wait_s": 0.5}

    @tool(key=("order",), sends="once", policy=Policy(**timing))  # type: ignore[arg-type]
    def pay(effect: Effect, order: str) -> dict[str, str]:
        """Pay one order."""
        return post(provider, effect, {"order": order})

    @tool(key=("order",), policy=Policy(**timing, key_policy=KEYS, attempts_max=1))  # type: ignore[arg-type]
    def capture(effect: Effect, order: str) -> dict[str, str]:
        """Capture one order."""
        return post(provider, effect, {"order": order}, key=effect.provider_key)

    pay.postcondition(lambda effect: find(provider, effect))
    return [pay, capture]


def dump(executor: Executor) -> dict[str, Any]:
    """Every instant of every effect and entry, as the storage layer hands them out, and as people see them."""
    rows = {row.arguments: row for row in executor.audit.effects()}
    return {
        name: {
            "instants": {instant: getattr(row, instant) for instant in INSTANTS},
            "entries": [entry.at for entry in executor.audit.history(row.id)],
            "told": {key: text for key, text in described(row).items() if key.endswith(("_at", "_until", "_from"))},
        }
        for name, row in rows.items()
    }


def zone() -> float:
    """The offset of this process, in hours: the test's TZ took effect."""
    offset = datetime.now().astimezone().utcoffset()
    assert offset is not None
    return offset.total_seconds() / 3600


def write(ledger: str, provider: str, at_us: int, calls: list[list[str]], crash: bool) -> dict[str, Any]:
    """The play: make these calls at that instant (0: by the real clock), or begin them and end."""

    def observer(moment: str, step: str, tool: str, effect_id: str) -> None:
        if crash and (moment, step) == ("after", "Start"):
            raise Crash

    clock = ManualClock(at_us) if at_us else None
    executor = Executor(ledger, tools=tools_at(Provider.at(provider)), clock=clock, observer=observer)
    codes = []
    for name, order in calls:
        try:
            codes.append(executor.call(name, {"order": order}).code)
        except Crash:
            codes.append("crash")
    found = dump(executor)
    executor.close()
    return {"zone": zone(), "codes": codes, "found": found}


def recent(ledger: str, at_us: int, hours: float) -> dict[str, Any]:
    """The play: the audit's question "since so many hours", asked with the local time of this process."""
    with Executor(ledger, clock=ManualClock(at_us) if at_us else None) as executor:
        now = datetime.fromtimestamp((at_us or time.time_ns() // 1000) / SECOND).astimezone()
        since = now - timedelta(hours=hours)
        assert since.utcoffset() == timedelta(hours=zone())
        try:
            executor.audit.effects(since=since.replace(tzinfo=None))
        except UsageError as error:
            naive = str(error)
        else:
            naive = ""
        rows = executor.audit.effects(since=since)
        found = dump(executor)
        return {"zone": zone(), "orders": sorted(row.arguments for row in rows), "naive": naive, "found": found}


class Journey:
    """Calls and questions in the one zone or in the other, each in a process of its own."""

    def __init__(self, ledger: str, provider: Provider) -> None:
        self.ledger = ledger
        self.provider = provider

    def write(self, zone_name: str, after_s: float | None, *calls: tuple[str, str], crash: bool = False) -> Any:
        at_us = 0 if after_s is None else START_US + round(after_s * SECOND)
        given = {"ledger": self.ledger, "provider": self.provider.url, "at_us": at_us, "calls": calls, "crash": crash}
        with playing(write, env={"TZ": zone_name}, **given) as child:
            answer = child.result()
        assert answer["zone"] == OFFSETS[zone_name]
        return answer

    def recent(self, zone_name: str, after_s: float | None, hours: float) -> Any:
        at_us = 0 if after_s is None else START_US + round(after_s * SECOND)
        with playing(recent, env={"TZ": zone_name}, ledger=self.ledger, at_us=at_us, hours=hours) as child:
            answer = child.result()
        assert answer["zone"] == OFFSETS[zone_name]
        return answer


@pytest.fixture
def journey(ledger_url: str, provider: Provider) -> Journey:
    return Journey(ledger_url, provider)


@pytest.mark.parametrize("zones", ZONES)
def test_a_lease_ends_at_its_instant(journey: Journey, zones: tuple[str, str]) -> None:
    """Begun in one zone by a process that died: a second before the lease ends in progress, after it looked at."""
    here, there = zones
    lease_s = TIMEOUT_S + MARGIN_S
    assert journey.write(here, 0, ("pay", "A"), crash=True)["codes"] == ["crash"]
    assert journey.write(there, lease_s - 1, ("pay", "A"))["codes"] == ["in_progress"]
    assert journey.write(there, lease_s + 1, ("pay", "A"))["codes"] == ["effect_unknown"]
    assert journey.provider.requests()[-1]["method"] == "GET", "it was looked at"
    assert journey.provider.count() == 0


@pytest.mark.parametrize("zones", ZONES)
def test_the_window_in_which_it_may_still_land_ends_at_its_instant(journey: Journey, zones: tuple[str, str]) -> None:
    """The request was lost: until grace and margin are over unknown, a second later carried out, once."""
    here, there = zones
    journey.provider.arm("request_lost")
    window_s = TIMEOUT_S + GRACE_S + MARGIN_S
    assert journey.write(here, 0, ("pay", "A"))["codes"] == ["effect_unknown"]
    assert journey.write(there, window_s - 1, ("pay", "A"))["codes"] == ["effect_unknown"]
    assert len(sent(journey.provider)) == 1
    assert journey.write(there, window_s + 1, ("pay", "A"))["codes"] == ["ok"]
    assert journey.provider.count() == 1


@pytest.mark.parametrize("zones", ZONES)
def test_a_key_is_forgotten_at_its_instant(journey: Journey, zones: tuple[str, str]) -> None:
    """While the provider surely knows the key it is sent again; once it may have forgotten it, never."""
    here, there = zones
    journey.provider.dedupe(RETENTION_S)
    journey.provider.arm("ack_lost", times=2)
    last_s = RETENTION_S - TIMEOUT_S - GRACE_S - MARGIN_S
    first = journey.write(here, 0, ("capture", "young"), ("capture", "old"))
    assert first["codes"] == ["effect_unknown"] * 2
    assert journey.write(there, last_s - 1, ("capture", "young"))["codes"] == ["ok"]
    assert journey.write(there, last_s + 1, ("capture", "old"))["codes"] == ["effect_unknown"]
    assert len(sent(journey.provider)) == 3
    assert journey.provider.count() == 2


@pytest.mark.parametrize("zones", ZONES)
def test_since_an_hour_is_an_hour(journey: Journey, zones: tuple[str, str]) -> None:
    """Effects of 61 and of 59 minutes ago, asked for since one hour in another zone: the second one alone."""
    here, there = zones
    journey.write(here, 0, ("pay", "early"))
    journey.write(there, 120, ("pay", "late"))
    answer = journey.recent(there, 61 * 60, 1.0)
    assert answer["orders"] == ['{"order":"late"}']
    assert "UTC offset" in answer["naive"], "a naive instant is refused"
    assert journey.recent(here, 61 * 60, 1.0)["orders"] == ['{"order":"late"}']
    assert len(journey.recent(there, 61 * 60, 1.1)["orders"]) == 2


@pytest.mark.parametrize("zones", ZONES)
@pytest.mark.parametrize("after_s", [0, None], ids=["a set clock", "the real clock"])
def test_instants_are_equal_after_the_round_trip(
    journey: Journey, zones: tuple[str, str], after_s: float | None
) -> None:
    """What one zone wrote is what the other reads, to the microsecond; people see UTC with its offset."""
    here, there = zones
    journey.provider.arm("request_lost")
    before = datetime.now(UTC)
    written = journey.write(here, after_s, ("pay", "lost"), ("pay", "done"))
    answer = journey.recent(there, after_s, 1.0)
    after = datetime.now(UTC)
    assert written["codes"] == ["effect_unknown", "ok"]
    assert answer["found"] == written["found"]
    assert len(answer["orders"]) == 2, "since an hour ago, by the clock of the other zone"
    for effect in answer["found"].values():
        assert all(isinstance(at, int) for at in [*effect["entries"], *effect["instants"].values()] if at is not None)
        for name, text in effect["told"].items():
            if text is None:
                continue
            instant = datetime.fromisoformat(text)
            assert text.endswith("+00:00")
            assert round(instant.timestamp() * SECOND) == effect["instants"][name]
        if after_s is None:
            created = datetime.fromisoformat(effect["told"]["created_at"])
            assert before - timedelta(seconds=2) <= created <= after + timedelta(seconds=2)
        else:
            assert effect["instants"]["created_at"] == START_US
