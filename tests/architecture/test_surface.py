"""The public surface: what `counterfoil` offers is what it names, and each of it is described."""

from __future__ import annotations

import inspect
import types
from collections.abc import Iterator
from typing import Any

import counterfoil

THINGS = {name: getattr(counterfoil, name) for name in counterfoil.__all__}
CLOCKS = (counterfoil.SystemClock, counterfoil.ManualClock)
CLASSES = [thing for thing in THINGS.values() if inspect.isclass(thing)]


def test_public_names_are_those_in_all() -> None:
    """Whatever can be had from the package without an underscore, but for its modules, is in `__all__`, in order."""
    there = {
        name
        for name, thing in vars(counterfoil).items()
        if not name.startswith("_") and not isinstance(thing, types.ModuleType)
    }
    assert there == set(counterfoil.__all__)
    assert list(counterfoil.__all__) == sorted(set(counterfoil.__all__))


def test_every_public_name_has_a_docstring() -> None:
    """Each name is described in words of its own, not by what Python writes for a dataclass."""
    assert [name for name, thing in THINGS.items() if not _described(name, thing)] == []


def test_every_public_method_has_a_docstring() -> None:
    """Each public method and property of a public class is described: there, where it is inherited from, or in the
    protocol that the class is there for."""
    bare = [
        f"{owner.__name__}.{name}"
        for owner, name, member in _members()
        if not inspect.getdoc(member) and not (owner in CLOCKS and hasattr(counterfoil.Clock, name))
    ]
    assert bare == []


def test_every_public_thing_comes_from_the_library() -> None:
    """Nothing of another package is offered under the library's name."""
    homes = {name: getattr(thing, "__module__", type(thing).__module__) for name, thing in THINGS.items()}
    assert {name: home for name, home in homes.items() if not str(home).startswith("counterfoil")} == {}


def _described(name: str, thing: Any) -> bool:
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        thing = type(thing)  # a constant is described by its class
    text = (thing.__doc__ or "").strip()
    return bool(text) and not text.startswith(f"{name}(")


def _members() -> Iterator[tuple[type, str, Any]]:
    for owner in CLASSES:
        for name, member in inspect.getmembers_static(owner):
            if name.startswith("_"):
                continue
            function = member.fget if isinstance(member, property) else getattr(owner, name)
            if inspect.isroutine(function) and str(getattr(function, "__module__", "")).startswith("counterfoil"):
                yield owner, name, member
