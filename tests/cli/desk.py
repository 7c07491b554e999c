"""An application whose one tool can be revoked."""

from __future__ import annotations

import os

from counterfoil import Effect, Executor, Revoked, tool


@tool(key=("guest",))
def reserve(guest: str) -> str:
    """Reserve a locker for one guest."""
    return guest


@reserve.revoke()
def withdraw(effect: Effect) -> Revoked:
    """Withdraw the reservation of one guest."""
    return Revoked()


def executor() -> Executor:
    return Executor(os.environ["COUNTERFOIL_LEDGER"], tools=[reserve])
