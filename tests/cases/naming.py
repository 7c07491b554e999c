"""What the cases about names share: a tool at the provider whose first answer is lost, and a reading of the ledger."""

from __future__ import annotations

from typing import Any, Final

from cases.scene import find, until_free
from provider import Provider

from counterfoil import Executor, Policy, Tool

POLICY: Final = Policy(timeout_s=20.0, grace_s=60.0, patience_s=0.05, wait_s=0.5)


def look_for(made: Tool[..., Any], provider: Provider) -> Tool[..., Any]:
    """The tool, with a look for what carries the effect's id."""
    made.postcondition(lambda effect: find(provider, effect))
    return made


def lose_the_first_answer(provider: Provider) -> None:
    """The effect lands, its answer is lost, and the first look does not see it yet."""
    provider.arm("ack_lost")
    provider.arm("stale")


def settled(executor: Executor) -> None:
    """Wait until nobody works on the one effect."""
    until_free(executor)
