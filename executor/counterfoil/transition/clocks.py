"""How far the ledger's clock may be believed, be it a server's or the host's (protocol F10).

A wall clock can be set; the time since this host's boot cannot. The row keeps, for one boot, the lowest and the highest
distance between the two at which its instants were written. On that boot every comparison takes the reading that waits
longer: the smaller elapsed time where something must be over, the larger where something must still hold.
"""

from __future__ import annotations

from typing import Any

from counterfoil.changes import Reading
from counterfoil.effect import Row


def earliest(row: Row, now: int, boot_id: str | None, boot_us: int | None) -> int:
    """The ledger's time as the smaller of the two elapsed times has it."""
    if boot_id is None or boot_us is None or row.boot_id != boot_id or row.boot_low is None:
        return now
    return min(now, boot_us + row.boot_low)


def latest(row: Row, reading: Reading) -> int:
    """The ledger's time as the larger of the two elapsed times has it."""
    if reading.boot_us is None or row.boot_id != reading.boot_id or row.boot_high is None:
        return reading.now
    return max(reading.now, reading.boot_us + row.boot_high)


def is_over(row: Row, instant: int, reading: Reading) -> bool:
    """Whether an instant of the row has surely passed."""
    return earliest(row, reading.now, reading.boot_id, reading.boot_us) > instant


def boot_columns(row: Row, reading: Reading) -> dict[str, Any]:
    """What to keep beside instants that are written now."""
    if reading.boot_id is None or reading.boot_us is None:
        return {"boot_id": None, "boot_low": None, "boot_high": None}
    distance = reading.now - reading.boot_us
    low = high = distance
    if row.boot_id == reading.boot_id and row.boot_low is not None and row.boot_high is not None:
        low, high = min(row.boot_low, distance), max(row.boot_high, distance)
    return {"boot_id": reading.boot_id, "boot_low": low, "boot_high": high}
