"""What OpenTelemetry is told: one span for each call, true counters, and nothing that was secret."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from calls.conftest import clock, world
from outside import World

from counterfoil import (
    Absent,
    AsyncExecutor,
    Effect,
    Executor,
    Found,
    ManualClock,
    Policy,
    Rejected,
    Tool,
    Unclear,
    UsageError,
    tool,
)

__all__ = ["clock", "world"]
PLANTED = "sk_live_planted"


@pytest.fixture
def pay(world: World) -> Tool[..., Any]:
    """A tool whose look can be made blind."""

    @tool(key=("order",), sends="marked", policy=Policy(timeout_s=5, grace_s=2, patience_s=20))
    def pay(effect: Effect, order: str, amount: int, note: str = "") -> dict[str, str]:
        """Pay one order. Use it after the customer has confirmed the total."""
        if amount > 100:
            raise Rejected("too_much", "the amount is above the limit")
        with effect.sending():
            world.act(effect)
        return {"receipt": PLANTED}

    @pay.postcondition
    def paid(effect: Effect) -> Found[dict[str, str]] | Absent | Unclear:
        if world.looks and world.looks.pop(0) == "raises":
            raise RuntimeError(PLANTED)
        found = world.count(effect.id)
        return Found({"receipt": PLANTED}, reference=None, count=found) if found else Absent()

    return pay


def test_a_call_is_a_span_with_its_code_verdict_and_attempts(
    ledger_url: str, heard: Any, pay: Tool[..., Any], clock: ManualClock
) -> None:
    """One span for each call, with what was told; a replay is marked and has made no attempt of its own."""
    with Executor(ledger_url, [pay], clock=clock, observer=heard.telemetry) as executor:
        first = executor.call("pay", {"order": "A-1", "amount": 5}, task="trip-42", turn=3)
        executor.call("pay", {"order": "A-1", "amount": 5}, task="trip-42", turn=4)
    one, again = (dict(span.attributes or {}) for span in heard.spans())
    assert one == {
        "counterfoil.task": "trip-42",
        "counterfoil.turn": 3,
        "counterfoil.tool": "pay",
        "counterfoil.code": "ok",
        "counterfoil.verdict": "effect_applied",
        "counterfoil.category": "done",
        "counterfoil.replayed": False,
        "counterfoil.attempts": 1,
        "counterfoil.looks": 0,
        "counterfoil.proof": "returned",
        "counterfoil.effect_id": first.effect_id,
    }
    assert (again["counterfoil.code"], again["counterfoil.replayed"], again["counterfoil.attempts"]) == (
        "replayed",
        True,
        0,
    )
    assert heard.counted("calls") == {("ok", "pay", "effect_applied"): 1, ("replayed", "pay", "effect_applied"): 1}
    assert heard.counted("attempts") == {("pay",): 1}


def test_a_look_that_settles_a_doubt_is_counted(
    ledger_url: str, heard: Any, pay: Tool[..., Any], clock: ManualClock, world: World
) -> None:
    """A lost answer: the span of the call tells the look and the proof."""
    world.next = ["ack_lost"]
    with Executor(ledger_url, [pay], clock=clock, observer=heard.telemetry) as executor:
        executor.call("pay", {"order": "A-1", "amount": 5})
    (span,) = heard.spans()
    told = dict(span.attributes or {})
    assert (told["counterfoil.code"], told["counterfoil.proof"], told["counterfoil.looks"]) == ("verified", "found", 1)
    assert heard.counted("looks") == {("pay",): 1}


def test_an_unknown_effect_is_an_error_and_ages(
    ledger_url: str, heard: Any, pay: Tool[..., Any], clock: ManualClock, world: World
) -> None:
    """What stays unknown has the status ERROR; the gauge tells the age of the oldest, and 0 once none is left."""
    world.next = ["ack_lost"]
    world.looks = ["raises"] * 50
    with Executor(ledger_url, [pay], clock=clock, observer=heard.telemetry) as executor:
        heard.telemetry.gauge(executor)
        begun = clock.wall_us()
        seen = executor.call("pay", {"order": "A-1", "amount": 5})
        clock.advance(100)
        (age,) = heard.counted("oldest_unknown_s").values()
        assert age == pytest.approx((clock.wall_us() - begun) / 1_000_000)
        world.looks = []
        clock.advance(1000)
        executor.reconcile()
        assert list(heard.counted("oldest_unknown_s").values()) == [0.0]
    (span,) = heard.spans()
    assert (seen.code, span.status.is_ok, span.status.description) == ("effect_unknown", False, "effect_unknown")


def test_errors_that_the_model_mends_and_its_recovery_are_counted(
    ledger_url: str, heard: Any, pay: Tool[..., Any], clock: ManualClock
) -> None:
    """Recoverable errors by tool and code; the success after them is one recovery, the next success is none."""
    with Executor(ledger_url, [pay], clock=clock, observer=heard.telemetry) as executor:
        executor.call("pay", {"order": "A-1"}, task="trip-42")
        executor.call("pay", {"order": "A-1", "amount": 500}, task="trip-42")
        executor.call("pay", {"order": "B-1", "amount": 5}, task="trip-43")
        executor.call("pay", {"order": "A-1", "amount": 5}, task="trip-42")
        executor.call("pay", {"order": "A-2", "amount": 5}, task="trip-42")
    assert heard.counted("recoverable_errors") == {("invalid_arguments", "pay"): 1, ("too_much", "pay"): 1}
    assert heard.counted("recoveries") == {("pay",): 1}


def test_what_a_guard_refuses_is_counted_and_a_stop_too(
    ledger_url: str, heard: Any, pay: Tool[..., Any], clock: ManualClock
) -> None:
    """Blocked calls by tool and code, each of them; the stop of a run; and the cap that was hit, once."""
    telemetry = heard.telemetry
    with Executor(ledger_url, [pay], clock=clock, observer=telemetry, on_incident=telemetry.incident) as executor:
        for _ in range(5):
            executor.call("pay", {"order": "A-1", "amount": 500}, task="trip-42", turn=1)
        executor.pause("pay", by="Ada", why="a bad day")
        executor.call("pay", {"order": "A-2", "amount": 5}, task="trip-42", turn=1)
    assert heard.counted("blocked_calls") == {("repeated_call", "pay"): 3, ("paused", "pay"): 1}
    assert heard.counted("stops") == {("repeated_call", "pay"): 2}
    assert heard.counted("incidents") == {("repeated_call", "pay"): 1}
    stops = [dict(span.attributes or {}).get("counterfoil.stop") for span in heard.spans()]
    assert stops == [None, None, None, "repeated_call", "repeated_call", None]


def test_a_name_that_the_model_made_up_is_no_label(ledger_url: str, heard: Any, pay: Tool[..., Any]) -> None:
    """Calls of tools that do not exist share one label: the model cannot make new ones without end."""
    with Executor(ledger_url, [pay], observer=heard.telemetry) as executor:
        for number in range(3):
            executor.call(f"made_up_{number}", {})
    assert heard.counted("calls") == {("unknown_tool", "unknown", "no_effect"): 3}


def test_incidents_are_counted_by_kind(
    ledger_url: str, heard: Any, pay: Tool[..., Any], clock: ManualClock, world: World
) -> None:
    """`on_incident=telemetry.incident`: a doubt that is left for long is counted as one."""
    world.next = ["ack_lost"]
    world.looks = ["raises"] * 50
    telemetry = heard.telemetry
    with Executor(ledger_url, [pay], clock=clock, observer=telemetry, on_incident=telemetry.incident) as executor:
        executor.call("pay", {"order": "A-1", "amount": 5})
        clock.advance(4000)
        executor.reconcile()
    assert heard.counted("incidents") == {("doubt_left", "pay"): 1}


def test_what_leaves_the_call_is_named_by_its_class_alone(ledger_url: str, heard: Any, pay: Tool[..., Any]) -> None:
    """A developer's mistake ends the span with the class of the exception and no text of it."""
    with Executor(ledger_url, [pay], observer=heard.telemetry) as executor, pytest.raises(UsageError):
        executor.call("pay", {"order": "A-1", "amount": 5}, turn=PLANTED)  # type: ignore[arg-type]
    (span,) = heard.spans()
    assert (span.status.is_ok, span.status.description, span.events) == (False, "UsageError", ())


def test_calls_at_once_do_not_share_a_span(
    ledger_url: str, heard: Any, pay: Tool[..., Any], clock: ManualClock
) -> None:
    """Twenty calls at once in one event loop: twenty spans, each with its own effect and one attempt."""

    async def many() -> list[str | None]:
        async with AsyncExecutor(ledger_url, [pay], clock=clock, observer=heard.telemetry) as executor:
            calls = (executor.call("pay", {"order": f"A-{number}", "amount": 5}) for number in range(20))
            return [seen.effect_id for seen in await asyncio.gather(*calls)]

    ids = asyncio.run(many())
    spans = [dict(span.attributes or {}) for span in heard.spans()]
    assert sorted(str(span["counterfoil.effect_id"]) for span in spans) == sorted(map(str, ids))
    assert {span["counterfoil.attempts"] for span in spans} == {1}


def test_taking_back_is_a_span_too(ledger_url: str, heard: Any, clock: ManualClock) -> None:
    """A compensation is a call of its own, in its task."""

    @tool(key=("order",))
    def book(order: str) -> str:
        """Book one order. Use it once the customer has agreed."""
        return "booked"

    @book.compensation()
    def unbook(effect: Effect) -> str:
        """Cancel the booking."""
        return "cancelled"

    with Executor(ledger_url, [book], clock=clock, observer=heard.telemetry) as executor:
        made = executor.call("book", {"order": "A-1"}, task="trip-42")
        executor.compensate(str(made.effect_id))
    assert [(span.attributes["counterfoil.tool"], span.attributes["counterfoil.task"]) for span in heard.spans()] == [
        ("book", "trip-42"),
        ("book-compensation", "trip-42"),
    ]


def test_no_argument_value_or_secret_leaves(
    ledger_url: str, heard: Any, pay: Tool[..., Any], clock: ManualClock, world: World
) -> None:
    """Secrets in arguments, results, a look's exception: no span and no metric shows any."""
    world.next = ["none", "ack_lost"]
    world.looks = ["raises"] * 3
    with Executor(ledger_url, [pay], clock=clock, observer=heard.telemetry) as executor:
        for number in range(2):
            executor.call("pay", {"order": f"{PLANTED}{number}", "amount": 5, "note": PLANTED})
        executor.call("pay", {"order": PLANTED, "amount": PLANTED})
    told = "".join(span.to_json() for span in heard.spans()) + heard.reader.get_metrics_data().to_json()
    assert len(heard.spans()) == 3
    assert PLANTED not in told


def test_importing_the_library_imports_no_telemetry() -> None:
    """`import counterfoil` brings nothing of OpenTelemetry with it."""
    code = "import sys, counterfoil; sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
