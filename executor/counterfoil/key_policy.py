"""How a provider de-duplicates on a key that it is handed: data, one `KeyPolicy` for each provider.

Owns the words and the check that they are possible. It decides nothing, and knows no provider by name: presets, each
with its source, are in `counterfoil_tools.providers`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyPolicy:
    """How a provider de-duplicates on `effect.provider_key` (P2). It is data, one per provider.

    Args:
        retention_s: seconds for which the provider surely remembers a key, counted from its first arrival.
        concurrent: True when the provider also holds back a second request while the first is under way. The
            default False is the careful one: then a resend waits until no earlier request can be under way.
        replays_refusals: True when a refusal is stored under the key and replayed; then a refusal of a resend with the
            status 402, which only a processed request gets, closes every attempt that carried the key.
        compares_body: True when the provider refuses a known key with another request; False when it answers with the
            first result whatever the second request says, or when that is not known. Nothing is decided by it: a
            resend always carries the stored arguments. It tells whoever reads the declaration what a mistake would do.

    Raises:
        ValueError: a retention that is not above zero.

    Example:
        >>> KeyPolicy(retention_s=86_400).concurrent
        False
    """

    retention_s: float
    concurrent: bool = False
    replays_refusals: bool = False
    compares_body: bool = False

    def __post_init__(self) -> None:
        if not self.retention_s > 0:
            raise ValueError("KeyPolicy(retention_s=...) is a number of seconds above 0")
