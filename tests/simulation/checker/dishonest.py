"""Histories of a ledger that breaks a rule: the schedules of the reviewed protocol, as they would look from outside.

Each names the rules that catch it, and no other rule may. F and N numbers are those of the protocol's findings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation.checker.honest import APPLIED, NO, UNKNOWN, plain
from simulation.checker.stories import Story

DISHONEST: dict[str, tuple[frozenset[str], Callable[[], Story]]] = {}


def lies(*rules: str) -> Callable[[Callable[[], Story]], Callable[[], Story]]:
    """Enter a dishonest history with the rules that catch it."""

    def enter(make: Callable[[], Story]) -> Callable[[], Story]:
        DISHONEST[make.__name__] = (frozenset(rules), make)
        return make

    return enter


# ---------------------------------------------------------------- no effect, and there is one


@lies("no_effect", "closing")
def f1a_a_proof_speaks_for_the_attempt_before() -> Story:
    """A resend that never left settles the whole effect as none; the first had landed."""
    story = Story("T3").begin().send().land().lost().wait(150).begin()
    return story.closed("never_sent", 2, every=True)


@lies("no_effect", "twice", "closing")
def f1b_a_refused_resend_renews_the_key() -> Story:
    """A refusal of the resend is taken for a proof of both, where the provider stores no refusals."""
    story = Story("T3", replays_refusals=False).begin().send().land().lost().wait(150).begin().send(2).refuse(2)
    story.closed("rejected", 2, every=True)
    return story.begin(provider_key="e-k1").send(3).land(3).returned(3)


@lies("no_effect", "twice", "closing")
def f1c_a_plain_begin_after_the_retention() -> Story:
    """As F1a, and then the same key goes out after it was forgotten."""
    return f1a_a_proof_speaks_for_the_attempt_before().wait(1300).begin().send(3).land(3).returned(3)


@lies("no_effect", "send")
def f2_a_thread_sends_after_its_deadline() -> Story:
    """No host stood still: the function ran on, nobody pushed `sends_until`, and absence was taken for a proof."""
    return Story("T2").begin().lost().wait(150).absent().send().land()


@lies("bounds", "begin")
def f3_sends_until_is_overwritten() -> Story:
    """A second begin with a shorter timeout takes the earlier last send back."""
    story = Story("T3").begin(sends_until=400, absent_from=421).lost().wait(150)
    return story.begin(sends_until=155, absent_from=186)


@lies("bounds")
def f3_a_newer_grace_judges_an_older_attempt() -> Story:
    """`absent_from` goes back although `sends_until` does not."""
    story = Story("T3").begin(absent_from=600).lost().wait(150)
    return story.begin(absent_from=190)


@lies("closing")
def f4a_absence_is_timed_at_its_answer() -> Story:
    """The look was asked too early and answered late."""
    return Story("T2").begin().send().lost().look("absent", asked=110).wait(150).absent(asked=110, looked=False)


@lies("no_effect", "twice", "closing")
def f4b_absence_is_judged_before_the_write() -> Story:
    """A look of the first attempt settles the second, which had begun meanwhile."""
    story = Story("T2").begin().closed("never_sent", 1).wait(150).begin().send(2).land(2).lost(2)
    return story.absent(asked=140).begin().send(3).land(3).returned(3)


@lies("no_effect")
def f5_never_sent_by_the_class_of_an_exception() -> Story:
    """The payment left and landed; the second request failed to connect."""
    return Story("T0").begin().send().land().closed("never_sent", 1)


@lies("closing")
def f5_never_sent_of_what_was_refused() -> Story:
    """It reached the provider, so it was sent."""
    return Story("T0").begin().send().refuse().closed("never_sent", 1)


@lies("begin", "twice")
def f6a_the_resend_arrives_after_the_retention() -> Story:
    """The resend begins inside the retention and arrives after it."""
    story = Story("T3").begin().send().land().lost().wait(1095)
    return story.begin().wait(1104).send(2).land(2).returned(2)


@lies("begin")
def f6b_a_resend_at_a_provider_that_races() -> Story:
    """An earlier request can still be under way at a provider that stores its key only when it is done."""
    return Story("T3", concurrent=False).begin().send().lost().wait(120).begin()


@lies("no_effect")
def f7a_a_reversal_that_found_nothing() -> Story:
    """It was acknowledged and left no stone: the original lands."""
    return Story("T4").begin().send().lost().revoke().revoked().land()


@lies("begin", "closing", "no_effect")
def f7b_a_begin_while_a_revoke_is_unknown() -> Story:
    """The revoke that named one attempt settles two."""
    story = Story("T2", revokes=True).begin().send().lost().revoke().wait(150).absent()
    story.begin().revoked(through=1)
    return story.send(2).land(2)


@lies("no_effect", "closing")
def f7c_a_revoke_that_is_replayed() -> Story:
    """The revoke of an earlier attempt is taken for one of the next."""
    story = Story("T4").begin().send().land().lost().revoke().revoked()
    story.renew().send(2).land(2).lost(2)
    return story.commit(
        "revoked", verdict=NO, proof="revoked", open_attempts=0, revoked_through=2, proof_said="revoked"
    )


@lies("applied", "incident")
def f7d_a_success_after_the_revoke() -> Story:
    """The attempt was taken back; its own word comes late and latches."""
    story = Story("T4").begin().send().land().lost().revoke().revoked().returned(1)
    story.incidents.clear()
    return story


@lies("key")
def f7_a_key_that_a_revoke_named_is_sent_again() -> Story:
    """The provider keeps a stone under this key."""
    return Story("T4").begin().send().lost().revoke().revoked().begin()


@lies("send", "twice")
def f8_two_calls_think_that_a_begin_is_theirs() -> Story:
    """Two threads of one process dispatch the same attempt."""
    story = Story("T0").begin(call=1).send(call=1).land().send(call=2).land(reference="r1b")
    return story.returned(1)


@lies("twice", "begin")
def f9_an_attempt_without_its_key() -> Story:
    """The row was not keyed, and it was sent again; nobody broke a key."""
    story = Story("T3").begin(keyed=False).send(key="").land(key=None).lost().wait(150)
    return story.begin().send(2).land(2).returned(2)


@lies("no_effect", "twice")
def f11_a_joint_transaction_that_commits_after_all() -> Story:
    """It was told to be rolled back, and its COMMIT counts later."""
    story = Story("T5")
    one: dict[str, Any] = {"verdict": NO, "proof": "same_transaction", "settled_attempt": 1, "open_attempts": 0}
    return story.begun_in_one(**one).land()


@lies("twice")
def f11_an_effect_without_its_record() -> Story:
    """Effect and record are two transactions, and one of them is missing."""
    story = Story("T5")
    one: dict[str, Any] = {"verdict": NO, "proof": "same_transaction", "settled_attempt": 1, "open_attempts": 0}
    return story.begun_in_one(**one).land(2)


@lies("key", "twice")
def f13a_the_key_is_renewed_after_absence() -> Story:
    """The late first one is not known to be the same: two effects inside the retention, and grace is no excuse."""
    story = Story("T3", looks=True).begin().send().lost().wait(150).absent().renew().send(2).land(2)
    return story.returned(2).land(1, key="e-k0").broke("grace").look("found", shown=True)


@lies("key", "twice")
def f13c_the_key_is_renewed_after_a_person() -> Story:
    """As F13a, after an operator who was wrong."""
    story = Story("T3").begin().send().land().lost().wait(150).broke("operator").resolved()
    return story.renew().send(2).land(2).returned(2)


@lies("twice")
def f13_a_promise_kept_shows_no_second_effect() -> Story:
    """Under one key, inside the retention, whatever else broke: a provider's broken word alone excuses."""
    story = Story("T3", looks=True).begin().send().lost().wait(150).absent().begin().send(2).land(2).returned(2)
    return story.land(1).broke("grace").broke("pause").broke("operator").broke("client_resent")


@lies("key")
def n4_the_key_is_renewed_although_nobody_answered() -> Story:
    """It never left, so the provider knows nothing, and the key must stay."""
    return Story("T3").begin().closed("never_sent", 1).renew()


@lies("audit")
def f15_nobody_looks_once_it_is_settled() -> Story:
    """Closed by absence, then applied by another attempt, and nothing is due any more."""
    story = Story("T2").begin().send().lost().wait(150).absent().begin().send(2).land(2)
    return story.returned(2, look_at=None)


@lies("incident")
def f15_no_effect_became_applied_in_silence() -> Story:
    """Somebody was told that there was none."""
    story = Story("T2").begin().send().lost().wait(150).absent().land().broke("grace").wait(190).found()
    story.incidents.clear()
    return story


@lies("incident")
def f15_two_effects_in_silence() -> Story:
    """A look was shown both, long after, and no person is told."""
    story = Story("T2").begin().send().lost().wait(150).absent().begin().send(2).land(2).returned(2)
    return story.land(1).broke("pause").wait(300).look("found", shown=True)


@lies("incident")
def two_successes_in_silence() -> Story:
    """Both attempts said so, each with a receipt of its own."""
    story = Story("T0").begin().send().land().lost().wait(150).broke("operator").resolved()
    return story.begin().send(2).land(2).returned(2).returned(1)


@lies("closing")
def f16_a_person_decides_while_it_can_send() -> Story:
    """The lease is over, the last possible send is not."""
    return Story("T0").begin().lost().resolved()


@lies("no_effect", "send", "closing")
def f16_and_it_is_sent_afterwards() -> Story:
    """The person was right when it was said, and should not have been let."""
    return Story("T0").begin().lost().resolved().wait(150).send().land()


@lies("applied")
def f17_a_look_finds_what_is_anothers() -> Story:
    """The request was lost; what the look found is another effect's."""
    return Story("T2").begin().send().lost().world("alike", effect="e", reference="x").found("x")


@lies("applied")
def a_reference_of_another_effect() -> Story:
    """It landed, and the row claims another one's receipt."""
    return Story("T0").begin().send().land().returned(1, reference="x")


@lies("begin")
def f22_compensated_while_a_resend_is_out() -> Story:
    """The second request may still arrive after the compensation, and make it again."""
    story = Story("T3").begin().send().land().lost().wait(150).begin().send(2).returned(1, reference="r1")
    return story.compensate()


@lies("begin")
def compensated_though_unknown() -> Story:
    """Only what is applied can be compensated."""
    story = Story("T0").begin().send().land().lost()
    link = {"undoes": story.rows["e"]["key"], "undo_kind": "compensation", "tool": "pay.compensation"}
    return story.begin(effect="c", **link)


@lies("told")
def f22_a_compensated_effect_is_replayed() -> Story:
    """It stands no longer."""
    return plain().compensate().call().told(APPLIED, "replayed", "returned")


@lies("waiter")
def f25_a_waiter_begins() -> Story:
    """It waited for an attempt that was declined, and declines once more."""
    story = Story("T0").call("A").call("B").begin(call=1).world("waited", call=2, effect="e", attempt=1).send()
    story.refuse().closed("rejected", 1).told(NO, "rejected", "rejected", call=1)
    return story.renew(host="B", call=2).send(2, host="B").refuse(2).closed("rejected", 2)


@lies("begin")
def f26_the_retention_counts_from_an_older_key() -> Story:
    """A resend moves the instant at which its key was first begun."""
    return Story("T3").begin().send().lost().wait(150).begin(key_first_begun_at=150)


@lies("bounds", "closing")
def n1_a_repeated_settle_closes_anothers_place() -> Story:
    """Closed twice: the second time it takes the other attempt's place."""
    story = Story("T3").begin().send().lost().wait(150).begin().send(2).refuse(2).closed("rejected", 2)
    return story.commit("closed", attempt=2, open_attempts=0, verdict=UNKNOWN, proof_said="rejected")


@lies("send", "no_effect")
def n2_the_push_is_fenced() -> Story:
    """The overrunning first attempt could not push after the second had begun, and sends after absence was proven."""
    story = Story("T3", looks=True).begin().lost().wait(150).begin().send(2).lost(2)
    return story.wait(200).absent().send(1).land(1)


@lies("send")
def n3_sent_after_it_was_recorded_as_never_sent() -> Story:
    """Cancelled before its marked moment, and the thread went on; the request died, which is luck."""
    return Story("T0").begin().closed("never_sent", 1).send(1).world("lost", effect="e", attempt=1, key="e-k0")
