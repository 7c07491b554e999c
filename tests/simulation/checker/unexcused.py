"""More histories of a ledger that breaks a rule: excuses that do not hold, begins, sends, tellings and quiet ends."""

from __future__ import annotations

from simulation.checker.dishonest import lies
from simulation.checker.honest import APPLIED, NO, UNKNOWN, WAIT, plain
from simulation.checker.stories import GRACE, Story

# ---------------------------------------------------------------- excuses that do not hold


@lies("no_effect")
def late_without_a_broken_condition() -> Story:
    """Closed by absence, and it lands: nobody broke grace."""
    return Story("T2").begin().send().lost().wait(150).absent().land()


@lies("no_effect")
def a_condition_of_another_proof() -> Story:
    """A forgotten key is no excuse for an absence that was not one."""
    return Story("T2").begin().send().lost().wait(150).absent().land().broke("retention").broke("stone")


@lies("no_effect")
def a_lie_after_the_proof() -> Story:
    """A look that lied later has not misled anybody before."""
    return Story("T2").begin().send().land().lost().wait(150).absent().broke("look_lied")


@lies("closing", "no_effect", "bounds")
def grace_of_a_tool_without_one() -> Story:
    """A tool that declares no grace relies on none."""
    return Story("T1").begin(absent_from=140).send().lost().wait(150).absent().land().broke("grace")


@lies("twice")
def a_client_that_nobody_saw_resend() -> Story:
    """One attempt, two effects, and no layer below is known to repeat."""
    return Story("T0").begin().send().land(count=2).returned(1)


@lies("applied")
def applied_and_nothing_is_there() -> Story:
    """It was never sent."""
    return Story("T0").begin().returned(1)


@lies("applied")
def found_and_nobody_looked() -> Story:
    """It had landed, and the ledger cannot know."""
    return Story("T2").begin().send().land().lost().wait(150).found(looked=False)


@lies("latch")
def applied_is_taken_away() -> Story:
    """A lagging look makes an applied effect none."""
    story = Story("T2").begin().send().land().returned(1)
    return story.commit("absent", verdict=NO, proof="absent_after_grace")


@lies("closing")
def rejected_and_nobody_refused() -> Story:
    """An exception that nobody declared is taken for a refusal."""
    return Story("T0").begin().send().world("lost", effect="e", attempt=1, key="e-k0").closed("rejected", 1)


@lies("closing")
def closed_by_nothing() -> Story:
    """The verdict of a lost answer."""
    return Story("T0").begin().send().commit("lost", attempt=1, verdict=NO, open_attempts=0, proof=None)


# ---------------------------------------------------------------- begins, sends, tellings


@lies("begin")
def a_begin_on_top_of_an_open_one() -> Story:
    """Without a key, unknown forbids to begin."""
    return Story("T0").begin().send().lost().wait(150).begin()


@lies("begin")
def a_begin_of_what_is_applied() -> Story:
    """Applied is never begun again."""
    return plain().begin(verdict=APPLIED, proof="returned", open_attempts=0)


@lies("begin")
def a_resend_with_other_arguments() -> Story:
    """The stored arguments go out again, no others."""
    return Story("T3").begin().send().lost().wait(150).begin(arguments='{"note": "other"}')


@lies("begin")
def a_resend_under_a_live_claim() -> Story:
    """Another call still holds it."""
    return Story("T3").begin().send().begin()


@lies("key")
def other_arguments_while_the_first_may_land() -> Story:
    """Absence is conditional: the first request may still turn up, with the first arguments."""
    return Story("T2").begin().send().lost().wait(150).absent().begin(fingerprint="f2")


@lies("send")
def sent_before_begin() -> Story:
    """The request leaves, then the begin is committed."""
    story = Story("T0").send(key="e-k0")
    return story.begin().land().returned(1)


@lies("send")
def sent_under_another_key() -> Story:
    """The provider cannot know it as the same."""
    return Story("T3").begin().send(key="mine").refuse().closed("rejected", 1)


@lies("send")
def sent_by_another_host() -> Story:
    """Whoever has not begun it must not send it."""
    return Story("T0").begin(host="A").send(host="B").refuse().closed("rejected", 1)


@lies("told")
def told_none_and_nothing_says_so() -> Story:
    """The row is unknown all the while."""
    return Story("T0").call().begin().send().land().lost().told(NO, "unavailable", "never_sent")


@lies("told")
def told_of_an_older_row() -> Story:
    """It was none when the call began, and the call's own attempt landed since."""
    story = Story("T3").call().begin().send().refuse().closed("rejected", 1).told(NO, "rejected", "rejected")
    return story.call().renew().send(2).land(2).lost(2).told(NO, "rejected", "rejected")


@lies("told")
def told_applied_too_early() -> Story:
    """It landed after the answer."""
    return Story("T0").call().begin().send().told(APPLIED, "ok", "returned").land().returned(1)


@lies("told")
def told_to_try_again() -> Story:
    """Unknown, and the text invites a second payment."""
    story = Story("T0").call().begin().send().land().lost()
    return story.told(UNKNOWN, "effect_unknown", text="Reason: timeout. Please try again with the same arguments.")


@lies("told")
def told_to_call_again() -> Story:
    """Unknown, and the next action is another call."""
    story = Story("T0").call().begin().send().land().lost()
    return story.told(UNKNOWN, "effect_unknown", next_action="Call pay again with the same arguments in 5 s.")


@lies("told")
def told_ok_and_unknown() -> Story:
    """Nobody may go on from what is not known."""
    return Story("T0").call().begin().send().land().lost().told(UNKNOWN, "ok", ok=True, next_action=WAIT)


@lies("told")
def told_ended_and_it_stands() -> Story:
    """Nothing took it back, in the ledger or in the world."""
    return plain().call().told(APPLIED, "ended", "returned")


@lies("told")
def told_ended_and_only_the_ledger_says_so() -> Story:
    """The compensation's word was believed, and nothing was done."""
    story = plain()
    return story.commit("compensated", undone_by="c").call().told(APPLIED, "ended", "returned")


@lies("told")
def a_conflict_that_claims_an_effect() -> Story:
    """key_conflict is about the call's own arguments."""
    return plain().call().told(APPLIED, "key_conflict", "returned", ok=False)


# ---------------------------------------------------------------- quiet


@lies("quiet")
def quiet_and_nobody_looked() -> Story:
    """Absence would prove, and the doubt is left."""
    return Story("T2").begin().send().lost().wait(150).world("resumed", host="A")


@lies("quiet")
def quiet_and_found_is_not_believed() -> Story:
    """A look found it, and the doubt is left."""
    return Story("T1").begin().send().land().lost().wait(150).look("found", shown=True)


@lies("quiet")
def quiet_and_absence_is_not_believed() -> Story:
    """A look after grace answered absent, and the doubt is left."""
    return Story("T2").begin().send().lost().wait(100 + 3 * GRACE).look("absent")


@lies("quiet")
def quiet_and_no_person_is_told() -> Story:
    """A doubt that is older than its review."""
    return Story("T0").begin().send().land().lost().wait(10**6 + 50).world("resumed", host="A")
