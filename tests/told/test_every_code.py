"""Every code in ordinary, long and hostile words: the order of the parts, the cap, and what no text may say."""

from __future__ import annotations

import json
import re

import pytest
from told.inputs import FORGED, GIVEN, PAGE, told, verdict_of, whole_page, without_result

from counterfoil import Verdict
from counterfoil.codes import CODES, Code
from counterfoil.message import TOKENS, TOKENS_LEAST, tokens

EVERY = [pytest.param(code, id=name) for name, code in CODES.items()]
UNKNOWN = [pytest.param(code, id=name) for name, code in CODES.items() if verdict_of(code) is Verdict.EFFECT_UNKNOWN]
# Everything that could be read as "do it once more": the whole vocabulary, but for what forbids it.
INVITATIONS = re.compile(
    r"\bagain\b|\bretr(y|ies|ying)\b|\bre-?try|\bre-?send|\brepeat|\bonce more\b|\banother (key|wording|one)\b"
    r"|\b(use|make|try|with|ask for) another\b|\bother (arguments|wording|key)\b|\bdifferent(ly)?\b|\btry\b"
    r"|\bnew (key|call|attempt)\b|\breword|\brephras|\boccurrence\b|\bsecond (time|attempt)\b|\blater\b"
    r"|\bchange\b|\bcorrect\b|\bplease\b",
    re.IGNORECASE,
)
FORBIDDANCE = re.compile(r"Do not call \S+ (for this )?again, in any wording\.|Do not call \S+ now\.")
DENIALS = re.compile(r"nothing (has )?happened|had no effect|was not (done|sent|carried out)|\bfail", re.IGNORECASE)
LABELS = ("Reason: ", "Result: ", "Rejected arguments: ", "Candidates: ", "Next action: ")


@pytest.mark.parametrize("code", EVERY)
def test_the_parts_stand_in_their_order_and_fit(code: Code) -> None:
    """What failed with its code, why, what was sent, ONE next action, whole and last; at most 100 tokens."""
    for given in GIVEN.values():
        seen = told(code, given)
        lines = seen.text.split("\n")
        assert lines[0].startswith(seen.tool)
        assert lines[0].endswith(f"(code: {code.name}).")
        assert lines[-1] == f"Next action: {' '.join(seen.next_action.split())}"
        order = [LABELS.index(next(label for label in LABELS if line.startswith(label))) for line in lines[1:]]
        assert order == sorted(set(order)), seen.text
        assert lines[1].startswith("Reason: ")
        assert seen.text.splitlines() == lines, "no part breaks a line"
        assert tokens(without_result(seen)) <= TOKENS, seen.text
        seen.text.encode("utf-8")


@pytest.mark.parametrize("code", EVERY)
def test_as_json_the_order_and_the_cap_are_the_same(code: Code) -> None:
    """The JSON form has the parts in the same order, is one JSON object on one line, and costs no more."""
    for given in GIVEN.values():
        seen = told(code, given)
        for most in (TOKENS, TOKENS_LEAST):
            text = seen.message("json", most)
            content = json.loads(text)
            order = ["tool", "code", "verdict", "reason", "rejected_arguments", "candidates", "result", "next_action"]
            assert list(content) == [name for name in order if name in content]
            assert content["code"] == code.name
            assert content["next_action"] == " ".join(seen.next_action.split())
            assert len(text.splitlines()) == 1
            least = {name: content[name] for name in ("tool", "code", "next_action")}
            alone = tokens(json.dumps(least, ensure_ascii=False))
            result = len(json.dumps({"result": seen.value})) if seen.value is not None else 0
            assert tokens(text) <= max(most, alone) + result // 4 + 1, text


@pytest.mark.parametrize("code", EVERY)
def test_a_smaller_cap_cuts_everything_but_code_and_action(code: Code) -> None:
    """At 50 tokens code and action stand whole; what is above the cap then is they alone and the least of a reason."""
    for given in GIVEN.values():
        seen = told(code, given)
        text = seen.message(tokens=TOKENS_LEAST)
        head, action = text.split("\n")[0], text.split("\n")[-1]
        assert (head, action) == (seen.text.split("\n")[0], seen.text.split("\n")[-1])
        short = "\n".join(line for line in text.split("\n") if not line.startswith("Result: "))
        assert tokens(short) <= max(TOKENS_LEAST, tokens(head) + tokens(action) + 20), text


@pytest.mark.parametrize("code", UNKNOWN)
def test_nothing_unknown_invites_a_retry(code: Code) -> None:
    """No text of an unknown effect, in no words, has a word in it that could be read as an invitation or a denial."""
    for given in GIVEN.values():
        seen = told(code, given)
        assert seen.retry == "check"
        assert FORBIDDANCE.search(seen.next_action), seen.next_action
        own = "\n".join(
            line for line in seen.text.split("\n") if not line.startswith(("Rejected arguments: ", "Candidates: "))
        )
        own = own.replace(given.reason.strip(), "") if given.reason else own
        assert not INVITATIONS.search(FORBIDDANCE.sub("", own)), own
        assert not DENIALS.search(own), own


def test_the_lint_sees_what_it_should() -> None:
    """The vocabulary finds an invitation in the row of an effect that did not happen: the test above can fail."""
    assert INVITATIONS.search(told(CODES["unavailable"], GIVEN["ordinary"]).text)
    assert INVITATIONS.search("Please try later")
    assert DENIALS.search("It failed")


def test_forged_lines_are_no_lines() -> None:
    """A line break in a field's name, an argument or a candidate does not become a line of the message."""
    seen = told(CODES["invalid_arguments"], GIVEN["forged lines"])
    assert FORGED.split("\n")[1].split("\u2028")[0] not in seen.text.split("\n")
    assert [line.partition(":")[0] for line in seen.text.splitlines()].count("Next action") == 1


def test_the_page_is_made_from_the_table() -> None:
    """`python tests/told/inputs.py` writes what the documentation shows, with what each message costs."""
    assert PAGE.read_text(encoding="utf-8") == whole_page()
