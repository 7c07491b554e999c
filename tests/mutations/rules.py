"""Every safety rule, and how to take it out of the code: the text that holds it and what stands there without it.

`check.py` takes them out one by one and shows which test goes red. A rule whose removal no test notices is a rule that
nobody keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: where it stands, how its removal reads, and the tests that are asked, on SQLite or, where the rule is
    about a `server`, on PostgreSQL."""

    name: str
    file: str
    kept: str
    removed: str
    tests: tuple[str, ...]
    server: bool = False


BEGIN: Final = "transition/begin.py"
OUTCOME: Final = "transition/outcome.py"
LOOK: Final = "transition/look.py"
PERSON: Final = "transition/person.py"
BATCH: Final = "ledger/batch.py"
SHELL: Final = "runner/shell.py"
ASYNC: Final = "runner/asynchronous.py"
ON_BEGIN: Final = ("tests/ledger/test_begin.py",)
ON_SETTLE: Final = ("tests/ledger/test_settle.py",)
ON_LOOK: Final = ("tests/ledger/test_look.py",)
ON_RESOLVE: Final = ("tests/ledger/test_resolve.py",)
ON_TIERS: Final = ("tests/calls/test_tiers.py",)
ON_OVERRUN: Final = ("tests/calls/test_overrun.py",)
ON_ASYNC: Final = ("tests/calls/test_asynchronous.py",)
ON_WAITING: Final = ("tests/calls/test_waiting.py",)
ON_TAKING_BACK: Final = ("tests/calls/test_taking_back.py",)
ON_GATE: Final = ("tests/calls/test_gate.py",)
JOINT: Final = "ledger/joint.py"
JOINED: Final = "runner/transactional.py"
ON_JOINT: Final = ("tests/calls/test_same_transaction.py",)
ON_TROUBLE: Final = ("tests/calls/test_ledger_trouble.py",)
ON_FILE: Final = ("tests/cases/test_c44_sqlite_file.py",)
CONNECT: Final = "ledger/connect.py"
KEEPING: Final = "transition/keeping.py"
KEEPER: Final = "ledger/keeping.py"
ON_PRUNE: Final = ("tests/ledger/test_prune.py",)
ON_CRASHED_PRUNE: Final = ("tests/crash/test_crash_prune.py",)
ON_EXPIRED: Final = ("tests/calls/test_expired.py",)
VERIFYING: Final = "ledger/verifying.py"
ON_TAMPERING: Final = ("tests/ledger/test_tampering.py",)
ON_SEALS: Final = ("tests/ledger/test_seals.py",)
GUARDING: Final = "ledger/guarding.py"
REPEATING: Final = "ledger/repeating.py"
ACCOUNTS: Final = "ledger/accounts.py"
BUDGET: Final = "guard/budget.py"
BREAKER: Final = "guard/breaker.py"
LOOP: Final = "guard/loop.py"
ON_BUDGET: Final = ("tests/guards/test_budget.py",)
ON_BUYERS: Final = ("tests/cases/test_c56_budget_under_concurrency.py",)
ON_GUARDS: Final = ("tests/guards/test_decisions.py", "tests/guards/test_breaker_and_pause.py")
PINS: Final = "ledger/pins.py"
TWINS: Final = "ledger/twins.py"
NAMING: Final = "runner/naming.py"
ON_ROTATION: Final = ("tests/identity/test_secret_rotation.py",)
ON_TENANTS: Final = ("tests/identity/test_tenants.py",)
ON_TWINS: Final = ("tests/identity/test_twins.py",)
ON_PRIVATE: Final = ("tests/identity/test_private_names.py",)
ON_PLANTED: Final = ("tests/identity/test_planted_secrets.py",)
CIPHER: Final = "ledger/cipher.py"
CONCEALED: Final = "ledger/concealed.py"
REENCRYPTION: Final = "ledger/reencryption.py"
ON_CIPHER: Final = ("tests/unit/test_cipher.py",)
ON_ENCRYPTION: Final = ("tests/identity/test_encryption.py",)
ON_PROBE: Final = ("tests/cases/test_c49_one_probe.py",)
ON_WHO_GOES_ON: Final = ("tests/guards/test_who_goes_on.py",)
ON_LOOPS: Final = (
    "tests/guards/test_decisions.py",
    "tests/cases/test_c52_polling_and_cycles.py",
    "tests/cases/test_c53_small_variations.py",
    "tests/cases/test_c54_other_calls_reset_nothing.py",
)

RULES: Final = (
    Rule(
        "begin is guarded by the verdict",
        BEGIN,
        "            if refusal is not None:\n",
        "            if False:\n",
        ON_BEGIN,
    ),
    Rule("applied never begins", BEGIN, 'return Refusal("applied")', "return Repeated()", ON_BEGIN),
    Rule("other arguments under a key conflict", BEGIN, "if changed and not row.replaceable:", "if False:", ON_BEGIN),
    Rule(
        "only a final proof frees a key for other arguments",
        "effect.py",
        "self.verdict is Verdict.NO_EFFECT and not self.key_tainted",
        "self.verdict is Verdict.NO_EFFECT",
        ON_BEGIN,
    ),
    Rule(
        "a begin whose reply was lost is known by its claim",
        BEGIN,
        "if row.claim_id == begin.claim_id:",
        "if False:",
        ON_BEGIN,
    ),
    Rule(
        "a claim is no holder's but one begin's",
        BEGIN,
        "if row.claim_id == begin.claim_id:",
        "if row.holder == begin.holder:",
        ON_BEGIN,
    ),
    Rule("P2 waits for the lease", BEGIN, "if reading.now <= row.lease_until:", "if False:", ON_BEGIN),
    Rule("P2 asks for a key in every open attempt", BEGIN, "not row.keyed or ", "", ON_BEGIN),
    Rule("P2 ends for a tool that did not use its key", BEGIN, " or not keys_trusted", "", ON_BEGIN),
    Rule(
        "P2 ends with the retention",
        BEGIN,
        "if arrives_by > row.key_first_begun_at + terms.retention_us:",
        "if False:",
        ON_BEGIN,
    ),
    Rule(
        "retention counts to the arrival",
        BEGIN,
        "latest(row, reading) + terms.timeout_us + grace + reading.margin_us",
        "latest(row, reading)",
        ON_BEGIN,
    ),
    Rule(
        "retention counts from the present key",
        BEGIN,
        '        "key_first_begun_at": reading.now,\n        "key_answered"',
        '        "key_answered"',
        ON_BEGIN,
    ),
    Rule(
        "P2 waits until no earlier request is under way", BEGIN, "if not terms.concurrent and", "if False and", ON_BEGIN
    ),
    Rule(
        "no two attempts share a place", BEGIN, "if row.open_attempts & bit(row.attempts + 1):", "if False:", ON_BEGIN
    ),
    Rule(
        "the last possible send never decreases",
        BEGIN,
        "sends_until = max(row.sends_until, deadline)",
        "sends_until = deadline",
        ON_BEGIN,
    ),
    Rule(
        "the grace in force at begin is kept",
        BEGIN,
        "return max(row.absent_from or 0, sends_until + terms.grace_us + reading.margin_us)",
        "return sends_until + terms.grace_us + reading.margin_us",
        ON_BEGIN,
    ),
    Rule("an attempt without grace keeps absence from proving", BEGIN, " or open_without_grace", "", ON_BEGIN),
    Rule(
        "open attempts stay open over a resend",
        BEGIN,
        "keeps_open = row.open_attempts if row.verdict is Verdict.EFFECT_UNKNOWN else 0",
        "keeps_open = 0",
        ON_SETTLE,
    ),
    Rule("the key is renewed only after an answer", BEGIN, "not row.key_answered or ", "", ON_BEGIN),
    Rule("the key is kept after absence and after an operator", BEGIN, " or row.key_tainted", "", ON_BEGIN),
    Rule(
        "a resend sends the stored arguments",
        BEGIN,
        '            permission = "same_key"\n',
        '            permission = "same_key"\n            columns["arguments"] = begin.arguments\n',
        ON_BEGIN,
    ),
    Rule(
        "a proof closes its own attempt",
        OUTCOME,
        "left = 0 if for_key else row.open_attempts & ~mine",
        "left = 0",
        ON_SETTLE,
    ),
    Rule("closing is idempotent", OUTCOME, "    if not _is_open(row, attempt):\n", "    if False:\n", ON_SETTLE),
    Rule(
        "a refusal speaks for a key only by declaration",
        OUTCOME,
        "change.speaks_for_key and answered",
        "answered",
        ON_SETTLE,
    ),
    Rule(
        "409, 422 and 429 speak for nobody",
        OUTCOME,
        "    if change.status not in SPEAKING_STATUSES:\n        return False\n",
        "",
        ON_SETTLE,
    ),
    Rule("lost carries the fence", OUTCOME, " or row.attempts != change.attempt", "", ON_SETTLE),
    Rule(
        "late evidence latches",
        OUTCOME,
        "if row.verdict is not Verdict.EFFECT_APPLIED:\n        columns = latched",
        "if row.verdict is Verdict.EFFECT_UNKNOWN:\n        columns = latched",
        ON_SETTLE,
    ),
    Rule(
        "success is not fenced",
        OUTCOME,
        "    attempt, names = change.attempt,",
        '    if change.attempt != row.attempts:\n        return Refusal("fence")\n    attempt, names = change.attempt,',
        ON_SETTLE,
    ),
    Rule(
        "a late success is an incident",
        "transition/settled.py",
        'return (("late_effect"',
        'return () and (("late_effect"',
        ON_SETTLE,
    ),
    Rule(
        "a second effect is counted and told",
        OUTCOME,
        '    columns["count"] = row.count + 1\n',
        "    return Repeated()\n",
        ON_SETTLE,
    ),
    Rule(
        "two answers under one key are one effect",
        OUTCOME,
        "return row.keyed and change.provider_key == row.provider_key",
        "return False",
        ON_SETTLE,
    ),
    Rule(
        "the push is not fenced",
        OUTCOME,
        "if not _is_open(row, change.attempt):",
        "if change.attempt != row.attempts:",
        ON_SETTLE,
    ),
    Rule(
        "the push moves absence on",
        OUTCOME,
        '        columns |= {"absent_from": absent_from}\n',
        "        pass\n",
        ON_SETTLE,
    ),
    Rule(
        "absence waits for grace",
        LOOK,
        "row.absent_from is None:\n        return False",
        "row.absent_from is None:\n        return True",
        ON_LOOK,
    ),
    Rule(
        "absence counts from its instant",
        LOOK,
        "change.asked_boot_id, change.asked_boot_us) > row.absent_from",
        "change.asked_boot_id, change.asked_boot_us) > 0",
        ON_LOOK,
    ),
    Rule(
        "absence counts from the asking",
        LOOK,
        "if not absence_proves(row, change):",
        "if not absence_proves(row, replace(change, asked_at=reading.now)):",
        ON_LOOK,
    ),
    Rule(
        "the time since boot is asked too",
        "transition/clocks.py",
        "return min(now, boot_us + row.boot_low)",
        "return now",
        ON_LOOK,
    ),
    Rule(
        "a failed look is not absence",
        LOOK,
        "return _looked(row, change, reading, detail)\n\n\ndef _looked",
        "return absent(row, change, reading)\n\n\ndef _looked",
        ON_LOOK,
    ),
    Rule("absence taints the key", LOOK, '        "key_tainted": True,\n', "", ON_BEGIN),
    Rule(
        "what absence closed is looked at again",
        LOOK,
        '        "conditional_at": settled.conditional_at,\n',
        "",
        ON_LOOK,
    ),
    Rule("a count above one is told", LOOK, "if count > 1 else ()", "if count > 99 else ()", ON_LOOK),
    Rule("a part is told", LOOK, "return more if complete else", "return more if True else", ON_LOOK),
    Rule(
        "applied is never downgraded",
        LOOK,
        "    if row.verdict is not Verdict.EFFECT_UNKNOWN or row.absent_from is None:",
        "    if row.absent_from is None:",
        ON_LOOK,
    ),
    Rule(
        "the operator waits for the last possible send",
        PERSON,
        "if not is_over(row, row.sends_until, reading):",
        "if False:",
        ON_RESOLVE,
    ),
    Rule(
        "the operator is bound to what was read", PERSON, "if row.version != change.version:", "if False:", ON_RESOLVE
    ),
    Rule("an operator's word does not renew the key", PERSON, '                "key_tainted": True,\n', "", ON_BEGIN),
    Rule(
        "what an operator closed is looked at again",
        PERSON,
        '                "conditional_at": settled.conditional_at,\n',
        "",
        ON_LOOK,
    ),
    Rule(
        "a reference proves one effect only",
        "ledger/proofs.py",
        "    if others or claim_references(connection, row, found.references):\n",
        "    if False:\n",
        ON_LOOK,
    ),
    Rule("a look-alike is no proof", "ledger/proofs.py", 'if found.matches == "look_alike":', "if False:", ON_LOOK),
    Rule("a shared reference is told", BATCH, "            if one.shared:\n", "            if False:\n", ON_SETTLE),
    Rule(
        "a vanished effect is not begun anew",
        BATCH,
        "isinstance(one, Begin) and one.fresh and self._is_open(one)",
        "isinstance(one, Begin) and self._is_open(one)",
        ON_TROUBLE,
    ),
    Rule(
        "a COMMIT in doubt is asked again",
        "ledger/transaction.py",
        "raise (Transient if refused else CommitInDoubt) from None",
        'raise LedgerUnavailable("", certain=True) from None',
        ON_TROUBLE,
    ),
    Rule(
        "files that were removed in use end the use",
        "ledger/transaction.py",
        "self._unfit = self._unfit or file.changed(connection)",
        "pass",
        ON_FILE,
    ),
    Rule("damage in use ends the use", "ledger/transaction.py", "self._unfit = file.DAMAGED", "pass", ON_FILE),
    Rule("no new log replaces a removed one", CONNECT, "    file.refuse_without_log(path)\n", "", ON_FILE),
    Rule("damage is looked for at the start", CONNECT, "    file.refuse_damage(engine", "    id(engine", ON_FILE),
    Rule("an unlisted exception is lost", "failure.py", 'if sends != "anywhere" and gate', "if gate", ON_TIERS),
    Rule("look before resend", "flow.py", "if request.looks and not course.looked:", "if False:", ON_TIERS),
    Rule("a waiter does not begin", "flow.py", "    if course.waited:\n", "    if False:\n", ON_WAITING),
    Rule("no thread, no begin", SHELL, "if not self.site.attempts.reserve():", "if False:", ON_WAITING),
    Rule("the gate is shut when never_sent is said", SHELL, "shut = one.gate.shut()", "shut = True", ON_ASYNC),
    Rule(
        "no send after the deadline",
        "attempt.py",
        "            if self._remaining() <= 0:\n",
        "            if False:\n",
        ON_GATE,
    ),
    Rule(
        "the gate is shut before an exception is judged",
        SHELL,
        "        gate.shut()  # first:",
        "        # first:",
        ON_GATE,
    ),
    Rule(
        "only the exception that left the block may prove",
        SHELL,
        "            state = GateState.SENT  # the",
        "            pass  # the",
        ON_GATE,
    ),
    Rule(
        "a second block is a second request",
        "attempt.py",
        "GateState.SENDING if self.state is GateState.UNTOUCHED else GateState.SENT",
        "GateState.SENDING",
        ON_GATE,
    ),
    Rule(
        "a swallowed deadline is no success",
        SHELL,
        'if gate.refused and untouched and self.job.tool.sends == "marked":',
        "if False:",
        ON_GATE,
    ),
    Rule(
        "an overrun is watched from its start",
        SHELL,
        "            self.site.overruns.watch(one, row, self.job.actor, deadline)\n",
        "            pass\n",
        ON_OVERRUN,
    ),
    Rule(
        "the late end of an attempt is recorded",
        "runner/worker.py",
        "        self._late(end)\n",
        "        pass\n",
        ON_OVERRUN,
    ),
    Rule(
        "a cancellation waits for the record",
        ASYNC,
        "            except asyncio.CancelledError as cancelled:\n                interrupt = cancelled\n            except Exception:  # noqa: BLE001 - of the future",
        "            except asyncio.CancelledError as cancelled:\n                raise\n            except Exception:  # noqa: BLE001 - of the future",
        ON_ASYNC,
    ),
    Rule(
        "a cancelled attempt is recorded before it is raised",
        "flow.py",
        "        end = yield from do(Attempt(begun, started.deadline, resend))\n",
        "        end = yield from do(Attempt(begun, started.deadline, resend))\n        if end.interrupt is not None:\n            raise end.interrupt\n",
        ON_ASYNC,
    ),
    Rule(
        "an unwritten end is written later",
        SHELL,
        "            self.site.backlog.add(change)\n",
        "            pass\n",
        ON_TROUBLE,
    ),
    Rule(
        "one transaction: a settle that is declined rolls back",
        JOINT,
        '            return Undone("its record was changed meanwhile")\n',
        "            pass\n",
        ON_JOINT,
    ),
    Rule(
        "one transaction: the settle carries the fence",
        OUTCOME,
        "if change.proof is Proof.SAME_TRANSACTION and not _is_present(row, attempt):",
        "if False:",
        ON_JOINT,
    ),
    Rule(
        "one transaction: the function's writes are in it",
        JOINED,
        "self._shell.handle(row, self._gate, joint.connection)",
        "self._shell.handle(row, self._gate, self._shell.site.ledger.engine.connect())",
        ON_JOINT,
    ),
    Rule(
        "one transaction: what raised is rolled back",
        JOINED,
        "            if isinstance(end.outcome, Returned):\n                settle",
        "            if not isinstance(end.outcome, Returned):\n                joint._opened.transaction.commit()\n            else:\n                settle",
        ON_JOINT,
    ),
    Rule(
        "one transaction: the deadline is checked before COMMIT",
        JOINED,
        "not self._given_up and self._deadline.remaining_s() > 0",
        "not self._given_up",
        ON_JOINT,
    ),
    Rule(
        "one transaction: what was given up does not commit",
        JOINED,
        "not self._given_up and self._deadline.remaining_s() > 0",
        "self._deadline.remaining_s() > 0",
        ON_JOINT,
    ),
    Rule(
        "one transaction: a COMMIT in doubt is asked about",
        JOINT,
        'return Undone("COMMIT came to nothing", retryable=True, in_doubt=True)',
        "return answer.row",
        ON_JOINT,
    ),
    Rule(
        "one transaction: a COMMIT that counted is not run again",
        JOINED,
        "            if now.verdict is Verdict.EFFECT_APPLIED:  # COMMIT had counted\n",
        "            if False:\n",
        ON_JOINT,
    ),
    Rule(
        "one transaction: what cannot be asked after COMMIT is unknown",
        "flow.py",
        "        course.sent = not trouble.certain\n",
        "        pass\n",
        ON_JOINT,
    ),
    Rule(
        "one transaction: a commit behind its back proves nothing",
        JOINT,
        "row.claim_id == begin.claim_id and row.verdict is Verdict.EFFECT_UNKNOWN:",
        "False:",
        ON_JOINT,
    ),
    Rule(
        "one transaction: a commit behind its back is noticed",
        JOINT,
        '            self.connection.exec_driver_sql(f"RELEASE SAVEPOINT {_SAVEPOINT}")\n',
        "            pass\n",
        ON_JOINT,
    ),
    Rule(
        "one transaction: the function does not commit",
        JOINT,
        "    def _refuse_end(self, _: sa.Connection) -> None:\n        if self._lent:\n",
        "    def _refuse_end(self, _: sa.Connection) -> None:\n        if False:\n",
        ON_JOINT,
    ),
    Rule(
        "one transaction: no statement of the function ends it",
        JOINT,
        "if self._lent and _ENDS.match(statement):",
        "if False:",
        ON_JOINT,
    ),
    Rule(
        "one transaction: a swallowed refusal commits nothing",
        JOINED,
        "        if joint.misused is not None:\n",
        "        if False:\n",
        ON_JOINT,
    ),
    Rule(
        "one transaction: a caller is answered within its patience",
        JOINT,
        "transactions.open(work, wait_s)",
        "transactions.open(work, 20)",
        ON_JOINT,
    ),
    Rule(
        "one transaction: check_effect does not deny what is under way",
        "runner/core.py",
        "if self._ledger.is_under_way(wanted):",
        "if False:",
        ON_JOINT,
    ),
    Rule(
        "nothing begins while a revoke is unknown",
        BEGIN,
        "    if row.revoke_by is not None:\n",
        "    if False:\n",
        ON_TAKING_BACK,
    ),
    Rule(
        "a revoke decides for the attempts that it named",
        OUTCOME,
        "    if speaks_too_late(row, attempt):\n",
        "    if False:\n",
        ON_TAKING_BACK,
    ),
    Rule(
        "a look does not end a revoke that is under way",
        LOOK,
        "    if change.ends_revoke:\n",
        "    if True:\n",
        ON_TAKING_BACK,
    ),
    Rule(
        "what was seen before a revoke proves nothing",
        LOOK,
        "    elif row.revoked_at is not None and change.asked_at <= row.revoked_at:\n",
        "    elif False:\n",
        ON_TAKING_BACK,
    ),
    Rule(
        "a revoke is named after the attempts so far",
        "runner/core.py",
        'f"{row.id}:{row.attempts}" if kind == "revoke" else row.id',
        "row.id",
        ON_TAKING_BACK,
    ),
    Rule(
        "a revoke that found the effect ends it as applied",
        "ledger/undos.py",
        "if isinstance(change, SettleReturned) and change.original is not None:",
        "if False:",
        ON_TAKING_BACK,
    ),
    Rule(
        "compensate only from applied",
        "transition/undo.py",
        "            if row.verdict is not Verdict.EFFECT_APPLIED:\n                return Refusal(str(row.verdict))\n",
        "",
        ON_TAKING_BACK,
    ),
    Rule(
        "revoke only a doubt",
        "transition/undo.py",
        '    if row.verdict is Verdict.EFFECT_APPLIED:\n        return Refusal("applied")\n',
        "",
        ON_TAKING_BACK,
    ),
    Rule(
        "a compensation waits for a second request",
        "transition/undo.py",
        "if row.attempts > 1 and not is_over(row, last, reading):",
        "if False:",
        ON_TAKING_BACK,
    ),
    Rule(
        "what was taken back is told as ended",
        "telling.py",
        "    if row.undone_by is not None:\n        code",
        "    if False:\n        code",
        ON_TAKING_BACK,
    ),
    Rule(
        "what is unknown is never pruned", KEEPING, "if row.verdict is Verdict.EFFECT_UNKNOWN:", "if False:", ON_PRUNE
    ),
    Rule("what is incomplete is never pruned", KEEPING, "if not row.complete:", "if False:", ON_PRUNE),
    Rule("what was applied twice is never pruned", KEEPING, "if row.count > 1:", "if False:", ON_PRUNE),
    Rule("what is looked at again is never pruned", KEEPING, "if row.look_at is not None:", "if False:", ON_PRUNE),
    Rule(
        "what is being taken back is never pruned",
        KEEPING,
        "if undo_open or row.revoke_by is not None:",
        "if False:",
        ON_PRUNE,
    ),
    Rule(
        "a record outlives the provider's key",
        KEEPING,
        'return None if is_over(row, last, reading) else "key_remembered"',
        "return None",
        ON_PRUNE,
    ),
    Rule(
        "the retention that an attempt was told is kept",
        BEGIN,
        "return max(known, default=None)",
        "return None",
        ON_PRUNE,
    ),
    Rule(
        "an applied tombstone answers expired",
        "telling.py",
        "elif row.pruned_at is not None:",
        "elif False:",
        ON_EXPIRED,
    ),
    Rule(
        "the fence goes on after a prune",
        KEEPING,
        '        "pruned_at": reading.now,\n',
        '        "pruned_at": reading.now,\n        "attempts": 0,\n',
        ON_PRUNE,
    ),
    Rule(
        "the generation of the key goes on after a prune",
        KEEPING,
        '        "pruned_at": reading.now,\n',
        '        "pruned_at": reading.now,\n        "key_answered": False,\n',
        ON_PRUNE,
    ),
    Rule(
        "a tombstone is not taken back",
        "transition/undo.py",
        'if change.stage == "named" and row.pruned_at is not None:',
        "if False:",
        ON_PRUNE,
    ),
    Rule(
        "lines are on disk before rows go",
        "ledger/archive.py",
        "            os.fsync(self._file)\n        except OSError:",
        "        except OSError:",
        ON_CRASHED_PRUNE,
    ),
    Rule(
        "a torn line is taken away",
        "ledger/archive.py",
        "        if end < size:\n",
        "        if False:\n",
        ON_CRASHED_PRUNE,
    ),
    Rule(
        "references stay owned after a prune",
        KEEPER,
        "    connection.execute(sa.delete(sightings).where(sightings.c.key.in_(keys)))\n",
        "    connection.execute(sa.delete(sightings).where(sightings.c.key.in_(keys)))\n"
        "    connection.exec_driver_sql('DELETE FROM \"references\"')\n",
        ON_PRUNE,
    ),
    Rule(
        "an effect is compared with its seal",
        VERIFYING,
        "if digests.state(row) != last.state:",
        "if False:",
        ON_TAMPERING,
    ),
    Rule(
        "an entry is compared with its seal",
        VERIFYING,
        "if made is not None and made.entry(entry) != mark:",
        "if False:",
        ON_TAMPERING,
    ),
    Rule(
        "a book without a gap is asked for",
        VERIFYING,
        "for seq in islice(missing, _MISSING_NAMED):",
        "for seq in ():",
        ON_TAMPERING,
    ),
    Rule("what may only grow is compared", VERIFYING, "and fallen(row, last.least):", "and False:", ON_TAMPERING),
    Rule(
        "an effect that no seal holds is named",
        VERIFYING,
        'if last is None and row["sealed_version"] != 0:',
        "if False:",
        ON_TAMPERING,
    ),
    Rule(
        "a seal is chained to the one before",
        VERIFYING,
        "if made.root(head, (made.leaf(_leaf(leaf)) for leaf in mine)) != bytes(one.root):",
        "if False:",
        ON_SEALS,
    ),
    Rule(
        "a kept root must be in the chain",
        VERIFYING,
        "if kept is not None and not any(",
        "if False and not any(",
        ON_SEALS,
    ),
    Rule(
        "a secret keys the seals",
        "ledger/sealing.py",
        'self._key = None if secret is None else hmac.digest(secret, _NAME + b"key", "sha256")',
        "self._key = None",
        ON_SEALS,
    ),
    Rule(
        "schedules raise no alarm",
        "ledger/sealing.py",
        "told = {name: content for name, content in columns.items() if name not in _NOT_SEALED}",
        'told = {name: content for name, content in columns.items() if name != "sealed_version"}',
        ON_SEALS,
    ),
    Rule(
        "guard: a refusal rolls back what was written for it",
        GUARDING,
        "    if asks.enforce:\n        raise GuardRefuses(blocked)\n",
        '    if asks.enforce and blocked.code == "paused":\n        raise GuardRefuses(blocked)\n',
        ON_BUDGET,
    ),
    Rule(
        "guard: no refusal is told over what is applied or unknown",
        "flow.py",
        "    if row is None or row.verdict is Verdict.NO_EFFECT:\n        return blocked_call",
        "    if True:\n        return blocked_call",
        ON_GUARDS,
    ),
    Rule(
        "guard: a paused tool sends nothing",
        GUARDING,
        '    if there.paused:\n        raise GuardRefuses(Blocked("paused"))\n    # From',
        '    if False:\n        raise GuardRefuses(Blocked("paused"))\n    # From',
        ON_GUARDS,
    ),
    Rule(
        "guard: a pause holds in every mode and for every tenant",
        "ledger/standing.py",
        "if one.tenant not in (asks.tenant, EVERYBODY):",
        "if one.tenant not in (asks.tenant,):",
        ("tests/cli/test_guards.py",),
    ),
    Rule(
        "guard: a budget is asked under the lock of its task",
        GUARDING,
        "account = accounts.locked(connection, asks, now) if counts else None",
        "account = None",
        ON_BUYERS,
    ),
    Rule(
        "guard: what is reserved counts against the budget",
        BUDGET,
        "account.reserved.get(unit, 0) + account.spent.get(unit, 0)",
        "account.spent.get(unit, 0)",
        ("tests/guards/test_decisions.py", *ON_BUYERS),
    ),
    Rule(
        "guard: a unit that is not named may not be spent",
        BUDGET,
        "self.spend.get(unit, 0) if self.spend else None",
        "self.spend.get(unit)",
        ("tests/guards/test_decisions.py",),
    ),
    Rule(
        "guard: money is held while nothing is known",
        BUDGET,
        "if row.cost_unit is None or verdict is Verdict.EFFECT_UNKNOWN:",
        "if row.cost_unit is None:",
        ON_BUDGET,
    ),
    Rule(
        "guard: late truth is charged",
        BUDGET,
        "    more = max(0, owed - row.cost_charged)\n",
        "    more = min(row.cost_held, max(0, owed - row.cost_charged))\n",
        ON_BUDGET,
    ),
    Rule(
        "guard: what exceeds the budget in the end is an incident",
        ACCOUNTS,
        "    if over is not None:\n        notices.enter",
        "    if False:\n        notices.enter",
        ON_BUDGET,
    ),
    Rule(
        "guard: a resend reserves nothing anew",
        GUARDING,
        "asks.cost if begun is None or begun.open_attempts.bit_count() == 1 else None",
        "asks.cost",
        ("tests/guards/test_resend.py",),
    ),
    Rule(
        "guard: an earlier turn is no way out of a cap",
        BUDGET,
        "turn is not None and (account.turn is None or turn > account.turn)",
        "turn is not None and turn != account.turn",
        ("tests/guards/test_decisions.py",),
    ),
    Rule(
        "guard: one task has one budget",
        ACCOUNTS,
        '    if budget is not None and found["budget"] != budget.as_json():',
        "    if False:",
        ON_BUDGET,
    ),
    Rule(
        "guard: the breaker lets one probe through",
        BREAKER,
        "    if circuit.probe_until is not None and now <= circuit.probe_until:",
        "    if False:",
        ON_PROBE,
    ),
    Rule(
        "guard: only the probe closes an open breaker",
        BREAKER,
        "    if circuit.opened_at is not None and not probe:\n",
        "    if False:\n",
        ON_GUARDS,
    ),
    Rule(
        "guard: only faults of the service open the breaker",
        "runner/signs.py",
        "return Sign.FAULT if not refused and is_transport(problem) else Sign.NOTHING",
        "return Sign.FAULT",
        ("tests/cases/test_c50_bad_requests_open_nothing.py",),
    ),
    Rule(
        "guard: a refusal by status is no fault",
        "runner/signs.py",
        "return Sign.FAULT if status >= _SERVER_FAULTS or status == _TIMED_OUT else Sign.ANSWER",
        "return Sign.FAULT",
        ("tests/cases/test_c50_bad_requests_open_nothing.py",),
    ),
    Rule(
        "guard: other calls clear nothing",
        "ledger/repeating.py",
        '_OF_PLACE = _IN_TURN.where(repeats.c.similar == sa.bindparam("of_similar"))',
        "_OF_PLACE = _IN_TURN",
        ON_LOOPS,
    ),
    Rule(
        "guard: a cap for each tool ends alternation",
        LOOP,
        '("tool_failures", limits.tool_failures, of_tool.failures)',
        '("tool_failures", limits.tool_failures, 0)',
        ON_LOOPS,
    ),
    Rule(
        "guard: polling with other answers is no loop",
        LOOP,
        "same = mine.same + 1 if answer == mine.answer else 1",
        "same = mine.same + 1",
        ON_LOOPS,
    ),
    Rule(
        "guard: a success clears its own failures",
        LOOP,
        "            return replace(mine, wrong=0, passing=0)",
        "            return mine",
        ON_LOOPS,
    ),
    Rule(
        "guard: who goes on after a block is stopped",
        LOOP,
        "STOPS_AT = 2",
        "STOPS_AT = 2000",
        ON_LOOPS,
    ),
    Rule(
        "guard: who goes on after a pause or an open breaker is counted",
        GUARDING,
        "            return insisted(connection, asks, blocked, now)",
        "            return blocked",
        ON_WHO_GOES_ON,
    ),
    Rule(
        "guard: who waits as long as it was told is not going on",
        LOOP,
        "blocked=1 if waited else mine.blocked + 1",
        "blocked=mine.blocked + 1",
        ON_WHO_GOES_ON,
    ),
    Rule(
        "guard: a doubt that was asked about too often is not looked at",
        "tallying.py",
        '({"looks": False} if refused else {})',
        "({})",
        ON_WHO_GOES_ON,
    ),
    Rule(
        "guard: observing stops no run",
        "tallying.py",
        "or seen.ok or not enforce:",
        "or seen.ok:",
        ON_GUARDS,
    ),
    Rule(
        "guard: case counts where nobody says otherwise",
        "guard/similar.py",
        "return plain.casefold() if how.ignore_case else plain",
        "return plain.casefold()",
        ON_LOOPS,
    ),
    Rule(
        "identity: a begin holds the secret that names it",
        PINS,
        "    if known[:1] != (named.secret_id,):",
        "    if False:",
        ON_ROTATION,
    ),
    Rule(
        "identity: nothing is begun by one name that was begun by another",
        PINS,
        "    if named.elsewhere:",
        "    if False:",
        ON_ROTATION,
    ),
    Rule(
        "identity: a new name is given only where no other secret's name is there",
        NAMING,
        "    there = [(one, ledger.read(one.key)) for one in made.values()] if len(made) > 1 else []",
        "    there: list[tuple[Identity, Any]] = []",
        ON_ROTATION,
    ),
    Rule(
        "identity: a host knows every secret that names effects",
        NAMING,
        "        if not set(known) <= set(secrets.by_id()):",
        "        if not set(known) & set(secrets.by_id()):",
        ON_ROTATION,
    ),
    Rule(
        "identity: a host that does not know the newest begins nothing",
        NAMING,
        "    if not known or not set(known) <= set(own):\n        raise LedgerError(ANOTHER)\n",
        "    known = tuple(one for one in known if one in own)\n",
        ON_ROTATION,
    ),
    Rule(
        "identity: a ledger of several tenants wants one named",
        NAMING,
        "    if ledger.needs_tenant(mark=bool(tenant)) and not tenant:",
        "    if False:",
        ON_TENANTS,
    ),
    Rule(
        "identity: the audit of a tenant shows its own effects alone",
        "ledger/audit.py",
        "        return sa.true() if self._tenant is None else effects.c.tenant == self._tenant",
        "        return sa.true()",
        ON_TENANTS,
    ),
    Rule(
        "identity: the sums of a tenant count its own effects alone",
        "ledger/stats.py",
        "    return sa.true() if tenant is None else column == tenant",
        "    return sa.true()",
        ON_TENANTS,
    ),
    Rule(
        "identity: a look-alike is held",
        TWINS,
        "    if found is None:\n        return None\n",
        "    return None\n",
        ON_TWINS,
    ),
    Rule(
        "identity: a look-alike of another tenant is none",
        TWINS,
        "(twins.c.tenant == begun.tenant) & ",
        "",
        ON_TWINS,
    ),
    Rule(
        "identity: what had no effect holds nobody up",
        TWINS,
        "(effects.c.verdict != str(Verdict.NO_EFFECT)) & ",
        "",
        ON_TWINS,
    ),
    Rule(
        "secrets: an argument with a private name is a secret",
        "signature.py",
        "        secret = _is_secret(annotation, named=one.name)",
        "        secret = _is_secret(annotation)",
        ON_PRIVATE,
    ),
    Rule(
        "secrets: a private member of a free mapping is refused",
        "exact_json.py",
        "                    yield (*path, name), PRIVATE",
        "                    pass",
        ON_PRIVATE,
    ),
    Rule(
        "secrets: a value loses what stands under a private name",
        "runner/values.py",
        "without(without_private(_plain(value)), hidden)",
        "without(_plain(value), hidden)",
        ON_PRIVATE,
    ),
    Rule(
        "secrets: a value loses what the call knows to be secret",
        "runner/values.py",
        "without(without_private(_plain(value)), hidden)",
        "without_private(_plain(value))",
        ON_PLANTED,
    ),
    Rule(
        "secrets: the members of a secret model are known as secrets",
        "runner/door.py",
        "            return [text for one in members.values() for text in _all_texts(one)]\n        case other if",
        "            return []\n        case other if",
        ON_PLANTED,
    ),
    Rule(
        "encryption: a ciphertext belongs to one effect",
        CIPHER,
        '    return _NAME + len(of).to_bytes(2, "big") + of + place.encode()',
        "    return _NAME + place.encode()",
        ON_CIPHER,
    ),
    Rule(
        "encryption: a ciphertext belongs to one place",
        CIPHER,
        '    return _NAME + len(of).to_bytes(2, "big") + of + place.encode()',
        '    return _NAME + len(of).to_bytes(2, "big") + of',
        ON_CIPHER,
    ),
    Rule(
        "encryption: an entry stays in its place, with its code",
        CONCEALED,
        '    return f"entries.detail {seq} {json.dumps(clear, sort_keys=True)}"',
        '    return "entries.detail"',
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: an incident is not put in the place of another",
        CONCEALED,
        "    return hashlib.sha256(json.dumps(names).encode()).digest()",
        '    return hashlib.sha256(b"").digest()',
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: a plain text is none where there is a data key",
        CIPHER,
        "        if not text.startswith(MARK):\n            raise _changed()\n",
        "        if not text.startswith(MARK):\n            return text\n",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: an effect without its data key is not read as plain",
        CONCEALED,
        '        if str(columns["arguments"]).startswith(MARK):',
        "        if False:",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: what begins is encrypted",
        CONCEALED,
        "    return None if by is None or keys is None else keys.fresh(by, key).wrapped",
        "    return None",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: what changes stays encrypted",
        CONCEALED,
        "    if row.data_key is None or columns.keys().isdisjoint(COLUMNS):",
        '    if row.data_key is None or "key" not in columns:',
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: the detail of an entry is encrypted",
        CONCEALED,
        "    if row.data_key is None:\n        return detail\n",
        "    return detail\n",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: the detail of an incident is encrypted",
        CONCEALED,
        "    if by is None or keys is None:\n        plain:",
        "    if True:\n        plain:",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: a host that does not know the newest cipher key begins nothing",
        CONCEALED,
        "    return known[0] if known else None",
        "    return keys.newest if known else None",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: a begin holds the cipher key that it writes by",
        BATCH,
        "by = concealed.writing(self._connection, lock=True)",
        "by = concealed.writing(self._connection)",
        ON_ENCRYPTION,
        server=True,
    ),
    Rule(
        "encryption: a host without the cipher key does not open the ledger",
        REENCRYPTION,
        "        if known:\n            raise UsageError(",
        "        if False:\n            raise UsageError(",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: a host with another cipher key does not open the ledger",
        REENCRYPTION,
        "    if missing:",
        "    if False:",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: the database takes nothing plain once it is switched on",
        REENCRYPTION,
        "        for statement in _GUARD[connection.dialect.name]:",
        "        for statement in ():",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: an earlier cipher key is needed as long as something is under it",
        REENCRYPTION,
        "    if known[:1] == (newest,) and not earlier:",
        "    if known[:1] == (newest,):",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: only an empty ledger is encrypted by whoever opens it",
        REENCRYPTION,
        "    if connection.execute(sa.select(effects.c.key).limit(1)).first() is None:",
        "    if True:",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: what the file had freed is taken out of it",
        REENCRYPTION,
        "    _sweep_file(ledger)\n    return done",
        "    return done",
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: what cannot be read holds nobody up",
        "ledger/rows.py",
        '        except Unreadable as problem:\n            _log.warning("left as it is: %s", problem)\n',
        '        except ZeroDivisionError as problem:\n            _log.warning("left as it is: %s", problem)\n',
        ON_ENCRYPTION,
    ),
    Rule(
        "encryption: what cannot be read is not pruned",
        KEEPER,
        '                kept["unreadable"] += 1\n                continue\n',
        "                raise\n",
        ON_ENCRYPTION,
    ),
    Rule(
        "identity: a tombstone holds a look-alike up within the window",
        TWINS,
        "    over = (twins.c.until < now) & twins.c.key.in_(gone)",
        "    over = twins.c.key.in_(gone)",
        ON_TWINS,
    ),
    Rule(
        "identity: what is not pruned is still noted",
        TWINS,
        "    over = (twins.c.until < now) & twins.c.key.in_(gone)",
        "    over = twins.c.until < now",
        ON_TWINS,
    ),
)
