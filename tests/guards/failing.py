"""Tools whose next ends a test decides. Each keeps the list of the calls that reached it."""

from __future__ import annotations

from typing import Any

from counterfoil import ALL_ARGUMENTS, Breaker, Policy, Rejected, Throttled, Tool, tool


class Service:
    """What stands behind a tool: the ends that come next ("ok" when none is left), and what it was asked."""

    def __init__(self, *ends: str) -> None:
        self.ends = list(ends)
        self.asked: list[Any] = []
        self.always = "ok"

    def answer(self, question: Any) -> str:
        """One request: do it, or fail as is next."""
        self.asked.append(question)
        match self.ends.pop(0) if self.ends else self.always:
            case "rejected":
                raise Rejected("card_declined", "the card was declined", status=402)
            case "invalid":
                raise Rejected("bad_account", "this account does not exist")
            case "throttled":
                raise Throttled(None)
            case "down":
                raise ConnectionRefusedError
            case "bug":
                raise KeyError("a bug of the tool")
            case str() as status if status.isdigit():
                raise Answered(int(status))
            case "lost":
                raise TimeoutError
        return "done"


class Answered(Exception):
    """A client's error made from an answer; nobody declared it to be a refusal."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def act_tool(service: Service, *, name: str = "act", breaker: Breaker | None = None, **policy: Any) -> Tool[..., Any]:
    """An effectful tool that sends once, named by all its arguments in a task; it does not try again by itself."""

    @tool(
        key=ALL_ARGUMENTS,
        name=name,
        sends="once",
        cost=lambda a: ("eur", a["cents"]) if a["cents"] else ("eur", 0),
        policy=Policy(timeout_s=5, breaker=breaker, **({"attempts_max": 1} | policy)),
    )
    def act(what: str, cents: int = 0) -> str:
        """Do one thing. Use it when it is wanted."""
        return service.answer((what, cents))

    return act


def read_tool(service: Service, *, breaker: Breaker | None = None) -> Tool[..., Any]:
    """A tool that only reads."""

    @tool(read_only=True, policy=Policy(timeout_s=5, attempts_max=1, breaker=breaker))
    def get_status(job: str) -> str:
        """Tell how far a job is. Use it to see whether it has ended."""
        return service.answer(job) + str(len(service.asked) if service.always == "changing" else "")

    return get_status
