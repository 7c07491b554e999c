"""What an executor is given, checked; and a tool's declared times as the ledger keeps them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from counterfoil.changes import Terms
from counterfoil.effect import MICROSECONDS
from counterfoil.errors import UsageError
from counterfoil.ledger.standing import EVERYBODY
from counterfoil.policy import Policy
from counterfoil.spec import check_alternatives
from counterfoil.tool import Tool

TURN_MAX = 2**31
FOR_EVER_US = 10**17


def by_name(tools: Iterable[Tool[Any, Any]], has_secret: bool) -> dict[str, Tool[Any, Any]]:
    named: dict[str, Tool[Any, Any]] = {}
    for one in tools:
        if not isinstance(one, Tool):
            raise UsageError(f"{getattr(one, '__name__', one)!r} is no tool: decorate the function with @tool(...)")
        if one.name in named:
            raise UsageError(f"two tools are named {one.name!r}: give one of them another name=")
        if one.arguments.has_secrets and not has_secret:
            raise UsageError(f"{one.name} takes a secret argument: give Executor(..., secret=...) to key its digest")
        if one.policy.verify == "always" and one.postcondition_function is None:
            raise UsageError(f'{one.name} has verify="always" and no postcondition to look with: register one')
        named[one.name] = one
    check_alternatives({name: one.errors for name, one in named.items()})
    return named


def with_undos(tools: Mapping[str, Tool[Any, Any]]) -> dict[str, Tool[Any, Any]]:
    """The tools, and those that take their effects back."""
    undos = (one for tool in tools.values() for one in (tool.revoke_tool, tool.compensation_tool))
    return {**tools, **{one.name: one for one in undos if one is not None}}


def check_settings(tenant: object, clock_margin_s: float, attempts_max: object) -> None:
    if not isinstance(tenant, str):
        raise UsageError("tenant= is text")
    if "\x00" in tenant or any("\ud800" <= letter <= "\udfff" for letter in tenant):
        raise UsageError("tenant= holds NUL or half of a character, which no database keeps: take another name")
    if tenant == EVERYBODY:
        raise UsageError(f'tenant="{EVERYBODY}" stands for every tenant when a tool is paused: take another name')
    if not (math.isfinite(clock_margin_s) and clock_margin_s > 0):
        raise UsageError("clock_margin_s= is a number of seconds above 0: how far the clocks of hosts may differ")
    if not isinstance(attempts_max, int) or attempts_max < 1:
        raise UsageError("attempts_max= is a whole number, 1 or more")


def check_turn(turn: object) -> None:
    if turn is not None and not (isinstance(turn, int) and abs(turn) < TURN_MAX):
        raise UsageError("turn= is the number of the model's round in the task: a small integer")


def terms(tool: Tool[Any, Any]) -> Terms:
    """The tool's declared times as the ledger keeps them."""
    policy: Policy = tool.policy
    keys = policy.key_policy
    if tool.undo_kind == "revoke":  # idempotent by declaration, and sent again while it is unknown
        return Terms(
            timeout_us=_us(policy.timeout_s),
            grace_us=0,
            review_us=_us(policy.review_after_s),
            audit_us=_us(policy.audit_s),
            retention_us=FOR_EVER_US,
            concurrent=True,
        )
    retention_s = policy.idempotent_window_s if tool.idempotent else keys.retention_s if keys is not None else None
    return Terms(
        timeout_us=_us(policy.timeout_s),
        grace_us=None if policy.grace_s is None else _us(policy.grace_s),
        review_us=_us(policy.review_after_s),
        audit_us=_us(policy.audit_s),
        retention_us=None if retention_s is None else _us(retention_s),
        concurrent=tool.idempotent or (keys is not None and keys.concurrent),
    )


def _us(seconds: float) -> int:
    return round(seconds * MICROSECONDS)
