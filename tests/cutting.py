"""Cut the connection to the ledger at COMMIT, before or after it counted; or take the ledger away altogether."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa


class Cut(Exception):
    """What a driver would raise."""


@contextmanager
def commits(engine: sa.Engine, plan: list[str]) -> Iterator[list[str]]:
    """Have the next commits go as planned: "counts", "lost before" (it came to nothing) or "lost after" (it counted),
    "gone" (it counted, and from then on the database is away).

    Yields what happened. After the plan everything counts.
    """
    happened: list[str] = []

    def on_execute(*_: object) -> None:
        if "gone" in happened:
            raise sa.exc.OperationalError("SELECT", {}, Cut())

    def on_commit(connection: sa.Connection) -> None:
        fate = plan.pop(0) if plan else "counts"
        happened.append(fate)
        if fate == "counts":
            return
        raw: Any = connection.connection.driver_connection
        if fate in ("lost after", "gone"):
            raw.execute("COMMIT") if engine.dialect.name == "sqlite" else raw.commit()
        else:
            raw.execute("ROLLBACK") if engine.dialect.name == "sqlite" else raw.rollback()
        raise sa.exc.OperationalError("COMMIT", {}, Cut())

    sa.event.listen(engine, "commit", on_commit)
    sa.event.listen(engine, "before_cursor_execute", on_execute)
    try:
        yield happened
    finally:
        sa.event.remove(engine, "commit", on_commit)
        sa.event.remove(engine, "before_cursor_execute", on_execute)


@contextmanager
def away(engine: sa.Engine) -> Iterator[None]:
    """Every statement fails as it does when the database is gone."""

    def on_execute(*_: object) -> None:
        raise sa.exc.OperationalError("SELECT", {}, Cut())

    sa.event.listen(engine, "before_cursor_execute", on_execute)
    try:
        yield
    finally:
        sa.event.remove(engine, "before_cursor_execute", on_execute)
