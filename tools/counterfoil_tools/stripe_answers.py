"""What charging and refunding share about Stripe's answers: reading a list to its end, whose an object is, too many.

Owns no request of its own: each caller says which list is read. It must not know what is paid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

from counterfoil import Effect, Throttled
from counterfoil.errors import UsageError

if TYPE_CHECKING:
    import stripe

PAGE: Final = 100
LOOK_RESERVE_S: Final = 0.2
METADATA_KEY: Final = "effect"


class Scan:
    """All objects of one of the account's lists, page by page; `finished` says whether the end was reached.

    Args:
        ask: the list's method of the client.
        effect: whose time it is; the scan ends before it does.
        pages_max: pages of 100 objects that are read at most.
        only: what the server is to filter by.
    """

    def __init__(
        self, ask: Callable[..., Any], effect: Effect, pages_max: int, only: dict[str, str] | None = None
    ) -> None:
        self._ask = ask
        self._effect = effect
        self._pages_max = pages_max
        self._only = only or {}
        self.finished = False

    def __iter__(self) -> Iterator[Any]:
        after: dict[str, str] = {}
        for _ in range(self._pages_max):
            if self._effect.remaining_s < LOOK_RESERVE_S:
                return
            asked: Any = {"limit": PAGE, **self._only, **after}
            page = self._ask(asked, {"max_network_retries": 0})
            yield from page.data
            if not page.has_more or not page.data:
                self.finished = not page.has_more
                return
            after = {"starting_after": page.data[-1].id}


def planted(made: Any) -> str | None:
    """The id of the effect that the object was made for; None when it carries none."""
    metadata: Any = made.metadata
    return metadata.to_dict().get(METADATA_KEY) if metadata is not None else None


def throttled(error: stripe.RateLimitError) -> NoReturn:
    """One request too many was surely not acted upon; a lock that timed out speaks of work under way: no proof."""
    details = error.error
    if getattr(details, "code", None) == "lock_timeout":
        raise error
    wait = (error.headers or {}).get("Retry-After", "")
    raise Throttled(float(wait) if wait.isdigit() else None) from None


def sdk() -> Any:
    """Stripe's SDK, imported when it is first needed.

    Raises:
        UsageError: it is not installed.
    """
    try:
        import stripe
    except ModuleNotFoundError as error:
        raise UsageError("the payment tools need Stripe's SDK: pip install 'counterfoil[payments]'") from error
    return stripe
