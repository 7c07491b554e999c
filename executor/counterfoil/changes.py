"""What may be asked of the ledger: one frozen value per change, and the answer to it.

Owns the shapes that flow and ledger exchange (over the runner). Decides nothing: `transition` does. Durations end in
`_us` and are microseconds; instants are the ledger's microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from counterfoil.effect import Found, Proof, Row, Verdict
from counterfoil.guard import Admitted, Asks, Blocked, Health


@dataclass(frozen=True, slots=True)
class Terms:
    """The tool's declared times, as they were at begin. They are stored with the row, so that a host with a newer,
    shorter grace cannot judge an older attempt (protocol F3)."""

    timeout_us: int
    grace_us: int | None
    review_us: int
    audit_us: int
    retention_us: int | None = None
    concurrent: bool = False

    @property
    def keyed(self) -> bool:
        return self.retention_us is not None


@dataclass(frozen=True, slots=True)
class Reading:
    """The ledger's time at a change. Boot id and boot time are known only where the host's clock is the ledger's
    (SQLite): there the smaller of two elapsed times counts (protocol F10)."""

    now: int
    margin_us: int
    boot_id: str | None = None
    boot_us: int | None = None


# Before the guard of an effect that may not be taken back: a begin was declined because of the other row.
ORIGINAL: Final = "original:"
# The guard of a begin that the loop guard, a budget, a breaker or a pause is against: `Declined.blocked` says which.
GUARDED: Final = "guarded"
UndoKind: TypeAlias = Literal["revoke", "compensation"]


@dataclass(frozen=True, slots=True)
class Undoes:
    """Which effect an effect takes back. `through` is the last of that effect's attempts that a revoke names."""

    key: bytes
    kind: UndoKind
    through: int


@dataclass(frozen=True, slots=True)
class NamedBy:
    """The secret that an effect's name rests on, by its id, and the keys that the effect has by the other secrets."""

    secret_id: str
    elsewhere: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Begin an attempt: insert the effect as unknown, or start again where the begin predicate permits it.

    `claim_id` is fresh for each begin and the same when a begin whose reply was lost is asked again (protocol F8).
    `fresh` says that a reading found no row; it only chooses which statement goes out before the other.
    """

    key: bytes
    id: str
    tenant: str
    tool: str
    task: str
    turn: int | None
    call_id: str | None
    occurrence: str
    fingerprint: bytes
    canonical_version: int
    arguments: str
    echo: str
    holder: str
    claim_id: str
    terms: Terms
    fresh: bool = True
    undoes: Undoes | None = None
    asks: Asks | None = None
    named_by: NamedBy | None = None


@dataclass(frozen=True, slots=True)
class StoredValue:
    """A value ready for the ledger: JSON text, or size and digest of one that could not be stored, and a note why."""

    text: str | None
    size: int
    digest: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleReturned:
    """The attempt returned. No guard but the key (protocol F12): a success always latches.

    With the proof `same_transaction` it is written in the transaction of the effect itself, and so it carries the
    fence: where it is declined, the effect must be rolled back (protocol F11).

    `original` is what a revoke found in place of an acknowledgement: the effect that it should have taken back.
    `row`: as it was begun. Where the ledger's is still that one it is not read again before it is written.
    """

    key: bytes
    attempt: int
    actor: str
    provider_key: str
    value: StoredValue
    reference: str | None = None
    code: str = "ok"
    proof: Proof = Proof.RETURNED
    key_unused: bool = False
    health: Health | None = None
    original: Found[None] | None = None
    original_value: StoredValue | None = None
    row: Row | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleClosed:
    """The attempt proved by itself that it had no effect (P1). It speaks for its own attempt alone (protocol F1).

    `account`: of what was raised, for engineers; it stands in the entry. `row` as for a success.
    """

    key: bytes
    attempt: int
    actor: str
    proof: Proof
    code: str
    reason: str
    status: int | None = None
    speaks_for_key: bool = False
    key_unused: bool = False
    account: Mapping[str, Any] | None = None
    health: Health | None = None
    row: Row | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleLost:
    """The attempt proved nothing. Ends the lease; guarded by the fence.

    `key_unread`: it had not asked for its provider key, so its request, if there was one, did not carry it. `row` as
    for a success.
    """

    key: bytes
    attempt: int
    actor: str
    reason: str
    code: str = "effect_unknown"
    key_unused: bool = False
    key_unread: bool = False
    account: Mapping[str, Any] | None = None
    health: Health | None = None
    row: Row | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleLook:
    """What a look answered. `asked_at` (and `asked_boot_us`) were taken before the question was asked (protocol F4).

    `verifies`: the look follows a success (`verify="always"`); not seeing it then marks the effect unverified.
    `ends_revoke`: it is what a revoke found in place of an acknowledgement, so that revoke has ended.
    """

    key: bytes
    actor: str
    asked_at: int
    asked_boot_id: str | None = None
    asked_boot_us: int | None = None
    found: Found[None] | None = None
    value: StoredValue | None = None
    unclear: str | None = None
    cause: str | None = None
    code: str = "verified"
    verifies: bool = False
    ends_revoke: bool = False

    @property
    def absent(self) -> bool:
        return self.found is None and self.unclear is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """The function still runs past its deadline: the last possible send moves on (protocol F2, N2). Unfenced."""

    key: bytes
    attempt: int
    actor: str
    noted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """A named person decides, bound to the version that was read. `claim_id` is fresh for each decision and the same
    when it is asked again after a lost reply."""

    key: bytes
    verdict: Verdict
    by: str
    why: str
    version: int
    claim_id: str
    value: StoredValue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """What becomes of an effect because another one (`by`, its id) takes it back. Only ever written in the transaction
    that changes the other one, so that the two agree."""

    key: bytes
    actor: str
    by: str
    kind: UndoKind
    stage: Literal["named", "done", "dropped"]
    through: int


Change: TypeAlias = Begin | SettleReturned | SettleClosed | SettleLost | SettleLook | Push | Resolve | Undo


@dataclass(frozen=True, slots=True)
class Applied:
    """The change was written (or had been, when it is asked again): the row as it is now. `admitted`: what the guards
    said to a begin."""

    row: Row
    admitted: Admitted | None = None


@dataclass(frozen=True, slots=True)
class Declined:
    """The guard did not hold: the row as it is now (None where there is none), and which guard."""

    row: Row | None
    guard: str
    blocked: Blocked | None = None


Answer: TypeAlias = Applied | Declined
