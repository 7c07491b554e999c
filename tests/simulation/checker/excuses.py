"""What excuses what: which broken condition of the world may make which proof false, and for which tools.

A tool that does not rely on a condition is not excused by its breaking: that is the point of this file. Each proof
names the conditions that the design rests it on; everything else leaves the library without an excuse.
"""

from __future__ import annotations

from simulation.checker.reading import Closing, Effect, Landing

# P4 rests on these: how late a request lands and is seen, how long a host stands still, clocks, a look that is honest.
ABSENCE = ("grace", "pause", "clock")
# P2 rests on these, and inside the retention on nothing else.
KEYS = ("key", "retention")
# An undo is an effect of its own: what was believed of it was believed of its original.
UNDO = ("look_lied", "returned_without_acting", "operator", "stone")


def is_excused(effect: Effect, closing: Closing, landing: Landing) -> bool:
    """Whether a broken condition that this proof rests on explains that the attempt has an effect all the same."""
    tool, number = effect.tool, closing.commit.number
    match closing.proof:
        case "never_sent":
            return effect.broke("client_resent")
        case "rejected":
            return effect.broke("acted_on_refusal", "client_resent")
        case "spoken":  # the provider stored the refusal under the key, and replays it
            return tool.keyed and (effect.broke(*KEYS) or effect.broke("acted_on_refusal", "client_resent"))
        case "absent_after_grace":
            lied = effect.broke("look_lied", before=number)
            return tool.absence_proves and (lied or effect.broke(*ABSENCE))
        case "revoked":
            stone = (tool.revokes or bool(effect.undoing)) and effect.broke("stone")
            return stone or any(one.broke(*UNDO) for one in effect.undoing)
        case "operator":
            return effect.broke("operator", "pause", "clock") or not _sent_after(effect, closing, landing)
        case _:  # same_transaction rests on nothing but the database
            return False


def _sent_after(effect: Effect, closing: Closing, landing: Landing) -> bool:
    """Whether the attempt's request left only after a person had decided: then the person was not wrong.

    What was under way is the person's own risk, and so is a host that stood still just then.
    """
    sent = [one for one in effect.of("sent") if one.get("attempt") == closing.attempt and one.number < landing.number]
    late = bool(sent) and all(one.number > closing.commit.number for one in sent)
    return late and not effect.of("paused")


def _known_from(effect: Effect, landing: Landing) -> int:
    """From when a provider may count how long it keeps a key: from the request, which may be worked on for long."""
    return min([landing.at, *(one.at for one in effect.of("sent") if one.get("key") == landing.key)])


def doubles(effect: Effect, first: Landing, second: Landing) -> bool:
    """Whether a broken condition explains two effects of one key; `first` landed first."""
    tool = effect.tool
    lower, higher = sorted((first, second), key=lambda one: one.attempt)
    kept = second.at - _known_from(effect, first) <= (tool.retention_us or 0)
    within = tool.keyed and bool(first.key) and bool(second.key) and kept
    if within and first.key == second.key:
        # F13: inside the retention a provider that keeps its promise shows one effect, whatever else broke.
        # A provider that keeps the key once its work is done works on two copies that come at once.
        copied = first.attempt == second.attempt and effect.broke("client_resent")
        racing = not tool.concurrent and (effect.broke(*ABSENCE, "operator") or copied)
        stone = first.undone is not None and effect.broke("stone")
        return effect.broke(*KEYS) or racing or stone
    if lower.attempt == higher.attempt:  # a second copy of a request that the provider knew, once it has forgotten it
        return effect.broke("client_resent") or (tool.keyed and effect.broke(*KEYS, *(() if within else ABSENCE)))
    begun = effect.begin_of(higher.attempt)
    closing = None if begun is None else effect.closing_of(lower.attempt, begun.number)
    if closing is None:  # a resend under the same key
        return tool.keyed and effect.broke(*KEYS, *(() if within else ABSENCE))
    if within and closing.proof in ("absent_after_grace", "operator"):
        return effect.broke(*KEYS)  # after these the key is kept, so it should have been the same
    return is_excused(effect, closing, lower) or (tool.keyed and effect.broke(*KEYS))
