"""What the page says of the four agents is what they do: a part of its episodes, played again."""

from __future__ import annotations

import pytest
from episodes.agents import AGENTS, understood
from episodes.table import LEVELS, PAGE, Tally, page, played

from counterfoil.codes import CODES

PART = range(25)


@pytest.mark.parametrize("level", LEVELS)
def test_who_obeys_the_next_action_pays_once_and_says_what_is_true(level: str) -> None:
    """Through Counterfoil, at each level of faults: nothing paid twice, nothing untrue said, every goal reached."""
    tally = played("through Counterfoil", level, PART)
    assert (tally.doubled, tally.untrue, tally.reported, tally.reached) == (0, 0, 0, len(PART))


def test_the_others_do_not() -> None:
    """The same seeds at the highest level: who repeats pays twice, also after a look; who never does says untruths."""
    assert played("tries again", "one in two", PART).doubled > 0
    assert played("looks once, then tries again", "one in two", PART).doubled > 0
    assert played("never tries again", "one in two", PART).untrue > 0


def test_an_episode_is_its_seed() -> None:
    """The same seeds give the same tally."""
    for agent in AGENTS:
        assert played(agent, "one in two", range(5)) == played(agent, "one in two", range(5))


def test_the_page_is_made_by_the_program() -> None:
    """The committed page has the words of `page` and a row for each level and agent, none of Counterfoil's doubled."""
    text = PAGE.read_text(encoding="utf-8")
    bare = page([])
    head, foot = bare.split("|---|---|---:|---:|---:|---:|---:|---:|\n")
    assert text.startswith(head)
    assert text.endswith(foot)
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| one")]
    assert [(row[0], row[1]) for row in rows] == [(level, agent) for level in LEVELS for agent in AGENTS]
    for row in rows:
        told = Tally(row[1], row[0], *map(int, row[2:]))
        assert told.episodes >= 1000
        if told.agent == "through Counterfoil":
            assert (told.doubled, told.untrue) == (0, 0)
        else:  # these take no time: each row is played again as a whole
            assert told == played(told.agent, told.level, range(told.episodes))


@pytest.mark.parametrize("code", CODES)
def test_each_next_action_of_the_table_is_one_move(code: str) -> None:
    """An agent that reads nothing else knows what to do: the actions of all codes are of a few plain kinds."""
    action = CODES[code].next_action.format(
        tool="pay", effect_id="cf-1", seconds=3, field="order", known="pay", after="", hint="", alternative="refund"
    )
    assert understood(action) is not None
