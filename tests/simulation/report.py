"""What a run reached, as a table, and what it must have reached: no fault, no proof, no step with zero hits."""

from __future__ import annotations

from collections import Counter

from simulation.plan import BREAKING, FAULTS

from counterfoil.ledger.writer import is_grouped

PROOFS = (
    *("never_sent", "rejected", "absent_after_grace", "revoked", "returned", "found", "same_transaction", "operator"),
)
CONDITIONS = (
    *("grace", "retention", "key", "pause", "look_lied", "acted_on_refusal", "returned_without_acting"),
    *("client_resent", "stone", "operator"),
)
STEPS = (
    *("Read", "Start", "Attempt", "Write:SettleReturned", "Write:SettleClosed", "Write:SettleLost"),
    *("Write:SettleLook", "Ask", "Sleep", "Sight", "Transact"),
)
OTHERS = (
    *("fault resent and known", "fault forgets keys", "clock jumped", "resolved", "begun again from unknown (P2)"),
    *("cut refused", "cut lost before", "cut lost after", "answer 402", "answer 409", "answer 410", "answer 429"),
)
QUEUE = ("committed by the queue", "several committed by the queue")


def wanted() -> list[str]:
    """Everything that a run of some thousand seeds reaches."""
    faults = [f"fault {name}" for name in (*FAULTS, *BREAKING)]
    proofs = [f"proof {name}" for name in PROOFS]
    broken = [f"broke {name}" for name in CONDITIONS]
    steps = [f"{step} {moment}" for step in STEPS for moment in ("before", "after")]
    blows = [f"{blow} at {step} {moment}" for step in STEPS for moment in ("before", "after")
             for blow in ("kill", "pause", "cancel")]  # fmt: skip
    return [*faults, *proofs, *broken, *steps, *blows, *OTHERS, *(QUEUE if is_grouped() else ())]


def missing(hits: Counter[str]) -> list[str]:
    """What was never reached."""
    return [name for name in wanted() if not hits[name]]


def table(seeds: int, hits: Counter[str], reached: Counter[str]) -> str:
    """Each thing with the number of its hits and the share of seeds that reached it."""
    names = [*wanted(), *sorted(set(hits) - set(wanted()))]
    width = max(len(name) for name in names)
    lines = [f"{name:<{width}} {hits[name]:>10} {100 * reached[name] / max(1, seeds):>8.2f} %" for name in names]
    return "\n".join([f"{'reached':<{width}} {'hits':>10} {'of seeds':>10}", *lines])
