"""What the shipped tools share about talking to a provider: how long to wait, and what to raise when nothing is proven.

Owns these two and no request. The executor knows nothing of `Unproven`, and an error that nobody declared proves
nothing: that is its use.
"""

from __future__ import annotations

from typing import Final

from counterfoil import Effect

# What is left of the attempt after the last wait: enough to say that the answer was lost, before the deadline says it.
_SHARE: Final = 0.9


class Unproven(Exception):
    """The provider has answered, and the answer says neither that the effect happened nor that it never will.

    Example:
        >>> Unproven("the payment is still processing").args
        ('the payment is still processing',)
    """


def wait_s(effect: Effect) -> float:
    """Seconds for which one request may wait: most of what is left of the attempt or look.

    Raises:
        UsageError: outside an attempt or a look.

    Example:
        >>> from counterfoil.attempt import Gate
        >>> wait_s(Effect(id="cf-1", attempt=1, gate=Gate(lambda: 10.0)))
        9.0
    """
    return _SHARE * effect.remaining_s
