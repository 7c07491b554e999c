"""Short ways to write the changes that tests ask of a ledger."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import count
from typing import Any

from counterfoil.changes import (
    Answer,
    Applied,
    Begin,
    Change,
    Declined,
    Push,
    Resolve,
    SettleClosed,
    SettleLook,
    SettleLost,
    SettleReturned,
    StoredValue,
    Terms,
)
from counterfoil.effect import Found, Proof, Row, Verdict
from counterfoil.ledger.ledger import Ledger

SECOND = 1_000_000
_claims = count(1)


def terms(
    *,
    timeout_s: float = 10,
    grace_s: float | None = 20,
    retention_s: float | None = None,
    concurrent: bool = False,
    review_s: float = 3600,
    audit_s: float = 86_400,
) -> Terms:
    """The times of a tool, in seconds."""
    return Terms(
        timeout_us=round(timeout_s * SECOND),
        grace_us=None if grace_s is None else round(grace_s * SECOND),
        review_us=round(review_s * SECOND),
        audit_us=round(audit_s * SECOND),
        retention_us=None if retention_s is None else round(retention_s * SECOND),
        concurrent=concurrent,
    )


@dataclass(frozen=True)
class One:
    """One effect of a ledger, and what happens to it."""

    ledger: Ledger
    name: str = "one"
    tool: str = "pay"
    tenant: str = ""

    @property
    def key(self) -> bytes:
        return hashlib.sha256(f"{self.tenant}/{self.tool}/{self.name}".encode()).digest()

    @property
    def row(self) -> Row:
        row = self.ledger.read(self.key)
        assert row is not None
        return row

    def begin(self, the_terms: Terms | None = None, **changed: Any) -> Begin:
        content: dict[str, Any] = {
            "key": self.key,
            "id": f"cf-{self.key.hex()[:20]}",
            "tenant": self.tenant,
            "tool": self.tool,
            "task": "task",
            "turn": 1,
            "call_id": "call",
            "occurrence": "",
            "fingerprint": self.key,
            "canonical_version": 1,
            "arguments": '{"order":"A"}',
            "echo": '{"order":"A"}',
            "holder": "host:1",
            "claim_id": f"claim{next(_claims)}",
            "terms": the_terms or terms(),
            "fresh": self.ledger.read(self.key) is None,
        }
        return Begin(**content | changed)

    def begun(self, the_terms: Terms | None = None, **changed: Any) -> Row:
        """Begin, and expect that it was permitted."""
        return permitted(self.apply(self.begin(the_terms, **changed)))

    def apply(self, change: Change) -> Answer:
        return self.ledger.apply([change])[0]

    def returned(self, attempt: int = 1, reference: str | None = None, **changed: Any) -> SettleReturned:
        content: dict[str, Any] = {"provider_key": self.row.provider_key, "value": StoredValue('"done"', 6)}
        return SettleReturned(key=self.key, attempt=attempt, actor="host:1", reference=reference, **content | changed)

    def closed(self, attempt: int = 1, proof: Proof = Proof.NEVER_SENT, **changed: Any) -> SettleClosed:
        content: dict[str, Any] = {"code": "unavailable", "reason": "ConnectionRefusedError"}
        return SettleClosed(key=self.key, attempt=attempt, actor="host:1", proof=proof, **content | changed)

    def lost(self, attempt: int = 1) -> SettleLost:
        return SettleLost(key=self.key, attempt=attempt, actor="host:1", reason="TimeoutError")

    def look(self, **changed: Any) -> SettleLook:
        """A look asked now that found nothing."""
        boot_id, boot_us = self.ledger.boot()
        content: dict[str, Any] = {"asked_at": self.row.now, "asked_boot_id": boot_id, "asked_boot_us": boot_us}
        return SettleLook(key=self.key, actor="reconcile", **content | changed)

    def found(self, *references: str, **changed: Any) -> SettleLook:
        """A look asked now that found the effect."""
        seen: Found[None] = Found(None, reference=references or None, **changed)
        return self.look(found=seen, value=StoredValue('"found"', 7))

    def unclear(self) -> SettleLook:
        return self.look(unclear="500")

    def push(self, attempt: int = 1, *, noted: bool = False) -> Push:
        return Push(key=self.key, attempt=attempt, actor="host:1", noted=noted)

    def resolve(self, verdict: Verdict, version: int | None = None) -> Resolve:
        return Resolve(
            key=self.key,
            verdict=verdict,
            by="an operator",
            why="looked by hand",
            version=self.row.version if version is None else version,
            claim_id=f"decision{next(_claims)}",
        )


def permitted(answer: Answer) -> Row:
    """The row of a change that was written."""
    assert isinstance(answer, Applied), answer
    return answer.row


def guard(answer: Answer) -> str:
    """The guard that refused a change."""
    assert isinstance(answer, Declined), answer
    return answer.guard
