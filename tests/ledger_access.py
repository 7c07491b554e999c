"""A way to a ledger that can be taken away: a server behind a proxy, a file that another has locked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import sqlalchemy as sa
from pgproxy import proxy_before
from postgres import PostgresServer


@dataclass(frozen=True)
class Access:
    """The URL that goes this way. While it is away a server answers nothing, and a file cannot be written to."""

    url: str
    take_away: Callable[[], object]
    bring_back: Callable[[], object]


@contextmanager
def access_to(ledger_url: str, server: PostgresServer) -> Iterator[Access]:
    """Such a way to the ledger at that URL."""
    url = sa.make_url(ledger_url)
    if url.get_backend_name() == "postgresql":
        with proxy_before(server.socket) as proxy:
            yield Access(proxy.url(str(url.database)), proxy.take_away, proxy.bring_back)
    else:
        other = sqlite3.connect(str(url.database), isolation_level=None, timeout=30, check_same_thread=False)
        with closing(other):
            yield Access(
                ledger_url, lambda: other.execute("BEGIN IMMEDIATE"), lambda: other.execute("ROLLBACK").close()
            )
