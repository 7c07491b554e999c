"""From the exception that a tool's function raised to an outcome: never sent, refused, or lost.

Owns what is known about other people's exceptions, by the names of their classes: it imports no client library. It must
not read an exception's text (hosts, bodies and parameters stand there), touch the world or keep anything.
Only positive knowledge proves; what is unknown or ambiguous is `Lost`. Followed are `__cause__`, the leaves of a group
and the wrapped error of known carriers; never `__context__`, which only says that one came after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final

from counterfoil.attempt import GateState
from counterfoil.effect import Lost, NeverSent, Refused, Sends
from counterfoil.errors import DeadlinePassed, ToolRefusal
from counterfoil.text import storable

TEXT_MAX: Final = 500
CODE_MAX: Final = 64
CANDIDATES_MAX: Final = 10
SECONDS_MAX: Final = 1_000_000_000


def classify(
    exc: BaseException, *, sends: Sends, rejects: tuple[type[BaseException], ...], gate: GateState
) -> NeverSent | Refused | Lost:
    """What an attempt proved (P1) when its function ended with `exc`. Never raises, and never quotes `exc`.

    Args:
        exc: what left the tool's function; a cancellation, `SystemExit` or a group as well.
        sends: how the tool declared that it sends. "anywhere": no exception proves that nothing was sent.
        rejects: the errors that the tool declared to be refusals. A lost answer among them stays lost.
        gate: where `effect.sending()` stands. SENDING means that `exc` left its block, or was raised from what did;
            SENT that something was sent and `exc` came later; UNTOUCHED and SHUT that nothing passed.

    Example:
        >>> classify(ConnectionRefusedError(), sends="once", rejects=(), gate=GateState.UNTOUCHED)
        NeverSent(reason='ConnectionRefusedError', retryable=True)
        >>> classify(ConnectionRefusedError(), sends="anywhere", rejects=(), gate=GateState.UNTOUCHED)
        Lost(reason='ConnectionRefusedError', overrun=False, status=None)
    """
    untouched = sends == "marked" and gate in (GateState.UNTOUCHED, GateState.SHUT)
    if isinstance(exc, BaseExceptionGroup):
        return _of_group(exc, sends=sends, rejects=rejects, gate=gate)
    doubt = next((node for node in explicit_chain(exc) if _is_doubt(node)), None)
    if doubt is None and isinstance(exc, ToolRefusal):
        return _refused(exc)
    if untouched:
        return NeverSent(_reason(exc, doubt), retryable=_may_pass(exc))
    if doubt is None and isinstance(exc, rejects):
        return Refused("rejected", name_of(type(exc)), status=status_of(exc))
    if isinstance(exc, DeadlinePassed) and sends == "once" and gate in (GateState.UNTOUCHED, GateState.SHUT):
        return NeverSent(name_of(type(exc)), retryable=False)  # "anywhere" may have sent before it came to the gate
    if sends != "anywhere" and gate is not GateState.SENT and _never_connected(exc):
        return NeverSent(_reason(exc, _root(exc)), retryable=_may_pass(exc))
    status = status_of(exc) if isinstance(exc, Exception) else None  # an exit's code is none
    return Lost(_reason(exc, doubt), status=status)


def is_transport(exc: BaseException) -> bool:
    """True when a lost answer or a failed transport is among `exc` and its causes: something was tried on the wire."""
    return any(_is_doubt(node) for node in explicit_chain(exc))


def is_timeout_class(cls: type) -> bool:
    """True when the class, or one that it derives from, names a timeout: such an error can never be a refusal.

    Example:
        >>> is_timeout_class(TimeoutError), is_timeout_class(PermissionError)
        (True, False)
    """
    return any(_TIMEOUT.search(base.__name__) or base is DeadlinePassed for base in cls.__mro__)


def name_of(cls: type) -> str:
    """The class's qualified name without private modules, at most 120 characters; the only thing shown of an error.

    Example:
        >>> name_of(TimeoutError), name_of(DeadlinePassed)
        ('TimeoutError', 'counterfoil.errors.DeadlinePassed')
    """
    modules = [] if cls.__module__ == "builtins" else str(cls.__module__).split(".")
    parts = [part for part in (*modules, *cls.__qualname__.split(".")[:-1]) if not part.startswith(("_", "<"))]
    return ".".join((*parts, cls.__name__))[:120]


# ---------------------------------------------------------------- what is known about a class


class _Kind(Enum):
    UNSENT = "raised only before a connection was had"
    LOST = "the transport failed: the request may have arrived"
    CARRIES = "says nothing by itself: what it wraps decides"
    ANSWER = "made from an answer, so no lost answer; whether it is a refusal is for the tool to say"
    UNKNOWN = "not known here"


# Distribution's top package and the class's own name: modules move between versions (`stripe.error`, `stripe._error`).
# A base class covers what derives from it (urllib3's NewConnectionError is a ConnectTimeoutError, requests' errors are
# OSErrors). Not in UNSENT on purpose: ssl.SSLError other than a
# certificate's (alerts come after the request too), TimeoutError, OSError by its errno, urllib3's FullPoolError.
_KNOWN: Final[Mapping[str, _Kind]] = {
    name: kind
    for kind, names in {
        _Kind.UNSENT: """
            builtins.ConnectionRefusedError socket.gaierror ssl.SSLCertVerificationError smtplib.SMTPConnectError
            httpx.ConnectError httpx.ConnectTimeout httpx.PoolTimeout httpx.ProxyError
            httpx2.ConnectError httpx2.ConnectTimeout httpx2.PoolTimeout httpx2.ProxyError
            httpcore.ConnectError httpcore.ConnectTimeout httpcore.PoolTimeout httpcore.ProxyError
            httpcore2.ConnectError httpcore2.ConnectTimeout httpcore2.PoolTimeout httpcore2.ProxyError
            requests.ConnectTimeout
            urllib3.ConnectTimeoutError urllib3.EmptyPoolError
            aiohttp.ClientConnectorError aiohttp.ClientConnectorCertificateError aiohttp.ClientConnectorSSLError
            aiohttp.ConnectionTimeoutError aiohttp.ClientHttpProxyError
            botocore.EndpointConnectionError botocore.ConnectTimeoutError
            psycopg.ConnectionTimeout
        """,
        _Kind.LOST: """
            builtins.OSError concurrent.CancelledError concurrent.BrokenExecutor http.HTTPException
            anyio.BrokenResourceError anyio.ClosedResourceError anyio.EndOfStream
            httpx.HTTPError httpx2.HTTPError urllib3.HTTPError aiohttp.ClientError aiohttp.TooManyRedirects
            botocore.HTTPClientError grpc.RpcError
            psycopg.OperationalError psycopg.InterfaceError sqlalchemy.OperationalError sqlalchemy.InterfaceError
        """,
        _Kind.CARRIES: """
            urllib.URLError requests.ConnectionError urllib3.MaxRetryError urllib3.SSLError urllib3.ProxyError
            botocore.SSLError botocore.ProxyConnectionError stripe.APIConnectionError
        """,
        _Kind.ANSWER: """
            builtins.FileExistsError builtins.FileNotFoundError builtins.IsADirectoryError builtins.NotADirectoryError
            builtins.PermissionError urllib.HTTPError
            httpx.HTTPStatusError httpx2.HTTPStatusError requests.HTTPError requests.JSONDecodeError
            aiohttp.ClientResponseError botocore.ClientError stripe.StripeError
            smtplib.SMTPResponseException smtplib.SMTPRecipientsRefused smtplib.SMTPNotSupportedError
        """,
    }.items()
    for name in names.split()
}

# In the packages below every client rests: their errors are the details under a client's own class, not news.
_INNER: Final = frozenset({"anyio", "asyncio", "builtins", "socket", "ssl", "trio"})

_TIMEOUT: Final = re.compile(r"time[sd]?_?out|deadline_?exceeded|timeexpired", re.IGNORECASE)
# For clients that are not in the table. Such a name can only take a proof away, never give one.
_TRANSPORT: Final = re.compile(
    r"Disconnect|RetryError|Connection(Error|Lost|Closed|Reset|Aborted|Failure)"
    r"|(Connect|Network|Payload|Protocol|Read|Socket|Transport|Write)(Error|Exception|Failure)$"
)

# A gateway's words for "I lost the answer": timeouts under another name.
_LOST_STATUSES: Final = frozenset({408, 502, 504, 520, 524})
_PASSING_STATUSES: Final = frozenset({425, 429, 503}) | _LOST_STATUSES


def _package(cls: type) -> str:
    return str(cls.__module__).partition(".")[0]


def _kind(cls: type) -> _Kind:
    for known in cls.__mro__:
        kind = _KNOWN.get(f"{_package(known)}.{known.__qualname__}")
        if kind is not None:
            return _Kind.LOST if _speaks_against(cls, known, kind) else kind
    if issubclass(cls, BaseExceptionGroup):
        return _Kind.UNKNOWN
    if not issubclass(cls, Exception):
        return _Kind.LOST
    words = any(_TRANSPORT.search(base.__name__) for base in cls.__mro__)
    return _Kind.LOST if words or is_timeout_class(cls) else _Kind.UNKNOWN


def _speaks_against(cls: type, known: type, kind: _Kind) -> bool:
    """True when a class with two parents derives from a lost answer too, or names an answer a timeout."""
    others = [base for base in cls.__mro__ if not issubclass(known, base) and not issubclass(base, known)]
    return any(_kind(base) is _Kind.LOST for base in others) or (kind is _Kind.ANSWER and is_timeout_class(cls))


# ---------------------------------------------------------------- what an exception carries


def _carried(exc: BaseException) -> list[BaseException]:
    """What stands directly below `exc`, as far as somebody put it there on purpose."""
    below: list[Any] = [exc.__cause__]
    if isinstance(exc, BaseExceptionGroup):
        below += exc.exceptions
    if _kind(type(exc)) is _Kind.CARRIES:
        wrapped = _attribute(exc, "kwargs")  # botocore keeps the error among the values of its message
        below += [_attribute(exc, "reason"), *exc.args]
        below += list(wrapped.values()) if isinstance(wrapped, dict) else []
    unique = {id(one): one for one in below if isinstance(one, BaseException) and one is not exc}
    return list(unique.values())


def explicit_chain(exc: BaseException) -> Iterator[BaseException]:
    """`exc` and everything explicitly below it, each once (a chain can be a circle). `__context__` is not followed.

    Example:
        >>> [type(node).__name__ for node in explicit_chain(ExceptionGroup("both", [KeyError(), OSError()]))]
        ['ExceptionGroup', 'KeyError', 'OSError']
    """
    seen: set[int] = set()
    waiting = [exc]
    while waiting:
        node = waiting.pop(0)
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting += _carried(node)


def _is_doubt(node: BaseException) -> bool:
    """True when a refusal that rests on this node is no refusal: no answer had come when it was raised."""
    return _kind(type(node)) not in (_Kind.ANSWER, _Kind.UNKNOWN) or _status(node) in _LOST_STATUSES


def _never_connected(exc: BaseException) -> bool:
    """True when it is known that `exc` was raised before a connection was had: all that it rests on must say so."""
    seen: set[int] = set()
    waiting = [exc]
    proven = False
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        match _kind(type(node)):
            case _Kind.UNSENT if not _hides_loss(node):
                proven = True
            case _Kind.CARRIES | _Kind.UNKNOWN if below := _carried(node):
                waiting += below
            case _:
                return False
    return proven


def _hides_loss(proof: BaseException) -> bool:
    """True when a connect error was itself raised from a client's lost answer, as by a layer that sends again."""
    below = (type(node) for node in explicit_chain(proof))
    return any(_kind(cls) is _Kind.LOST and _package(cls) not in _INNER for cls in below)


def _root(exc: BaseException) -> BaseException | None:
    return next((node for node in explicit_chain(exc) if _kind(type(node)) is _Kind.UNSENT), None)


def _may_pass(exc: BaseException) -> bool:
    """True when the same call may work in a moment: the transport's faults, but no wrong certificate, bug or end."""
    if not isinstance(exc, Exception) or isinstance(exc, DeadlinePassed):
        return False
    nodes = list(explicit_chain(exc))
    details = [type(detail) for node in nodes for detail in (node, *node.args)]  # httpcore's only link is in the args
    if any("Certificate" in base.__name__ or "CertVerif" in base.__name__ for cls in details for base in cls.__mro__):
        return False
    transport = any(_kind(type(node)) not in (_Kind.ANSWER, _Kind.UNKNOWN) for node in nodes)
    return transport or any(_status(node) in _PASSING_STATUSES for node in nodes)


# ---------------------------------------------------------------- outcomes


def _of_group(
    group: BaseExceptionGroup[BaseException],
    *,
    sends: Sends,
    rejects: tuple[type[BaseException], ...],
    gate: GateState,
) -> NeverSent | Refused | Lost:
    """Every leaf speaks for a part of the attempt: one that proves nothing leaves the whole in doubt."""
    outcomes = [classify(leaf, sends=sends, rejects=rejects, gate=gate) for leaf in _leaves(group)]
    for outcome in outcomes:
        if isinstance(outcome, Lost):
            return Lost(f"{name_of(type(group))} of {outcome.reason}")
    refusals = [outcome for outcome in outcomes if isinstance(outcome, Refused)]
    if refusals:
        return refusals[0]
    proofs = [outcome for outcome in outcomes if isinstance(outcome, NeverSent)]
    return NeverSent(f"{name_of(type(group))} of {proofs[0].reason}", retryable=all(one.retryable for one in proofs))


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    """The errors in a group and in its groups, and what those were raised from."""
    leaves: list[BaseException] = []
    groups: list[BaseException] = [group]
    for node in groups:  # grows while it is read, so that no depth of nesting is too deep
        for part in _carried(node):
            nested = isinstance(part, BaseExceptionGroup)
            if not any(part is known for known in (groups if nested else leaves)):
                (groups if nested else leaves).append(part)
    return leaves


def _refused(exc: ToolRefusal) -> Refused:
    """The tool's own words, capped. A subclass may lack its parent's constructor call: nothing is taken on trust."""
    candidates = _attribute(exc, "candidates")
    offered = candidates[:CANDIDATES_MAX] if isinstance(candidates, (tuple, list)) else ()
    return Refused(
        (_text(_attribute(exc, "code")) or "rejected")[:CODE_MAX],
        _text(_attribute(exc, "reason")) or name_of(type(exc)),
        field=_text(_attribute(exc, "field")),
        hint=_text(_attribute(exc, "hint")),
        candidates=tuple(storable(one, TEXT_MAX) if isinstance(one, str) else one for one in offered),
        retry_after_s=_seconds(_attribute(exc, "retry_after_s")),
        status=status_of(exc),
    )


def _reason(exc: BaseException, culprit: BaseException | None) -> str:
    below = "" if culprit is None or culprit is exc else f" from {name_of(type(culprit))}"
    return name_of(type(exc)) + below


def _text(given: object) -> str | None:
    """Strings only: an exception that was passed as a reason would bring the upstream text with it."""
    return storable(given, TEXT_MAX) if isinstance(given, str) and given else None


def _seconds(given: object) -> float | None:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    return float(given) if 0 <= given <= SECONDS_MAX else None  # NaN is in no range


def _is_status(given: object) -> bool:
    return isinstance(given, int) and not isinstance(given, bool) and 100 <= given <= 599


def _status(exc: BaseException) -> int | None:
    """The HTTP status that an error was made from, wherever its library keeps it."""
    response = _attribute(exc, "response")
    places: list[Any] = [_attribute(exc, name) for name in ("http_status", "status_code", "status", "code")]
    places += [_attribute(response, "status_code"), _attribute(response, "status")]
    if isinstance(response, dict) and isinstance(meta := response.get("ResponseMetadata"), dict):
        places.append(meta.get("HTTPStatusCode"))
    return next((int(place) for place in places if _is_status(place)), None)


def status_of(exc: BaseException) -> int | None:
    return next((status for node in explicit_chain(exc) if (status := _status(node)) is not None), None)


def _attribute(thing: object, name: str) -> object:
    try:
        return getattr(thing, name, None)
    except Exception:  # noqa: BLE001 - another library's property may raise anything; then it says nothing
        return None
