"""What may be pruned, and what is left of it: a tombstone that still answers for its key.

Owns the conditions and the columns. A tombstone keeps who the effect is, its verdict, its fence, its provider keys and
every instant that a proof may rest on; what it was about is emptied (protocol F19).
"""

from __future__ import annotations

from typing import Any

from counterfoil.changes import Reading
from counterfoil.effect import Row, Verdict
from counterfoil.transition.clocks import is_over
from counterfoil.transition.decision import Decision

EMPTY = "{}"


def kept_because(row: Row, reading: Reading, *, undo_open: bool, incident_open: bool) -> str | None:
    """Why a row may not be pruned now, in one word; None when it may."""
    if row.verdict is Verdict.EFFECT_UNKNOWN:
        return "unknown"
    if not row.complete:
        return "incomplete"
    if row.count > 1:
        return "doubled"
    if row.look_at is not None:
        return "look_due"
    if undo_open or row.revoke_by is not None:
        return "undo_open"
    if incident_open:
        return "incident_open"
    # The last request may have come as late as this, and the provider remembers its key from then on.
    last = row.sends_until + (row.grace_us or 0) + (row.retention_us or 0) + reading.margin_us
    return None if is_over(row, last, reading) else "key_remembered"


def tombstone(row: Row, reading: Reading, *, digest: str, exported: bool, actor: str) -> Decision:
    """What is left of a row, and the entry that says since when and what was there. `digest` is of the archive's line.

    References stay: they go on belonging to this effect, so that nothing else is ever proven by them.
    """
    columns: dict[str, Any] = {
        "arguments": EMPTY,
        "echo": EMPTY,
        "reason": None,
        "holder": None,
        "value": None,
        "value_size": None,
        "value_digest": None,
        "value_note": None,
        "pruned_at": reading.now,
    }
    detail = {"through": row.version, "digest": digest, "exported": exported}
    return Decision(columns, "pruned", 0, actor, detail)
