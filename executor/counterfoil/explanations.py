"""What stands behind each code, for whoever follows `observation.more`: the long form, which no message has room for.

Owns these texts alone. A model is never shown them; a test holds them to the table of codes.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

EXPLANATIONS: Final = MappingProxyType(
    {
        "ok": "The tool's function returned, and its value is stored. The same call again is answered `replayed`.",
        "read": "A read-only tool answered. It has no effect and no record; calling it again asks again.",
        "verified": "No answer came, and the postcondition found the effect afterwards: the value is what the look "
        "returned. It may have been begun by an earlier call that was interrupted.",
        "replayed": "The ledger has this effect as applied. Nothing was sent; the value is the stored one. A wanted "
        "repeat is told apart by `occurrence`, which the program passes, or the model where the tool is `repeatable`.",
        "unverified": 'The tool reported success and, with `verify="always"`, a look did not see it yet. It stays '
        "applied; later looks confirm it.",
        "expired": "The effect was applied, and its record was cut down to a tombstone when its time was over. The key "
        "is never run as a new one. Use another key for another effect.",
        "value_not_stored": "The effect is applied. Its result was no JSON data or larger than "
        "`policy.value_max_bytes`; size and digest are kept, and what was done is never done again for its sake.",
        "in_progress": "Another call holds the right to work on this effect until its lease ends, and took longer than "
        "`policy.patience_s`. When its lease is over without an end, a look tells what became of it.",
        "effect_unknown": "An attempt began and nothing proves how it ended: a lost answer, a deadline, a crash, an "
        "exception that is declared nowhere. Nothing is sent again. `check_effect` and `reconcile` look; with "
        "`grace_s` absence proves, with a key policy the same request may go out again, and else a person resolves it.",
        "look_forbidden": "The effect is unknown, and the postcondition was refused with 401 or 403. Mend the "
        "credential that it looks with; looks go on by themselves.",
        "look_alike": "The effect is unknown, and the look, which does not search by the effect's id, saw something "
        "similar. That is no proof: it may be another one's. Let the tool plant `effect.id` and search for it.",
        "incomplete": "The look found a part of the effect. It counts as applied, is never sent again, and an incident "
        "is open for a person.",
        "applied_more_than_once": "More than one match was found, or two attempts succeeded. An incident is open; a "
        "person decides whether one of them has to be taken back.",
        "revoked": "A revoke was acknowledged, and the provider refuses the original from now on, also when it arrives "
        "late. The same call may begin anew.",
        "ended": "The effect was applied, and a compensation has made up for it. The key stays used: another one is a "
        "further `occurrence`.",
        "revoking": "A revoke has begun and its own end is unknown. Run it again: it is idempotent by declaration.",
        "conflict": "The provider refuses because of what is there: a taken slot, a used number. A tool raises "
        '`Rejected("conflict", …)` with the argument in `field` and, where it knows any, `candidates`.',
        "invalid_arguments": "The arguments do not fit the tool's signature. Nothing was recorded. Each problem is in "
        "`details`, at most five, in the operation's words.",
        "unknown_tool": "The model named a tool that this executor does not have. With many tools the most similar "
        "names are told.",
        "not_found": "What the call is about does not exist: an order, a customer, an effect id.",
        "no_results": "A search was carried out and found nothing. That is an answer, and the same search finds "
        "nothing again.",
        "ambiguous": "Several things fit what was named. A tool gives them as `candidates`.",
        "possible_duplicate": "Something so similar exists that a person should say whether another one is wanted: "
        "the same payee and amount on one day under another key, for example. Where nobody knows whether that one was "
        "carried out, the next action is to check it.",
        "rejected": "The provider refused, surely and for this call. A tool's own codes follow this row unless their "
        "`ErrorSpec` names another one. The exception itself is in the ledger, for engineers.",
        "key_conflict": "The key was used before with other identity arguments; which ones, old and new, is in "
        "`details`. Nothing was sent, and the earlier effect is untouched. Arguments marked `Content` never conflict.",
        "rate_limited": "The provider asked to come later and did nothing. Within the call that is waited for as far "
        "as `policy.patience_s` goes; this is what was left.",
        "unavailable": "Proven: nothing arrived, for example because no connection was had, or absence was seen after "
        "the grace. The same call may be made again and begins a new attempt.",
        "forbidden": "The provider refuses for want of a right. No argument changes that, so the run stops.",
        "repeated_call": "The loop guard counts a call's own failures within a turn, also in other wordings, and the "
        "calls of one tool. What is applied is replayed and what is unknown is said to be, guard or not. As `stop` "
        "it also stands beside other codes: the model goes on although there is nothing more to hear.",
        "budget_exhausted": "A further attempt would exceed the task's budget of calls or of money. What is unknown "
        "stays reserved until it is settled.",
        "breaker_open": "Several calls of this tool have failed in a row for reasons of the infrastructure. After a "
        "while one call is let through to try; refusals and wrong arguments do not count. A model that calls again "
        "before the time that it was told is told to stop.",
        "paused": "Somebody has run `counterfoil pause`. No new attempt begins on any host; looking goes on. "
        "A model that makes the same call again in a turn is told to stop.",
        "ledger_unavailable": "The ledger's database did not answer in time. Without a durable record nothing is "
        "begun; what was under way is recorded when it is back. The text says whether this call had sent anything.",
    }
)
