"""How long and how often: the defaults, and the numbers that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from counterfoil.errors import UsageError
from counterfoil.key_policy import KeyPolicy
from counterfoil.policy import Policy


def test_a_policy_has_the_documented_defaults() -> None:
    """The table of the documentation holds."""
    assert Policy() == Policy(
        timeout_s=30.0, grace_s=None, patience_s=10.0, attempts_max=3, key_policy=None, idempotent_window_s=None,
        verify="doubt", wait_s=0.5, wait_max_s=10.0, review_after_s=3600.0, audit_s=86_400.0, value_max_bytes=65_536,
        look_timeout_s=10.0,
    )  # fmt: skip
    assert Policy(grace_s=0).grace_s == 0


SECONDS = ("timeout_s", "patience_s", "wait_s", "wait_max_s", "review_after_s", "audit_s", "look_timeout_s",
           "idempotent_window_s")  # fmt: skip


@pytest.mark.parametrize("name", SECONDS)
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "3"])
def test_seconds_are_finite_and_above_zero(name: str, value: Any) -> None:
    """No time may be zero, negative, endless or something else than a number."""
    with pytest.raises(UsageError, match=rf"Policy\({name}=.*: give a finite number of seconds above 0"):
        Policy(**{name: value})


@pytest.mark.parametrize(
    ("declared", "mend"),
    [
        ({"timeout_s": None}, "give a finite number"),
        ({"grace_s": -1}, "0 or more, or None"),
        ({"grace_s": float("inf")}, "0 or more, or None"),
        ({"grace_s": True}, "0 or more, or None"),
        ({"attempts_max": 0}, "1 or more"),
        ({"attempts_max": 1.5}, "1 or more"),
        ({"attempts_max": True}, "1 or more"),
        ({"value_max_bytes": 0}, "1 or more"),
        ({"verify": "never"}, '"doubt" or "always"'),
        ({"wait_s": 5, "wait_max_s": 4}, "raise it"),
        ({"key_policy": KeyPolicy(retention_s=86_400)}, "needs grace_s"),
        ({"key_policy": 86_400, "grace_s": 1}, r"for example KeyPolicy\(retention_s="),
        ({"key_policy": KeyPolicy(retention_s=40), "grace_s": 10}, r"above timeout_s \+ grace_s = 40 s"),
        ({"key_policy": KeyPolicy(retention_s=float("inf")), "grace_s": 10}, "it must be finite"),
        ({"idempotent_window_s": 30}, r"needs grace_s"),
        ({"idempotent_window_s": 35, "grace_s": 5}, r"above timeout_s \+ grace_s = 35 s"),
    ],
)
def test_a_policy_that_contradicts_itself_is_refused(declared: dict[str, Any], mend: str) -> None:
    """Numbers out of range, and windows in which no resend could arrive, are refused with the way to mend them."""
    with pytest.raises(UsageError, match=mend):
        Policy(**declared)


def test_the_smallest_windows_that_make_sense_are_taken() -> None:
    """One second more than timeout and grace together is enough."""
    policy = Policy(grace_s=10, key_policy=KeyPolicy(retention_s=41), idempotent_window_s=41)
    assert policy.key_policy == KeyPolicy(retention_s=41)
