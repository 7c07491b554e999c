"""What is wrong with arguments, in the words of the operation.

Owns the wording of every problem that validation can find. A text never shows a URL, the name of a class, or the
content of a secret, and says what would be right rather than what the library thinks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

from pydantic_core import ErrorDetails, core_schema

from counterfoil.cleaning import plain
from counterfoil.exact_json import NOT_FINITE, NOT_UNICODE, Json, Number
from counterfoil.identity import DATE_TIME_PROBLEM, TOO_DEEP, Path, path_text

SHOWN: Final = 5
_WIDTH: Final = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong. `field` is the argument, "" for all of them; `problem` reads on after its name.

    Example:
        >>> str(Problem("max_price", "must be greater than 0"))
        'max_price must be greater than 0'
    """

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field} {self.problem}" if self.field else self.problem


def told(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The first five problems, one for each field; how many more there are stands in a last one without a field.

    Example:
        >>> [str(problem) for problem in told(Problem(f"a{number}", "is missing") for number in range(7))][4:]
        ['a4 is missing', 'and 2 more']
    """
    by_field: dict[str, Problem] = {}
    for problem in problems:
        by_field.setdefault(problem.field, problem)
    found = tuple(by_field.values())
    more = len(found) - SHOWN
    return found[:SHOWN] + ((Problem("", f"and {more} more"),) if more > 0 else ())


def of_place(path: Path, problem: str) -> Problem:
    """A problem at a place. Names of arguments come from the model, so they are cut."""
    return Problem(path_text(path)[:80], problem)


def worded(errors: Iterable[ErrorDetails], tree: Json, secrets: Collection[str] = ()) -> Iterator[Problem]:
    """What pydantic found, one problem for each place in `tree`; what was sent to `secrets` is not shown."""
    by_place: dict[Path, list[str]] = {}
    for error in errors:
        path, sent = _place(error, tree)
        hidden = bool(path) and path[0] in secrets
        text = _wording(error["type"], error.get("ctx", {}), error["msg"], sent, hidden=hidden)
        texts = by_place.setdefault(path, [])
        if text not in texts:
            texts.append(text)
    for path, texts in by_place.items():
        yield of_place(path, _either(texts))


def of_kinds(kinds: Iterable[str], sent: Json, *, hidden: bool = False) -> str:
    """What is wrong with a value of another kind than pydantic's core types `kinds`; a `hidden` one is not shown.

    Example:
        >>> of_kinds(["int", "none"], "5")
        'must be an integer, not text'
    """
    names = {"str": "string", "timedelta": "time_delta"}
    errors = [f"{names.get(kind, kind)}_type" for kind in kinds if kind != "none"]
    return _either([_wording(error, {}, "is not valid", sent, hidden=hidden) for error in errors] or ["must be null"])


# ---------------------------------------------------------------- details

_DATE: Final = "must be a date, for example 2026-03-04"
_TIME: Final = "must be a time of day, for example 09:30:00"
_DURATION: Final = "must be a duration, for example PT1H30M"
_UUID: Final = "must be a UUID, for example 6f1c2b1e-8c55-4d5e-9d0b-2f0f1f7a5a10"
_URL: Final = "must be a URL, for example https://example.com/page"
_NUMBER: Final = "must be a number"
_INTEGER: Final = "must be an integer"
_LIST: Final = "must be a list"
_OBJECT: Final = "must be an object"
_MISSING: Final = object()
_EXACT: Final = 1e15

# Followed by ", not …": what was sent is of another kind.
_KINDS: Final[Mapping[str, str]] = {
    "int_type": _INTEGER, "int_parsing": _INTEGER, "int_from_float": _INTEGER, "int_parsing_size": _INTEGER,
    "float_type": _NUMBER, "float_parsing": _NUMBER, "decimal_type": _NUMBER, "decimal_parsing": _NUMBER,
    "bool_type": "must be true or false", "bool_parsing": "must be true or false",
    "string_type": "must be text", "bytes_type": "must be text",
    "list_type": _LIST, "set_type": _LIST, "frozen_set_type": _LIST, "tuple_type": _LIST, "iterable_type": _LIST,
    "named_tuple_type": _LIST, "deque_type": _LIST,
    "dict_type": _OBJECT, "model_type": _OBJECT, "model_attributes_type": _OBJECT, "dataclass_type": _OBJECT,
    "mapping_type": _OBJECT,
    "none_required": "must be null",
}  # fmt: skip

# Said as they stand, filled from pydantic's context.
_SENTENCES: Final[Mapping[str, str]] = {
    "missing": "is missing", "missing_argument": "is missing",
    "extra_forbidden": "is not a known argument", "unexpected_keyword_argument": "is not a known argument",
    "greater_than": "must be greater than {gt}", "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}", "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": NOT_FINITE,
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "string_unicode": NOT_UNICODE,
    "bytes_too_short": "must have at least {min_length} bytes",
    "bytes_too_long": "must have at most {max_length} bytes",
    "bytes_invalid_encoding": "must be bytes written as {encoding}",
    "too_short": "must have at least {min_length} items", "too_long": "must have at most {max_length} items",
    "literal_error": "must be {expected}", "enum": "must be {expected}",
    "union_tag_invalid": "must say one of {expected_tags} as {discriminator}",
    "union_tag_not_found": "must say as {discriminator} which kind it is",
    "decimal_max_digits": "must have at most {max_digits} digits",
    "decimal_max_places": "must have at most {decimal_places} digits after the point",
    "decimal_whole_digits": "must have at most {whole_digits} digits before the point",
    "date_past": "must be a date in the past", "date_future": "must be a date in the future",
    "datetime_past": "must be in the past", "datetime_future": "must be in the future",
    "timezone_naive": "must be a date-time without a UTC offset",
    "recursion_loop": TOO_DEEP, "recursion_depth_exceeded": TOO_DEEP,
}  # fmt: skip

# All errors of these families say the same.
_FAMILIES: Final[Mapping[str, str]] = {
    "datetime_": DATE_TIME_PROBLEM, "timezone_": DATE_TIME_PROBLEM, "date_": _DATE, "time_delta_": _DURATION,
    "time_": _TIME, "uuid_": _UUID, "url_": _URL,
}  # fmt: skip

_LIBRARY: Final = frozenset(get_args(core_schema.ErrorType))


def _place(error: ErrorDetails, tree: Json) -> tuple[Path, Any]:
    """Where the error is in what was sent. pydantic's location also holds the names of union members and classes."""
    path: list[str | int] = []
    node: Any = tree
    for part in error["loc"]:
        inside = isinstance(node, dict) and part in node
        if inside or (isinstance(node, list) and isinstance(part, int) and part < len(node)):
            path.append(part)
            node = cast("Any", node)[part]
    if error["type"] in ("missing", "missing_argument"):
        path.append(error["loc"][-1])
        node = _MISSING
    return tuple(path), node


def _wording(kind: str, context: Mapping[str, Any], message: str, sent: Any, *, hidden: bool) -> str:
    if kind in _KINDS:
        return f"{_KINDS[kind]}, not {_shown(sent, hidden=hidden)}"
    if kind in _SENTENCES:
        return _singular(_SENTENCES[kind].format_map(_Context(context)))[:_WIDTH]
    for family, text in _FAMILIES.items():
        if kind.startswith(family):
            return text
    if hidden:
        return "is not valid"
    if kind in ("value_error", "assertion_error"):
        return _own_words(str(context.get("error", "")) or message)
    # What is left has a wording of the library, but for the types that a validator of the developer has invented.
    return "is not valid" if kind in _LIBRARY else _own_words(message)


class _Context(dict[str, Any]):
    def __getitem__(self, name: str) -> Any:
        bound = self.get(name, "what is allowed")
        # A bound of a number with a point comes as 0.0, whatever the author wrote; it is told as 0.
        return int(bound) if isinstance(bound, float) and bound.is_integer() and abs(bound) < _EXACT else bound


def _own_words(text: str) -> str:
    return plain(text, _WIDTH) or "is not valid"


def _singular(text: str) -> str:
    return text[:-1] if text.endswith((" 1 characters", " 1 items", " 1 bytes", " 1 digits")) else text


def _shown(sent: Any, *, hidden: bool) -> str:
    match sent:
        case None:
            return "null"
        case bool():
            return "true or false" if hidden else str(sent).lower()
        case Number():
            return "a number" if hidden or len(sent.text) > 20 else sent.text
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "what was sent"


def _either(texts: list[str]) -> str:
    """One sentence for a place that may be of several kinds."""
    if len(texts) == 1:
        return texts[0]
    if all(text.startswith("must be ") for text in texts):
        kinds = [
            text.removeprefix("must be ").rpartition(", not ")[0] or text.removeprefix("must be ") for text in texts
        ]
        sent = {text.rpartition(", not ")[2] for text in texts if ", not " in text}
        return "must be " + " or ".join(dict.fromkeys(kinds)) + (f", not {sent.pop()}" if len(sent) == 1 else "")
    return "; or ".join(texts)[:_WIDTH]
