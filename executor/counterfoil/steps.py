"""The steps of a call: what the flow asks a shell to do, and what it hears.

Each is a frozen value with the type of its answer, carried out through one typed `yield from do(step)`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from counterfoil.changes import Answer, Applied, Change, SettleLook, StoredValue
from counterfoil.effect import Found, Outcome, Row
from counterfoil.guard import Admitted, Breaker, End, Repeats, Sign
from counterfoil.spec import ErrorSpec

T = TypeVar("T")

# The guard of a begin that found no free place for its function, and of one whose key another transaction holds.
FULL = "full"
BUSY = "busy"


class Step(Generic[T]):
    """One thing that a shell does for the flow; it answers with a T."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Read(Step["Row | None"]):
    """Read the effect: one indexed read."""

    key: bytes


@dataclass(frozen=True, slots=True)
class Started:
    """The answer to `Start`: what the ledger wrote, and the host's own deadline for the attempt.

    `interrupt` is a cancellation that fell into the write: it was completed first.
    """

    answer: Answer
    deadline: Any = None
    interrupt: BaseException | None = None

    @property
    def admitted(self) -> Admitted | None:
        """What the guards said to it."""
        return self.answer.admitted if isinstance(self.answer, Applied) else None


@dataclass(frozen=True, slots=True)
class Start(Step[Started]):
    """Ask the ledger to begin an attempt. `fresh`: no row was seen."""

    fresh: bool


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended for its caller. `account`: of what it raised, for engineers."""

    outcome: Outcome
    value: StoredValue | None = None
    reference: str | None = None
    key_unused: bool = False
    key_unread: bool = False
    sign: Sign = Sign.NOTHING
    interrupt: BaseException | None = None
    original: Found[None] | None = None
    original_value: StoredValue | None = None
    account: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Attempt(Step[AttemptEnd]):
    """Run the tool's function. `resend`: with the arguments that the ledger keeps, under the key it keeps."""

    row: Row
    deadline: Any
    resend: bool


@dataclass(frozen=True, slots=True)
class Transacted:
    """The answer to `Transact`: the row as it is after it, and how the attempt ended (None when none was begun).

    `interrupt` is what must reach the caller: a cancellation, or a mistake of the developer.
    """

    answer: Answer
    end: AttemptEnd | None = None
    interrupt: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Transact(Step[Transacted]):
    """Begin, run the tool's function and settle, all in one transaction. `row` as it was read; waits for another
    transaction on the key for at most `wait_s`."""

    row: Row | None
    wait_s: float


@dataclass(frozen=True, slots=True)
class Write(Step[Answer]):
    """Write a change of the row."""

    change: Change


@dataclass(frozen=True, slots=True)
class Asked:
    """The answer to `Ask`: a look ready to be written, and the seconds it took."""

    look: SettleLook
    took_s: float


@dataclass(frozen=True, slots=True)
class Ask(Step[Asked]):
    """Ask the tool's postcondition. `row` was read before the question, so `row.now` is the time of asking."""

    row: Row


@dataclass(frozen=True, slots=True)
class Sleep(Step[None]):
    """Wait for `seconds`; with `jitter`, for a random part of them."""

    seconds: float
    jitter: bool = False


@dataclass(frozen=True, slots=True)
class Sight(Step[None]):
    """Note that this call was answered from the ledger (written behind)."""

    row: Row
    code: str


@dataclass(frozen=True, slots=True)
class Weigh(Step[None]):
    """Count what the end of an attempt of a read-only tool says of its service: it has no row to settle."""

    sign: Sign


@dataclass(frozen=True, slots=True)
class Tally(Step[Repeats | None]):
    """Count the end of the whole call for the loop guard; None where nothing is counted. `answer`: a digest."""

    end: End
    answer: str | None = None


Flow: TypeAlias = Generator[Step[Any], Any, T]


def do(step: Step[T]) -> Flow[T]:
    """Carry out one step: `answer = yield from do(Read(key))`."""
    answer: T = yield step
    return answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A validated call, as far as the flow needs it. Times are in seconds."""

    tool: str
    key: bytes
    fingerprint: bytes
    holder: str
    echo: str
    key_names: str
    looks: bool
    keyed: bool
    speaks_for_key: bool
    verifies: bool
    transacts: bool
    patience_s: float
    attempts_max: int
    wait_s: float
    wait_max_s: float
    errors: tuple[ErrorSpec, ...] = ()
    content: frozenset[str] = frozenset()
    breaker: Breaker | None = None
