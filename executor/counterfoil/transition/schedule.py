"""When to look again: the look schedule of a doubt, and the audit looks after a conditional closing.

Pure arithmetic over a row. Waiting longer is never unsafe, so nothing here guards anything.
"""

from __future__ import annotations

from counterfoil.changes import Reading
from counterfoil.effect import MICROSECONDS, Row

FIRST_US = MICROSECONDS
SLOWEST_US = 600 * MICROSECONDS
REVIEWED_SLOWEST_US = 3600 * MICROSECONDS
UNDECLARED_GRACE_US = 60 * MICROSECONDS


def next_look(row: Row, reading: Reading) -> int:
    """When an unknown effect is looked at next, in microseconds: each time as long again as the doubt is old, from 1 s
    to 10 min, slower after review.

    Not before the lease ends, and soon after the instant at which absence begins to prove.
    """
    now = reading.now
    reviewed = row.review_at is not None and now > row.review_at
    pause = min(max(FIRST_US, now - row.begun_at), REVIEWED_SLOWEST_US if reviewed else SLOWEST_US)
    due = max(now + pause, row.lease_until if row.lease_until > now else 0)
    if row.absent_from is not None and now <= row.absent_from < due:
        return row.absent_from + 1
    return due


def audit_us(row: Row) -> tuple[int, ...]:
    """The distances of the audit looks from the conditional closing: 1, 3 and 10 times grace, review, end of audit."""
    grace = UNDECLARED_GRACE_US if row.grace_us is None else max(row.grace_us, MICROSECONDS)
    wanted = {grace, 3 * grace, 10 * grace, row.review_us, row.audit_us}
    return tuple(sorted(distance for distance in wanted if 0 < distance <= row.audit_us))


def after_settling(row: Row, now: int, *, unclear: bool = False) -> int | None:
    """When a settled effect is looked at again: while a success is unverified, or if absence or an operator once closed
    it (protocol F15). A look that was unclear has audited nothing: it is made again soon."""
    if not row.verified and now <= row.begun_at + row.audit_us:
        return now + min(FIRST_US << min(row.looks, 20), SLOWEST_US)
    if row.conditional_at is None:
        return None
    if unclear and now <= row.conditional_at + 2 * row.audit_us:
        return now + SLOWEST_US
    ahead = (row.conditional_at + distance for distance in audit_us(row))
    return next((instant for instant in ahead if instant > now), None)
