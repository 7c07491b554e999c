"""How a call reads: its begin, as the ledger is asked for it, and its request, as the flow carries it out."""

from __future__ import annotations

from typing import Any

from counterfoil.changes import Begin
from counterfoil.guard import Asks
from counterfoil.identity import CANONICAL_VERSION, Identity
from counterfoil.policy import Policy
from counterfoil.runner.job import Job
from counterfoil.runner.settings import terms
from counterfoil.steps import Request
from counterfoil.tool import Tool


def begin_of(
    job: Job,
    identity: Identity,
    *,
    tenant: str,
    kept: str = "{}",
    echo: str = "{}",
    occurrence: str | int | None = None,
    asks: Asks | None = None,
) -> Begin:
    """The begin of a call whose effect has its name. `kept` are its arguments for the ledger, `echo` as they were
    sent."""
    return Begin(
        key=identity.key,
        id=identity.id,
        tenant=tenant,
        tool=job.tool.name,
        task=job.task,
        turn=job.turn,
        call_id=job.call_id,
        occurrence="" if occurrence is None else str(occurrence),
        fingerprint=identity.fingerprint,
        canonical_version=CANONICAL_VERSION,
        arguments=kept,
        echo=echo,
        holder=job.actor,
        claim_id="",
        terms=terms(job.tool),
        asks=asks,
    )


def request_of(tool: Tool[Any, Any], identity: Identity | None, *, holder: str, echo: str = "{}") -> Request:
    """The call, as far as the flow needs it; `identity` None for a tool that only reads."""
    policy: Policy = tool.policy
    names = tool.key if isinstance(tool.key, tuple) else ()
    return Request(
        tool=tool.name,
        key=b"" if identity is None else identity.key,
        fingerprint=b"" if identity is None else identity.fingerprint,
        holder=holder,
        echo=echo,
        key_names=", ".join(names) or "key",
        looks=tool.postcondition_function is not None,
        keyed=policy.key_policy is not None or tool.idempotent,
        speaks_for_key=policy.speaks_for_key,
        verifies=policy.verify == "always" and tool.postcondition_function is not None,
        transacts=tool.same_transaction,
        patience_s=policy.patience_s,
        attempts_max=policy.attempts_max,
        wait_s=policy.wait_s,
        wait_max_s=policy.wait_max_s,
        breaker=policy.breaker,
        errors=tool.errors,
        content=tool.arguments.content_names,
    )
