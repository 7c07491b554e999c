"""More safety rules: what an exception proves, clocks, durability, and what registration refuses."""

from __future__ import annotations

from typing import Final

from mutations.rules import RULES, Rule
from mutations.together import TOGETHER

FAILURE: Final = "failure.py"
CLOCKS: Final = "transition/clocks.py"
WORKER: Final = "runner/worker.py"
TRANSACTION: Final = "ledger/transaction.py"
POLICY: Final = "policy.py"
ON_FAILURE: Final = ("tests/failure/test_failure.py", "tests/failure/test_failure_refusals.py")
ON_DEADLINE: Final = ("tests/unit/test_deadline.py",)
ON_BEGIN: Final = ("tests/ledger/test_begin.py",)
ON_SERVER: Final = ("tests/trouble/test_server_in_the_way.py",)
ON_DECLARING: Final = ("tests/unit/test_policy.py", "tests/unit/test_tool.py", "tests/unit/test_rejects.py")

CONDITIONS: Final = (
    Rule(
        "a refusal that rests on a lost answer is lost",
        FAILURE,
        "doubt = next((node for node in explicit_chain(exc) if _is_doubt(node)), None)",
        "doubt = None",
        ON_FAILURE,
    ),
    Rule(
        "a gateway's word for a lost answer is no answer",
        FAILURE,
        " or _status(node) in _LOST_STATUSES",
        "",
        ON_FAILURE,
    ),
    Rule("what came after a send proves nothing", FAILURE, "gate is not GateState.SENT and ", "", ON_FAILURE),
    Rule("only causes are followed, never contexts", FAILURE, "[exc.__cause__]", "[exc.__cause__ or exc.__context__]", ON_FAILURE),
    Rule("a timeout can be no refusal", "declaration.py", "elif lost := _lost_answer(one):", "elif lost := None:", ON_DECLARING),
    Rule(
        "absence waits for the clock margin too",
        "transition/begin.py",
        "sends_until + terms.grace_us + reading.margin_us)",
        "sends_until + terms.grace_us)",
        ON_BEGIN,
    ),
    Rule(
        "the arrival of a resend is counted with the clock margin",
        "transition/begin.py",
        "terms.timeout_us + grace + reading.margin_us",
        "terms.timeout_us + grace",
        ON_BEGIN,
    ),
    Rule(
        "of two clocks the later one ends a retention",
        CLOCKS,
        "return max(reading.now, reading.boot_us + row.boot_high)",
        "return reading.now",
        ON_BEGIN,
    ),
    Rule(
        "the wall clock is checked beside the clock since boot",
        WORKER,
        "min(self._boot_until - self._clock.boot_us(), self._wall_until - self._clock.wall_us())",
        "self._boot_until - self._clock.boot_us()",
        ON_DEADLINE,
    ),
    Rule(
        "the clock since boot is checked beside the wall clock",
        WORKER,
        "min(self._boot_until - self._clock.boot_us(), self._wall_until - self._clock.wall_us())",
        "self._wall_until - self._clock.wall_us()",
        ON_DEADLINE,
    ),
    Rule(
        "each transaction is durable by its own word",
        TRANSACTION,
        "IN ('off', 'local') ",
        "IN ('neither') ",
        ON_SERVER,
        server=True,
    ),
    Rule(
        "a host that stands still in a transaction is let go",
        TRANSACTION,
        "set_config('idle_in_transaction_session_timeout', :idle_ms, true)",
        "CAST(:idle_ms AS text)",
        ("tests/races/test_stopped_steps.py::test_a_transaction_in_which_a_process_stands_still_is_ended",),
        server=True,
    ),
    Rule("every commit of SQLite reaches the disk", "ledger/connect.py", "PRAGMA synchronous=FULL", "PRAGMA synchronous=OFF", ("tests/cli/test_database.py",)),
    Rule("a server that may forget is refused", "ledger/connect.py", 'if fsync != "on":', "if False:", ("tests/trouble/test_forgetful_server.py",), server=True),
    Rule("a key policy has a grace", POLICY, "            if self.grace_s is None:\n                raise UsageError(\n                    \"Policy(key_policy=...)", "            if False:\n                raise UsageError(\n                    \"Policy(key_policy=...)", ON_DECLARING),
    Rule("a retention is longer than a resend takes", POLICY, "and window_s > needed_s", "", ON_DECLARING),
    Rule("an idempotent effect has a window", "declaration.py", "if self.idempotent and self.policy.idempotent_window_s is None:", "if False:", ON_DECLARING),
    Rule("what was found is one or more", "effect.py", " or not max(1, len(references)) <= total <= COUNT_MAX", "", ("tests/unit/test_evidence.py",)),
)  # fmt: skip
ALL_RULES: Final = (*RULES, *CONDITIONS, *TOGETHER)
