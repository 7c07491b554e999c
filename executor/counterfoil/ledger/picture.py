"""One picture of a ledger: all that is read is of the same moment, however long reading takes and whoever writes.

Only reads. On SQLite the log grows meanwhile; on a server what is removed is kept for so long.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.ledger.connect import READS

_STREAMED: Final = 1000


@contextmanager
def picture(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection that sees the database as it is at one moment, and only reads."""
    is_sqlite = engine.dialect.name == "sqlite"
    level = {} if is_sqlite else {"isolation_level": "REPEATABLE READ"}
    with engine.execution_options(**{READS: True}, **level).connect() as connection:
        if not is_sqlite:
            with connection.begin():
                connection.exec_driver_sql("SET TRANSACTION READ ONLY")
                yield connection
            return
        driver: Any = connection.connection.driver_connection
        connection.exec_driver_sql("BEGIN")
        driver.text_factory = lambda text: text.decode("utf-8", "backslashreplace")  # whatever somebody put there
        try:
            yield connection
        finally:
            driver.text_factory = str
            connection.exec_driver_sql("ROLLBACK")


def stream(connection: sa.Connection, asked: sa.Select[Any]) -> Generator[Mapping[str, Any]]:
    """The rows of a question, fetched as they are needed."""
    options = {"stream_results": True, "yield_per": _STREAMED}
    with connection.execute(asked, execution_options=options) as found:
        yield from map(dict, found.mappings())
