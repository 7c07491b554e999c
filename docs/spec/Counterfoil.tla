------------------------------ MODULE Counterfoil ------------------------------
(* One effect key of Counterfoil: its row in the ledger, the attempts that were begun for it, the looks, the revoke,   *)
(* the person who decides, and the provider. The page `index.md` beside this file says what is checked and assumed.    *)
(*                                                                                                                     *)
(* Each attempt is a caller of its own on a host of its own; its steps may be any time apart (a pause), and it may     *)
(* crash between any two of them. `@code FILE: NAME` names what an action, or a piece of one, stands for; FILE is      *)
(* under executor/counterfoil, and a test checks that the names exist.                                                 *)
(*                                                                                                                     *)
(* Instants are kept as their distance from now: 2 is two ticks ahead, 0 is now, below 0 is over. What lies further    *)
(* back than any rule asks stays where it is, so that the states are finitely many and the clock has no end.           *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
  \* sizes
  MaxAttempts,      \* attempts that may be begun in all
  Timeouts,         \* what a begin may choose from: hosts, versions and calls differ in it
  Margin,           \* clock_margin_s
  Skew,             \* how much later than the ledger a host may see its own deadline; a condition is Skew <= Margin
  Grace,            \* grace_s
  Retention,        \* KeyPolicy(retention_s), or Forever
  Lookers,          \* looks that may be under way at once
  \* what the tool declares
  Post,             \* a postcondition with a grace: P4
  Keyed,            \* a key policy: P2
  Racy,             \* KeyPolicy(concurrent=False): the provider stores a key only when the request is done
  Replays,          \* KeyPolicy(replays_refusals=True)
  Revokes,          \* a revoke: P3
  Person,           \* somebody resolves doubts: P5
  \* conditions: what is assumed of the world, each declared by the user
  WithinGrace,      \* standing still, late arrival and the lag of looks take no longer than Grace, all together
  EndsInRetention,  \* a function that outlives its deadline sends while the provider still remembers its key
  KeepsStone,       \* an acknowledged revoke makes the provider refuse the late original
  PersonIsRight,    \* who says "no effect" knows that nothing happened, is under way, or stands still half-way
  LedgerKeeps,      \* no acknowledged commit is lost
  Answering,        \* the world answers in the end: the last attempt is neither lost nor refused nor killed
  \* rules: what the code does; without any one of them a property fails
  BeginGuarded, AppliedKept, OwnAttemptOnly, ClosedOnce, SendsNeverDecrease, OverrunPushed, PushUnfenced,
  AskedTimeCounts, AbsenceJudgedAtWrite, GraceWaited, MarginCounted, FailedLookProvesNothing,
  KeyKept, LeaseWaited, KeyExpires, ArrivalCounted, RacyWaited,
  RenewedOnlyAnswered, NeverRenewedTainted, StoredOnlySpeaks, EarlierOverToSpeak,
  DeadlineChecked, GateShuts, LostProvesNothing, SuccessUnfenced,
  RevokeHoldsBegin, RevokeResent, RevokeDecides, FoundBeforeRevokeIgnored, RevokeOutlivesLook,
  PersonWaits, PersonBoundToVersion

VARIABLES
  row,    \* the ledger's row (effect.py: Row), its columns that matter here
  att,    \* att[n]: the thread of attempt n, and until when its host has covered its sending
  req,    \* req[n]: what became of its request in the world, and the rest of Grace that it has
  key,    \* key[n]: generation of the provider key that attempt n carries
  mem,    \* mem[g]: what the provider remembers of key g, and for how long
  stones, \* keys that the provider will refuse
  look,   \* look[l]: a look that has its answer and is not written yet
  rev,    \* the revoke: an effect of its own
  reader  \* what the person has read
vars == <<row, att, req, key, mem, stones, look, rev, reader>>

Attempts == 1..MaxAttempts
Forever  == 99
Max(a, b) == IF a > b THEN a ELSE b
Min(a, b) == IF a < b THEN a ELSE b
Later(x, floor) == IF x = Forever \/ x <= floor THEN x ELSE x - 1
Tainting == Keyed \/ Revokes            \* only then anything depends on the provider key

LongAgo == IF Racy THEN -(Grace + Margin + 1) ELSE -1

NoLook   == [said |-> "", after |-> FALSE, old |-> FALSE]
Idle     == [pc |-> "none", until |-> 0]
NoRevoke == [at |-> "none", through |-> 0, doubt |-> FALSE]
Unread   == [pc |-> "none", verdict |-> "", attempts |-> 0, open |-> {}]

Init ==
  /\ row = [verdict |-> "none", attempts |-> 0, open |-> {}, lease |-> -1,
            sends |-> LongAgo, earlier |-> -1, absent |-> -1, gen |-> 1, window |-> 0,
            answered |-> FALSE, tainted |-> FALSE, revoking |-> FALSE, through |-> 0, undone |-> FALSE]
  /\ att = [n \in Attempts |-> Idle]
  /\ req = [n \in Attempts |-> [at |-> "none", left |-> 0]]
  /\ key = [n \in Attempts |-> 0]
  /\ mem = [g \in Attempts |-> [what |-> "nothing", left |-> -1]]
  /\ stones = {} /\ look = [l \in Lookers |-> NoLook] /\ rev = NoRevoke /\ reader = Unread

Standing  == {n \in Attempts : req[n].at \in {"hidden", "shown"}}
Happened  == Standing \cup {n \in Attempts : req[n].at = "undone"}
UnderWay  == {n \in Attempts : req[n].at \in {"flying", "working", "hidden"}}
CanSend(n) == att[n].pc = "started" /\ att[n].until + Skew + Grace >= 0
Covered(n) == att[n].pc = "started" /\ att[n].until + Skew >= 0
Ended(r)  == [r EXCEPT !.lease = Min(@, -1)]        \* @code transition/settled.py: ended

--------------------------------------------------------------------------------
(* Time. It does not pass while the world still owes what WithinGrace promises.                                        *)
Tick ==
  /\ WithinGrace => \A n \in UnderWay : req[n].left > 0
  /\ Answering => att[MaxAttempts].pc \notin {"begun", "started"}
  /\ row' = [row EXCEPT !.lease = Later(@, -1), !.sends = Later(@, LongAgo), !.earlier = Later(@, -1),
                        !.absent = Later(@, -1), !.window = Later(@, 0)]
  /\ att' = [n \in Attempts |->
               CASE att[n].pc = "begun"   -> [att[n] EXCEPT !.until = Later(@, -Skew)]
                 [] att[n].pc = "started" -> [att[n] EXCEPT !.until = Later(@, -(Skew + Grace + 1))]
                 [] OTHER                 -> att[n]]
  /\ req' = [n \in Attempts |-> [req[n] EXCEPT !.left = Later(@, 0)]]
  /\ mem' = [g \in Attempts |-> IF mem[g].left = 0 THEN [what |-> "forgotten", left |-> -1]
                                ELSE [mem[g] EXCEPT !.left = Later(@, -1)]]
  /\ UNCHANGED <<key, stones, look, rev, reader>>

--------------------------------------------------------------------------------
(* Begin.                                                                                                              *)
AbsentFrom(r, sends) ==                              \* @code transition/begin.py: _absent_from
  IF ~Post THEN -1
  ELSE Max(IF SendsNeverDecrease THEN r.absent ELSE -1,
           sends + (IF GraceWaited THEN Grace ELSE 0) + (IF MarginCounted THEN Margin ELSE 0))

Renews(r) ==                                         \* @code transition/begin.py: _renewed_key
  /\ Tainting /\ r.verdict = "no_effect"
  /\ r.answered \/ ~RenewedOnlyAnswered
  /\ ~r.tainted \/ ~NeverRenewedTainted

Begun(r, timeout, renews) ==                         \* @code transition/begin.py: _attempt
  LET sends == IF SendsNeverDecrease THEN Max(r.sends, timeout) ELSE timeout IN
  [r EXCEPT !.verdict = "unknown", !.attempts = @ + 1,
            !.open = (IF r.verdict = "unknown" THEN @ ELSE {}) \cup {r.attempts + 1},
            !.lease = timeout + Margin, !.sends = sends, !.earlier = IF Replays THEN Max(r.sends, -1) ELSE -1,
            !.absent = AbsentFrom(r, sends),
            !.gen = IF renews THEN @ + 1 ELSE @,
            !.window = IF ~Keyed THEN 0 ELSE IF renews \/ r.verdict = "none" THEN Retention ELSE @,
            !.answered = IF renews THEN FALSE ELSE @, !.tainted = IF renews THEN FALSE ELSE @]

MayResend(timeout) ==                                \* @code transition/begin.py: _resend_refusal
  /\ Keyed
  /\ row.lease < 0 \/ ~LeaseWaited
  /\ row.window >= timeout + (IF ArrivalCounted THEN Grace + Margin ELSE 0) \/ ~KeyExpires
  /\ Racy /\ RacyWaited => row.sends < -(Grace + Margin)

Start(timeout, renews) ==
  LET n == row.attempts + 1  r == Begun(row, timeout, renews) IN
  /\ row' = r
  /\ att' = [att EXCEPT ![n] = [pc |-> "begun", until |-> timeout]]
  /\ key' = [key EXCEPT ![n] = r.gen]
  /\ look' = [l \in Lookers |-> IF AbsenceJudgedAtWrite THEN [look[l] EXCEPT !.after = FALSE] ELSE look[l]]
  /\ UNCHANGED <<req, mem, stones, rev, reader>>

Begin ==                                             \* @code transition/begin.py: begun, new_row
  /\ row.attempts < MaxAttempts
  /\ row.revoking => ~RevokeHoldsBegin
  /\ \E timeout \in Timeouts :
       \/ row.verdict \in {"none", "no_effect"} /\ Start(timeout, Renews(row))
       \/ row.verdict = "unknown" /\ MayResend(timeout) /\ Start(timeout, ~KeyKept)
       \/ row.verdict = "unknown" /\ row.lease < 0 /\ ~BeginGuarded /\ Start(timeout, FALSE)

Unbegun ==                                           \* a begin that was acknowledged, and that the ledger then lost
  LET n == row.attempts + 1 IN
  /\ ~LedgerKeeps /\ n <= MaxAttempts /\ att[n].pc = "none"
  /\ att' = [att EXCEPT ![n] = [pc |-> "begun", until |-> 1]] /\ key' = [key EXCEPT ![n] = row.gen]
  /\ UNCHANGED <<row, req, mem, stones, look, rev, reader>>

--------------------------------------------------------------------------------
(* The attempt: its thread on its host.                                                                                *)
Thread(n, pc) == att' = [att EXCEPT ![n] = [pc |-> pc, until |-> 0]]
OnlyThread    == UNCHANGED <<row, req, key, mem, stones, look, rev, reader>>
Last(n)       == Answering /\ n = MaxAttempts

CallFunction(n) ==                                   \* @code runner/shell.py: before_call
  /\ att[n].pc = "begun" /\ (att[n].until + Skew > 0 \/ ~DeadlineChecked)
  /\ att' = [att EXCEPT ![n] = [pc |-> "started", until |-> Max(att[n].until, -Skew)]] /\ OnlyThread

NeverSent(n) ==      \* over or cancelled before the start, failed before the request, given up with the gate shut
  /\ att[n].pc \in {"begun", "started"} /\ ~Last(n)  \* @code runner/shell.py: before_call, given_up, raised
  /\ Thread(n, "never_sent") /\ OnlyThread

Overrun(n) ==        \* the function outlives its deadline (its caller was told "unknown"), and its host says so
  /\ att[n].pc = "started" /\ att[n].until + Skew <= 0 /\ CanSend(n)
  /\ EndsInRetention /\ Keyed => mem[key[n]].what = "nothing" \/ mem[key[n]].left >= Margin + Grace
  /\ att' = [att EXCEPT ![n].until = Margin - Skew]
  /\ IF /\ OverrunPushed /\ n \in row.open           \* @code runner/overrun.py: Overruns; transition/outcome.py: pushed
        /\ PushUnfenced \/ n = row.attempts
     THEN LET sends == Max(row.sends, Margin) IN
          /\ row' = [row EXCEPT !.sends = sends,
                                !.earlier = IF Replays /\ n < row.attempts THEN Max(@, sends) ELSE @,
                                !.absent = IF Post THEN Max(@, AbsentFrom(row, sends)) ELSE @]
          /\ look' = [l \in Lookers |-> IF AbsenceJudgedAtWrite THEN [look[l] EXCEPT !.after = FALSE] ELSE look[l]]
     ELSE UNCHANGED <<row, look>>
  /\ UNCHANGED <<req, key, mem, stones, rev, reader>>

Send(n) ==
  /\ CanSend(n)
  /\ Thread(n, "sent")
  /\ req' = [req EXCEPT ![n] = [at |-> "flying", left |-> Grace + Min(0, att[n].until + Skew)]]
  /\ UNCHANGED <<row, key, mem, stones, look, rev, reader>>

GiveUp(n) ==         \* timeout or cancellation: Lost is recorded and ends the lease; the thread goes on
  /\ att[n].pc \in {"started", "sent"} /\ row.verdict = "unknown" /\ row.attempts = n /\ row.lease >= 0
  /\ row' = Ended(row)                               \* @code runner/shell.py: given_up; transition/outcome.py: lost
  /\ UNCHANGED <<att, req, key, mem, stones, look, rev, reader>>

Crash(n) ==          \* before the send. A crash after it is an answer that nobody hears.
  /\ att[n].pc \in {"begun", "started"} /\ ~Last(n)
  /\ Thread(n, "over") /\ OnlyThread

--------------------------------------------------------------------------------
(* The provider. An answer is heard (and settled at some later time) or lost.                                          *)
Heard(n, answer) ==
  IF att[n].pc # "sent" THEN UNCHANGED att
  ELSE \/ Thread(n, answer)
       \/ ~Last(n) /\ Thread(n, "over")
       \/ ~Last(n) /\ ~LostProvesNothing /\ Thread(n, "rejected")   \* @code failure.py: classify
Became(n, at) == req' = [req EXCEPT ![n] = [at |-> at, left |-> IF at \in {"working", "hidden"} THEN @.left ELSE 0]]
World         == UNCHANGED <<row, key, stones, look, rev, reader>>

Acts(n) ==           \* it does what it was asked, and remembers the key
  /\ Became(n, "hidden") \/ Became(n, "shown")
  /\ mem' = IF Keyed THEN [mem EXCEPT ![key[n]] = [what |-> "effect", left |-> Retention]] ELSE mem
  /\ Heard(n, "returned")

Arrive(n) ==
  LET known == IF mem[key[n]].what = "forgotten" THEN "nothing" ELSE mem[key[n]].what IN
  /\ req[n].at = "flying" /\ World
  /\ \/ key[n] \in stones /\ Became(n, "refused") /\ Heard(n, "rejected") /\ UNCHANGED mem
     \/ key[n] \notin stones /\ known = "effect" /\ Became(n, "ended") /\ Heard(n, "returned") /\ UNCHANGED mem
     \/ key[n] \notin stones /\ known = "refusal" /\ Became(n, "refused") /\ Heard(n, "stored") /\ UNCHANGED mem
     \/ key[n] \notin stones /\ known = "nothing" /\ ~Racy /\ Acts(n)
     \/ key[n] \notin stones /\ known = "nothing" /\ Racy /\ Became(n, "working") /\ UNCHANGED <<mem, att>>
     \/ /\ key[n] \notin stones /\ known = "nothing" /\ Replays /\ Became(n, "refused") /\ Heard(n, "stored")
        /\ mem' = [mem EXCEPT ![key[n]] = [what |-> "refusal", left |-> Retention]]
     \/ /\ ~Last(n) /\ Became(n, "refused") /\ Heard(n, "rejected") /\ UNCHANGED mem    \* declined, throttled, key in use
     \/ /\ ~Last(n) /\ Became(n, "ended") /\ UNCHANGED mem
        /\ IF att[n].pc # "sent" THEN UNCHANGED att
           ELSE Thread(n, "over") \/ (~LostProvesNothing /\ Thread(n, "rejected"))

Finish(n) == req[n].at = "working" /\ World /\ Acts(n)

Show(n) == req[n].at = "hidden" /\ Became(n, "shown") /\ World /\ UNCHANGED <<att, mem>>

--------------------------------------------------------------------------------
(* Settle. The write may be repeated: its reply may be lost.                                                           *)
Latched(r) == [Ended(r) EXCEPT !.verdict = "applied", !.open = {}]      \* @code transition/settled.py: latched
Emptied(r) == [Ended(r) EXCEPT !.verdict = "no_effect", !.open = {}]

Returned(r, n) ==                   \* @code transition/outcome.py: returned; transition/undo.py: speaks_too_late
  IF n <= r.through /\ RevokeDecides THEN r
  ELSE IF ~SuccessUnfenced /\ ~(r.verdict = "unknown" /\ r.attempts = n) THEN r
  ELSE IF r.verdict = "applied" THEN r ELSE Latched(r)

Speaks(r, n, how) ==                                 \* @code transition/outcome.py: _speaks
  /\ Replays /\ n = r.attempts
  /\ how = "stored" \/ (how = "rejected" /\ ~StoredOnlySpeaks)
  /\ r.earlier < 0 \/ ~EarlierOverToSpeak

Closed(r, n, how) ==                                 \* @code transition/outcome.py: closed, _is_open
  IF r.verdict = "applied" THEN IF AppliedKept THEN r ELSE Emptied(r)
  ELSE IF n \notin r.open /\ (ClosedOnce \/ r.open = {}) THEN r
  ELSE LET mine == IF n \in r.open THEN n ELSE CHOOSE m \in r.open : TRUE
           left == IF Speaks(r, n, how) \/ ~OwnAttemptOnly THEN {} ELSE r.open \ {mine}
           told == [r EXCEPT !.answered = Tainting /\ (@ \/ how # "never_sent"), !.open = left] IN
       IF left = {} THEN Emptied(told) ELSE IF n = r.attempts THEN Ended(told) ELSE told

Settle(n) ==                                         \* @code settling.py: settling; runner/shell.py: record_late
  /\ att[n].pc \in {"returned", "never_sent", "rejected", "stored"}
  /\ row' = IF att[n].pc = "returned" THEN Returned(row, n) ELSE Closed(row, n, att[n].pc)
  /\ \/ Thread(n, IF att[n].pc = "returned" THEN "told" ELSE "over")
     \/ row' # row /\ UNCHANGED att
  /\ UNCHANGED <<req, key, mem, stones, look, rev, reader>>

GateLeftOpen(n) ==   \* without its rule: never_sent is recorded while the thread can still send
  /\ ~GateShuts /\ att[n].pc = "started" /\ n \in row.open   \* @code attempt.py: Gate
  /\ row' = Closed(row, n, "never_sent")
  /\ UNCHANGED <<att, req, key, mem, stones, look, rev, reader>>

--------------------------------------------------------------------------------
(* Looks: by callers and by reconcile, at any time; none of them sends. The answer is taken at the moment of asking:   *)
(* a later one says "absent" of a later moment, which is more than the ledger makes of it.                             *)
Ask(l) ==                                            \* @code runner/blocking.py: ask; reconcile.py: sweep
  /\ Post /\ look[l] = NoLook /\ row.verdict \in {"unknown", "no_effect"}
  /\ LET after == row.absent < 0
         seen  == \E n \in Attempts : req[n].at = "shown" IN
     \/ seen /\ look' = [look EXCEPT ![l] = [said |-> "found", after |-> FALSE, old |-> FALSE]]
     \/ /\ ~seen \/ ~FailedLookProvesNothing         \* @code looking.py: settle_doubt
        /\ row.verdict = "unknown" /\ (after \/ ~AskedTimeCounts)
        /\ look' = [look EXCEPT ![l] = [said |-> "absent", after |-> after, old |-> FALSE]]
  /\ UNCHANGED <<row, att, req, key, mem, stones, rev, reader>>

Found(r, old) ==                                     \* @code transition/look.py: found
  IF old /\ FoundBeforeRevokeIgnored THEN r
  ELSE [(IF r.verdict = "applied" THEN r ELSE Latched(r)) EXCEPT !.revoking = @ /\ RevokeOutlivesLook]

Absent(r, after) ==                                  \* @code transition/look.py: absent, absence_proves
  LET proves == IF AskedTimeCounts THEN after ELSE r.absent < 0 IN
  IF r.verdict = "unknown" /\ proves THEN [Emptied(r) EXCEPT !.tainted = Tainting] ELSE r

WriteLook(l) ==
  /\ look[l] # NoLook
  /\ row' = IF look[l].said = "found" THEN Found(row, look[l].old) ELSE Absent(row, look[l].after)
  /\ look' = [look EXCEPT ![l] = NoLook]
  /\ UNCHANGED <<att, req, key, mem, stones, rev, reader>>

--------------------------------------------------------------------------------
(* The revoke (P3). It may be lost, and sent again while nobody knows its end.                                         *)
Named(r) == [r EXCEPT !.revoking = TRUE]

MayName(r) ==                                        \* @code transition/undo.py: _revoke_named; effect.py: Row
  r.verdict = "unknown" \/ (r.verdict = "no_effect" /\ r.tainted)

AskRevoke ==
  /\ Revokes /\ rev.at = "none" /\ ~row.revoking /\ MayName(row)
  /\ row' = Named(row) /\ rev' = [at |-> "named", through |-> row.attempts, doubt |-> FALSE]
  /\ UNCHANGED <<att, req, key, mem, stones, look, reader>>

SendRevoke ==                                        \* @code ledger/undos.py: following; ledger/batch.py: _undo
  /\ \/ rev.at = "named" /\ UNCHANGED row
     \/ /\ rev.at = "lost" /\ RevokeResent          \* @code runner/settings.py: terms
        /\ \/ row.revoking /\ UNCHANGED row
           \/ ~row.revoking /\ MayName(row) /\ row.attempts = rev.through /\ row' = Named(row)
  /\ rev' = [rev EXCEPT !.at = "flying"]
  /\ UNCHANGED <<att, req, key, mem, stones, look, reader>>

LandRevoke ==        \* it takes back what is there, and leaves stones for what is not
  LET named == {key[n] : n \in 1..rev.through} IN
  /\ rev.at = "flying"
  /\ stones' = IF KeepsStone THEN stones \cup named ELSE stones
  /\ req' = [n \in Attempts |-> IF n \in Standing /\ key[n] \in named THEN [at |-> "undone", left |-> 0] ELSE req[n]]
  /\ rev' \in {[rev EXCEPT !.at = "acknowledged"], [rev EXCEPT !.at = "lost", !.doubt = TRUE]}
  /\ UNCHANGED <<row, att, key, mem, look, reader>>

MissRevoke ==        \* it is lost, or refused, or the provider says that the effect stands and stays
  /\ rev.at = "flying"
  /\ \/ rev' = [rev EXCEPT !.at = "lost", !.doubt = TRUE]
     \/ rev' = [rev EXCEPT !.at = IF rev.doubt THEN "lost" ELSE "refused"]    \* a refusal closes its own sending only
     \/ Standing # {} /\ rev' = [rev EXCEPT !.at = "found"]
  /\ UNCHANGED <<row, att, req, key, mem, stones, look, reader>>

RevokeDone(r) ==                                     \* @code transition/undo.py: _revoke_done
  LET base == [r EXCEPT !.revoking = FALSE, !.through = Max(@, rev.through)] IN
  IF r.verdict = "applied" THEN [base EXCEPT !.undone = TRUE]
  ELSE [Emptied(base) EXCEPT !.answered = TRUE, !.tainted = FALSE]

WriteRevoke ==                                       \* @code transition/undo.py: undone; ledger/undos.py: following
  /\ \/ /\ rev.at = "acknowledged" /\ row' = RevokeDone(row)
        /\ look' = [l \in Lookers |-> IF look[l] = NoLook THEN NoLook ELSE [look[l] EXCEPT !.old = TRUE]]
     \/ rev.at = "found" /\ row' = [Found(row, FALSE) EXCEPT !.revoking = FALSE] /\ UNCHANGED look
     \/ rev.at = "refused" /\ row' = [row EXCEPT !.revoking = FALSE] /\ UNCHANGED look
  /\ rev' = NoRevoke
  /\ UNCHANGED <<att, req, key, mem, stones, reader>>

--------------------------------------------------------------------------------
(* The person (P5): reads the row and finds out what happened; decides later.                                          *)
Study ==
  /\ Person /\ reader.pc = "none" /\ row.verdict = "unknown"
  /\ PersonWaits => row.sends < 0
  /\ PersonIsRight => Standing = {} /\ UnderWay = {}
                      /\ \A n \in Attempts : ~(CanSend(n) /\ att[n].until + Skew < 0)
  /\ reader' = [pc |-> "read", verdict |-> row.verdict, attempts |-> row.attempts, open |-> row.open]
  /\ UNCHANGED <<row, att, req, key, mem, stones, look, rev>>

SaysNoEffect ==                                      \* @code transition/person.py: resolved
  /\ reader.pc = "read" /\ row.verdict = "unknown"
  /\ PersonWaits => row.sends < 0
  /\ PersonBoundToVersion => reader.attempts = row.attempts /\ reader.open = row.open
  /\ row' = [Emptied(row) EXCEPT !.tainted = Tainting]
  /\ reader' = Unread
  /\ UNCHANGED <<att, req, key, mem, stones, look, rev>>

SaysApplied ==                                       \* @code transition/person.py: resolved
  /\ Person /\ row.verdict \in {"unknown", "no_effect"} /\ row.sends < 0 /\ Standing # {}
  /\ row' = Latched(row)
  /\ UNCHANGED <<att, req, key, mem, stones, look, rev, reader>>

--------------------------------------------------------------------------------
Runs(n) ==
  \/ CallFunction(n) \/ NeverSent(n) \/ Overrun(n) \/ Send(n) \/ GiveUp(n) \/ Crash(n) \/ Settle(n) \/ GateLeftOpen(n)
Worlds(n) == Arrive(n) \/ Finish(n) \/ Show(n)
Next ==
  \/ Tick \/ Begin \/ Unbegun
  \/ \E n \in Attempts : Runs(n) \/ Worlds(n)
  \/ \E l \in Lookers : Ask(l) \/ WriteLook(l)
  \/ AskRevoke \/ SendRevoke \/ LandRevoke \/ MissRevoke \/ WriteRevoke
  \/ Study \/ SaysNoEffect \/ SaysApplied
Spec == Init /\ [][Next]_vars

(* What the world and the hosts owe for the end of a doubt: time passes, functions end, requests arrive, looks are     *)
(* made and written, the same is sent again under its key, a revoke is asked for and lands in the end.                 *)
Fair ==
  /\ WF_vars(Tick)
  /\ \A n \in Attempts : WF_vars(CallFunction(n) \/ NeverSent(n)) /\ WF_vars(Worlds(n)) /\ WF_vars(Settle(n))
                         /\ SF_vars(Send(n) \/ NeverSent(n))
  /\ \A l \in Lookers : WF_vars(Ask(l)) /\ WF_vars(WriteLook(l))
  /\ Keyed => WF_vars(Begin)
  /\ Revokes => WF_vars(AskRevoke) /\ WF_vars(SendRevoke) /\ WF_vars(WriteRevoke)
                /\ SF_vars(LandRevoke /\ rev'.at = "acknowledged")
LiveSpec == Spec /\ Fair

--------------------------------------------------------------------------------
(* Properties of every state.                                                                                          *)
AtMostOneEffect == Cardinality(Standing) <= 1
ClosedIsHarmless ==  \* what the ledger calls proven to have had no effect has none, now or later
  row.verdict \in {"unknown", "no_effect"} => (1..row.attempts \ row.open) \cap Standing = {}
AppliedIsTrue   == row.verdict = "applied" => Happened # {}
AppliedStands ==     \* or it is marked as taken back, or somebody is about to say so
  row.verdict = "applied" /\ ~row.undone /\ ~row.revoking /\ rev.at \notin {"flying", "acknowledged"} => Standing # {}
SentIsBegun     == \A n \in Attempts : req[n].at # "none" => n <= row.attempts
SuccessIsKept   == \A n \in Attempts : att[n].pc = "told" => row.verdict = "applied" \/ n <= row.through

(* Properties of every step.                                                                                           *)
AppliedLatches  == [][row.verdict = "applied" => row'.verdict = "applied"]_vars
LimitsGrow      == [][Tick \/ (row'.sends >= row.sends /\ row'.absent >= row.absent)]_vars
BeginIsPermitted ==
  [][row'.attempts > row.attempts =>
       \/ row.verdict = "none"
       \/ row.verdict = "no_effect" /\ row.open = {}
       \/ Keyed /\ row'.gen = row.gen /\ row.lease < 0]_vars
ClosedIsOver ==      \* but for a revoke, nothing is called no effect while a host says that it may still send
  [][row.verdict = "unknown" /\ row'.verdict = "no_effect" /\ row'.through = row.through =>
       \A n \in row.open : ~Covered(n)]_vars
RenewedIsAnswered ==
  [][row'.gen > row.gen =>
       /\ \A n \in Attempts : key[n] = row.gen =>
            key[n] \in stones \/ req[n].at \in {"none", "refused"} \/ mem[key[n]].what = "refusal"
       /\ row.through > 0 \/ \E n \in Attempts : key[n] = row.gen /\ req[n].at = "refused"]_vars

(* What comes in the end.                                                                                              *)
DoubtEnds == row.verdict = "unknown" ~> row.verdict # "unknown"

LooksAreAlike == Permutations(Lookers)
================================================================================
