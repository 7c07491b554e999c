"""When an attempt may begin: the begin predicate, on both databases."""

from __future__ import annotations

import pytest
from changing import SECOND, One, guard, permitted, terms

from counterfoil.clock import ManualClock
from counterfoil.effect import Proof, Verdict
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.ledger import Ledger


def test_begin_writes_unknown_before_anything_runs(ledger: Ledger) -> None:
    """The row is unknown from its birth, with its attempt open, and one entry explains it."""
    one = One(ledger)
    row = one.begun(fresh=True)
    assert (row.verdict, row.attempts, row.open_attempts, row.version) == (Verdict.EFFECT_UNKNOWN, 1, 1, 1)
    assert one.row == row
    assert [entry.event for entry in Audit(ledger).history(row.id)] == ["begun"]


def test_begin_on_unknown_is_forbidden(ledger: Ledger, clock: ManualClock) -> None:
    """Neither the end of the lease nor any age permits a second attempt while nothing is proven."""
    one = One(ledger)
    one.begun()
    assert guard(one.apply(one.begin())) == "in_progress"
    for seconds in (13, 3600, 10_000_000):
        clock.advance(seconds)
        assert guard(one.apply(one.begin())) == "unknown"
    assert one.row.attempts == 1


def test_begin_on_applied_is_forbidden(ledger: Ledger, clock: ManualClock) -> None:
    """An applied effect never begins again."""
    one = One(ledger)
    one.begun()
    one.apply(one.returned())
    clock.advance(10_000)
    assert guard(one.apply(one.begin())) == "applied"


def test_begin_after_a_proof_of_its_own(ledger: Ledger) -> None:
    """What the attempt itself proved harmless may be tried again at once, under the same provider key."""
    one = One(ledger)
    first = one.begun()
    one.apply(one.closed())
    second = one.begun()
    assert (second.attempts, second.open_attempts, second.provider_key) == (2, 2, first.provider_key)


@pytest.mark.parametrize("state", ["unknown", "applied", "absent", "operator"])
def test_begin_with_other_arguments_is_a_conflict(ledger: Ledger, clock: ManualClock, state: str) -> None:
    """The same key with another fingerprint begins nothing and changes nothing while the earlier may be there."""
    one = One(ledger)
    one.begun()
    clock.advance(40)
    if state == "applied":
        one.apply(one.returned())
    elif state == "absent":
        one.apply(one.look())
    elif state == "operator":
        one.apply(one.resolve(Verdict.NO_EFFECT))
    before = one.row
    assert guard(one.apply(one.begin(fingerprint=b"x" * 32))) == "conflict"
    assert one.row.version == before.version


@pytest.mark.parametrize("proof", [Proof.NEVER_SENT, Proof.REJECTED])
def test_other_arguments_may_follow_a_final_proof(ledger: Ledger, proof: Proof) -> None:
    """A declined card may be changed: what is proven for good to have had no effect does not occupy the key."""
    one = One(ledger)
    one.begun()
    one.apply(one.closed(proof=proof))
    row = one.begun(fingerprint=b"x" * 32, arguments='{"order":"A","card":2}')
    assert (row.attempts, row.arguments, row.fingerprint) == (2, '{"order":"A","card":2}', b"x" * 32)
    assert Audit(ledger).history(row.id)[-1].detail["arguments_before"] == '{"order":"A"}'


def test_the_same_begin_asked_again_is_recognised_by_its_claim(ledger: Ledger) -> None:
    """After a lost reply the begin is sent again with its claim id: the row is mine, and nothing is written twice."""
    one = One(ledger)
    begin = one.begin(fresh=True)
    first = permitted(one.apply(begin))
    again = permitted(one.apply(begin))
    assert (first.version, again.version, again.attempts) == (1, 1, 1)


def test_a_begin_of_another_thread_is_not_mine(ledger: Ledger) -> None:
    """The holder may be this very process: only the claim id tells whose begin it was (F8)."""
    one = One(ledger)
    one.begun()
    assert guard(one.apply(one.begin(fresh=True))) == "in_progress"


def test_same_key_may_go_out_again_inside_its_retention(ledger: Ledger, clock: ManualClock) -> None:
    """P2: a provider that de-duplicates lets the stored request out again once no earlier one can be under way."""
    one = One(ledger)
    keyed = terms(retention_s=600)
    one.begun(keyed)
    one.apply(one.lost())
    assert guard(one.apply(one.begin(keyed))) == "under_way"
    clock.advance(33)
    row = one.begun(keyed, arguments='{"order":"reworded"}')
    assert (row.attempts, row.open_attempts, row.arguments) == (2, 3, '{"order":"A"}')


def test_a_serialising_provider_need_not_wait(ledger: Ledger) -> None:
    """P2: where the provider holds back a concurrent second request, the end of the lease is enough."""
    one = One(ledger)
    keyed = terms(retention_s=600, concurrent=True)
    one.begun(keyed)
    one.apply(one.lost())
    assert one.begun(keyed).attempts == 2


class SetBack(ManualClock):
    """A clock whose wall and time since boot were told apart."""

    def __init__(self, wall_us: int, boot_us: int) -> None:
        super().__init__(wall_us)
        self._boot_us = boot_us

    def boot_us(self) -> int:
        return self._boot_us


def test_retention_counts_to_the_latest_arrival(ledger: Ledger, clock: ManualClock) -> None:
    """P2: the resend's deadline, grace and margin must lie inside the retention, from the key's first begin (F6)."""
    one = One(ledger)
    keyed = terms(retention_s=600, concurrent=True)  # timeout 10 + grace 20 + margin 2
    one.begun(keyed)
    one.apply(one.lost())
    clock.advance(600 - 32)
    assert one.begun(keyed).attempts == 2
    one.apply(one.lost(2))
    clock.advance(0.000_001)
    assert guard(one.apply(one.begin(keyed))) == "key_expired"


def test_a_wall_clock_that_was_set_back_opens_no_retention(ledger: Ledger, clock: ManualClock) -> None:
    """P2: on the same boot the later of the two clocks counts (F10). The wall clock is set back beyond the key's first
    begin, and yet the provider has forgotten the key."""
    one = One(ledger)
    keyed = terms(retention_s=600, concurrent=True)
    one.begun(keyed)
    one.apply(one.lost())
    clock.advance(700)
    since_boot_us = clock.boot_us()
    ledger.clock = SetBack(clock.wall_us() - 500_000_000, since_boot_us)
    assert guard(one.apply(one.begin(keyed))) == "key_expired"


def test_an_attempt_begun_without_a_key_policy_ends_resending(ledger: Ledger, clock: ManualClock) -> None:
    """P2 asks that the key is in every open attempt by construction: one from before the policy is not (F9)."""
    one = One(ledger)
    one.begun(terms())
    one.apply(one.lost())
    clock.advance(60)
    assert guard(one.apply(one.begin(terms(retention_s=6000, concurrent=True)))) == "unknown"


def test_a_tool_that_did_not_use_its_key_is_not_resent(ledger: Ledger, clock: ManualClock) -> None:
    """One finished attempt without the key ends P2 for the tool, durably, and is an incident (F9, C23)."""
    one, other = One(ledger), One(ledger, "other")
    keyed = terms(retention_s=600, concurrent=True)
    other.begun(keyed)
    other.apply(other.lost())
    one.begun(keyed)
    one.apply(one.returned(key_unused=True))
    clock.advance(15)
    assert guard(other.apply(other.begin(keyed))) == "unknown"
    assert [incident.kind for incident in Audit(ledger).incidents()] == ["provider_key_unused"]
    ledger.trust_keys("pay", "")
    assert other.begun(keyed).attempts == 2


def test_sixty_open_attempts_are_the_most(ledger: Ledger, clock: ManualClock) -> None:
    """`open_attempts` has 60 places: begin refuses rather than let two attempts share one."""
    one = One(ledger)
    keyed = terms(retention_s=1_000_000, concurrent=True)
    for number in range(1, 61):
        one.begun(keyed)
        one.apply(one.lost(number))
        clock.advance(1)
    assert one.row.open_attempts == 2**60 - 1
    assert guard(one.apply(one.begin(keyed))) == "too_many_attempts"


@pytest.mark.parametrize(("first", "second"), [(10, 1), (1, 10)])
def test_the_last_possible_send_never_decreases(ledger: Ledger, first: int, second: int) -> None:
    """A begin with a shorter timeout leaves the earlier attempt's deadline in force (F3)."""
    one = One(ledger)
    begun = one.begun(terms(timeout_s=first, retention_s=600, concurrent=True))
    one.apply(one.lost())
    again = one.begun(terms(timeout_s=second, retention_s=600, concurrent=True))
    assert again.sends_until == begun.now + max(first, second) * SECOND
    assert again.absent_from == again.sends_until + 22 * SECOND


def test_a_shorter_grace_does_not_judge_an_older_attempt(ledger: Ledger) -> None:
    """The grace in force at begin stays with the row: another host's shorter one does not shorten it (F3)."""
    one = One(ledger)
    begun = one.begun(terms(grace_s=100, retention_s=600, concurrent=True))
    one.apply(one.lost())
    again = one.begun(terms(grace_s=1, retention_s=600, concurrent=True))
    assert begun.absent_from is not None
    assert again.absent_from is not None
    assert again.absent_from >= begun.absent_from
    assert again.grace_us == 100 * SECOND


def test_an_open_attempt_without_grace_keeps_absence_from_proving(ledger: Ledger, clock: ManualClock) -> None:
    """Without a declared grace, absence never proves, also not after a later begin that has one."""
    one = One(ledger)
    one.begun(terms(grace_s=None, retention_s=600, concurrent=True))
    one.apply(one.lost())
    one.begun(terms(grace_s=1, retention_s=600, concurrent=True))
    clock.advance(100_000)
    assert permitted(one.apply(one.look())).verdict is Verdict.EFFECT_UNKNOWN


def test_provider_key_is_renewed_only_after_an_answer(ledger: Ledger, clock: ManualClock) -> None:
    """Renewed after a refusal; kept after never_sent, after absence and after an operator's word (F13)."""
    refused = One(ledger, "refused")
    first = refused.begun()
    refused.apply(refused.closed(proof=Proof.REJECTED, code="card_declined"))
    renewed = refused.begun()
    assert renewed.provider_key != first.provider_key
    assert renewed.provider_keys == (first.provider_key, renewed.provider_key)
    assert renewed.id == first.id

    absent = One(ledger, "absent")
    kept = absent.begun().provider_key
    absent.apply(absent.lost())
    clock.advance(33)
    assert permitted(absent.apply(absent.look())).verdict is Verdict.NO_EFFECT
    assert absent.begun().provider_key == kept
    absent.apply(absent.closed(2, proof=Proof.REJECTED))
    assert absent.begun().provider_key == kept, "an attempt under it was closed by absence"

    told = One(ledger, "told")
    kept = told.begun().provider_key
    told.apply(told.lost())
    clock.advance(11)
    told.apply(told.resolve(Verdict.NO_EFFECT))
    assert told.begun().provider_key == kept


def test_a_renewed_key_has_a_retention_of_its_own(ledger: Ledger, clock: ManualClock) -> None:
    """The retention counts from the first begin under the present key, not under an older one (F26)."""
    one = One(ledger)
    keyed = terms(retention_s=600, concurrent=True)
    one.begun(keyed)
    one.apply(one.closed(proof=Proof.REJECTED))
    clock.advance(10_000)
    row = one.begun(keyed)
    assert row.key_first_begun_at == row.now
    one.apply(one.lost(2))
    assert one.begun(keyed).attempts == 3
