"""C53: small variations are one call to the loop guard, and a model that goes on is stopped."""

from __future__ import annotations

from typing import Annotated

import sqlalchemy as sa
from cases.scene import database
from guards.conftest import clock, executor_of, world
from guards.failing import Service
from outside import Make

from counterfoil import Alike, Executor, Policy, Tool, tool
from counterfoil.ledger.schema import repeats

__all__ = ["clock", "executor_of", "world"]

VARIANTS = (
    {"path": "/a/b/", "limit": 10, "q": "two words"},
    {"path": "/a/b", "limit": "10", "q": "two words"},
    {"path": " /a/b ", "limit": 10, "q": "two  words"},
    {"path": "/A/B", "limit": 10, "q": " two words"},
)


def search_tool(service: Service) -> Tool[..., str]:
    """A search whose path is declared to be blind to case."""

    @tool(read_only=True, policy=Policy(attempts_max=1))
    def search(path: Annotated[str, Alike(path=True, ignore_case=True)], limit: int, q: str) -> str:
        """Search below a path. Use it to find a file."""
        return service.answer((path, limit, q))

    return search


def variants_asked(executor: Executor) -> list[str]:
    """The codes of the four variants, one after another in one turn."""
    return [executor.call("search", one, task="t", turn=1).code for one in VARIANTS]


def test_variants_count_as_one(executor_of: Make, ledger_url: str) -> None:
    """Slashes, case (where declared), spaces, and '10' for 10 (which does not fit) are one fingerprint: two failures,
    then the block."""
    service = Service()
    service.always = "rejected"
    executor = executor_of(search_tool(service))
    assert variants_asked(executor) == ["card_declined", "invalid_arguments", "repeated_call", "repeated_call"]
    assert len(service.asked) == 1
    with database(ledger_url) as engine, engine.connect() as connection:
        counted = connection.execute(sa.select(repeats).where(repeats.c.similar != b"")).mappings().all()
    assert [(one["wrong"], one["blocked"]) for one in counted] == [(2, 2)]
    other = VARIANTS[0] | {"q": "Two words"}
    assert executor.call("search", other, task="t", turn=1).code == "card_declined", "case counts where not declared"


def test_who_goes_on_after_the_block_is_stopped_in_the_same_words(executor_of: Make) -> None:
    """The second refusal stops the run; the text does not grow, however often it is ignored."""
    service = Service("rejected", "rejected")
    executor = executor_of(search_tool(service))
    for one in VARIANTS[:3:2]:
        executor.call("search", one, task="t", turn=1)
    ignored = [executor.call("search", VARIANTS[0], task="t", turn=1) for _ in range(6)]
    assert {one.code for one in ignored} == {"repeated_call"}
    assert [one.stop for one in ignored] == [None] + ["repeated_call"] * 5
    assert len({one.text for one in ignored[1:]}) == 1
    assert len(ignored[1].text) <= len(ignored[0].text)
    assert "Stop" in ignored[1].next_action
    assert len(service.asked) == 2


def test_arguments_that_never_fit_are_counted_too(executor_of: Make) -> None:
    """The same wrong arguments, reworded in their spaces: told twice what is wrong, then to stop calling."""
    executor = executor_of(search_tool(Service()))
    bad = ({"path": "/a", "limit": "many", "q": "x"}, {"path": "/a/", "limit": " many", "q": "x"})
    seen = [executor.call("search", bad[number % 2], task="t", turn=1) for number in range(5)]
    assert [one.code for one in seen] == ["invalid_arguments"] * 2 + ["repeated_call"] * 3
    assert seen[-1].stop == "repeated_call"
    good = {"path": "/a", "limit": 3, "q": "x"}
    assert executor.call("search", good, task="t", turn=1).code == "read", "other arguments are let through"


def test_a_tool_that_does_not_exist_is_not_asked_for_for_ever(executor_of: Make) -> None:
    """An unknown tool is named as unknown twice; a model that goes on is stopped."""
    executor = executor_of(search_tool(Service()))
    seen = [executor.call("find", {"q": number}, task="t", turn=1) for number in range(4)]
    assert [one.code for one in seen] == ["unknown_tool"] * 2 + ["repeated_call"] * 2
    assert seen[-1].stop == "repeated_call"
