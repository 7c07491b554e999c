"""What the model checker is asked: the sizes that are searched, and for every rule and condition the search without it.

Owns the configurations and knows nothing of how they are run. Names like `MaxAttempts` and `AtMostOneEffect` are the
constants and the properties of `docs/spec/Counterfoil.tla`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Value: TypeAlias = bool | int | str

FOR_EVER: Final = 99
SIZES: Final[Mapping[str, Value]] = {
    "MaxAttempts": 2,
    "Timeouts": "{1}",
    "Margin": 0,
    "Skew": 0,
    "Grace": 1,
    "Retention": FOR_EVER,
    "Lookers": "{a}",
}
DECLARED: Final = ("Post", "Keyed", "Racy", "Replays", "Revokes", "Person")
CONDITIONS: Final = ("WithinGrace", "EndsInRetention", "KeepsStone", "PersonIsRight", "LedgerKeeps")
RULES: Final = (
    "BeginGuarded",
    "AppliedKept",
    "OwnAttemptOnly",
    "ClosedOnce",
    "SendsNeverDecrease",
    "OverrunPushed",
    "PushUnfenced",
    "AskedTimeCounts",
    "AbsenceJudgedAtWrite",
    "GraceWaited",
    "MarginCounted",
    "FailedLookProvesNothing",
    "KeyKept",
    "LeaseWaited",
    "KeyExpires",
    "ArrivalCounted",
    "RacyWaited",
    "RenewedOnlyAnswered",
    "NeverRenewedTainted",
    "StoredOnlySpeaks",
    "EarlierOverToSpeak",
    "DeadlineChecked",
    "GateShuts",
    "LostProvesNothing",
    "SuccessUnfenced",
    "RevokeHoldsBegin",
    "RevokeResent",
    "RevokeDecides",
    "FoundBeforeRevokeIgnored",
    "RevokeOutlivesLook",
    "PersonWaits",
    "PersonBoundToVersion",
)
INVARIANTS: Final = (
    "AtMostOneEffect",
    "ClosedIsHarmless",
    "AppliedIsTrue",
    "AppliedStands",
    "SentIsBegun",
    "SuccessIsKept",
)
STEPS: Final = ("AppliedLatches", "LimitsGrow", "BeginIsPermitted", "ClosedIsOver", "RenewedIsAnswered")
ENDS: Final = "DoubtEnds"
DEFAULTS: Final[Mapping[str, Value]] = {
    **SIZES,
    **dict.fromkeys(DECLARED, False),
    **dict.fromkeys(CONDITIONS, True),
    "Answering": False,
    **dict.fromkeys(RULES, True),
}


@dataclass(frozen=True, slots=True)
class Search:
    """Sizes and declarations under which every listed property must hold in every reachable state. `states` is how
    many there are."""

    name: str
    constants: Mapping[str, Value]
    states: int
    properties: tuple[str, ...] = (*INVARIANTS, *STEPS)

    def text(self) -> str:
        """The configuration as the model checker reads it."""
        values = {**DEFAULTS, **self.constants}
        lines = ["CONSTANTS", *(f"  {name} = {_written(value)}" for name, value in values.items())]
        lines.append("SPECIFICATION " + ("LiveSpec" if ENDS in self.properties else "Spec"))
        lines += [f"INVARIANT {name}" for name in self.properties if name in INVARIANTS]
        lines += [f"PROPERTY {name}" for name in self.properties if name not in INVARIANTS]
        if "," in str(values["Lookers"]):
            lines.append("SYMMETRY LooksAreAlike")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Removal:
    """A rule or a condition that is left out, the property that fails then, and in how many steps at least: None where
    what fails is that something comes in the end, for then no schedule is the shortest."""

    without: str
    violates: str
    steps: int | None
    constants: Mapping[str, Value] = field(default_factory=dict)

    @property
    def search(self) -> Search:
        """The search that must find the counter-example."""
        return Search(f"without {self.without}", {**self.constants, self.without: False}, 0, (self.violates,))


def _written(value: Value) -> str:
    return str(value).upper() if isinstance(value, bool) else str(value)


# Where the world keeps no condition, a provider key that is remembered still holds these.
OUTSIDE: Final = ("AtMostOneEffect", "AppliedIsTrue", "SentIsBegun", "SuccessIsKept", "AppliedLatches", "LimitsGrow",
                  "BeginIsPermitted", "ClosedIsOver", "RenewedIsAnswered")  # fmt: skip

SEARCHES: Final = (
    Search("nothing declared", {"MaxAttempts": 3}, 1_912),
    Search(
        "postcondition, clocks apart",
        {"Post": True, "MaxAttempts": 3, "Timeouts": "{1, 2}", "Margin": 1, "Skew": 1},
        23_005,
    ),
    Search("postcondition, two looks at once", {"Post": True, "MaxAttempts": 3, "Lookers": "{a, b}"}, 21_686),
    Search("key, serialised", {"Keyed": True, "MaxAttempts": 3, "Retention": 4}, 220_323),
    Search("key, racy", {"Keyed": True, "Racy": True, "MaxAttempts": 3, "Retention": 6}, 38_643),
    Search("key, stored refusals", {"Keyed": True, "Replays": True, "MaxAttempts": 3}, 130_184),
    Search("postcondition and key", {"Post": True, "Keyed": True, "Timeouts": "{1, 2}", "Retention": 4}, 26_062),
    Search("postcondition and revoke", {"Post": True, "Revokes": True}, 61_737),
    Search("key and revoke", {"Keyed": True, "Revokes": True}, 37_127),
    Search("a person, postcondition and key", {"Person": True, "Post": True, "Keyed": True}, 12_893),
    Search(
        "key, outside every condition",
        {"Person": True, "Post": True, "Keyed": True, "WithinGrace": False, "PersonIsRight": False},
        30_414,
        OUTSIDE,
    ),
    Search("a doubt ends: postcondition", {"Post": True, "MaxAttempts": 3}, 11_512, (ENDS,)),
    Search("a doubt ends: key", {"Keyed": True, "Answering": True, "MaxAttempts": 3}, 14_690, (ENDS,)),
    Search("a doubt ends: revoke", {"Revokes": True}, 18_577, (ENDS,)),
)

_POST: Final = {"Post": True}
_KEY: Final = {"Keyed": True}
_BOTH: Final = {"Post": True, "Keyed": True}
_SHORT: Final = {"Keyed": True, "Retention": 4}
_REVOKE: Final = {"Revokes": True}
_LOOKED_AT: Final = {"Revokes": True, "Post": True}

REMOVALS: Final = (
    Removal("BeginGuarded", "AtMostOneEffect", 9),
    Removal("AppliedKept", "AppliedLatches", 9, _KEY),
    Removal("OwnAttemptOnly", "ClosedIsHarmless", 8, _KEY),
    Removal("ClosedOnce", "ClosedIsHarmless", 8),
    Removal("SendsNeverDecrease", "ClosedIsHarmless", 11, {**_BOTH, "Timeouts": "{1, 3}"}),
    Removal("OverrunPushed", "AtMostOneEffect", 14, _POST),
    Removal("PushUnfenced", "ClosedIsHarmless", 12, _BOTH),
    Removal("AskedTimeCounts", "AtMostOneEffect", 13, _POST),
    Removal("AbsenceJudgedAtWrite", "ClosedIsHarmless", 10, _BOTH),
    Removal("GraceWaited", "AtMostOneEffect", 12, _POST),
    Removal("MarginCounted", "AtMostOneEffect", 13, {**_POST, "Margin": 1, "Skew": 1}),
    Removal("FailedLookProvesNothing", "AtMostOneEffect", 13, _POST),
    Removal("KeyKept", "AtMostOneEffect", 9, _KEY),
    Removal("LeaseWaited", "BeginIsPermitted", 2, _KEY),
    Removal("KeyExpires", "AtMostOneEffect", 13, _SHORT),
    Removal("ArrivalCounted", "AtMostOneEffect", 13, _SHORT),
    Removal("RacyWaited", "AtMostOneEffect", 11, {**_KEY, "Racy": True}),
    Removal("RenewedOnlyAnswered", "RenewedIsAnswered", 4, _KEY),
    Removal("NeverRenewedTainted", "RenewedIsAnswered", 15, {**_BOTH, "MaxAttempts": 3}),
    Removal("StoredOnlySpeaks", "ClosedIsHarmless", 11, {**_KEY, "Replays": True}),
    Removal("EarlierOverToSpeak", "ClosedIsOver", 8, {**_KEY, "Replays": True}),
    Removal("DeadlineChecked", "AtMostOneEffect", 13, _POST),
    Removal("GateShuts", "AtMostOneEffect", 9),
    Removal("LostProvesNothing", "AtMostOneEffect", 9),
    Removal("SuccessUnfenced", "SuccessIsKept", 7, _KEY),
    Removal("RevokeHoldsBegin", "AppliedStands", 12, _REVOKE),
    Removal("RevokeResent", ENDS, None, {**_REVOKE, "MaxAttempts": 1}),
    Removal("RevokeDecides", "AppliedStands", 9, _REVOKE),
    Removal("FoundBeforeRevokeIgnored", "AppliedStands", 10, _LOOKED_AT),
    Removal("RevokeOutlivesLook", "AppliedStands", 9, _LOOKED_AT),
    Removal("PersonWaits", "AtMostOneEffect", 10, {"Person": True}),
    Removal("PersonBoundToVersion", "ClosedIsHarmless", 11, {**_KEY, "Person": True}),
    Removal("WithinGrace", "AtMostOneEffect", 13, _POST),
    Removal("EndsInRetention", "AtMostOneEffect", 14, _SHORT),
    Removal("KeepsStone", "AtMostOneEffect", 12, _REVOKE),
    Removal("PersonIsRight", "AtMostOneEffect", 12, {"Person": True}),
    Removal("LedgerKeeps", "SentIsBegun", 3),
)
