"""Every wording that is not the table's own: what the circumstances of a call put in its place.

The same is held against it as against the table: the order, the cap, and, where nothing is known, no word that could be
read as an invitation. Who changes a wording sees here what it has become.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from told.inputs import EFFECT_ID, FORGED, without_result
from told.test_every_code import DENIALS, FORBIDDANCE, INVITATIONS, LABELS

from counterfoil import Observation, Verdict
from counterfoil.codes import CODES
from counterfoil.effect import Lost, Proof, Row
from counterfoil.flow import _without_ledger
from counterfoil.guard import Blocked
from counterfoil.message import TOKENS, TOKENS_LEAST, tokens
from counterfoil.observe import Words, about
from counterfoil.pacing import Course
from counterfoil.runner.naming import NOT_NAMED
from counterfoil.steps import Request
from counterfoil.telling import (
    WHY_NOT_TAKEN_BACK,
    applied_words,
    blocked_call,
    conflict,
    ending_words,
    no_compensation,
    no_room,
    not_taken_back,
    stopped,
    under_way,
    unknown_words,
)

LONG: Final = "t" * 64
NAMES: Final = {"ordinary": "pay", "long": LONG}
OLD, NEW = '{"amount":10,"order":"A"}', '{"amount":12,"order":"A"}'


def row(tool: str, verdict: Verdict, **more: object) -> Row:
    """The row of an effect of this tool, as it is looked at next in 30 s."""
    made = Row(
        key=b"k", id=EFFECT_ID, tenant="", tool=tool, task="", fingerprint=b"f", canonical_version=1, arguments="{}",
        echo=OLD, verdict=verdict, look_at=30_000_000, now=0, attempts=1,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def unknown(tool: str, **more: object) -> Row:
    return row(tool, Verdict.EFFECT_UNKNOWN, **more)


def applied(tool: str, **more: object) -> Row:
    return row(tool, Verdict.EFFECT_APPLIED, proof=Proof.RETURNED, **more)


def none(tool: str, proof: Proof) -> Row:
    return row(tool, Verdict.NO_EFFECT, proof=proof, code="unavailable")


def doubt(tool: str, **how: object) -> Observation:
    looks = bool(how.pop("looks", True))
    return about(unknown(tool), unknown_words(tool, unknown(tool), looks=looks, **how))  # type: ignore[arg-type]


def away(tool: str, **course: int | bool) -> Observation:
    request = Request(
        tool=tool, key=b"", fingerprint=b"", holder="", echo="{}", key_names="", looks=True, keyed=False,
        speaks_for_key=False, verifies=False, transacts=False, patience_s=1, attempts_max=1, wait_s=1, wait_max_s=30,
    )  # fmt: skip
    return _without_ledger(request, Course(1.0, **course), None)  # type: ignore[arg-type]


def refused(tool: str, code: str = "repeated_call", cap: str = "", **how: Any) -> Observation:
    return blocked_call(tool, None, Blocked(code, cap, 6, 6, **how), NEW)


def twin(tool: str, **how: Any) -> Observation:
    return refused(tool, "possible_duplicate", "", twin=EFFECT_ID, age_us=180_000_000, **how)


def verified(tool: str) -> Observation:
    found = applied(tool, value='{"receipt":1}')
    found = replace(found, proof=Proof.FOUND)
    return about(found, applied_words(tool, found, mine=False, looked=True, interrupted=True))


def unkept(tool: str) -> Observation:
    large = applied(tool, value_note="its result is larger than what is kept.")
    return about(large, applied_words(tool, large, mine=True, looked=False, interrupted=False))


def ended(tool: str, proof: Proof) -> Observation:
    return about(none(tool, proof), ending_words(tool, NEW, none(tool, proof)))


def unnamed(tool: str) -> Observation:
    words = Words(tool=tool, code="ledger_unavailable", reason=NOT_NAMED, retry_after_s=5)
    return about(None, words, verdict=Verdict.EFFECT_UNKNOWN)


UNTIL_KNOWN: Final = "Do not call pay for this again, in any wording."
CHECK: Final = f"{UNTIL_KNOWN} Call check_effect with effect_id {EFFECT_ID} in 30 s."
REPORT: Final = f"{UNTIL_KNOWN} Report this: a person has to check it."
STOP_DOUBT: Final = f"{UNTIL_KNOWN} Stop and report this: a person has to check it."
AWAY: Final = "Do not call pay now. Report that the record of effects is not available."
STOP: Final = "Stop and report this to a person; do not call pay again."
AGAIN: Final = "Call pay again with the same arguments in 5 s."
NO_MORE: Final = f"{UNTIL_KNOWN} Report to the user what failed."
ASK: Final = "Ask the user whether a separate one is wanted. Only if it is, "

# Who words it, and for a tool called pay: the code, the reason and the next action.
UNKNOWN: Final[dict[str, tuple[Callable[[str], Observation], str, str, str]]] = {
    "with a status": (
        lambda tool: doubt(tool, outcome=Lost("x", status=504)), "effect_unknown",
        "The status 504 came as answer: it may have been carried out, or may still be.", CHECK),
    "where nothing can look": (
        lambda tool: doubt(tool, looks=False), "effect_unknown",
        "The answer was lost: it may have been carried out, or may still be.", REPORT),
    "with a key that has expired": (
        lambda tool: doubt(tool, looks=False, key_expired=True), "effect_unknown",
        "It may have been carried out, and its key has expired: it can no longer prevent a double.",
        REPORT),
    "asked for with other arguments": (
        lambda tool: conflict(tool, "order", NEW, unknown(tool), frozenset()), "effect_unknown",
        "An earlier call with the same order, whose arguments were not these, has no known end yet.", CHECK),
    "under way in the database": (
        lambda tool: under_way(tool, unknown(tool)), "in_progress",
        "Another call, perhaps for the same thing, is under way in the database; this one did nothing.", CHECK),
    "and no thread is free": (
        lambda tool: no_room(tool, unknown(tool), 5), "effect_unknown",
        "The answer was lost: it may have been carried out, or may still be.", CHECK),
    "at the stop of the run": (
        lambda tool: stopped(doubt(tool)), "effect_unknown",
        "The answer was lost: it may have been carried out, or may still be.", STOP_DOUBT),
    "and the record of its end is pending": (
        lambda tool: away(tool, sent=True), "ledger_unavailable",
        "It was carried out or may have been; its record is pending.", AWAY),
    "tried, and the ledger is away": (
        lambda tool: away(tool, used=1), "ledger_unavailable",
        "It was tried, and whether it was carried out cannot be recorded or looked up now.", AWAY),
    "not sent by this call, and the ledger is away": (
        away, "ledger_unavailable", "The record of effects cannot be used now; this call sent nothing.", AWAY),
    "and not to be named": (
        unnamed, "ledger_unavailable",
        "The record of effects cannot say which one this is; this call sent nothing.", AWAY),
}  # fmt: skip

KNOWN: Final[dict[str, tuple[Callable[[str], Observation], str, str, str]]] = {
    "found after an interruption": (
        verified, "verified",
        "An earlier call was interrupted, or its answer lost; looking showed that it had been carried out.",
        "Go on; do not call pay for this again."),
    "with a result that could not be kept": (
        unkept, "value_not_stored", "It is done; its result is larger than what is kept.",
        "Go on; if the result is needed, it has to be read where it was made. Do not call pay for this again."),
    "absent after grace": (
        lambda tool: ended(tool, Proof.ABSENT_AFTER_GRACE), "unavailable",
        "The request did not arrive: looking after the time in which it could have found nothing.", AGAIN),
    "undone as a whole": (
        lambda tool: ended(tool, Proof.SAME_TRANSACTION), "unavailable",
        "It did not get through to its end, and all of it was undone; nothing happened.", AGAIN),
    "no thread is free": (
        lambda tool: no_room(tool, None, 5), "unavailable",
        "Too many calls are under way here, so nothing was sent.", AGAIN),
    "a key that is taken": (
        lambda tool: conflict(tool, "order", NEW, applied(tool), frozenset()), "key_conflict",
        "The same order was used before with other arguments; nothing was sent or changed.",
        "Use another order only if a separate one is really wanted."),
    "a key that is taken, at the stop of the run": (
        lambda tool: stopped(conflict(tool, "order", NEW, applied(tool), frozenset())), "key_conflict",
        "The same order was used before with other arguments; nothing was sent or changed.", STOP),
    "no compensation": (
        lambda tool: no_compensation(applied(tool)), "conflict",
        "pay has no compensation, and what it did stands; a person has to make up for it.",
        "Report this to a person."),
    "too many equal answers": (
        lambda tool: refused(tool, cap="same_answers"), "repeated_call",
        "It gave the same answer 6 times in a row; it was not asked again.", NO_MORE),
    "too many failures of a tool": (
        lambda tool: refused(tool, cap="tool_failures"), "repeated_call",
        "pay has failed 6 times in this turn; nothing was sent.", NO_MORE),
    "the same call, at the stop of the run": (
        lambda tool: refused(tool, cap="wrong_input", stop=True), "repeated_call",
        "The same call has failed too often; nothing was sent.", STOP),
    "paused, at the stop of the run": (
        lambda tool: refused(tool, "paused", stop=True), "paused",
        "A person has paused pay; nothing was sent.", STOP),
    "the breaker is open, at the stop of the run": (
        lambda tool: refused(tool, "breaker_open", stop=True, wait_us=5_000_000), "breaker_open",
        "pay has failed several times in a row and is left alone for a while; nothing was sent.", STOP),
    "the calls of a turn": (
        lambda tool: refused(tool, "budget_exhausted", "calls_per_turn"), "budget_exhausted",
        "The 6 calls of this turn are used up; nothing was sent.", STOP),
    "the calls of a task": (
        lambda tool: refused(tool, "budget_exhausted", "calls_per_task"), "budget_exhausted",
        "The 6 calls of this task are used up; nothing was sent.", STOP),
    "the calls of a tool": (
        lambda tool: refused(tool, "budget_exhausted", "calls_per_tool"), "budget_exhausted",
        "The 6 calls of pay in this task are used up; nothing was sent.", STOP),
    "the money": (
        lambda tool: refused(tool, "budget_exhausted", "spend.eur", wanted=3, unit="eur"), "budget_exhausted",
        "Of the budget of 6 (minor units of eur) 0 are left, this costs 3; nothing was sent.", STOP),
    "a look-alike that a model may confirm": (
        lambda tool: twin(tool, asks_model=True), "possible_duplicate",
        f"The same with another key was carried out 3 minutes ago ({EFFECT_ID}); nothing was sent.",
        f"{ASK}call pay again with a new occurrence."),
    "a look-alike that a person confirms": (
        twin, "possible_duplicate",
        f"The same with another key was carried out 3 minutes ago ({EFFECT_ID}); nothing was sent.",
        f"{ASK}stop and report it: a person confirms."),
    "a look-alike of which nothing is known": (
        lambda tool: twin(tool, asks_model=True, unknown=True), "possible_duplicate",
        f"The same with another key may have been carried out 3 minutes ago ({EFFECT_ID}); nothing was sent.",
        f"{UNTIL_KNOWN} Call check_effect with effect_id {EFFECT_ID}."),
    **{
        f"not taken back: {guard}": (
            lambda tool, guard=guard: not_taken_back(tool, guard), "conflict",  # type: ignore[misc]
            why, "Check the effect first; nothing was sent.")
        for guard, why in WHY_NOT_TAKEN_BACK.items()
    },
}  # fmt: skip
EVERY: Final = UNKNOWN | KNOWN


@pytest.mark.parametrize("name", EVERY)
def test_the_wording_is_this(name: str) -> None:
    """Word for word, and with the verdict that is known."""
    words, code, reason, action = EVERY[name]
    seen = words("pay")
    assert (seen.code, seen.reason, seen.next_action) == (code, reason, action)
    assert (seen.verdict is Verdict.EFFECT_UNKNOWN) == (name in UNKNOWN)
    assert CODES[code].verdict in (str(seen.verdict), "any")


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("tool", NAMES.values(), ids=NAMES)
def test_the_parts_stand_in_their_order_and_fit(name: str, tool: str) -> None:
    """As for the table: code first, ONE next action last and whole, one line each, at most 100 tokens; as JSON too."""
    seen = EVERY[name][0](tool)
    lines = seen.text.split("\n")
    assert lines[0].endswith(f"(code: {seen.code}).")
    order = [LABELS.index(next(label for label in LABELS if line.startswith(label))) for line in lines[1:]]
    assert order == sorted(set(order)), seen.text
    assert lines[-1] == f"Next action: {seen.next_action}"
    assert seen.text.splitlines() == lines
    assert tokens(without_result(seen)) <= TOKENS, seen.text
    least = seen.message(tokens=TOKENS_LEAST).split("\n")
    assert (least[0], least[-1]) == (lines[0], lines[-1])
    content = json.loads(seen.message("json"))
    assert (content["code"], content["next_action"]) == (seen.code, seen.next_action)


@pytest.mark.parametrize("name", UNKNOWN)
def test_nothing_unknown_invites_a_retry(name: str) -> None:
    """No wording of an unknown effect has a word in it that could be read as an invitation or a denial."""
    seen = UNKNOWN[name][0]("pay")
    assert FORBIDDANCE.search(seen.next_action)
    own = "\n".join(line for line in seen.text.split("\n") if not line.startswith("Rejected arguments: "))
    assert not INVITATIONS.search(FORBIDDANCE.sub("", own)), own
    assert not DENIALS.search(own.replace("this call sent nothing", "").replace("this one did nothing", "")), own
    assert seen.value is None


def test_forged_names_of_a_key_are_one_line() -> None:
    """What a model put into the arguments of a conflict breaks no line of it."""
    sent = json.dumps({"amount": FORGED, "order": "A"})
    seen = conflict("pay", "order", sent, applied("pay"), frozenset())
    assert [line.partition(":")[0] for line in seen.text.splitlines()].count("Next action") == 1
