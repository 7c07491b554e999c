"""C56: sixteen buyers at once, from threads and from four processes, never exceed the budget of their task."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from cases.processes import hear, playing, say

from counterfoil import Budget, Executor, Policy, Rejected, Tool, tool

LIMIT = 1000
PRICE = 100
BUYERS = 16
ROUNDS = 3


def buy_tool(shop: Path) -> Tool[..., Any]:
    """A purchase at a shop that is a file: one line for each. Every second one is declined."""

    @tool(key=("order",), sends="once", cost=lambda a: ("eur", PRICE), policy=Policy(timeout_s=30, breaker=None))
    def buy(order: str) -> str:
        """Buy one thing. Use it when it is wanted."""
        if order.endswith(("1", "3", "5", "7", "9")):
            raise Rejected("sold_out", "it is sold out")
        with shop.open("a", encoding="utf-8") as book:
            book.write(f"{order}\n")
        return "bought"

    return buy


def purchases(executor: Executor, buyers: range) -> list[str]:
    """The codes of what these buyers heard, all at once, each for a few orders."""

    def one(buyer: int) -> list[str]:
        orders = [f"{number}-{buyer}" for number in range(ROUNDS)]
        return [executor.call("buy", {"order": order}, task="t", turn=buyer).code for order in orders]

    with ThreadPoolExecutor(len(buyers)) as threads:
        return [code for codes in threads.map(one, buyers) for code in codes]


def process(url: str, shop: str, first: int, count: int) -> list[str]:
    """A process with some of the buyers: it opens its executor, waits for the word, and lets them buy."""
    with Executor(url, [buy_tool(Path(shop))], budget=Budget(spend={"eur": LIMIT}), loop_guard=None) as executor:
        say("ready")
        hear()
        return purchases(executor, range(first, first + count))


def check(url: str, shop: Path, codes: list[str]) -> None:
    """What was bought was paid, and at no instant of the ledger's history was more reserved or spent than allowed."""
    bought = shop.read_text("utf-8").splitlines()
    with Executor(url, [buy_tool(shop)]) as executor:
        book = executor.audit.spending("t")
        spent = executor.task("t").spent["eur"]
        unknown = len(executor.audit.doubts())
    assert len(bought) == len(set(bought)) == codes.count("ok") == spent // PRICE
    assert unknown == 0
    assert [one["seq"] for one in book] == list(range(1, len(book) + 1))
    held = paid = 0
    for one in book:
        held += {"reserved": PRICE, "released": -PRICE, "spent": -PRICE}[one["event"]]
        paid += PRICE if one["event"] == "spent" else 0
        assert (one["reserved"], one["spent"]) == (held, paid)
        assert held + paid <= LIMIT
    assert held == 0
    assert max(one["reserved"] + one["spent"] for one in book) == LIMIT, "the budget was in demand"
    assert "budget_exhausted" in codes


def test_from_threads(ledger_url: str, tmp_path: Path) -> None:
    """Sixteen threads of one process, for a task that had no budget's row before."""
    shop = tmp_path / "shop"
    with Executor(ledger_url, [buy_tool(shop)], loop_guard=None) as executor:
        executor.task("t", budget=Budget(spend={"eur": LIMIT}))
        codes = purchases(executor, range(BUYERS))
    check(ledger_url, shop, codes)


def test_from_four_processes(ledger_url: str, tmp_path: Path) -> None:
    """Four processes with four threads each, all from one moment on."""
    shop = tmp_path / "shop"
    with ExitStack() as stack:
        children = [
            stack.enter_context(playing(process, url=ledger_url, shop=str(shop), first=number * 4, count=4))
            for number in range(4)
        ]
        for child in children:
            assert child.heard() == "ready"
        for child in children:
            child.tell("go")
        codes = [code for child in children for code in child.result()]
    check(ledger_url, shop, codes)
