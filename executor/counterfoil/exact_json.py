"""JSON without losses: every digit is kept as it was written, and whatever is doubtful is refused.

Owns reading a text, turning Python values into the same tree, and writing it as pure ASCII. It knows no types of
arguments; what a number means to a parameter is decided in `fitting`.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any, Final, NoReturn, TypeAlias
from uuid import UUID

import pydantic
import pydantic_core
from pydantic import AliasChoices, BaseModel, SecretBytes, SecretStr

from counterfoil.identity import ADDRESSES, TOO_DEEP, Path, path_text
from counterfoil.private import MASK, is_private

MAX_DEPTH: Final = 100
MAX_DIGITS: Final = 4_000
TOO_MANY_DIGITS: Final = "has too many digits"
NOT_FINITE: Final = "must be a finite number"
TOO_PRECISE: Final = "has more digits than a number can hold here; write it with at most 15 digits"
PRIVATE: Final = "has the name of a secret, and what is given here is kept: leave it out"
NOT_UNICODE: Final = "holds half of a surrogate pair, which is not a character; send whole characters"


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number as it was written.

    Example:
        >>> Number("1.50").exact
        Decimal('1.50')
    """

    text: str

    @property
    def lossless(self) -> bool:
        """True when a binary float, written out again, is the same number."""
        exact = self.exact
        return exact is not None and Decimal(repr(float(exact))) == exact

    @property
    def exact(self) -> Decimal | None:
        """The number with all its digits; None when its exponent is beyond all bounds."""
        try:
            return Decimal(self.text)
        except InvalidOperation:
            return None


Json: TypeAlias = "bool | str | Number | list[Json] | dict[str, Json] | None"


class NotJson(ValueError):
    """A text or value that cannot be taken as exact JSON. `path` says where, "" for the whole."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}" if path else problem)
        self.path = path
        self.problem = problem


def read(text: str) -> Json:
    """Read a JSON text.

    Raises:
        NotJson: it is malformed, has a member twice (at any depth), says NaN or Infinity, or is nested too deeply.

    Example:
        >>> read('{"price": 1.50}')
        {'price': Number(text='1.50')}
    """
    try:
        tree: Json = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        problem = f"the arguments are not valid JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        raise NotJson("", problem) from None
    except RecursionError:
        raise NotJson("", "the arguments are nested too deeply") from None
    return tree


def write(tree: Json, *, ascii_only: bool = True) -> str:
    """Write a tree as JSON, each number as it was written; in ASCII only, so that any database can keep it.

    Example:
        >>> write({"price": Number("1.50"), "to": "Zoë"})
        '{"price":1.50,"to":"Zo\\\\u00eb"}'
    """
    match tree:
        case Number():
            return tree.text
        case list():
            return "[" + ",".join([write(item, ascii_only=ascii_only) for item in tree]) + "]"
        case dict():
            members = [
                f"{json.dumps(name, ensure_ascii=ascii_only)}:{write(item, ascii_only=ascii_only)}"
                for name, item in tree.items()
            ]
            return "{" + ",".join(members) + "}"
        case _:
            return json.dumps(tree, ensure_ascii=ascii_only)


def plain(value: Any, path: Path = (), *, reveal: bool = False, encoding: str = "base64") -> Json:
    """The JSON tree of a Python value, such that pydantic reads the same value back.

    Args:
        reveal: take pydantic secrets by their content; otherwise they are refused.
        encoding: how bytes become text, "base64", "hex" or "utf8"; a model inside brings its own.

    Raises:
        NotJson: NaN, Infinity, two keys that become one, a foreign type.

    Example:
        >>> plain({"price": Decimal("1.50")})
        {'price': Number(text='1.50')}
    """
    return _Plain(reveal=reveal, encoding=encoding).of(value, path)


def flaws(tree: Json, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """What no argument may hold: text that is not Unicode, endless digits, endless depth."""
    if len(path) > MAX_DEPTH:
        yield path[:1], TOO_DEEP
        return
    match tree:
        case str() if _SURROGATE.search(tree):
            yield path, NOT_UNICODE
        case Number() if len(tree.text) > MAX_DIGITS:
            yield path, TOO_MANY_DIGITS
        case Number() if tree.exact is None:
            yield path, NOT_FINITE
        case list():
            for place, item in enumerate(tree):
                yield from flaws(item, (*path, place))
        case dict():
            for name, item in tree.items():
                if _SURROGATE.search(name):
                    yield path, NOT_UNICODE
                yield from flaws(item, (*path, name))
        case _:
            return


def masked(tree: Json, name: str, open_names: Collection[str] = ()) -> Json:
    """A tree as it may be shown: whatever stands under a private name is masked, but in the arguments `open_names`.

    Example:
        >>> masked({"card": {"cvc": "123", "holder": "Ada"}}, "payment")
        {'card': {'cvc': '***', 'holder': 'Ada'}}
    """
    if name in open_names:
        return tree
    if is_private(name) and not isinstance(tree, bool | None):
        return MASK
    match tree:
        case dict():
            return {inside: masked(one, inside) for inside, one in tree.items()}
        case list():
            return [masked(one, "") for one in tree]
        case _:
            return tree


def private(tree: Json, but: Collection[str] = (), path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Members with a private name inside arguments that are kept; not of the arguments `but`."""
    match tree:
        case dict():
            for name, item in tree.items():
                if not path and name in but:
                    continue
                if path and is_private(name) and not isinstance(item, bool | None):
                    yield (*path, name), PRIVATE
                else:
                    yield from private(item, but, (*path, name))
        case list():
            for place, item in enumerate(tree):
                yield from private(item, but, (*path, place))
        case _:
            return


# ---------------------------------------------------------------- details

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_TOO_LARGE: Final = 10**MAX_DIGITS


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise NotJson(twice[:80], "is given twice")
    return members


def _constant(name: str) -> NoReturn:
    raise NotJson("", f"the arguments hold {name}, which is no JSON number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_members, parse_constant=_constant, parse_float=Number, parse_int=Number
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Plain:
    reveal: bool
    encoding: str

    def of(self, value: Any, path: Path) -> Json:
        if len(path) > MAX_DEPTH:
            raise NotJson(path_text(path[:1]), TOO_DEEP)
        match value:
            case None | bool():
                return value
            case Enum():
                return self.of(value.value, path)
            case str():
                return str.__str__(value)
            case int() | float() | Decimal():
                return _number(value, path)
            case datetime() | date() | time():
                return value.isoformat()
            case UUID():
                return str(value)
            case bytes() | bytearray() | memoryview():
                return self._bytes(bytes(value), path)
            case SecretStr() | SecretBytes() | pydantic.Secret():
                if not self.reveal:
                    raise NotJson(path_text(path), "is a secret, and the parameter is not declared as one")
                return self.of(value.get_secret_value(), path)
            case _:
                return self._compound(value, path)

    def _compound(self, value: Any, path: Path) -> Json:
        match value:
            case pydantic.RootModel():
                return self._within(type(value)).of(value.root, path)
            case BaseModel():
                return self._within(type(value))._fields(value, path)
            case Mapping():
                return self._mapping(value, path)
            case list() | tuple() | deque():
                return [self.of(item, (*path, place)) for place, item in enumerate(value)]
            case set() | frozenset():
                return sorted((self.of(item, path) for item in value), key=write)
        if isinstance(value, ADDRESSES):
            return str(value)
        if isinstance(value, type):
            raise NotJson(path_text(path), "is a class, not a value")
        if dataclasses.is_dataclass(value):
            return self._within(type(value))._fields(value, path)
        try:
            simple = pydantic_core.to_jsonable_python(value)
        except (ValueError, TypeError):
            simple = value
        if simple is not None and not isinstance(simple, str | int | float | list | dict):
            raise NotJson(path_text(path), f"is of the type {type(value).__name__}, which JSON cannot hold")
        return self.of(simple, path)

    def _within(self, owner: type) -> _Plain:
        config = getattr(owner, "model_config", None) or getattr(owner, "__pydantic_config__", None)
        if config is None and not issubclass(owner, BaseModel):
            return self  # a plain dataclass lives under the settings of whatever holds it
        return _Plain(self.reveal, (config or {}).get("val_json_bytes", "utf8"))

    def _fields(self, value: Any, path: Path) -> Json:
        tree: dict[str, Json] = {}
        described = getattr(type(value), "__pydantic_fields__", None)
        if described is None:
            for field in dataclasses.fields(value):
                if field.init:
                    tree[field.name] = self.of(getattr(value, field.name), (*path, field.name))
            return tree
        for name, info in described.items():
            alias = info.validation_alias
            alias = alias.choices[0] if isinstance(alias, AliasChoices) else alias
            told = alias if isinstance(alias, str) else name
            if getattr(info, "init", None) is not False:
                tree[told] = self.of(getattr(value, name), (*path, told))
        for name, extra in (getattr(value, "__pydantic_extra__", None) or {}).items():
            tree[name] = self.of(extra, (*path, name))
        return tree

    def _mapping(self, value: Mapping[Any, Any], path: Path) -> Json:
        tree: dict[str, Json] = {}
        for key, item in value.items():
            simple = self.of(key, path)
            if isinstance(simple, bool) or not isinstance(simple, str | Number):
                raise NotJson(path_text(path), "has a key that is neither text nor a number")
            name = simple.text if isinstance(simple, Number) else simple
            if name in tree:
                raise NotJson(path_text(path), f"has two keys that are both written {name[:80]!r}")
            tree[name] = self.of(item, (*path, name))
        return tree

    def _bytes(self, value: bytes, path: Path) -> str:
        match self.encoding:
            case "base64":
                return base64.urlsafe_b64encode(value).decode("ascii")
            case "hex":
                return value.hex()
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise NotJson(path_text(path), "holds bytes that are not UTF-8 text") from None


def _number(value: int | float | Decimal, path: Path) -> Number:
    if isinstance(value, int):
        if abs(value) >= _TOO_LARGE:
            raise NotJson(path_text(path), TOO_MANY_DIGITS)
        return Number(int.__repr__(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise NotJson(path_text(path), NOT_FINITE)
        return Number(str(value))
    if not math.isfinite(value):
        raise NotJson(path_text(path), NOT_FINITE)
    return Number(float.__repr__(value))
