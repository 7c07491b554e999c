"""An application whose calls hold a marked secret in every kind of field, and whose tools end in every way.

What they are told to do stands in `ENDS`; a real one would do it by itself.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, SecretBytes, SecretStr

from counterfoil import (
    Absent,
    Content,
    Effect,
    ErrorSpec,
    Executor,
    Forbidden,
    Found,
    Policy,
    Rejected,
    Secret,
    Throttled,
    Tool,
    Unclear,
    tool,
)
from counterfoil.clock import Clock

KINDS = (
    "marked",
    "word",
    "bytes",
    "model",
    "member",
    "list",
    "named",
    "content",
    "default",
    "context",
    "attribute",
    "hidden",
)
MARK = {kind: f"mk-{kind}-7f3a9d" for kind in KINDS}
ALL = " ".join(MARK.values())
# What whoever takes it back later can know: secret arguments are not kept for that.
OF_UNDO = " ".join(MARK[kind] for kind in ("context", "attribute", "hidden"))
SECRET = b"mk-hmac-secret-of-the-host-7f3a9d"
CIPHER_KEY = b"mk-cipher-key-of-the-host-7f3a9d"


class Login(BaseModel):
    user: str
    word: SecretStr


class Account(BaseModel):
    user: str
    password: str


class Session:
    """What stands in a context."""

    def __init__(self) -> None:
        self.password = MARK["attribute"]


ARGUMENTS: dict[str, Any] = {
    "marked": MARK["marked"],
    "word": MARK["word"],
    "raw": base64.b64encode(MARK["bytes"].encode()).decode(),
    "login": {"user": "u", "word": MARK["model"]},
    "account": {"user": "u", "password": MARK["member"]},
    "words": [MARK["list"]],
    "api_key": MARK["named"],
    "note": MARK["content"],
}


def context() -> dict[str, Any]:
    return {"token": MARK["context"], "session": Session()}


def spilled(words: str = ALL) -> Exception:
    """An exception with these words in its text, its cause, its context and a note."""
    problem = RuntimeError(f"GET https://api.example/?key={words} failed", context())
    problem.add_note(words)
    problem.__cause__ = ConnectionError(words)
    problem.__context__ = ValueError(words)
    return problem


def raising(problem: Callable[[], BaseException]) -> Callable[[Effect], Any]:
    def end(effect: Effect) -> Any:
        with effect.sending():
            pass
        raise problem()

    return end


def before_sending(effect: Effect) -> Any:
    raise spilled()


def returning(effect: Effect) -> Any:
    effect.reference = "ref-1"
    return {"said": ALL, "client_secret": "mk-returned-7f3a9d", "deep": [{"token": "mk-returned-7f3a9d", ALL: 1}]}


ENDS: dict[str, Callable[[Effect], Any]] = {
    "returned": returning,
    "before_sending": before_sending,
    "plain": raising(spilled),
    "timeout": raising(lambda: TimeoutError(ALL)),
    "rejected": raising(lambda: Rejected("no", ALL, hint=ALL, field=ALL, candidates=[ALL])),
    "code": raising(lambda: Rejected(MARK["marked"], ALL)),
    "forbidden": raising(lambda: Forbidden(ALL, hint=ALL)),
    "throttled": raising(lambda: Throttled(1.0, ALL)),
    "listed": raising(lambda: LookupError(ALL)),
    "with_a_row": raising(lambda: KeyError(ALL)),
    "exits": raising(lambda: SystemExit(ALL)),
}
LOOKS: dict[str, Callable[[], Any]] = {
    "found": lambda: Found({"said": ALL, "client_secret": "mk-found-7f3a9d"}, reference="ref-2"),
    "unclear": lambda: Unclear(ALL),
    "absent": Absent,
}


POLICY = Policy(timeout_s=5, grace_s=0, patience_s=0.01, wait_s=0.01, wait_max_s=0.01, breaker=None, review_after_s=1)


def vault_tool(end: str, look: str) -> Tool[..., Any]:
    @tool(
        key=("order",), name=f"use_{end}_{look}", sends="marked", rejects=(LookupError,),
        errors=(ErrorSpec("row", "The row is not there.", exceptions=(KeyError,)),),
        policy=POLICY,
    )  # fmt: skip
    def use(
        effect: Effect,
        order: str,
        marked: Annotated[str, Secret],
        word: SecretStr,
        raw: SecretBytes,
        login: Login,
        account: Account,
        words: list[SecretStr],
        api_key: str,
        note: Annotated[str, Content, Secret],
        fallback: SecretStr = SecretStr(MARK["default"]),  # noqa: B008 - what a careless author would write
    ) -> Any:
        """Use everything once. Use it when a test wants it."""
        return ENDS[end](effect)

    @use.postcondition
    def used(effect: Effect) -> Any:
        if look == "raises":
            raise spilled()
        # In reconcile nobody knows the present call's secrets: what a look says then is its author's.
        return LOOKS[look]() if effect.context is not None or look == "absent" else Unclear("shut")

    @use.compensation()
    def undo(effect: Effect) -> None:
        """Take it back."""
        raise spilled(OF_UNDO)

    return use


TOOLS = [vault_tool(end, "unclear") for end in ENDS]
TOOLS += [vault_tool("timeout", look) for look in ("found", "raises", "absent")]


def executor(clock: Clock | None = None, **settings: Any) -> Executor:
    from counterfoil import Messages

    words = [bytes.fromhex(line) for line in os.environ.get("COUNTERFOIL_CIPHER_KEYS", "").split()]
    given: dict[str, Any] = {"secret": SECRET, "messages": Messages(hide=[MARK["hidden"]])} | settings
    given |= {"cipher_key": words} if words else {}
    return Executor(os.environ["COUNTERFOIL_LEDGER"], TOOLS, clock=clock, **given)
