"""The drivers: one file for each framework, and this list. A framework is imported when its driver is asked for.

To add one: a line in `_DRIVERS`. If its packages do not get along with the others of the `test` extra, its name goes
into `ELSEWHERE` too, and `.ci/run` runs it in an environment of its own.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Final, cast

from adapters.conformance.driver import Driver

# Name of the driver: the package of its framework, its module here, its class.
_DRIVERS: Final = {
    "openai": ("openai", "openai", "OpenAI"),
    "openai-chat": ("openai", "openai", "OpenAIChat"),
    "anthropic": ("anthropic", "anthropic", "Anthropic"),
    "anthropic-blocking": ("anthropic", "anthropic", "AnthropicBlocking"),
    "mcp": ("mcp", "mcp", "Mcp"),
    "pydantic-ai": ("pydantic_ai", "pydantic_ai", "PydanticAI"),
}
NAMES: Final = frozenset(_DRIVERS)
ELSEWHERE: Final[frozenset[str]] = frozenset()


def installed() -> list[str]:
    """The drivers whose framework is here, in the order of the list."""
    return [name for name, (package, _, _) in _DRIVERS.items() if find_spec(package) is not None]


def driver(name: str) -> Driver:
    """The driver of that name."""
    _, module, made = _DRIVERS[name]
    return cast("Driver", getattr(import_module(f"adapters.conformance.drivers.{module}"), made)())
