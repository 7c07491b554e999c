"""Hosts that go on calling while a secret or a cipher key is exchanged under them.

Owns what such a process does: it makes the calls in their order, each anew for as long as the ledger does not let it
begin, unless it is one that nobody told of the new word: that one asks once and goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from crash.life import Life
from provider import Provider
from races.rounds import await_file

from counterfoil import ALL_ARGUMENTS, Effect, Executor, Policy, Secret, Tool, UsageError, tool

OLD, NEW = b"o" * 32, b"n" * 32
TASK = "exchange"
AWAY = "ledger_unavailable"
ASKED_MOST = 200


def pay_at(provider: Provider) -> Tool[..., Any]:
    """A payment whose name rests on a secret: by another one it would be another payment."""

    @tool(key=ALL_ARGUMENTS, sends="marked", policy=Policy(timeout_s=5, patience_s=5, breaker=None))
    def pay(effect: Effect, order: str, card: Annotated[str, Secret]) -> str:
        """Pay one order once. Use it after the customer has confirmed."""
        with effect.sending():
            provider.send(effect.id, body={"order": order})
        return order

    return pay


def arguments_of(number: int) -> dict[str, Any]:
    return {"order": f"R-{number}", "card": "4242"}


def words(names: Iterable[str]) -> list[bytes] | None:
    """The words of these names, "old" or "new"; None where there are none."""
    return [{"old": OLD, "new": NEW}[name] for name in names] or None


def live(life: Life) -> None:
    """Make the calls once the gate is open, and leave a record of what was told of each."""
    detail = life.detail
    executor = Executor(
        life.ledger, [pay_at(Provider.at(life.provider))], secret=words(detail["secret"]),
        cipher_key=words(detail["cipher"]),
    )  # fmt: skip
    told: list[list[str]] = []
    with executor:
        Path(life.ready).touch()
        await_file(Path(detail["go"]))
        for number in range(detail["orders"]):
            codes: list[str] = []
            while not codes or (codes[-1] == AWAY and detail["insists"] and len(codes) < ASKED_MOST):
                codes.append(executor.call("pay", arguments_of(number), task=TASK).code)
            told.append(codes)
    refused = True
    with suppress(UsageError):
        Executor(
            life.ledger, [pay_at(Provider.at(life.provider))], secret=words(detail["secret"]),
            cipher_key=words(detail["cipher"]),
        ).close()  # fmt: skip
        refused = False
    Path(life.out).write_text(json.dumps({"told": told, "refused_later": refused}), "utf-8")
