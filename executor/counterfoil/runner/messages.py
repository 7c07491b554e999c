"""How an executor words what it tells: the cap of a message, and the program's own secrets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from counterfoil.cleaning import HIDDEN_MIN
from counterfoil.errors import UsageError
from counterfoil.message import TOKENS, TOKENS_LEAST
from counterfoil.observe import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """How an executor words what it tells.

    Args:
        tokens: the most that a message may cost, at four bytes of UTF-8 for a token; at least 50. The result of a tool
            is not counted.
        hide: secrets of the program, for example its API keys: masked wherever one turns up in a message or in what
            the ledger keeps for engineers. Secret arguments and what looks like a secret in `context=` are masked
            without being named here.

    Raises:
        UsageError: fewer than 50 tokens; something in `hide` that is no text of four characters or more.

    Example:
        >>> Messages(tokens=80).tokens
        80
    """

    tokens: int = TOKENS
    hide: Iterable[str] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        most: Any = self.tokens
        if isinstance(most, bool) or not isinstance(most, int) or most < TOKENS_LEAST:
            raise UsageError(f"Messages(tokens=...) is a whole number, {TOKENS_LEAST} or more")
        secrets: Any = self.hide
        hide: tuple[Any, ...] = (None,) if isinstance(secrets, (str, bytes)) else tuple(secrets)
        if not all(isinstance(one, str) and len(one) >= HIDDEN_MIN for one in hide):
            raise UsageError(f"Messages(hide=...) takes a list of secrets, texts of {HIDDEN_MIN} characters or more")
        object.__setattr__(self, "hide", hide)

    def worded(self, seen: Observation) -> Observation:
        """The observation with a text of this length."""
        return seen if self.tokens == TOKENS else replace(seen, text=seen.message(tokens=self.tokens))
