"""What a person decides: bound to what was read, never while an attempt may send, on both databases."""

from __future__ import annotations

from changing import One, guard, permitted

from counterfoil.clock import ManualClock
from counterfoil.effect import Proof, Verdict
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.ledger import Ledger


def test_refused_while_an_attempt_may_still_send(ledger: Ledger, clock: ManualClock) -> None:
    """The lease is over, the deadline is not: the thread may send yet (F16)."""
    one = One(ledger)
    one.begun()
    one.apply(one.lost())
    for verdict in (Verdict.NO_EFFECT, Verdict.EFFECT_APPLIED):
        assert guard(one.apply(one.resolve(verdict))) == "may_still_send"
    clock.advance(10.000_001)
    assert permitted(one.apply(one.resolve(Verdict.NO_EFFECT))).proof is Proof.OPERATOR


def test_bound_to_the_version_that_was_read(ledger: Ledger, clock: ManualClock) -> None:
    """What has changed since is not what the person decided on."""
    one = One(ledger)
    one.begun()
    clock.advance(60)
    read = one.row.version
    one.apply(one.unclear())
    assert guard(one.apply(one.resolve(Verdict.NO_EFFECT, version=read))) == "stale"
    assert one.row.verdict is Verdict.EFFECT_UNKNOWN


def test_applied_may_be_said_of_unknown_and_of_no_effect(ledger: Ledger, clock: ManualClock) -> None:
    """A person who knows that it happened can stop the next send; over no effect it is an incident."""
    unknown, none = One(ledger, "unknown"), One(ledger, "none")
    for one in (unknown, none):
        one.begun()
    none.apply(none.closed())
    clock.advance(60)
    for one in (unknown, none):
        row = permitted(one.apply(one.resolve(Verdict.EFFECT_APPLIED)))
        assert (row.verdict, row.proof) == (Verdict.EFFECT_APPLIED, Proof.OPERATOR)
    assert [incident.kind for incident in Audit(ledger).incidents()] == ["late_effect"]


def test_no_effect_is_never_said_of_applied(ledger: Ledger, clock: ManualClock) -> None:
    """Applied latches, for operators too."""
    one = One(ledger)
    one.begun()
    one.apply(one.returned())
    clock.advance(60)
    assert guard(one.apply(one.resolve(Verdict.NO_EFFECT))) == "effect_applied"


def test_a_decision_asked_again_after_a_lost_reply_is_recognised(ledger: Ledger, clock: ManualClock) -> None:
    """The same decision counts once; another person's, of the same verdict, is stale."""
    one = One(ledger)
    one.begun()
    clock.advance(60)
    mine, other = one.resolve(Verdict.NO_EFFECT), one.resolve(Verdict.NO_EFFECT)
    written = permitted(one.apply(mine))
    assert permitted(one.apply(mine)).version == written.version
    assert guard(one.apply(other)) == "stale"
