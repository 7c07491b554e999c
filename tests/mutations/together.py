"""The safety rules of changes that share a transaction."""

from __future__ import annotations

from typing import Final

from mutations.rules import BATCH, Rule

WRITER: Final = "ledger/writer.py"
STATEMENTS: Final = "ledger/statements.py"
LEDGER: Final = "ledger/ledger.py"
ON_BATCHES: Final = ("tests/ledger/test_batches.py",)
ON_WHOLE: Final = ("tests/ledger/test_whole.py",)

TOGETHER: Final = (
    Rule(
        "together: a batch holds one change per key",
        BATCH,
        "if len({change.key for change in changes}) != len(changes):",
        "if False:",
        ON_BATCHES,
    ),
    Rule("together: of one key one waits", WRITER, "if key is not None and key in seen:", "if False:", ON_BATCHES),
    Rule(
        "together: what a guard refuses leaves no row",
        BATCH,
        'self._connection.execute(UNBORN, {"of_key": row.key})',
        "pass",
        ON_BATCHES,
    ),
    Rule(
        "together: what a guard refuses leaves no entry",
        BATCH,
        "            del self._writes[row.key]\n",
        "",
        ON_BATCHES,
    ),
    Rule(
        "together: what a lost reply left in doubt stays so",
        LEDGER,
        "fell = Fell(in_doubt=True)",
        "pass",
        ON_BATCHES,
    ),
    Rule(
        "together: a row that somebody holds is left out",
        STATEMENTS,
        "with_for_update(skip_locked=True)",
        "with_for_update()",
        ON_BATCHES,
        server=True,
    ),
    Rule(
        "a row that is brought along is written if its version is the ledger's",
        STATEMENTS,
        "UNTOUCHED: Final = _GUARDED & sa.and_(",
        'UNTOUCHED: Final = (effects.c.key == sa.bindparam("of_key")) & sa.and_(',
        ON_BATCHES,
    ),
    Rule(
        "a row that is brought along is written if it was not pushed",
        STATEMENTS,
        '"sends_until", "earlier_sends_until", "absent_from", "boot_id", "boot_low", "boot_high", "look_at"',
        '"look_at"',
        ON_BATCHES,
    ),
    Rule(
        "whole: an insert that waited asks the guards again",
        "ledger/whole.py",
        "if waited_us < AT_ONCE_US else",
        "if True else",
        ON_WHOLE,
        server=True,
    ),
    Rule(
        "whole: what a guard refuses is rolled back with its entry",
        BATCH,
        "            if one.explained:",
        "            if False:",
        ON_WHOLE,
        server=True,
    ),
    Rule(
        "whole: what was not written has no entry",
        "ledger/whole.py",
        "sa.select(*values).select_from(written)",
        "sa.select(*values)",
        ON_WHOLE,
        server=True,
    ),
    Rule(
        "whole: a row that has moved on is read again",
        "ledger/whole.py",
        "sa.update(effects).where(UNTOUCHED)",
        'sa.update(effects).where(effects.c.key == sa.bindparam("of_key"))',
        ON_WHOLE,
        server=True,
    ),
    Rule("together: a changed row makes all be read", BATCH, "            raise Mismatched\n", "            pass\n", ON_BATCHES),
)  # fmt: skip
