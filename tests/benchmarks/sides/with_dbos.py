"""DBOS: a workflow of one step, named by the order; the same workflow again is its replay.

Runs in an environment of its own. On SQLite its file is put in write-ahead mode, which is faster than what it comes
with, and writes with synchronous=FULL, as every side does.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from benchmarks.side import Side, arguments, order, receipt


class Dbos(Side):
    """Blocking workflows, called by threads."""

    def __init__(self, place: str) -> None:
        super().__init__()
        from dbos import DBOS, SetWorkflowID

        os.environ["DBOS__VMID"] = "benchmarks"
        self.place = place
        self._named: Any = SetWorkflowID
        self._dbos: Any = DBOS
        if place.startswith("sqlite"):
            import sqlalchemy as sa

            with sqlite3.connect(place.removeprefix("sqlite:///")) as file:
                file.execute("PRAGMA journal_mode=WAL")
            file.close()
            sa.event.listen(sa.Engine, "connect", lambda one, _: one.execute("PRAGMA synchronous=FULL"))
        # The pool and the threads that its documentation names for more load than the defaults.
        DBOS(
            config={
                "name": "benchmarks",
                "system_database_url": place.replace("+psycopg", ""),
                "sys_db_pool_size": 32,
                "run_admin_server": False,
                "log_level": "ERROR",
                "max_executor_threads": 256,
            }
        )

        @DBOS.step()  # type: ignore[untyped-decorator, unused-ignore]
        def pay(order: str, amount_minor: int, currency: str, payment_method: str) -> dict[str, Any]:
            return receipt(int(order.rpartition("-")[2]))

        @DBOS.workflow()  # type: ignore[untyped-decorator, unused-ignore]
        def charge(order: str, amount_minor: int, currency: str, payment_method: str) -> dict[str, Any]:
            paid: dict[str, Any] = pay(order, amount_minor, currency, payment_method)
            return paid

        self._charge: Any = charge
        DBOS.launch()

    def ready(self, kind: str, numbers: range) -> Callable[[int], None]:
        """See `Side`. First call and replay are the same words: what is there already is not run again."""

        def one(number: int) -> None:
            with self._named(order(number)):
                assert self._charge(**arguments(number)) == receipt(number)

        return one

    def count(self) -> dict[str, int]:
        """See `Side`."""
        tables = {"workflows": "workflow_status", "steps": "operation_outputs"}
        if self.place.startswith("sqlite"):
            with sqlite3.connect(self.place.removeprefix("sqlite:///")) as file:
                counted = {
                    name: file.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
                    for name, table in tables.items()
                }
            file.close()
            return counted
        import psycopg

        with psycopg.connect(self.place.replace("+psycopg", "")) as server:
            found: dict[str, Any] = {
                name: server.execute(f"SELECT count(*) FROM dbos.{table}".encode()).fetchone()  # noqa: S608
                for name, table in tables.items()
            }
        return {name: row[0] for name, row in found.items()}

    def versions(self) -> dict[str, str]:
        """See `Side`."""
        return {"dbos": version("dbos")}

    def close(self) -> None:
        """See `Side`."""
        self._dbos.destroy(workflow_completion_timeout_sec=1)
