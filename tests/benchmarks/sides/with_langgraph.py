"""LangGraph: a graph of one node, checkpointed before the next step begins (durability "sync"), a thread per order.

Runs in an environment of its own. A replay is the finished thread invoked again: it runs no node and answers with the
state that was kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, TypedDict

from benchmarks.side import Side, arguments, order, receipt

CONNECTIONS = 32


class State(TypedDict, total=False):
    """What the graph carries."""

    order: str
    amount_minor: int
    currency: str
    payment_method: str
    receipt: dict[str, Any]


class LangGraph(Side):
    """A blocking graph, invoked by threads."""

    def __init__(self, place: str) -> None:
        super().__init__()
        from langgraph.graph import END, START, StateGraph

        self._saver: Any
        if place.startswith("sqlite"):
            from langgraph.checkpoint.sqlite import SqliteSaver

            self._open: Any = sqlite3.connect(place.removeprefix("sqlite:///"), check_same_thread=False)
            self._saver = SqliteSaver(self._open)
            self._saver.setup()
            self._open.execute("PRAGMA synchronous=FULL")
        else:
            from langgraph.checkpoint.postgres import PostgresSaver
            from psycopg.rows import dict_row
            from psycopg_pool import ConnectionPool

            # As its documentation wants its connections.
            settings = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
            url = place.replace("+psycopg", "")
            self._open = ConnectionPool(url, min_size=1, max_size=CONNECTIONS, kwargs=settings, timeout=120, open=True)
            self._saver = PostgresSaver(self._open)
            self._saver.setup()

        def pay(state: State) -> State:
            return {"receipt": receipt(int(state["order"].rpartition("-")[2]))}

        graph: Any = StateGraph(State)
        graph.add_node("pay", pay)
        graph.add_edge(START, "pay")
        graph.add_edge("pay", END)
        self._graph: Any = graph.compile(checkpointer=self._saver)
        self._lite = place.startswith("sqlite")

    def ready(self, kind: str, numbers: range) -> Callable[[int], None]:
        """See `Side`."""

        def one(number: int) -> None:
            config = {"configurable": {"thread_id": order(number)}}
            given = arguments(number) if kind == "first" else None
            assert self._graph.invoke(given, config, durability="sync")["receipt"] == receipt(number)

        return one

    def count(self) -> dict[str, int]:
        """See `Side`."""
        question = "SELECT count(DISTINCT thread_id) AS threads, count(*) AS checkpoints FROM checkpoints"
        if self._lite:
            threads, checkpoints = self._open.execute(question).fetchone()
            return {"threads": threads, "checkpoints": checkpoints}
        with self._open.connection() as connection:
            return dict(connection.execute(question).fetchone())

    def versions(self) -> dict[str, str]:
        """See `Side`."""
        names = ("langgraph", "langgraph-checkpoint-postgres", "langgraph-checkpoint-sqlite")
        return {name: version(name) for name in names}

    def close(self) -> None:
        """See `Side`."""
        self._open.close()
