"""Exchanging the secret that names effects: in two steps, with no effect named twice."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from outside import Make, World

from counterfoil import ALL_ARGUMENTS, Effect, Executor, Policy, Secret, Tool, UsageError, Verdict, tool

OLD, NEW, OLDEST = b"o" * 32, b"n" * 32, b"e" * 32
ASKED = {"payee": "club", "card": "4242-4242"}


def pay_tool(world: World, key: Any) -> Tool[..., Any]:
    @tool(key=key, policy=Policy(timeout_s=5, patience_s=0.1))
    def pay(effect: Effect, payee: str, card: Annotated[str, Secret]) -> str:
        """Pay the club once. Use it when the member has confirmed."""
        world.act(effect)
        return "paid"

    return pay


@pytest.fixture(params=[("payee",), ALL_ARGUMENTS], ids=["named", "all arguments"])
def pay(request: pytest.FixtureRequest, world: World) -> Tool[..., Any]:
    """A tool whose secret is in the fingerprint alone, or in the key too."""
    return pay_tool(world, request.param)


def test_an_exchange_in_two_steps_pays_once(pay: Tool[..., Any], world: World, executor_of: Make) -> None:
    """Begun by the old secret, asked again while both are read and after the switch: always the one effect."""
    before = executor_of(pay, secret=OLD)
    first = before.call("pay", ASKED, task="t")
    both = executor_of(pay, secret=[NEW, OLD])
    assert (first.code, both.call("pay", ASKED, task="t").code) == ("ok", "replayed")
    both.switch_secret()
    later = both.call("pay", ASKED, task="t")
    assert (later.code, later.effect_id) == ("replayed", first.effect_id)
    assert len(world.requests) == 1


def test_what_is_begun_by_one_is_found_by_the_other(pay: Tool[..., Any], world: World, executor_of: Make) -> None:
    """Until the switch everybody writes by the old secret, afterwards by the new one, whoever is asked."""
    old, both = executor_of(pay, secret=OLD), executor_of(pay, secret=[NEW, OLD])
    first = both.call("pay", ASKED, task="t")
    assert old.call("pay", ASKED, task="t").effect_id == first.effect_id
    both.switch_secret()
    second = both.call("pay", ASKED | {"payee": "gym"}, task="t")
    third = executor_of(pay, secret=[OLD, NEW]).call("pay", ASKED | {"payee": "gym"}, task="t")
    assert (second.code, third.code, third.effect_id) == ("ok", "replayed", second.effect_id)
    assert len(world.requests) == 2


def test_a_host_that_does_not_know_the_newest_refuses(pay: Tool[..., Any], world: World, executor_of: Make) -> None:
    """It opens the ledger no more, and one that runs already sends nothing: it would name the same effect anew."""
    old, both = executor_of(pay, secret=OLD), executor_of(pay, secret=[NEW, OLD])
    first = both.call("pay", ASKED, task="t")
    both.switch_secret()
    seen = old.call("pay", ASKED, task="t")
    assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
    assert "this call sent nothing" in seen.text
    for secret in (OLD, [OLD, OLDEST], OLDEST):
        with pytest.raises(UsageError, match="a secret that was not given"):
            executor_of(pay, secret=secret)
    with pytest.raises(UsageError, match="a secret that was not given"):
        executor_of(pay, secret=NEW)  # what the old one has named would be paid again
    assert world.effects == [first.effect_id]


def test_an_earlier_secret_is_retired_by_name(pay: Tool[..., Any], world: World, executor_of: Make) -> None:
    """Only an earlier one can be, and then the newest alone is enough."""
    both = executor_of(pay, secret=[NEW, OLD])
    both.call("pay", ASKED, task="t")
    with pytest.raises(UsageError, match="not an earlier one"):
        both.retire_secret(NEW)
    with pytest.raises(UsageError, match="not an earlier one"):
        both.retire_secret(OLDEST)
    executor_of(pay, secret=[OLDEST, NEW]).switch_secret()
    both = executor_of(pay, secret=[OLDEST, NEW])
    both.retire_secret(NEW)
    executor_of(pay, secret=OLDEST)


class Switch:
    """Switches the secret at a step of another host's call, as an operator might just then."""

    def __init__(self) -> None:
        self.at = ""
        self.done = False
        self.host: Executor | None = None

    def __call__(self, moment: str, step: str, tool: str, effect_id: str) -> None:
        if (moment, step) == ("before", self.at) and self.host is not None and not self.done:
            self.done = True
            self.host.switch_secret()


def test_a_switch_between_name_and_begin_names_nothing_twice(
    pay: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """A call that was named by the old secret does not begin once the new one writes; asked again it does, once."""
    switch = Switch()
    old, other = executor_of(pay, secret=[OLD]), executor_of(pay, secret=[NEW, OLD])
    assert old.call("pay", ASKED | {"payee": "first"}, task="t").code == "ok"
    slow = executor_of(pay, secret=[NEW, OLD], observer=switch)
    switch.host, switch.at = other, "Start"
    seen = slow.call("pay", ASKED, task="t")
    assert switch.done, "the switch fell into the call"
    assert (seen.code, len(world.requests)) == ("ledger_unavailable", 1)
    assert slow.call("pay", ASKED, task="t").code == "ok"
    assert other.call("pay", ASKED, task="t").code == "replayed"
    assert len(world.requests) == 2


def test_a_begin_by_the_new_name_sees_what_the_old_name_has(
    pay: Tool[..., Any], world: World, executor_of: Make
) -> None:
    """A call that found nothing by either name does not begin when the old one was begun and switched meanwhile."""
    old, both = executor_of(pay, secret=OLD), executor_of(pay, secret=[NEW, OLD])
    assert old.call("pay", ASKED | {"payee": "first"}, task="t").code == "ok"
    both.switch_secret()

    class Meanwhile:
        done = False

        def __call__(self, moment: str, step: str, tool: str, effect_id: str) -> None:
            if (moment, step) == ("before", "Start") and not self.done:
                self.done = True
                back = executor_of(pay, secret=[OLD, NEW])
                back.switch_secret()
                assert back.call("pay", ASKED, task="t").code == "ok"
                both.switch_secret()

    slow = executor_of(pay, secret=[NEW, OLD], observer=Meanwhile())
    seen = slow.call("pay", ASKED, task="t")
    assert seen.code in ("ledger_unavailable", "replayed", "key_conflict")
    assert slow.call("pay", ASKED, task="t").code == "replayed"
    assert len(world.requests) == 2


@pytest.mark.parametrize("secret", [b"short", [], [b"short"], "text of sixteen!", 7, [OLD, b""]])
def test_what_is_no_secret_is_refused(pay: Tool[..., Any], executor_of: Make, secret: Any) -> None:
    """Too short, empty or no bytes: said to the developer."""
    with pytest.raises(UsageError, match="at least 16 random bytes"):
        executor_of(pay, secret=secret)


def test_a_secret_shows_in_no_repr(pay: Tool[..., Any], executor_of: Make) -> None:
    """Neither an executor nor what it is made of shows its secret."""
    executor = executor_of(pay, secret=OLD)
    assert "oooo" not in repr(executor) + repr(vars(executor))
