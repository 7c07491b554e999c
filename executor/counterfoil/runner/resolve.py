"""What a person decides about a doubt, on its way into the ledger."""

from __future__ import annotations

from typing import Any

from counterfoil.changes import Declined, Resolve
from counterfoil.effect import Row, Verdict
from counterfoil.errors import StaleVersion, UsageError
from counterfoil.ledger.ledger import Ledger
from counterfoil.policy import Policy
from counterfoil.runner.values import stored


def decided(verdict: Verdict | str, by: str, why: str) -> Verdict:
    """The verdict of a decision that has a name, a reason and an end.

    Raises:
        UsageError: one of them is missing.
    """
    if not by.strip() or not why.strip():
        raise UsageError("a doubt is resolved by a named person with a reason: give by= and why=")
    try:
        wanted = Verdict(verdict)
    except ValueError:
        wanted = Verdict.EFFECT_UNKNOWN
    if wanted is Verdict.EFFECT_UNKNOWN:
        raise UsageError("a doubt is resolved to effect_applied or to no_effect")
    return wanted


def resolve(ledger: Ledger, row: Row, verdict: Verdict, *, by: str, why: str, version: int, value: Any = None) -> Row:
    """Resolve `row` in the ledger; the row as it is then. Raises as `Executor.resolve` does."""
    kept = None if value is None else stored(value, Policy().value_max_bytes)
    change = Resolve(
        key=row.key,
        verdict=verdict,
        by=by.strip(),
        why=why.strip(),
        version=version,
        claim_id=ledger.host.fresh(),
        value=kept,
    )
    answer = ledger.apply([change])[0]
    if not isinstance(answer, Declined):
        return answer.row
    match answer.guard:
        case "stale":
            now = "gone" if answer.row is None else f"at version {answer.row.version}"
            raise StaleVersion(f"the effect was read at version {version} and is {now}: read it again, then decide")
        case "may_still_send":
            raise UsageError("an attempt may still be sending: wait until its last possible send is over (sends_until)")
        case guard:
            raise UsageError(f"the effect is settled already ({guard}): there is no doubt to resolve")
