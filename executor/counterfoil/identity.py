"""Who an effect is: the canonical form of values, and the key, public name and fingerprint made from it.

Owns every byte that enters a key. It must not lower-case, trim, round or guess: two payments must never become one. It
knows no database, no clock and no tool; a change of any output here is a new `CANONICAL_VERSION`.

The canonical form is RFC 8785 over a typed envelope. Objects, text, true, false and null stand for themselves;
everything else is a list that begins with its kind: `n` number, `l` list, `s` set, `m` mapping whose keys are not all
plain text, `i` instant, `d` date, `t` time of day, `z` time of day with an offset, `p` duration, `u` UUID, `b` bytes,
`o` URL, address or path, `x` text that is not Unicode.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import ipaddress
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import pydantic
import pydantic_core
import rfc8785
from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from counterfoil.errors import UsageError

CANONICAL_VERSION: Final = 1

DATE_TIME_PROBLEM: Final = "must be a date-time with a UTC offset, for example 2026-03-04T09:00:00+01:00"
TOO_DEEP: Final = "is nested too deeply"

Path: TypeAlias = tuple[str | int, ...]


class AllArguments(Enum):
    """The type of `ALL_ARGUMENTS`."""

    ALL_ARGUMENTS = "all arguments"


ALL_ARGUMENTS: Final = AllArguments.ALL_ARGUMENTS
"""For `@tool(key=ALL_ARGUMENTS)`: every identity argument, together with the task, names the effect."""


class NotCanonical(ValueError):
    """A value has no canonical form. `path` is where it stands ("" for the whole), `problem` what is wrong with it."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}" if path else problem)
        self.path = path
        self.problem = problem


class ForeignType(NotCanonical):
    """The value is of a type that identities know nothing of."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an effect is.

    `key` (32 bytes) is the primary key; `id` is the public name, `cf-` and 28 characters of `[a-z2-7]`; `fingerprint`
    (32 bytes) tells whether the same key came with other arguments.
    """

    key: bytes
    id: str
    fingerprint: bytes


def identify(
    *,
    tenant: str,
    tool: str,
    task: str,
    names: tuple[str, ...] | AllArguments,
    identity_arguments: Mapping[str, Any],
    explicit_key: str | None = None,
    occurrence: str | int | None = None,
) -> Identity:
    """Name an effect.

    Args:
        names: the arguments that name it, across tasks; `ALL_ARGUMENTS` takes all of them, within the task.
        identity_arguments: validated, by name; defaults left out, content removed, secrets replaced by their HMAC.
        explicit_key: the caller's own key; it takes the place of the arguments and of the task.
        occurrence: tells wanted repeats apart. None and "" are the same; 2 and "2" are the same.

    Raises:
        UsageError: an explicit key that is empty.
        NotCanonical: an argument without canonical form.

    Example:
        >>> first = identify(tenant="t", tool="charge", task="1", names=("order",), identity_arguments={"order": "A"})
        >>> again = identify(tenant="t", tool="charge", task="2", names=("order",), identity_arguments={"order": "A"})
        >>> first == again, first.id
        (True, 'cf-t6hzvtuxpnxs65ryklmezytyxvqa')
    """
    arguments = form(dict(identity_arguments))
    scope: dict[str, Any] = {"tenant": _text(tenant), "tool": _text(tool)}
    if explicit_key is not None:
        if not explicit_key.strip():
            raise UsageError("key= is empty, so that every such call would be one; leave it out or give a real name")
        scope |= {"by": "caller", "key": _text(explicit_key)}
    elif isinstance(names, AllArguments):
        scope |= {"by": "all arguments", "task": _text(task), "arguments": arguments}
    else:
        named = {name: arguments[name] for name in map(_text, names) if name in arguments}
        scope |= {"by": "named arguments", "arguments": named}
    if occurrence is not None and occurrence != "":
        scope["occurrence"] = _text(str(occurrence))
    key = _digest("key", scope)
    fingerprint = _digest("fingerprint", {"tool": _text(tool), "arguments": arguments})
    return Identity(key=key, id=public_id(key), fingerprint=fingerprint)


def public_id(key: bytes) -> str:
    """The public name that belongs to a key.

    Example:
        >>> public_id(bytes(32))
        'cf-aaaaaaaaaaaaaaaaaaaaaaaaaaaa'
    """
    return "cf-" + base64.b32encode(key[:17]).decode("ascii").rstrip("=").lower()


def provider_key(effect_id: str, generation: int) -> str:
    """The de-duplication key of an effect; a renewed key has the next generation.

    Example:
        >>> provider_key("cf-abc", 0)
        'cf-abc-k0'
    """
    return f"{effect_id}-k{generation}"


def canonical(value: Any, *, reveal: bool = False) -> bytes:
    """The canonical bytes of a value: equal for equal values, different for different ones, on every host.

    Numbers are compared by the number that their JSON text shows: 1, 1.0 and Decimal("1.00") are one, and so are 0.1
    and Decimal("0.1"), so that a parameter may change from float to Decimal; 0.1 + 0.2 is not 0.3. Models,
    dataclasses and mappings are one kind; a field that equals its default is left out.

    Args:
        reveal: take pydantic secrets by their content (for an HMAC); otherwise they are refused.

    Raises:
        NotCanonical: NaN, Infinity, a date-time without offset, two keys that become one, a foreign type.

    Example:
        >>> canonical({"b": Decimal("1.50"), "a": "x"})
        b'{"a":"x","b":["n","15e-1"]}'
    """
    return rfc8785.dumps(form(value, reveal=reveal))


def form(value: Any, *, reveal: bool = False) -> Any:
    """The JSON tree that `canonical` writes as bytes: two are equal when the bytes are.

    Example:
        >>> form([1.0])
        ['l', ['n', '1']]
    """
    try:
        return _Envelope(reveal=reveal).of(value, ())
    except RecursionError:
        raise NotCanonical("", TOO_DEEP) from None


def path_text(path: Path) -> str:
    """A place inside arguments, as one writes it.

    Example:
        >>> path_text(("stops", 2, "city"))
        'stops[2].city'
    """
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


# ---------------------------------------------------------------- details


def _digest(domain: str, content: Any) -> bytes:
    prefix = f"counterfoil-{domain}\0v{CANONICAL_VERSION}\0".encode()
    return hashlib.sha256(prefix + rfc8785.dumps(content)).digest()


ADDRESSES: Final = (
    *(ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface),
    *(ipaddress.IPv6Address, ipaddress.IPv6Network, ipaddress.IPv6Interface),
    *(pydantic.AnyUrl, pydantic_core.Url, pydantic_core.MultiHostUrl, PurePath),
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_PURE_FACTORIES: Final = (list, dict, set, frozenset, tuple, str, int, float, bool, bytes)


@dataclass(frozen=True, slots=True)
class _Envelope:
    reveal: bool

    def of(self, value: Any, path: Path) -> Any:
        match value:
            case None | bool():
                return value
            case Enum():
                return self.of(value.value, path)
            case str():
                return _text(value)
            case int() | float() | Decimal():
                return ["n", _number(value, path)]
            case datetime() | date() | time() | timedelta():
                return _moment(value, path)
            case UUID():
                return ["u", str(value)]
            case bytes() | bytearray() | memoryview():
                return ["b", bytes(value).hex()]
            case SecretStr() | SecretBytes() | pydantic.Secret():
                if not self.reveal:
                    raise NotCanonical(path_text(path), "is a secret and may not enter an identity as it is")
                return self.of(value.get_secret_value(), path)
            case _:
                return self._compound(value, path)

    def _compound(self, value: Any, path: Path) -> Any:
        if isinstance(value, pydantic.RootModel):
            return self.of(value.root, path)
        if isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
            return self._mapping(self._told_fields(value), path)
        match value:
            case Mapping():
                return self._mapping(value.items(), path)
            case set() | frozenset():
                items = {rfc8785.dumps(item): item for item in (self.of(item, path) for item in value)}
                if len(items) < len(value):
                    raise NotCanonical(path_text(path), "holds one item twice, in two Unicode forms")
                return ["s", *(items[item] for item in sorted(items))]
            case list() | tuple() | deque():
                return ["l", *(self.of(item, (*path, place)) for place, item in enumerate(value))]
            case _ if isinstance(value, ADDRESSES):
                return ["o", _text(str(value))]
            case _:
                problem = f"is of the type {type(value).__name__}, which has no canonical form; use plain data"
                raise ForeignType(path_text(path), problem)

    def _mapping(self, items: Iterable[tuple[Any, Any]], path: Path) -> Any:
        pairs = [(self.of(key, path), self.of(content, (*path, str(key)))) for key, content in items]
        if all(isinstance(key, str) for key, _ in pairs):
            members = dict(pairs)
        else:
            members = {rfc8785.dumps(key): ["l", key, content] for key, content in pairs}
        if len(members) < len(pairs):
            raise NotCanonical(path_text(path), "has one key twice, in two Unicode forms")
        if all(isinstance(key, str) for key in members):
            return members
        return ["m", *(members[key] for key in sorted(members))]

    def _told_fields(self, value: Any) -> Iterator[tuple[str, Any]]:
        """The fields of a model or dataclass that say more than their default does."""
        for name, default in _fields(type(value)):
            content = getattr(value, name)
            if default is None or not self._same(content, default()):
                yield name, content
        yield from (getattr(value, "__pydantic_extra__", None) or {}).items()

    def _same(self, content: Any, default: Any) -> bool:
        try:
            return bool(self.of(content, ()) == self.of(default, ()))
        except NotCanonical:
            return False


def _fields(owner: type) -> Iterator[tuple[str, Callable[[], Any] | None]]:
    """Each field's name with a function that gives its default, None where the default cannot be known."""
    described: Mapping[str, FieldInfo] | None = getattr(owner, "__pydantic_fields__", None)
    if described is None:
        for field in dataclasses.fields(owner):
            yield field.name, _default(field.default, field.default_factory, dataclasses.MISSING)
    else:
        for name, info in described.items():
            yield name, _default(info.default, info.default_factory, pydantic_core.PydanticUndefined)


def _default(content: Any, factory: Any, missing: Any) -> Callable[[], Any] | None:
    if content is not missing:
        return lambda: content
    # Any other factory may answer differently each time (a clock, a random id), or act.
    return cast("Callable[[], Any]", factory) if factory in _PURE_FACTORIES else None


def _text(value: str) -> Any:
    text = unicodedata.normalize("NFC", value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Half of a surrogate pair is no character and RFC 8785 refuses it. Its code units still tell it apart.
        return ["x", text.encode("utf-16-be", "surrogatepass").hex()]
    return text


def _number(value: int | float | Decimal, path: Path) -> str:
    if isinstance(value, int):
        exact = Decimal(int(value))
    elif isinstance(value, Decimal):
        exact = value
    else:
        # A whole float is exactly an integer; any other is the decimal that its shortest text shows.
        exact = Decimal(int(value)) if value.is_integer() else Decimal(float.__repr__(value))
    sign, digits, exponent = exact.as_tuple()
    if not isinstance(exponent, int):
        raise NotCanonical(path_text(path), "must be a finite number")
    text = "".join(map(str, digits)).lstrip("0")
    bare = text.rstrip("0")
    if not bare:
        return "0"
    exponent += len(text) - len(bare)
    return f"{'-' if sign else ''}{bare}" + (f"e{exponent}" if exponent else "")


def _moment(value: datetime | date | time | timedelta, path: Path) -> list[str]:
    if isinstance(value, timedelta):
        return ["p", str(value // _MICROSECOND)]
    if isinstance(value, time):
        if value.utcoffset() is None:
            return ["t", value.replace(tzinfo=None).isoformat("microseconds")]
        return ["z", _microseconds(datetime.combine(_EPOCH, value))]
    if not isinstance(value, datetime):
        return ["d", value.isoformat()]
    if value.utcoffset() is None:
        raise NotCanonical(path_text(path), DATE_TIME_PROBLEM)
    return ["i", _microseconds(value)]


def _microseconds(value: datetime) -> str:
    # Counted, not converted to UTC: the first and the last hours of the calendar would overflow.
    since_epoch = value.replace(tzinfo=UTC) - _EPOCH - (value.utcoffset() or timedelta())
    return str(since_epoch // _MICROSECOND)
