"""What calls cost when the ledger is full: rows are written in bulk, in the shape of real ones, and calls are measured
on the full ledger and on an empty one in turn.

Owns the filling. Some of the rows have names that calls can ask for.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any, Final

import sqlalchemy as sa
from benchmarks.places import Places
from benchmarks.process import Process
from benchmarks.shape import Written, captured, fill

from counterfoil.ledger.schema import effects, entries

# Where the numbers of the effects begin that replays ask for, and how many they are.
KNOWN_FIRST: Final = 8_000_000_000
KNOWN: Final = 2000
CHUNK: Final = 50_000
CALLERS: Final = (1, 32)


def grow(url: str, applied: Written, size: int, there: int) -> None:
    """Fill the ledger at `url`, which has `there` of them, up to `size` applied effects with their entries."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        _tuned(connection)
        while there < size:
            count = min(CHUNK, size - there)
            _chunk(connection, applied, there, count)
            connection.commit()
            there += count
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            connection.exec_driver_sql("VACUUM (ANALYZE) effects, entries")
            connection.exec_driver_sql("CHECKPOINT")
    engine.dispose()


def known(url: str, applied: Written, count: int = KNOWN) -> None:
    """Write the effects that replays ask for."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for first in range(0, count, 200):
            numbers = range(KNOWN_FIRST + first, KNOWN_FIRST + min(first + 200, count))
            fill(connection, [applied.under(number) for number in numbers])
    engine.dispose()


def measure(
    places: Places,
    ledger: str,
    sizes: Sequence[int],
    *,
    rounds: int,
    round_s: float,
    told: Callable[[int, dict[str, Any]], None],
) -> None:
    """Measure first calls and replays at each size; `told` hears each size with what it costs against an empty one."""
    empty, full = places.ledger(ledger), places.ledger(ledger)
    applied = captured(full).applied
    for url in (empty, full):
        known(url, applied)
    there = 0
    with _opened(places, empty) as one, _opened(places, full) as other:
        sides = {"empty": one, "full": other}
        for side in sides.values():
            side.ask("adopt", first=KNOWN_FIRST, count=KNOWN)
        for size in sizes:
            grow(full, applied, size, there)
            there = size
            told(size, _compared(sides, rounds, round_s))
    for url in (empty, full):
        places.drop(url)


def _compared(sides: dict[str, Process], rounds: int, round_s: float) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in ("first", "replay"):
        for callers in CALLERS:
            rates: dict[str, list[float]] = {name: [] for name in sides}
            calls = dict.fromkeys(sides, 4 * callers + 16)
            for turn in range(rounds + 1):
                for name in sorted(sides, reverse=bool(turn % 2)):
                    rate = sides[name].ask("round", kind=kind, callers=callers, calls=calls[name])["rate"]
                    calls[name] = max(callers, int(rate * round_s))
                    if turn:
                        rates[name].append(rate)
            medians = {name: statistics.median(each) for name, each in rates.items()}
            found[f"{kind}-{callers}"] = {
                "empty_rate": round(medians["empty"], 1),
                "full_rate": round(medians["full"], 1),
                "cost": round(medians["empty"] / medians["full"], 3),
            }
    return found


def _opened(places: Places, url: str) -> Process:
    return Process("ours", "Threads", url, errors=places.folder)


def _tuned(connection: sa.Connection) -> None:
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA synchronous=OFF")
        connection.exec_driver_sql("PRAGMA cache_size=-200000")
        connection.exec_driver_sql("CREATE TEMP TABLE grown (key BLOB, number INTEGER)")
    else:
        connection.exec_driver_sql("SET synchronous_commit = off")
        connection.exec_driver_sql("CREATE TEMP TABLE grown (key bytea, number bigint)")
    connection.commit()


def _chunk(connection: sa.Connection, applied: Written, there: int, count: int) -> None:
    """Random keys first, then an effect and its entries for each of them."""
    lite = connection.dialect.name == "sqlite"
    connection.exec_driver_sql("DELETE FROM grown")
    if lite:
        connection.exec_driver_sql(
            "INSERT INTO grown WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n LIMIT ?) "
            "SELECT randomblob(32), i FROM n",
            (there, count),
        )
    else:
        connection.exec_driver_sql(
            "INSERT INTO grown SELECT sha256(int8send(i)), i FROM generate_series(%s::bigint, %s::bigint) AS n(i)",
            (there, there + count - 1),
        )
    grown = sa.table("grown", sa.column("key", sa.LargeBinary), sa.column("number", sa.BigInteger))
    digits = sa.func.lower(sa.func.hex(grown.c.key)) if lite else sa.func.encode(grown.c.key, "hex")
    name = sa.literal("cf-") + sa.func.substr(digits, 1, 28)
    moved = applied.effect["created_at"] - 10**12
    own: dict[str, Any] = {
        "key": grown.c.key,
        "fingerprint": grown.c.key,
        "id": name,
        "provider_key": name + "-k0",
        "created_at": moved + grown.c.number,
        "updated_at": moved + grown.c.number,
    }
    _written(connection, effects, applied.effect, own, grown)
    for entry in applied.entries:
        _written(connection, entries, entry, {"key": grown.c.key}, grown)


def _written(
    connection: sa.Connection, table: sa.Table, row: dict[str, Any], own: dict[str, Any], grown: sa.TableClause
) -> None:
    values = [own.get(column.name, sa.literal(row[column.name], column.type)) for column in table.columns]
    connection.execute(sa.insert(table).from_select(list(table.columns), sa.select(*values).select_from(grown)))
