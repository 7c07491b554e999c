"""How long and how often: the `Policy` of a tool.

Owns the numbers, their units and the checks that they make sense together. It decides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal

from counterfoil.errors import UsageError
from counterfoil.guard import Breaker
from counterfoil.key_policy import KeyPolicy

_POSITIVE: Final = (
    *("timeout_s", "patience_s", "wait_s", "wait_max_s", "review_after_s", "audit_s", "look_timeout_s"),
    *("idempotent_window_s", "twin_window_s"),
)
_OPTIONAL: Final = ("idempotent_window_s", "twin_window_s")
_COUNTS: Final = ("attempts_max", "value_max_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How long and how often. Seconds, unless a name says otherwise.

    Args:
        timeout_s: until an attempt's deadline; nothing may be sent after it.
        grace_s: how late a request may still land after the deadline, how long a look may miss it then, and how long a
            host may stand still between its last check and its last byte: all three together. None: absence never
            proves anything.
        patience_s: how long one call goes on looking and waiting before it answers unknown.
        attempts_max: attempts within one call.
        key_policy: how the provider de-duplicates on `effect.provider_key`; needs `grace_s`. Send inside
            `effect.sending()`, so that no thread that overruns can send after the provider has forgotten the key.
        idempotent_window_s: for `idempotent=True`: from the first begin on, how long sending it again is harmless;
            needs `grace_s`.
        verify: "doubt" looks only after a lost answer, "always" also after a success.
        wait_s: the first back-off between looks and attempts; each later one is longer, up to `wait_max_s`.
        review_after_s: an effect that is unknown for so long becomes an incident.
        audit_s: for how long something closed by absence is looked at again.
        value_max_bytes: a larger value is kept as its size and digest.
        look_timeout_s: until one look is given up as unclear.
        twin_window_s: for so long the same identity arguments under another key are held, and the user is asked whether
            a separate one is wanted (`possible_duplicate`); an `occurrence` confirms it. None: they never are.
        store_value: the fields of a result that are kept and told, all else is left out; None: all of them.
        breaker: after how many faults of its service a tool is left alone, and for how long; None: never.

    Raises:
        UsageError: a number out of range, or numbers that contradict each other; says how to mend it.

    Example:
        >>> Policy(timeout_s=10, grace_s=60).attempts_max
        3
    """

    timeout_s: float = 30.0
    grace_s: float | None = None
    patience_s: float = 10.0
    attempts_max: int = 3
    key_policy: KeyPolicy | None = None
    idempotent_window_s: float | None = None
    verify: Literal["doubt", "always"] = "doubt"
    wait_s: float = 0.5
    wait_max_s: float = 10.0
    review_after_s: float = 3600.0
    audit_s: float = 86_400.0
    value_max_bytes: int = 65_536
    look_timeout_s: float = 10.0
    twin_window_s: float | None = None
    store_value: tuple[str, ...] | None = None
    breaker: Breaker | None = Breaker()  # noqa: RUF009 - frozen

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if not (name in _OPTIONAL and value is None) and not (_is_finite(value) and value > 0):
                raise UsageError(f"Policy({name}={value!r}): give a finite number of seconds above 0")
        if self.grace_s is not None and not (_is_finite(self.grace_s) and self.grace_s >= 0):
            raise UsageError(f"Policy(grace_s={self.grace_s!r}): give a finite number of seconds, 0 or more, or None")
        for name in _COUNTS:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise UsageError(f"Policy({name}={value!r}): give a whole number, 1 or more")
        if self.verify not in ("doubt", "always"):
            raise UsageError(f'Policy(verify={self.verify!r}): it is "doubt" or "always"')
        if self.wait_max_s < self.wait_s:
            raise UsageError(f"Policy(wait_max_s={self.wait_max_s!r}) is below wait_s={self.wait_s!r}: raise it")
        if self.breaker is not None and not isinstance(self.breaker, Breaker):
            raise UsageError("Policy(breaker=...) takes a Breaker, for example Breaker(failures=5, open_s=60), or None")
        if self.store_value is not None and not _are_names(self.store_value):
            raise UsageError(
                'Policy(store_value=...) takes a tuple of names, for example ("payment", "status"), or None'
            )
        self._check_windows()

    @property
    def speaks_for_key(self) -> bool:
        """True when a stored refusal of a resend closes every attempt that carried the key."""
        return self.key_policy is not None and self.key_policy.replays_refusals

    def _check_windows(self) -> None:
        if self.key_policy is not None:
            if not isinstance(self.key_policy, KeyPolicy):
                raise UsageError("Policy(key_policy=...) takes a KeyPolicy, for example KeyPolicy(retention_s=86_400)")
            if self.grace_s is None:
                raise UsageError(
                    "Policy(key_policy=...) needs grace_s: how many seconds late a request may still arrive"
                )
            self._check_window("KeyPolicy(retention_s=...)", self.key_policy.retention_s)
        if self.idempotent_window_s is not None:
            if self.grace_s is None:
                raise UsageError(
                    "Policy(idempotent_window_s=...) needs grace_s: how many seconds late a request may still arrive"
                )
            self._check_window("Policy(idempotent_window_s=...)", self.idempotent_window_s)

    def _check_window(self, name: str, window_s: float) -> None:
        needed_s = self.timeout_s + (self.grace_s or 0)
        if not (_is_finite(window_s) and window_s > needed_s):
            raise UsageError(
                f"{name} is {window_s!r} s, so no resend could arrive inside it: it must be finite and above "
                f"timeout_s + grace_s = {needed_s:g} s; lower those, or do without it"
            )


def _are_names(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, str) and one for one in value)


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
