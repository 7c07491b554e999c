"""What a postcondition may say it found."""

from __future__ import annotations

import pytest

from counterfoil import Found


@pytest.mark.parametrize(
    ("reference", "count"), [(None, 0), ("pi_1", 0), (None, -1), (("pi_1", "pi_2"), 1), (None, True), (None, 1.5)]
)
def test_what_was_found_is_counted_from_one_and_no_less_than_its_names(reference: object, count: object) -> None:
    """Nothing found is `Absent`, never a count of 0; two names are at least two effects (F28)."""
    with pytest.raises(ValueError, match="1 or more"):
        Found("x", reference=reference, count=count)  # type: ignore[arg-type]
