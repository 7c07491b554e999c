"""How an effect gets its name on this host: its identity under each secret that names effects in this ledger.

Owns the secrets of an executor, newest first, and the choice between the names that they give. A name that is there
already is taken, whichever secret gave it; a new one is given by the secret that writes (protocol F24).
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from counterfoil.arguments import Valid
from counterfoil.changes import NamedBy
from counterfoil.errors import LedgerError, UsageError
from counterfoil.identity import Identity, identify
from counterfoil.ledger import reencryption
from counterfoil.ledger.cipher import CipherKeys
from counterfoil.ledger.connect import is_describing
from counterfoil.ledger.ledger import Ledger
from counterfoil.runner.job import Job
from counterfoil.tool import Tool

SECRET_MIN: Final = 16
NOT_NAMED: Final = "The record of effects cannot say which one this is; this call sent nothing."
ANOTHER: Final = (
    "this ledger names effects by a secret that was not given: give Executor(..., secret=[...]) all of "
    "them, the newest first; with another secret the same effect would be sent again"
)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of one executor, newest first; none, one or several."""

    words: tuple[bytes, ...] = field(default=(), repr=False)

    @classmethod
    def given(cls, secret: Any) -> Secrets:
        """What `secret=` was given.

        Raises:
            UsageError: it is too short, or no bytes.
        """
        if secret is None:
            return cls()
        words = (secret,) if isinstance(secret, bytes) else tuple(secret) if isinstance(secret, list | tuple) else (0,)
        if not words or any(not isinstance(one, bytes) or len(one) < SECRET_MIN for one in words):
            raise UsageError(f"secret= takes at least {SECRET_MIN} random bytes that you keep, or a list of such")
        return cls(words)

    @property
    def newest(self) -> bytes | None:
        return self.words[0] if self.words else None

    def by_id(self) -> dict[str, bytes]:
        """The secrets by their ids."""
        return {secret_id(one): one for one in self.words}


def secret_id(secret: bytes) -> str:
    """The name of a secret, which says nothing of it.

    Example:
        >>> secret_id(bytes(16))
        '914012b140cd033c'
    """
    return hmac.digest(secret, b"counterfoil-secret-id", "sha256").hex()[:16]


def agree(
    ledger: Ledger, tools: Iterable[Tool[Any, Any]], tenant: str, secrets: Secrets, keys: CipherKeys | None
) -> None:
    """See that this host names effects as the ledger wants them named, and can read them. Reads; writes what nobody has
    said yet.

    Raises:
        UsageError: the ledger wants a tenant, a secret or a cipher key that was not given.
        LedgerError: it cannot be asked.
    """
    if is_describing():
        return
    reencryption.agree(ledger, keys)
    if ledger.needs_tenant(mark=bool(tenant)) and not tenant:
        raise UsageError(
            "this ledger holds the effects of several tenants: give Executor(..., tenant=...); "
            "`counterfoil db tenants` says and changes whether it must be given"
        )
    if secrets.newest is not None and any(one.arguments.has_secrets for one in tools):
        known = ledger.secrets(first=secret_id(secrets.newest))
        if not set(known) <= set(secrets.by_id()):
            raise UsageError(ANOTHER)


def named(
    ledger: Ledger, secrets: Secrets, identity_by: Callable[[bytes], Identity]
) -> tuple[Identity, NamedBy | None]:
    """The name of an effect whose arguments hold secrets.

    `identity_by` gives the identity that a secret makes.

    Raises:
        LedgerError: the ledger cannot be asked, or names effects by a secret that this host does not know.
    """
    own = secrets.by_id()
    known = ledger.secrets()
    if not known or not set(known) <= set(own):
        raise LedgerError(ANOTHER)
    made = {name: identity_by(own[name]) for name in known}
    writing = made[known[0]]
    by = NamedBy(known[0], tuple({one.key for one in made.values()} - {writing.key}))
    there = [(one, ledger.read(one.key)) for one in made.values()] if len(made) > 1 else []
    for one, row in there:
        if row is not None and row.fingerprint == one.fingerprint:
            return one, by
    return next((one for one, row in there if row is not None), writing), by


class Names:
    """The part of an executor that names effects."""

    _ledger: Ledger
    _secrets: Secrets
    _tenant: str

    def switch_secret(self) -> None:
        """Let the newest of this executor's secrets name new effects, on every host: the second step of an exchange.

        The first is to give every host `secret=[new, old]`. A host that does not know the new one then refuses to
        begin. The old one is still needed for what was named by it, until `retire_secret`.

        Raises:
            UsageError: this executor has no secret.
            LedgerError: the ledger cannot be written to.
        """
        if self._secrets.newest is None:
            raise UsageError("there is no secret to switch to: give Executor(..., secret=[new, old])")
        self._ledger.switch_secret(secret_id(self._secrets.newest))

    def retire_secret(self, secret: bytes) -> None:
        """Forget an earlier secret: hosts need it no more. What was named by it is not found again: a call that asks
        for it again would be a new effect, so wait until nobody can.

        Raises:
            UsageError: it is no earlier secret of this ledger.
            LedgerError: the ledger cannot be written to.
        """
        self._ledger.retire_secret(secret_id(secret))

    def _identity(self, job: Job, raw: Any, valid: Valid, by: dict[str, Any]) -> tuple[Identity, NamedBy | None]:
        tool = job.tool
        assert tool.key is not None
        scope: dict[str, Any] = {"tenant": self._tenant, "tool": tool.name, "task": job.task, "names": tool.key, **by}
        if not tool.arguments.has_secrets:
            return identify(**scope, identity_arguments=valid.identity), None

        def by_secret(secret: bytes) -> Identity:
            again = valid if secret == self._secrets.newest else tool.arguments.validate(raw, secret=secret)
            assert isinstance(again, Valid)
            return identify(**scope, identity_arguments=again.identity)

        return named(self._ledger, self._secrets, by_secret)
