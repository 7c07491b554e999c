"""More ways to make a liar of an honest history: what was told, against what was so."""

from __future__ import annotations

from collections.abc import Iterator

from simulation.checker.corruptions import History, at, corrupts, is_joint, with_event, without

# ---------------------------------------------------------------- what was told


@corrupts
def told_none_of_what_landed(history: History) -> Iterator[History]:
    """Applied, and told as no effect."""
    for number, event in at(history, "told"):
        if event["verdict"] == "effect_applied" and not any(
            one["row"]["verdict"] == "no_effect" for _, one in at(history, "committed")
        ):
            yield with_event(history, number, verdict="no_effect", ok=False, code="unavailable", proof="never_sent")


@corrupts
def told_applied_of_what_is_not(history: History) -> Iterator[History]:
    """No effect or unknown, and told as done."""
    for number, event in at(history, "told"):
        if event["verdict"] != "effect_applied" and event["code"] != "key_conflict":
            yield with_event(history, number, verdict="effect_applied", ok=True, code="ok", proof="returned")


@corrupts
def told_by_another_proof(history: History) -> Iterator[History]:
    """True, for a reason that was never the case."""
    for number, event in at(history, "told"):
        if event["verdict"] != "effect_unknown" and event["code"] != "key_conflict" and not is_joint(history):
            yield with_event(history, number, proof="never_sent" if event["proof"] != "never_sent" else "rejected")


@corrupts
def told_before_its_call(history: History) -> Iterator[History]:
    """The call was never made."""
    for number, event in at(history, "call"):
        if any(one["call"] == event["call"] for _, one in at(history, "told")):
            yield without(history, number)


@corrupts
def told_to_repeat_it(history: History) -> Iterator[History]:
    """A doubt invites another attempt."""
    for number, event in at(history, "told"):
        if event["verdict"] == "effect_unknown":
            yield with_event(history, number, next_action="Call pay again in 5 s.")
            yield with_event(history, number, text="Next action: Use another order.")
            yield with_event(history, number, text="It may work if you retry it.")
