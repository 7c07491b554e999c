"""C14: an approval loop replays the node and its side effects (https://github.com/langchain-ai/langgraph/issues/7780).

A pause for a person inside a loop makes the runtime run the node from its first line at each answer, so that the calls
before the pause are made on every round. Each round here is that: a fresh executor, and the function from the top.
"""

from __future__ import annotations

from typing import Any

from cases.messages import assert_applied
from cases.scene import details, find, incidents, looked, named, post, sent, story, until
from provider import Provider

from counterfoil import Effect, Executor, Observation, Policy, Tool, tool

POLICY = Policy(timeout_s=20.0, grace_s=5.0)
RUN = "run-17"
ANSWERS = ("please revise",) * 4 + ("approved",)


def writing(name: str, provider: Provider) -> Tool[..., Any]:
    @tool(key=("subject",), name=name, sends="once", policy=POLICY)
    def write(effect: Effect, subject: str) -> dict[str, str]:
        """Write something about a subject where others see it."""
        return post(provider, effect, {"tool": name, "subject": subject})

    write.postcondition(lambda effect: find(provider, effect))
    return write


def node(executor: Executor, answer: str | None) -> tuple[Observation, Observation | None]:
    """The function that the runtime runs again. `answer` None: it pauses for the first time."""
    ticket = executor.call("create_ticket", {"subject": "x"}, task=RUN, call_id=f"after {answer}")
    if answer != "approved":
        return ticket, None
    return ticket, executor.call("publish", {"subject": "x"}, task=RUN)


def test_the_node_is_run_again_at_each_answer(ledger_url: str, provider: Provider) -> None:
    """Six runs of the function, one ticket and one publication: each later run is told the first result, as done
    already. The ticket's record has one dispatch, and every replay."""
    seen: list[Observation] = []
    published: list[Observation] = []
    for answer in (None, *ANSWERS):
        with Executor(ledger_url, [writing("create_ticket", provider), writing("publish", provider)]) as executor:
            ticket, publication = node(executor, answer)
        seen.append(ticket)
        if publication is not None:
            published.append(publication)
    (publication,) = published
    assert_applied(publication, code="ok")
    first, *replays = seen
    assert_applied(first, code="ok")
    for one in replays:
        assert_applied(one, code="replayed")
        assert one.replayed
        assert (one.value, one.effect_id) == (first.value, first.effect_id)
        assert "It had been done before" in one.reason
    with Executor(ledger_url) as executor:
        assert {row.id for row in executor.audit.effects()} == {first.effect_id, publication.effect_id}
        assert story(executor, first.effect_id) == [("begun", 1), ("returned", 1)]
        until(lambda: len(executor.audit.sightings(named(first.effect_id))) == len(ANSWERS), "replays are on record")
        replayed = executor.audit.sightings(named(first.effect_id))
        assert [one["call_id"] for one in replayed] == [f"after {answer}" for answer in ANSWERS]
        assert {(one["task"], one["code"]) for one in replayed} == {(RUN, "replayed")}
        assert details(executor, first.effect_id, "begun")[0]["call_id"] == "after None"
        assert story(executor, publication.effect_id) == [("begun", 1), ("returned", 1)]
        assert incidents(executor) == []
    provider.quiesce()
    bodies = [one["body"]["tool"] for one in provider.effects()]
    assert bodies == ["create_ticket", "publish"]
    assert (len(sent(provider)), looked(provider)) == (2, 0)
