"""The arguments of one tool: validated strictly, written down exactly, shown without secrets.

Owns everything between what a model sent and what the function, the ledger and the identity receive. It knows no tool,
no ledger and no verdict.
"""

from __future__ import annotations

import copy
import hashlib
import hmac
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from counterfoil.errors import UsageError
from counterfoil.exact_json import Json, NotJson, Number, flaws, masked, plain, private, read, write
from counterfoil.fitting import Fitting
from counterfoil.identity import ForeignType, NotCanonical, canonical, form
from counterfoil.private import MASK
from counterfoil.problems import Problem, of_place, told, worded
from counterfoil.signature import Content, NotSecret, Secret, json_schema, model_of, parameters

__all__ = ["ARGUMENTS_MAX_BYTES", "Arguments", "Content", "Invalid", "NotSecret", "Problem", "Secret", "Valid"]

ARGUMENTS_MAX_BYTES: Final = 65_536
OCCURRENCE: Final = "occurrence"


@dataclass(frozen=True, slots=True)
class Valid:
    """Arguments that fit.

    `values` are the Python values for the call, defaults and secrets included. `stored` is the ASCII JSON text for the
    ledger, as validated, without secrets. `echo` is the ASCII JSON text of what was sent, secrets masked. `identity` is
    what `identify` takes. `occurrence` is what a repeatable tool was given to tell wanted repeats apart, "" for none.
    """

    values: dict[str, Any] = field(repr=False)
    stored: str
    echo: str
    identity: Mapping[str, Any]
    occurrence: str = ""


@dataclass(frozen=True, slots=True)
class Invalid:
    """Arguments that do not fit: at most five problems (a last one says how many more), and what was sent, masked."""

    problems: tuple[Problem, ...]
    echo: str = "{}"


class Arguments:
    """What one function takes. Built once for each tool.

    Args:
        function: its parameters become the arguments; every one needs an annotation.
        key: names that say who the effect is: they may be neither missing, null nor empty.
        skip: how many leading parameters the runner fills in.
        repeatable: take an argument `occurrence` beside the function's own.

    Raises:
        UsageError: parameters that cannot be arguments, annotations that cannot be resolved or read from JSON.

    Example:
        >>> def book(room: str, nights: int = 1) -> None: ...
        >>> arguments = Arguments(book, key=("room",))
        >>> arguments.validate('{"room": "12", "nights": 2.0}').values
        {'room': '12', 'nights': 2}
        >>> [str(problem) for problem in arguments.validate('{"nights": true}').problems]
        ['room is missing', 'nights must be an integer, not true']
    """

    def __init__(
        self, function: Callable[..., Any], *, key: tuple[str, ...] = (), skip: int = 0, repeatable: bool = False
    ) -> None:
        self._function = function.__qualname__
        self._parameters = parameters(function, skip)
        self._key = key
        self._repeatable = repeatable
        if repeatable and OCCURRENCE in self.names:
            raise UsageError(f"{self._function}: a repeatable tool gets {OCCURRENCE!r} itself; rename the parameter")
        self._secrets = frozenset(one.name for one in self._parameters if one.secret)
        self._open = frozenset(one.name for one in self._parameters if one.open)
        self.content_names = frozenset(one.name for one in self._parameters if one.content)
        # Arguments whose spelling matters less to the loop guard.
        self.alike = {one.name: one.alike for one in self._parameters if one.alike is not None}
        self._defaults = {one.name: _form_of_default(one.default) for one in self._parameters}
        self._model = model_of(self._function, self._parameters)
        self._fitting = Fitting(self._model.__pydantic_core_schema__, self._secrets)
        lasting = [one for one in self._parameters if not one.secret]
        self._stored_model = model_of(self._function, lasting) if self._secrets else self._model
        self._stored_fitting = Fitting(self._stored_model.__pydantic_core_schema__)
        self._schema = json_schema(self._function, self._parameters, self._model, required=key, secrets=self._secrets)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in the order of the signature."""
        return tuple(one.name for one in self._parameters)

    @property
    def has_secrets(self) -> bool:
        """True when `validate` needs `secret=`."""
        return bool(self._secrets)

    @property
    def secret_names(self) -> frozenset[str]:
        """The names of the arguments that are never stored, shown or logged."""
        return self._secrets

    @property
    def never_identity(self) -> frozenset[str]:
        """Arguments that cannot be named in `key=`: content and secrets."""
        return self._secrets | self.content_names

    def validate(
        self, raw: str | bytes | Mapping[str, Any], *, secret: bytes | None = None, max_bytes: int = ARGUMENTS_MAX_BYTES
    ) -> Valid | Invalid:
        """Check what was sent: JSON text, or an object whose values may be Python values.

        Args:
            secret: turns secret arguments into an HMAC for the identity.
            max_bytes: the largest text, in bytes of UTF-8.

        Raises:
            UsageError: a secret argument without `secret=`; a validator that fails in itself, or that changes a value
                again when it is read back; a type without canonical form.
        """
        if self.has_secrets and not secret:
            raise UsageError(f"{self._function} takes a secret: give the executor secret=…, 32 random bytes to keep")
        echo = "{}"
        try:
            tree = self._sent(raw, max_bytes)
            echo = write(self._masked(tree))
            return self._judged(tree, echo, secret or b"")
        except NotJson as error:
            return Invalid((Problem(error.path, error.problem),), echo)
        except RecursionError:
            return Invalid((Problem("", "the arguments are nested too deeply"),), echo)

    def problems_of(self, example: Mapping[str, Any]) -> tuple[Problem, ...]:
        """What is wrong with arguments that somebody wrote down as an example; secrets may be any text."""
        valid = self.validate(example, secret=b"example" if self.has_secrets else None)
        return valid.problems if isinstance(valid, Invalid) else ()

    def revive(self, stored: str) -> dict[str, Any] | Invalid:
        """The Python values of stored arguments, for looks and resends, also in another process.

        Secrets are not among them. `Invalid` when the signature has changed so that they no longer fit.

        Example:
            >>> def pay(cents: int, note: str = "") -> None: ...
            >>> Arguments(pay).revive('{"cents":5}')
            {'cents': 5, 'note': ''}
        """
        try:
            tree = read(stored)
        except NotJson as error:
            return Invalid((Problem(error.path, error.problem),))
        if not isinstance(tree, dict):
            return Invalid((Problem("", "the stored arguments are no JSON object"),))
        instance = self._checked(self._stored_model, self._stored_fitting, tree)
        if not isinstance(instance, BaseModel):
            return Invalid(told(instance), write(self._masked(tree)))
        return {one.name: getattr(instance, one.field) for one in self._parameters if not one.secret}

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments, for a model.

        Example:
            >>> from typing import Annotated
            >>> from pydantic import Field
            >>> def pay(cents: Annotated[int, Field(gt=0, description="the amount")]) -> None: ...
            >>> Arguments(pay).schema()["properties"]
            {'cents': {'description': 'the amount', 'exclusiveMinimum': 0, 'type': 'integer'}}
        """
        schema = copy.deepcopy(self._schema)
        if self._repeatable:
            purpose = "Leave it out. Only to do the same thing once more on purpose: a new word for each time."
            schema["properties"][OCCURRENCE] = {"type": "string", "description": purpose}
        return schema

    # ------------------------------------------------------------ what was sent

    def _sent(self, raw: str | bytes | Mapping[str, Any], max_bytes: int) -> dict[str, Json]:
        tree: Json = None
        match raw:
            case Mapping():
                tree = {}
                for name, value in raw.items():
                    if not isinstance(name, str):
                        raise NotJson("", "the arguments must have names that are text")
                    tree[name] = plain(value, (name,), reveal=name in self._secrets)
                size = len(write(tree, ascii_only=False).encode("utf-8", "surrogatepass"))
            case str() | bytes():
                data = raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw
                size = len(data)
                if size <= max_bytes:
                    tree = read(raw if isinstance(raw, str) else _decoded(data))
            case _:
                raise NotJson("", "the arguments must be a JSON object")
        if size > max_bytes:
            raise NotJson("", f"the arguments are too large: {size} bytes, and at most {max_bytes} are taken")
        if not isinstance(tree, dict):
            raise NotJson("", "the arguments must be a JSON object")
        return tree

    def _masked(self, tree: dict[str, Json]) -> Json:
        # A misspelt name may carry the secret: where there are secrets, what is unknown is masked as well.
        shown = {*self.names, OCCURRENCE} - self._secrets if self._secrets else set(tree)
        return {name: masked(value, name, self._open) if name in shown else MASK for name, value in tree.items()}

    def _occurrence(self, tree: dict[str, Json]) -> tuple[str, list[Problem]]:
        match tree.get(OCCURRENCE) if self._repeatable else None:
            case None:
                return "", []
            case str() as text:
                return text, []
            case Number() as number if number.exact is not None and number.exact == number.exact.to_integral_value():
                return number.text if number.text.isdigit() else f"{number.exact:f}".partition(".")[0], []
            case _:
                return "", [Problem(OCCURRENCE, "must be text or an integer")]

    def _missing_keys(self, tree: dict[str, Json]) -> list[Problem]:
        problems = [Problem(name, "is missing") for name in self._key if name not in tree]
        return problems + [Problem(name, _EMPTY) for name in self._key if name in tree and _is_empty(tree[name])]

    # ------------------------------------------------------------ what it becomes

    def _judged(self, tree: dict[str, Json], echo: str, secret: bytes) -> Valid | Invalid:
        occurrence, problems = self._occurrence(tree)
        problems += self._missing_keys(tree)
        instance = self._checked(self._model, self._fitting, tree)
        if not isinstance(instance, BaseModel):
            return Invalid(told([*problems, *instance]), echo)
        values = {one.name: getattr(instance, one.field) for one in self._parameters}
        problems += [Problem(name, _EMPTY) for name in self._key if _is_empty(values[name])]
        forms, formless = self._forms(values)
        if problems or formless:
            return Invalid(told([*problems, *formless]), echo)
        stored = self._stored(values)
        self._check_steady(stored, forms)
        return Valid(values, stored, echo, self._identity(values, forms, secret), occurrence)

    def _checked(self, model: type[BaseModel], fitting: Fitting, tree: dict[str, Json]) -> BaseModel | list[Problem]:
        unreadable = [
            of_place(path, problem) for path, problem in (*flaws(tree), *private(tree, self._secrets | self._open))
        ]
        if unreadable:
            return unreadable
        own = {name: value for name, value in tree.items() if not (self._repeatable and name == OCCURRENCE)}
        fitted, unfit = fitting.fit(own)
        problems = [of_place(path, problem) for path, problem in unfit]
        try:
            instance = model.model_validate_json(write(fitted), strict=fitting.strict or None)
        except ValidationError as error:
            return problems + list(worded(error.errors(include_url=False, include_input=False), own, self._secrets))
        except RecursionError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the developer's
            problem = f"a validator of {self._function} raised {type(error).__name__}; let it raise ValueError instead"
            # Its text may hold what was sent, so nothing is chained where there are secrets.
            raise UsageError(problem) from (None if self._secrets else error)
        return problems or instance

    def _forms(self, values: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
        """The canonical form of each value; `_FORMLESS` for a default that has none."""
        forms: dict[str, Any] = {}
        problems = []
        for one in self._parameters:
            try:
                forms[one.name] = form(values[one.name], reveal=one.secret)
            except NotCanonical as error:
                if values[one.name] is one.default:
                    forms[one.name] = _FORMLESS
                elif isinstance(error, ForeignType):
                    raise UsageError(f"{self._function}: the argument {one.name!r} {error}") from None
                else:
                    dot = "." if error.path and not error.path.startswith("[") else ""
                    problems.append(Problem(f"{one.name}{dot}{error.path}"[:80], error.problem))
        return forms, problems

    def _stored(self, values: dict[str, Any]) -> str:
        tree: dict[str, Json] = {}
        for one in self._parameters:
            if not one.secret:
                try:
                    tree[one.name] = plain(values[one.name], (one.name,))
                except NotJson:
                    if values[one.name] is not one.default:
                        raise
        return write(tree)

    def _check_steady(self, stored: str, forms: dict[str, Any]) -> None:
        if self._stored_fitting.steady:
            return
        revived = self.revive(stored)
        for one in self._parameters:
            if one.secret or forms[one.name] is _FORMLESS:
                continue
            if isinstance(revived, Invalid) or form(revived[one.name]) != forms[one.name]:
                raise UsageError(
                    f"{self._function}: an argument is not the same once stored and read back, so a resend would send "
                    "something else; make its validators leave a valid value as it is"
                )

    def _identity(self, values: dict[str, Any], forms: dict[str, Any], secret: bytes) -> dict[str, Any]:
        identity = {}
        for one in self._parameters:
            told = forms[one.name]
            if one.content or told is _FORMLESS or told == self._defaults[one.name]:
                continue
            if one.secret:
                said = b"counterfoil-secret\0" + canonical(values[one.name], reveal=True)
                identity[one.name] = hmac.new(secret, said, hashlib.sha256).hexdigest()
            else:
                identity[one.name] = values[one.name]
        return identity


# ---------------------------------------------------------------- details

_FORMLESS: Final = object()
_EMPTY: Final = "must not be empty: it says which one is meant"


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise NotJson("", "the arguments are not UTF-8 text") from None


def _is_empty(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, bytes | list | tuple | dict | set | frozenset) and not value)


def _form_of_default(default: Any) -> Any:
    if default is inspect.Parameter.empty:
        return _FORMLESS
    try:
        return form(default, reveal=True)
    except NotCanonical:
        return _FORMLESS
