"""What the tests of the rules of proof share: the shortest way to a verdict, and errors that stand for a tool's own."""

from __future__ import annotations

from typing import Any

import stripe

from counterfoil.attempt import GateState
from counterfoil.effect import Lost, NeverSent, Refused, Sends
from counterfoil.errors import Rejected
from counterfoil.failure import classify

STRIPE: Any = stripe  # its constructors have no annotations
Outcome = NeverSent | Refused | Lost
SECRET = "sk_live_at_10.0.0.7"  # noqa: S105 - stands for what must not leak


def judge(
    exc: BaseException,
    *rejects: type[BaseException],
    sends: Sends = "once",
    gate: GateState = GateState.UNTOUCHED,
) -> Outcome:
    return classify(exc, sends=sends, rejects=rejects, gate=gate)


def once(exc: BaseException, *rejects: type[BaseException]) -> Outcome:
    return judge(exc, *rejects, sends="once")


def anywhere(exc: BaseException, *rejects: type[BaseException]) -> Outcome:
    return judge(exc, *rejects, sends="anywhere")


def raised_from(exc: BaseException, *causes: BaseException) -> BaseException:
    """`raise exc from causes[0]`, that one from causes[1], and so on."""
    above = exc
    for cause in causes:
        above.__cause__ = cause
        above = cause
    return exc


def refusal() -> Rejected:
    return Rejected("declined", "the provider declined")


class ShopError(Exception):
    """A tool's own error, that nothing is known about."""
