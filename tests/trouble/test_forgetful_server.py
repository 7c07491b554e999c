"""A server that may forget what it has acknowledged is refused."""

from __future__ import annotations

import time

import pytest
from postgres import PostgresServer
from psycopg import sql

from counterfoil import Executor, LedgerError


def _set(server: PostgresServer, value: str) -> None:
    server.administer(sql.SQL("ALTER SYSTEM SET fsync = {}").format(sql.Literal(value)))
    server.administer(sql.SQL("SELECT pg_reload_conf()").format())


def test_a_server_without_fsync_is_no_ledger(postgres_server: PostgresServer, postgres_template: str) -> None:
    """With fsync=off a crash of the server may take an acknowledged begin away, and the call would be sent again: the
    executor does not open. With fsync on again it does."""
    url = postgres_server.url(postgres_server.create(template=postgres_template))
    _set(postgres_server, "off")
    try:
        with pytest.raises(LedgerError, match="fsync=off"):
            _opened(url, refused=True)
    finally:
        _set(postgres_server, "on")
    _opened(url, refused=False)


def _opened(url: str, *, refused: bool) -> None:
    """Open an executor; the server may take a moment to hear of its setting."""
    until = time.monotonic() + 10
    while True:
        try:
            Executor(url).close()
        except LedgerError:
            if refused or time.monotonic() > until:
                raise
        else:
            if not refused or time.monotonic() > until:
                return
        time.sleep(0.01)
