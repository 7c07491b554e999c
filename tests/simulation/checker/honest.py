"""Histories of an honest ledger in a world that keeps (or openly breaks) its conditions: nothing is wrong with any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simulation.checker.stories import Story

NO, UNKNOWN, APPLIED = "no_effect", "effect_unknown", "effect_applied"
WAIT = "Do not call pay for this again, in any wording. Call check_effect with effect_id e in 5 s."


def plain() -> Story:
    """It is sent, lands, and is told; the second call replays it."""
    story = Story("T0").call().begin().send().land().returned().told(APPLIED, "ok", "returned")
    return story.call().told(APPLIED, "replayed", "returned")


def declined() -> Story:
    """It is declined, and another attempt goes out under a new key."""
    story = Story("T3").call().begin().send().refuse().closed("rejected", 1).told(NO, "rejected", "rejected")
    return story.call().renew().send(2).land(2).returned(2).told(APPLIED, "ok", "returned")


def never_left() -> Story:
    """It never left; the next attempt keeps its key."""
    return Story("T0").call().begin().closed("never_sent", 1).begin().send(2).land(2).returned(2).told(APPLIED, "ok")


def never_started() -> Story:
    """It never left, and is told at once."""
    return Story("T0").call().begin().closed("never_sent", 1).told(NO, "unavailable", "never_sent")


def found_later() -> Story:
    """The answer is lost, the call is told so, and a look finds it."""
    story = Story("T2").call().begin().send().land().lost().told(UNKNOWN, "effect_unknown", next_action=WAIT, text=WAIT)
    return story.wait(200).found().call().told(APPLIED, "verified", "found")


def absent() -> Story:
    """The request dies; after grace a look proves it, and another attempt is made."""
    story = Story("T2").call().begin().send().world("lost", effect="e", attempt=1, key="e-k0").lost()
    return story.wait(150).absent().begin().send(2).land(2).returned(2).told(APPLIED, "ok", "returned")


def grace_too_short() -> Story:
    """As above, and then the first one lands too, because the world broke its grace: two effects, and an incident."""
    story = absent().land(1).broke("grace").wait(300)
    return story.look("found", shown=True).incident("applied_more_than_once")


def late_truth() -> Story:
    """No effect after grace; then it lands after all, an audit look finds it, and an incident says so."""
    story = Story("T2").call().begin().send().lost().wait(150).absent().told(NO, "unavailable", "absent_after_grace")
    return story.land(1).broke("grace").wait(200).found().call().told(APPLIED, "replayed", "found")


def late_word() -> Story:
    """No effect after grace, and then the attempt itself says that it was carried out."""
    story = Story("T2").call().begin().send().lost().wait(150).absent().land(1).broke("pause")
    return story.returned(1).told(APPLIED, "ok", "returned")


def resent() -> Story:
    """The answer is lost, the same goes out again under its key, and the provider knows it."""
    story = Story("T3").call().begin().send().land().lost().wait(150).begin().send(2)
    story.world("deduplicated", effect="e", attempt=2, key="e-k0")
    return story.returned(2, reference="r1").told(APPLIED, "ok", "returned")


def resend_never_left() -> Story:
    """A resend that never left closes itself alone: the first attempt stays open."""
    story = Story("T3").call().begin().send().land().lost().wait(150).begin().closed("never_sent", 2)
    return story.told(UNKNOWN, "effect_unknown", next_action=WAIT)


def forgotten() -> Story:
    """A provider that forgets its keys: two effects under one, and an incident."""
    story = Story("T3").call().begin().send().land().lost().wait(150).begin().send(2).land(2)
    return story.broke("retention").returned(2).incident("applied_more_than_once")


def taken_back() -> Story:
    """An unknown effect is revoked: what had landed stands no longer; the next attempt is another one."""
    story = Story("T4").call().begin().send().land().lost().told(UNKNOWN, "effect_unknown", next_action=WAIT)
    story.revoke().revoked().call().told(NO, "revoked", "revoked")
    return story.call().renew().send(2).land(2).returned(2).told(APPLIED, "ok", "returned")


def stone() -> Story:
    """A revoke leaves its stone although nothing had landed; the late original is refused."""
    story = Story("T4").call().begin().send().lost().revoke().revoked().refuse()
    return story.call().told(NO, "revoked", "revoked")


def revoke_of_applied() -> Story:
    """The attempt's own word comes while it is being revoked: it stays applied, and has ended."""
    story = Story("T4").call().begin().send().land().revoke().returned(1).revoked()
    return story.call().told(APPLIED, "ended", "returned")


def compensated() -> Story:
    """Applied, compensated, and told as ended."""
    return plain().compensate().call().told(APPLIED, "ended", "returned")


def resolved() -> Story:
    """A person decides that there is none, once nothing can send; the next attempt keeps the key."""
    story = Story("T0").call().begin().send().lost().wait(150).resolved().begin().send(2).land(2)
    return story.returned(2).told(APPLIED, "ok", "returned")


def wrong_person() -> Story:
    """A person was wrong, and the late truth comes out."""
    story = Story("T1").call().begin().send().land().lost().wait(150).broke("operator").resolved()
    return story.wait(180).found()


def said_applied() -> Story:
    """A person knows that it was done."""
    story = Story("T0").call().begin().send().land().lost().wait(150).resolved(APPLIED)
    return story.call().told(APPLIED, "replayed", "operator")


def same_transaction() -> Story:
    """Effect and record are one commit."""
    story = Story("T5").call().send()
    one: dict[str, Any] = {"verdict": APPLIED, "proof": "same_transaction", "settled_attempt": 1, "open_attempts": 0}
    story.begun_in_one(**one)
    return story.told(APPLIED, "ok", "same_transaction")


def rolled_back() -> Story:
    """A joint transaction that came to nothing."""
    story = Story("T5").call()
    one: dict[str, Any] = {"verdict": NO, "proof": "same_transaction", "settled_attempt": 1, "open_attempts": 0}
    return story.begun_in_one(**one).told(NO, "unavailable", "same_transaction")


def overrun() -> Story:
    """The function runs past its deadline, its host pushes the last possible send, and it sends late."""
    story = Story("T2").call().begin().wait(110).commit("overrun", attempt=1, sends_until=125, absent_from=146)
    return story.wait(120).send().land().returned(1).told(APPLIED, "ok", "returned")


def waiting() -> Story:
    """One dispatches, the other waits and answers with the end of that attempt."""
    story = Story("T0").call("A").call("B").begin(call=1).world("waited", call=2, effect="e", attempt=1).send()
    story.refuse().closed("rejected", 1).told(NO, "rejected", "rejected", call=1)
    return story.told(NO, "rejected", "rejected", call=2)


def conflict() -> Story:
    """Other arguments under the same key: told as no effect about themselves, whatever stands there."""
    return plain().call().told(NO, "key_conflict", None, next_action="Use another order only if wanted.")


def look_alike() -> Story:
    """What is alike proves nothing; it is nobody's effect."""
    story = Story("T1").call().begin().send().lost().world("alike", effect="e", reference="other")
    return story.look("unclear").told(UNKNOWN, "look_alike", next_action=WAIT)


def left_to_a_person() -> Story:
    """Nothing can be proven; a person is told once it is old."""
    story = Story("T0").call().begin().send().land().lost().told(UNKNOWN, "effect_unknown", next_action=WAIT)
    return story.wait(10**6 + 50).incident("doubt_left").world("resumed", host="A")


def crashed() -> Story:
    """The caller dies between the effect and its record; the next one looks."""
    story = Story("T2").call().begin().send().land().world("crash", host="A").call("B").wait(150)
    return story.found(host="B").told(APPLIED, "verified", "found")


def clock_jumped() -> Story:
    """A clock that jumped further than the margin breaks the absence of every effect."""
    return Story("T2").call().begin().broke("clock", effect=None).send().lost().wait(150).absent().land()


def deaf_provider() -> Story:
    """A provider that declines and acts all the same."""
    story = Story("T0").call().begin().send().refuse().land().broke("acted_on_refusal").closed("rejected", 1)
    return story.told(NO, "rejected", "rejected")


def hidden_until_grace() -> Story:
    """One of two effects is hidden from a look that comes before the grace of the last possible send is over."""
    story = Story("T2").begin().send().refuse().land().broke("acted_on_refusal").closed("rejected", 1)
    return story.renew().send(2).land(2).returned(2).wait(133).look("found", shown=True)


def held_ledger() -> Story:
    """A function goes on after its time, and its host cannot write that down while another holds the ledger."""
    return Story("T0").begin().lost().world("holds", host="B").wait(150).send().land().returned(1)


def resending_client() -> Story:
    """One attempt, two effects, because a layer below repeats requests."""
    return Story("T0").call().begin().send().land().land(reference="r1b").broke("client_resent").returned(1)


def resending_client_at_a_racing_provider() -> Story:
    """Both copies of one request are worked on at once, for the provider keeps a key only when its work is done."""
    story = Story("T3", concurrent=False).call().begin().send().land().land(reference="r1b")
    return story.broke("client_resent").returned(1)


def forgotten_copy() -> Story:
    """A second copy of a request lands later than grace, when the provider has forgotten its key."""
    story = Story("T3").call().begin().send().land().returned().told(APPLIED, "ok", "returned")
    return story.wait(4000).broke("grace").land(1, reference="r1b")


def empty_answer() -> Story:
    """It is answered and was never done."""
    return (
        Story("T0").call().begin().send().broke("returned_without_acting").returned(1).told(APPLIED, "ok", "returned")
    )


def lying_look() -> Story:
    """A look finds what is not there."""
    return Story("T1").call().begin().send().lost().broke("look_lied").found(shown=False).told(APPLIED, "verified")


HONEST: dict[str, Callable[[], Story]] = {
    one.__name__: one
    for one in (
        plain, declined, never_left, never_started, found_later, absent, grace_too_short, late_truth, late_word, resent,
        resend_never_left, forgotten, taken_back, stone, revoke_of_applied, compensated, resolved, wrong_person,
        said_applied, same_transaction, rolled_back, overrun, waiting, conflict, look_alike, left_to_a_person, crashed,
        clock_jumped, deaf_provider, hidden_until_grace, held_ledger, resending_client,
        resending_client_at_a_racing_provider, forgotten_copy, empty_answer, lying_look,
    )
}  # fmt: skip
