"""What a look proves: found latches, absent by P4 alone, unclear nothing, on both databases."""

from __future__ import annotations

import pytest
from changing import SECOND, One, permitted, terms

from counterfoil.clock import ManualClock
from counterfoil.effect import Proof, Verdict
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.ledger import Ledger


def kinds(ledger: Ledger) -> list[str]:
    """The kinds of all open incidents, oldest first."""
    return [incident.kind for incident in reversed(Audit(ledger).incidents())]


def test_found_latches(ledger: Ledger) -> None:
    """Found: applied, with what was found as value."""
    one = One(ledger)
    one.begun()
    row = permitted(one.apply(one.found("pi_1")))
    assert (row.verdict, row.proof, row.value, row.count) == (
        Verdict.EFFECT_APPLIED, Proof.FOUND, '"found"', 1)  # fmt: skip


def test_absence_proves_only_after_the_last_send_grace_and_margin(ledger: Ledger, clock: ManualClock) -> None:
    """P4: one microsecond makes the difference, counted from when the look was asked."""
    one = One(ledger)
    one.begun()  # timeout 10, grace 20, margin 2
    clock.advance(32)
    assert permitted(one.apply(one.look())).verdict is Verdict.EFFECT_UNKNOWN
    clock.advance(0.000_001)
    row = permitted(one.apply(one.look()))
    assert (row.verdict, row.proof) == (Verdict.NO_EFFECT, Proof.ABSENT_AFTER_GRACE)


def test_absence_counts_from_the_asking_not_from_the_answer(ledger: Ledger, clock: ManualClock) -> None:
    """A look that was asked inside the grace and answers after it proves nothing (F4a)."""
    one = One(ledger)
    one.begun()
    clock.advance(31)
    look = one.look()
    clock.advance(1000)
    assert permitted(one.apply(look)).verdict is Verdict.EFFECT_UNKNOWN


def test_absence_is_judged_against_the_row_as_it_is_at_the_write(ledger: Ledger, clock: ManualClock) -> None:
    """An attempt that began while the look was out is not covered by it (F4b)."""
    one = One(ledger)
    one.begun()
    clock.advance(33)
    look = one.look()
    one.apply(one.closed(1))
    one.begun()
    assert permitted(one.apply(look)).verdict is Verdict.EFFECT_UNKNOWN


def test_without_a_grace_absence_never_proves(ledger: Ledger, clock: ManualClock) -> None:
    """T1: no grace was declared, so no look can ever end the doubt as no effect."""
    one = One(ledger)
    one.begun(terms(grace_s=None))
    clock.advance(100_000_000)
    assert permitted(one.apply(one.look())).verdict is Verdict.EFFECT_UNKNOWN


def test_a_look_that_failed_is_not_absence(ledger: Ledger, clock: ManualClock) -> None:
    """Unclear never proves, however late and however often."""
    one = One(ledger)
    one.begun()
    for _ in range(5):
        clock.advance(10_000)
        assert permitted(one.apply(one.unclear())).verdict is Verdict.EFFECT_UNKNOWN


def test_on_the_same_boot_both_clocks_must_agree(ledger: Ledger, clock: ManualClock) -> None:
    """A wall clock that jumps ahead proves nothing while the time since boot says otherwise (F10)."""
    one = One(ledger)
    one.begun()
    row = one.row
    if ledger.boot()[0] is None:
        pytest.fail("the settable clock is the ledger's own, on both databases")
    jumped = one.look(asked_at=row.now + 1000 * SECOND)
    assert permitted(one.apply(jumped)).verdict is Verdict.EFFECT_UNKNOWN
    rebooted = one.look(asked_at=row.now + 1000 * SECOND, asked_boot_id="another boot", asked_boot_us=1)
    assert permitted(one.apply(rebooted)).verdict is Verdict.NO_EFFECT
    assert clock.wall_us() == row.now


def test_a_success_is_never_downgraded_by_a_look(ledger: Ledger, clock: ManualClock) -> None:
    """Applied stays applied whatever a lagging look says."""
    one = One(ledger)
    one.begun()
    one.apply(one.returned())
    clock.advance(100)
    assert permitted(one.apply(one.look())).verdict is Verdict.EFFECT_APPLIED


def test_more_than_one_is_applied_and_an_incident(ledger: Ledger) -> None:
    """A count above one is applied, told, and never sent again."""
    one = One(ledger)
    one.begun()
    row = permitted(one.apply(one.found("pi_1", "pi_2")))
    assert (row.verdict, row.count) == (Verdict.EFFECT_APPLIED, 2)
    assert kinds(ledger) == ["applied_more_than_once"]


def test_a_part_is_applied_and_may_be_completed(ledger: Ledger) -> None:
    """An incomplete effect is applied and an incident; a later complete sight or success completes it (F28)."""
    for number, complete in enumerate(("found", "returned")):
        one = One(ledger, str(number))
        one.begun()
        row = permitted(one.apply(one.found("pi", complete=False) if number == 0 else one.found(complete=False)))
        assert not row.complete
        later = one.found("pi") if complete == "found" else one.returned()
        assert permitted(one.apply(later)).complete
    assert kinds(ledger) == ["incomplete", "incomplete"]


def test_what_another_effect_owns_is_no_proof(ledger: Ledger, clock: ManualClock) -> None:
    """A match by key whose reference belongs to another effect is unclear, also after grace."""
    one, other = One(ledger, "one"), One(ledger, "other")
    one.begun()
    one.apply(one.returned(reference="pi_1"))
    other.begun()
    clock.advance(100)
    row = permitted(other.apply(other.found("pi_1")))
    assert row.verdict is Verdict.EFFECT_UNKNOWN


def test_a_look_alike_is_unclear_until_others_own_it(ledger: Ledger, clock: ManualClock) -> None:
    """A bare look-alike never proves; what others own is taken away, and nothing left counts as absent (F17)."""
    one, other = One(ledger, "one"), One(ledger, "other")
    one.begun()
    other.begun()
    clock.advance(100)
    assert permitted(other.apply(other.found("pi_1", matches="look_alike"))).verdict is Verdict.EFFECT_UNKNOWN
    one.apply(one.returned(reference="pi_1"))
    unlisted = other.found("pi_1", matches="look_alike", count=2)
    assert permitted(other.apply(unlisted)).verdict is Verdict.EFFECT_UNKNOWN
    row = permitted(other.apply(other.found("pi_1", matches="look_alike")))
    assert (row.verdict, row.proof) == (Verdict.NO_EFFECT, Proof.ABSENT_AFTER_GRACE)


def test_references_of_other_tools_and_tenants_are_their_own(ledger: Ledger) -> None:
    """A reference is unique per tenant and tool, not beyond."""
    for one in (One(ledger), One(ledger, tool="book"), One(ledger, tenant="T2")):
        one.begun()
        assert permitted(one.apply(one.found("ref"))).verdict is Verdict.EFFECT_APPLIED


@pytest.mark.parametrize("closing", ["absence", "operator"])
def test_what_was_closed_conditionally_is_looked_at_again(ledger: Ledger, clock: ManualClock, closing: str) -> None:
    """Audit looks at 1, 3 and 10 times grace, at review and at the end of the audit, whatever the verdict (F15)."""
    one = One(ledger)
    one.begun()
    one.apply(one.lost())
    clock.advance(33)
    one.apply(one.look() if closing == "absence" else one.resolve(Verdict.NO_EFFECT))
    closed_at = one.row.now
    one.begun()
    one.apply(one.returned(2, reference="pi_2"))
    due = []
    while (look_at := one.row.look_at) is not None:
        due.append((look_at - closed_at) // SECOND)
        clock.advance((look_at - clock.wall_us()) / SECOND)
        assert [row.key for row in ledger.take_due(["pay"], "", limit=10, claim_us=SECOND)] == [one.key]
        one.apply(one.found("pi_2"))
    assert due == [20, 60, 200, 3600, 86_400]
    assert kinds(ledger) == []


def test_an_audit_look_finds_the_late_landing(ledger: Ledger, clock: ManualClock) -> None:
    """The grace was too short: two are there, and somebody hears of it (F15)."""
    one = One(ledger)
    one.begun()
    one.apply(one.lost())
    clock.advance(33)
    one.apply(one.look())
    one.begun()
    one.apply(one.returned(2, reference="pi_2"))
    row = permitted(one.apply(one.found("pi_1", "pi_2")))
    assert row.count == 2
    assert kinds(ledger) == ["applied_more_than_once"]


def test_due_looks_are_taken_once_and_come_back(ledger: Ledger, clock: ManualClock) -> None:
    """A taken look is left alone by others for a while, and is due again when its taker died."""
    one = One(ledger)
    one.begun()

    def take() -> list[bytes]:
        return [row.key for row in ledger.take_due(["pay"], "", limit=10, claim_us=30 * SECOND)]

    assert take() == [], "the lease is alive"
    clock.advance(13)
    assert take() == [one.key]
    assert take() == []
    clock.advance(30)
    assert take() == [one.key]


def test_looks_are_spaced_and_meet_the_end_of_grace(ledger: Ledger, clock: ManualClock) -> None:
    """Looks double their distance, and one falls right after the instant at which absence begins to prove."""
    one = One(ledger)
    one.begun()
    one.apply(one.lost())
    begun, due = one.row.begun_at, []
    while one.row.verdict is Verdict.EFFECT_UNKNOWN:
        look_at = one.row.look_at
        assert look_at is not None
        due.append((look_at - begun) / SECOND)
        clock.advance((look_at - clock.wall_us()) / SECOND)
        one.apply(one.look())
    assert due == [1, 2, 4, 8, 16, 32, 32.000001]
