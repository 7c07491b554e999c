"""What an attempt's end does to its row: proofs close their own attempt, success always latches, on both databases."""

from __future__ import annotations

from changing import SECOND, One, guard, permitted, terms

from counterfoil.clock import ManualClock
from counterfoil.effect import Proof, Verdict
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.ledger import Ledger

KEYED = terms(retention_s=600, concurrent=True)


def kinds(ledger: Ledger) -> list[str]:
    """The kinds of all open incidents, oldest first."""
    return [incident.kind for incident in reversed(Audit(ledger).incidents())]


def test_a_success_latches(ledger: Ledger) -> None:
    """Returned: applied, with value and reference; the same settle asked again changes nothing."""
    one = One(ledger)
    one.begun()
    row = permitted(one.apply(one.returned(reference="pi_1")))
    assert (row.verdict, row.proof, row.value, row.references) == (
        Verdict.EFFECT_APPLIED, Proof.RETURNED, '"done"', ("pi_1",))  # fmt: skip
    assert permitted(one.apply(one.returned(reference="pi_1"))).version == row.version
    assert kinds(ledger) == []


def test_a_proof_closes_only_its_own_attempt(ledger: Ledger) -> None:
    """A resend that was never sent says nothing about the attempt before it: the effect stays unknown (F1)."""
    one = One(ledger)
    one.begun(KEYED)
    one.apply(one.lost())
    one.begun(KEYED)
    row = permitted(one.apply(one.closed(2)))
    assert (row.verdict, row.open_attempts) == (Verdict.EFFECT_UNKNOWN, 1)
    row = permitted(one.apply(one.closed(1)))
    assert (row.verdict, row.proof, row.open_attempts) == (Verdict.NO_EFFECT, Proof.NEVER_SENT, 0)


def test_closing_an_attempt_twice_closes_no_other(ledger: Ledger) -> None:
    """The open attempts are a set, not a count: a settle repeated after a lost reply changes nothing (N1)."""
    one = One(ledger)
    one.begun(KEYED)
    one.apply(one.lost())
    one.begun(KEYED)
    one.apply(one.closed(2))
    assert guard(one.apply(one.closed(2))) == "closed_before"
    assert one.row.verdict is Verdict.EFFECT_UNKNOWN


def test_a_refused_resend_speaks_for_its_key_only_by_declaration(ledger: Ledger, clock: ManualClock) -> None:
    """A refusal closes every attempt under its key only where the provider replays refusals, and not by 409 (F20)."""
    for name, speaks, status, verdict in (
        ("undeclared", False, 402, Verdict.EFFECT_UNKNOWN),
        ("declared", True, 402, Verdict.NO_EFFECT),
        ("in progress", True, 409, Verdict.EFFECT_UNKNOWN),
        ("body differs", True, 422, Verdict.EFFECT_UNKNOWN),
        ("throttled", True, 429, Verdict.EFFECT_UNKNOWN),
        ("not let in", True, 401, Verdict.EFFECT_UNKNOWN),
        ("broken", True, 500, Verdict.EFFECT_UNKNOWN),
        ("unsaid", True, None, Verdict.EFFECT_UNKNOWN),
    ):
        one = One(ledger, name)
        one.begun(KEYED)
        one.apply(one.lost())
        clock.advance(11)
        one.begun(KEYED)
        change = one.closed(2, proof=Proof.REJECTED, status=status, speaks_for_key=speaks)
        assert permitted(one.apply(change)).verdict is verdict, name


def test_lost_ends_the_lease_and_carries_the_fence(ledger: Ledger) -> None:
    """Lost ends its own lease; the late Lost of an older attempt ends nobody's."""
    one = One(ledger)
    one.begun(KEYED)
    row = permitted(one.apply(one.lost()))
    assert not row.live
    assert row.reason == "TimeoutError"
    one.begun(KEYED)
    assert guard(one.apply(one.lost(1))) == "fence"
    assert one.row.live


def test_a_late_success_latches_over_no_effect(ledger: Ledger, clock: ManualClock) -> None:
    """Somebody was told that there was none: the truth latches, and it is an incident (F12, F15)."""
    one = One(ledger)
    one.begun()
    one.apply(one.lost())
    clock.advance(33)
    assert permitted(one.apply(one.look())).proof is Proof.ABSENT_AFTER_GRACE
    row = permitted(one.apply(one.returned()))
    assert (row.verdict, row.proof) == (Verdict.EFFECT_APPLIED, Proof.RETURNED)
    assert kinds(ledger) == ["late_effect"]


def test_a_late_success_while_another_attempt_is_out(ledger: Ledger, clock: ManualClock) -> None:
    """Closed by absence, begun again, and then the old one reports success: applied, perhaps more than once."""
    one = One(ledger)
    one.begun()
    one.apply(one.lost())
    clock.advance(33)
    one.apply(one.look())
    one.begun()
    row = permitted(one.apply(one.returned(1, reference="pi_1")))
    assert row.verdict is Verdict.EFFECT_APPLIED
    assert kinds(ledger) == ["applied_more_than_once"]
    row = permitted(one.apply(one.returned(2, reference="pi_2")))
    assert (row.count, row.references) == (2, ("pi_1", "pi_2"))
    assert kinds(ledger) == ["applied_more_than_once", "applied_more_than_once"]


def test_two_successes_under_one_provider_key_are_one_effect(ledger: Ledger) -> None:
    """A provider that de-duplicates answers both attempts: one effect, no incident (F15)."""
    one = One(ledger)
    one.begun(KEYED)
    one.apply(one.lost())
    one.begun(KEYED)
    one.apply(one.returned(2))
    row = permitted(one.apply(one.returned(1)))
    assert (row.verdict, row.count) == (Verdict.EFFECT_APPLIED, 1)
    assert kinds(ledger) == []


def test_an_overrun_pushes_the_last_possible_send(ledger: Ledger, clock: ManualClock) -> None:
    """While the function lives, absence cannot prove: the push is not fenced, and it never moves back (F2, N2)."""
    one = One(ledger)
    one.begun(KEYED)
    clock.advance(10)
    one.apply(one.lost())
    one.begun(KEYED)
    clock.advance(20)
    row = permitted(one.apply(one.push(1)))
    assert row.sends_until == row.now + 2 * SECOND
    assert row.absent_from == row.sends_until + 22 * SECOND
    later = permitted(one.apply(one.push(1, noted=True)))
    assert (later.sends_until, later.version) == (row.sends_until, row.version)
    one.apply(one.closed(1))
    assert guard(one.apply(one.push(1))) == "closed_before"


def test_a_reference_that_another_effect_owns_is_an_incident_not_a_refusal(ledger: Ledger) -> None:
    """Returned always latches; the shared reference is told (F17)."""
    one, other = One(ledger, "one"), One(ledger, "other")
    one.begun()
    other.begun()
    one.apply(one.returned(reference="pi_1"))
    assert permitted(other.apply(other.returned(reference="pi_1"))).verdict is Verdict.EFFECT_APPLIED
    assert kinds(ledger) == ["reference_shared", "reference_shared"], "one for each of the two"


def test_a_batch_is_one_transaction_with_an_answer_for_each(ledger: Ledger) -> None:
    """Changes of several effects share a commit; one whose guard fails spoils no other."""
    names = [One(ledger, str(number)) for number in range(5)]
    rows = [permitted(answer) for answer in ledger.apply([one.begin(fresh=True) for one in names])]
    assert [row.key for row in rows] == [one.key for one in names]
    mixed = ledger.apply([names[0].returned(), names[1].begin(), names[2].closed()])
    assert permitted(mixed[0]).verdict is Verdict.EFFECT_APPLIED
    assert guard(mixed[1]) == "in_progress"
    assert permitted(mixed[2]).verdict is Verdict.NO_EFFECT


def test_entries_are_contiguous_and_explain_every_version(ledger: Ledger, clock: ManualClock) -> None:
    """One entry for each change of what is known, numbered without a gap up to the effect's version."""
    one = One(ledger)
    one.begun()
    one.apply(one.lost())
    one.apply(one.unclear())
    clock.advance(33)
    one.apply(one.look())
    one.begun()
    one.apply(one.returned(2))
    history = Audit(ledger).history(one.row.id)
    assert [entry.seq for entry in history] == list(range(1, one.row.version + 1))
    assert [entry.event for entry in history] == ["begun", "lost", "looked", "absent", "begun", "returned"]
    assert [entry.detail["verdict"] for entry in history][-2:] == ["effect_unknown", "effect_applied"]
