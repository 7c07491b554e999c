"""The nouns of Counterfoil: verdict, proof, evidence, outcome, and the row that holds them.

Owns the words and their shapes. Knows no clock, no SQL, no tool. Imports nothing of Counterfoil, so that everything
else may import it. All instants are integer microseconds since 1970-01-01T00:00:00Z unless a name says otherwise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

R_co = TypeVar("R_co", covariant=True)

MICROSECONDS: Final = 1_000_000
COUNT_MAX: Final = 1_000_000


class Verdict(StrEnum):
    """What is known of the world. It IS the state of an effect."""

    NO_EFFECT = "no_effect"
    EFFECT_UNKNOWN = "effect_unknown"
    EFFECT_APPLIED = "effect_applied"


class Proof(StrEnum):
    """Why a verdict holds. `absent_after_grace` and `operator` are conditional: they stay revisable."""

    NEVER_SENT = "never_sent"
    REJECTED = "rejected"
    ABSENT_AFTER_GRACE = "absent_after_grace"
    REVOKED = "revoked"
    RETURNED = "returned"
    FOUND = "found"
    SAME_TRANSACTION = "same_transaction"
    OPERATOR = "operator"


Sends: TypeAlias = Literal["anywhere", "once", "marked"]
Matches: TypeAlias = Literal["key", "look_alike"]

REFERENCE_MAX: Final = 200


def reference_name(name: object) -> str:
    """A provider's name as it is kept: text of at most 200 characters, a longer one by its beginning and its digest.

    Example:
        >>> reference_name(17), len(reference_name("x" * 5000))
        ('17', 200)
    """
    text = str(name)
    if len(text) <= REFERENCE_MAX:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: REFERENCE_MAX - 65]}~{digest}"


# ---------------------------------------------------------------- evidence: what a look answers


@dataclass(frozen=True, slots=True, init=False)
class Found(Generic[R_co]):
    """The postcondition saw the effect in the world.

    Args:
        value: what the tool would have returned.
        reference: the provider's name (or names) of what was found, for example a payment id. `None` says in so many
            words that the provider has none; then nothing stops two effects from being proven by one thing.
        count: how many there are, at least 1. Left out: the number of references, or 1.
        complete: False when only a part of the effect is there.
        matches: "key" (the look searched for `effect.id` or `effect.provider_key`, so the match is this effect's own)
            or "look_alike" (it searched by amount, day, recipient: then references that other effects own are
            subtracted, nothing left counts as absent, and anything left is unclear, never proof).

    Raises:
        ValueError: count below 1, an empty reference, or a look-alike without references.

    Example:
        >>> Found({"payment": "pi_1"}, reference="pi_1").count
        1
    """

    value: R_co
    references: tuple[str, ...]
    count: int
    complete: bool
    matches: Matches

    def __init__(
        self,
        value: R_co,
        *,
        reference: str | Sequence[str] | None,
        count: int | None = None,
        complete: bool = True,
        matches: Matches = "key",
    ) -> None:
        references = () if reference is None else (reference,) if isinstance(reference, str) else tuple(reference)
        references = tuple(dict.fromkeys(reference_name(name) for name in references))
        total = (len(references) or 1) if count is None else count
        if isinstance(total, bool) or total != int(total) or not max(1, len(references)) <= total <= COUNT_MAX:
            raise ValueError(
                "Found(count=...) is the whole number of effects seen: 1 or more, not below the references"
            )
        if not all(references):
            raise ValueError(
                "Found(reference=...) takes non-empty strings, or None where the provider has no name for it"
            )
        if matches not in ("key", "look_alike"):
            raise ValueError('Found(matches=...) is "key" or "look_alike"')
        if matches == "look_alike" and not references:
            raise ValueError("a look-alike match needs the references of everything that was seen")
        for name, content in (("value", value), ("references", references), ("count", total),
                              ("complete", complete), ("matches", matches)):  # fmt: skip
            object.__setattr__(self, name, content)


@dataclass(frozen=True, slots=True)
class Absent:
    """The postcondition asked the right place, got a full answer, and the effect is not there."""


@dataclass(frozen=True, slots=True)
class Unclear:
    """The postcondition could not look, or not well enough. Never absence.

    `reason` is stored for engineers (capped) and its wording is shown to nobody else. `cause` is what the model may
    know of it: "look_forbidden" (the credential for looking is refused), "look_alike" (something similar exists).
    """

    reason: str
    cause: Literal["look_forbidden", "look_alike"] | None = None


@dataclass(frozen=True, slots=True)
class Revoked:
    """What a revoke returns when the provider has acknowledged it and keeps a stone: from now on it refuses the
    original, also one that arrives late. A reversal that can find nothing is no such acknowledgement: then raise."""


Evidence: TypeAlias = Found[Any] | Absent | Unclear


@dataclass(frozen=True, slots=True)
class Returned:
    """The tool's function returned."""

    value: Any
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class NeverSent:
    """Proven: the attempt sent nothing that could change the world (P1). `retryable`: the same may work in a moment."""

    reason: str
    retryable: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """Proven: the world answered no (P1). Made from a raised `Rejected`, `Throttled`, `Forbidden` or a listed error."""

    code: str
    reason: str
    field: str | None = None
    hint: str | None = None
    candidates: tuple[Any, ...] = ()
    retry_after_s: float | None = None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """Nothing is proven: the answer was lost, late, or of a kind that nobody declared. `status` is the HTTP status of
    such an answer."""

    reason: str
    overrun: bool = False
    status: int | None = None


Outcome: TypeAlias = Returned | NeverSent | Refused | Lost


# ---------------------------------------------------------------- the row


@dataclass(frozen=True, kw_only=True)
class Row:
    """One effect as the ledger holds it. `now` is the ledger's time of this reading.

    `version` is the number of its last entry. `attempts` is the fence: only begin changes it. `open_attempts` has one
    bit per attempt that nothing has proven yet (see `bit`).
    """

    key: bytes
    id: str
    tenant: str
    tool: str
    task: str
    occurrence: str = ""
    fingerprint: bytes
    canonical_version: int
    arguments: str
    echo: str
    verdict: Verdict
    proof: Proof | None = None
    code: str | None = None
    reason: str | None = None
    attempts: int = 0
    open_attempts: int = 0
    settled_attempt: int | None = None
    holder: str | None = None
    claim_id: str | None = None
    lease_until: int = 0
    version: int = 1
    sends_until: int = 0
    earlier_sends_until: int = 0
    absent_from: int | None = None
    boot_id: str | None = None
    boot_low: int | None = None
    boot_high: int | None = None
    look_at: int | None = None
    looks: int = 0
    review_at: int | None = None
    conditional_at: int | None = None
    grace_us: int | None = None
    review_us: int = 0
    audit_us: int = 0
    keyed: bool = False
    provider_key: str = ""
    provider_keys: tuple[str, ...] = ()
    key_generation: int = 0
    key_first_begun_at: int = 0
    key_answered: bool = False
    key_tainted: bool = False
    count: int = 0
    complete: bool = True
    verified: bool = True
    value: str | None = None
    value_size: int | None = None
    value_digest: str | None = None
    value_note: str | None = None
    references: tuple[str, ...] = ()
    undoes: bytes | None = None
    undo_kind: str | None = None
    undo_through: int = 0
    revoke_by: str | None = None
    revoked_through: int = 0
    revoked_at: int | None = None
    undone_by: str | None = None
    retention_us: int | None = None
    pruned_at: int | None = None
    sealed_version: int = 0
    data_key: str | None = None
    cost_unit: str | None = None
    cost_amount: int = 0
    cost_held: int = 0
    cost_charged: int = 0
    begun_at: int = 0
    unknown_since: int = 0
    created_at: int = 0
    updated_at: int = 0
    now: int = 0

    def changed(self, content: Mapping[str, Any]) -> Row:
        """The same row with other content in some of its fields: `dataclasses.replace`, a dozen times faster, since a
        call makes several of them and a row has many fields."""
        return Row.whole({**self.__dict__, **content})

    @classmethod
    def whole(cls, content: dict[str, Any]) -> Row:
        """The row with this content of every one of its fields."""
        row = object.__new__(cls)
        row.__dict__.update(content)
        return row

    @property
    def live(self) -> bool:
        """True while somebody holds the right to work on the effect."""
        return self.verdict is Verdict.EFFECT_UNKNOWN and self.now <= self.lease_until

    @property
    def replaceable(self) -> bool:
        """True when other arguments may take the place of these: every attempt so far is proven for good.

        After a closing by absence or by an operator they may not: the earlier request may still turn up, under the
        provider key that is kept for it.
        """
        return self.verdict is Verdict.NO_EFFECT and not self.key_tainted


BITS: Final = 60


def bit(attempt: int) -> int:
    """The place of an attempt in `open_attempts`. Begin refuses while the place of attempt - 60 is still open.

    Example:
        >>> bit(1), bit(2), bit(61)
        (1, 2, 1)
    """
    return 1 << ((attempt - 1) % BITS)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the append-only book: what changed, by whom, when, and why. `at` is in microseconds."""

    seq: int
    attempt: int
    event: str
    actor: str
    detail: dict[str, Any] = field(default_factory=dict)
    at: int = 0


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that a person should see, and, once it is closed, who closed it, when and why."""

    number: int
    effect_id: str | None
    tool: str
    kind: str
    detail: dict[str, Any]
    at: int
    closed_at: int | None = None
    closed_by: str | None = None
    closed_why: str | None = None
