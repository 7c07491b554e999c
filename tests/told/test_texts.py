"""Every text as a model reads it, in ordinary words. Who changes one sees here what it has become."""

from __future__ import annotations

import pytest
from told.inputs import GIVEN, told

from counterfoil.codes import CODES

TEXTS = {
    "ok": """\
charge_card succeeded (code: ok).
Reason: It is done.
Result: {"payment": "pi_1"}
Next action: Go on; do not call charge_card for this again.
""",
    "read": """\
charge_card succeeded (code: read).
Reason: It was read.
Next action: Go on.
""",
    "verified": """\
charge_card succeeded (code: verified).
Reason: The answer was lost, and looking showed that it had been carried out.
Result: {"payment": "pi_1"}
Next action: Go on; do not call charge_card for this again.
""",
    "replayed": """\
charge_card succeeded (code: replayed).
Reason: It had been done before; this is the stored result, nothing was sent again.
Result: {"payment": "pi_1"}
Next action: Go on. Only if another one is really wanted, ask for a further occurrence of it.
""",
    "unverified": """\
charge_card succeeded (code: unverified).
Reason: It was reported as done, and a look has not seen it yet.
Result: {"payment": "pi_1"}
Next action: Go on, and say that it is not confirmed yet; do not call charge_card for this again.
""",
    "expired": """\
charge_card succeeded (code: expired).
Reason: It was carried out long ago; its result is no longer kept.
Next action: Go on; do not call charge_card for this again.
""",
    "value_not_stored": """\
charge_card succeeded (code: value_not_stored).
Reason: It is done; its result could not be kept.
Next action: Go on; if the result is needed, it has to be read where it was made. Do not call charge_card for this again.
""",
    "in_progress": """\
charge_card may or may not have had its effect (code: in_progress).
Reason: Another call for the same thing is under way.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Do not call charge_card for this again, in any wording. Call check_effect with effect_id cf-f2rzzmhi6bdmomomvrqm4lpsv3ca in 30 s.
""",
    "effect_unknown": """\
charge_card may or may not have had its effect (code: effect_unknown).
Reason: The answer was lost: it may have been carried out, or may still be.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Do not call charge_card for this again, in any wording. Call check_effect with effect_id cf-f2rzzmhi6bdmomomvrqm4lpsv3ca in 30 s.
""",
    "look_forbidden": """\
charge_card may or may not have had its effect (code: look_forbidden).
Reason: The answer was lost, and looking is refused: its credential is not accepted.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Do not call charge_card for this again, in any wording. Report that the credential of charge_card is refused.
""",
    "look_alike": """\
charge_card may or may not have had its effect (code: look_alike).
Reason: The answer was lost; a similar one exists, which is no proof that this one was carried out.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Do not call charge_card for this again, in any wording. Call check_effect with effect_id cf-f2rzzmhi6bdmomomvrqm4lpsv3ca in 30 s.
""",
    "incomplete": """\
charge_card was carried out, but not as it should be (code: incomplete).
Reason: A part of it was carried out, a part was not.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Stop and report this to a person; do not call charge_card again.
""",
    "applied_more_than_once": """\
charge_card was carried out, but not as it should be (code: applied_more_than_once).
Reason: It was carried out, and more than one match was found.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Report this to a person; do not call charge_card for this again.
""",
    "revoked": """\
charge_card had no effect (code: revoked).
Reason: It was taken back before it had an effect; the provider refuses it from now on.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Go on; call charge_card again only if it is wanted after all.
""",
    "ended": """\
charge_card was taken back (code: ended).
Reason: It was carried out, and taken back later; another one is a further occurrence of it.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Go on; do not call charge_card for this again.
""",
    "revoking": """\
charge_card may or may not have had its effect (code: revoking).
Reason: It is being taken back, and the end of that is not known yet.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Do not call charge_card for this again, in any wording. Call check_effect with effect_id cf-f2rzzmhi6bdmomomvrqm4lpsv3ca in 30 s.
""",
    "conflict": """\
charge_card had no effect (code: conflict).
Reason: It does not fit what is there; nothing happened.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Use another amount_minor.
""",
    "invalid_arguments": """\
charge_card had no effect (code: invalid_arguments).
Reason: The arguments are not valid.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Correct amount_minor and call charge_card again.
""",
    "unknown_tool": """\
charge_card had no effect (code: unknown_tool).
Reason: There is no tool of this name.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Call one of the known tools: charge_card, refund_card, check_effect.
""",
    "not_found": """\
charge_card had no effect (code: not_found).
Reason: Nothing has this name.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Correct amount_minor and call charge_card again.
""",
    "no_results": """\
charge_card had no effect (code: no_results).
Reason: Nothing matches.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Widen amount_minor and call charge_card again.
""",
    "ambiguous": """\
charge_card had no effect (code: ambiguous).
Reason: More than one fits; nothing happened.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Choose one of the candidates for amount_minor and call charge_card again.
""",
    "possible_duplicate": """\
charge_card had no effect (code: possible_duplicate).
Reason: It resembles one that exists already; nothing was sent.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Ask the user whether a separate one is wanted. Only if it is, call charge_card again with what sets it apart.
""",
    "rejected": """\
charge_card had no effect (code: rejected).
Reason: It was refused; nothing happened.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Change amount_minor and call charge_card again.
""",
    "key_conflict": """\
charge_card had no effect (code: key_conflict).
Reason: The same amount_minor was used before with other arguments; nothing was sent or changed.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Use another amount_minor only if a separate one is really wanted.
""",
    "rate_limited": """\
charge_card had no effect (code: rate_limited).
Reason: Too many requests; nothing happened.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Call charge_card again with the same arguments in 30 s.
""",
    "unavailable": """\
charge_card had no effect (code: unavailable).
Reason: The request did not arrive; nothing happened.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Call charge_card again with the same arguments in 30 s.
""",
    "forbidden": """\
charge_card had no effect (code: forbidden).
Reason: It is not permitted; nothing happened.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Stop and report this to a person; do not call charge_card again.
""",
    "repeated_call": """\
charge_card had no effect (code: repeated_call).
Reason: The same call has failed too often; nothing was sent.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Do not call charge_card for this again, in any wording. Report to the user what failed.
""",
    "budget_exhausted": """\
charge_card had no effect (code: budget_exhausted).
Reason: The budget of this task is used up; nothing was sent.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Stop and report this to a person; do not call charge_card again.
""",
    "breaker_open": """\
charge_card had no effect (code: breaker_open).
Reason: charge_card has failed several times in a row and is left alone for a while; nothing was sent.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Call charge_card again with the same arguments in 30 s.
""",
    "paused": """\
charge_card had no effect (code: paused).
Reason: A person has paused charge_card; nothing was sent.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Do not call charge_card again in this task. Report to the user that it is paused.
""",
    "ledger_unavailable": """\
charge_card may or may not have had its effect (code: ledger_unavailable).
Reason: The record of effects cannot be used now.
Rejected arguments: {"order":"A-17","amount_minor":1250}
Next action: Do not call charge_card now. Report that the record of effects is not available.
""",
}


def test_every_code_has_its_text_here() -> None:
    """No code is added without its text being read once as a whole."""
    assert list(TEXTS) == list(CODES)


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_this(name: str) -> None:
    """Word for word."""
    assert told(CODES[name], GIVEN["ordinary"]).text + "\n" == TEXTS[name]


def test_as_json_it_is_this() -> None:
    """The same parts, in the same order, as one JSON object."""
    assert told(CODES["rejected"], GIVEN["ordinary"]).message("json") == (
        '{"tool": "charge_card", "code": "rejected", "verdict": "no_effect", "reason": "It was refused; nothing happened.", '
        '"rejected_arguments": "{\\"order\\":\\"A-17\\",\\"amount_minor\\":1250}", '
        '"next_action": "Change amount_minor and call charge_card again."}'
    )
