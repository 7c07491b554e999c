"""A prune that is killed loses nothing: what left the ledger is whole in the archive, and it may be run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from changing import SECOND, One, permitted

from counterfoil.clock import ManualClock
from counterfoil.ledger.archive import Archive
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.keeping import Pruned, prune
from counterfoil.ledger.ledger import Ledger
from counterfoil.ledger.schema import entries

EFFECTS, BATCH = 7, 2
OLD = 30 * 86_400 * SECOND
LATER_S = 40 * 86_400
PRUNE = """
import os, signal, sys
from pathlib import Path
from counterfoil.clock import ManualClock
from counterfoil.ledger.archive import Archive
from counterfoil.ledger.connect import open_engine
from counterfoil.ledger.keeping import prune
from counterfoil.ledger.ledger import Ledger

url, file, place, now, old, batch = sys.argv[1:]
seen = {"synced": 0, "torn": 0, "committed": 0}
sync, write = os.fsync, os.write

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def synced(descriptor):
    sync(descriptor)
    seen["synced"] += 1
    if place == "synced" and seen["synced"] == 3:  # the folder, the first batch, the second
        die()

def torn(descriptor, content):
    seen["torn"] += 1
    if place == "torn" and seen["torn"] == 3 and bytes(content[:1]) == b"{":
        write(descriptor, content[: len(content) // 2])
        die()
    return write(descriptor, content)

def committed(done):
    if place == "committed" and done.pruned == 4:
        die()

os.fsync, os.write = synced, torn
ledger = Ledger(open_engine(url), clock=ManualClock(int(now)))
with Archive(Path(file), remembered=10) as archive:
    prune(ledger, int(old), archive, by="a person", batch=int(batch), told=committed)
"""


@pytest.mark.parametrize(("place", "gone"), [("torn", 2), ("synced", 2), ("committed", 4)])
def test_a_prune_that_is_killed_loses_nothing(ledger_url: str, tmp_path: Path, place: str, gone: int) -> None:
    """Killed with half a line written, with a batch on disk that is not committed, and between two batches: each
    effect is as it was or a tombstone whose line is whole; run again, each has one line."""
    clock = ManualClock()
    engine = open_engine(ledger_url)
    ledger = Ledger(engine, clock=clock)
    for number in range(EFFECTS):
        one = One(ledger, str(number))
        one.begun()
        permitted(one.apply(one.returned()))
    clock.advance(LATER_S)
    file = tmp_path / "archive.jsonl"
    told = [str(one) for one in (ledger_url, file, place, clock.wall_us(), OLD, BATCH)]
    ran = subprocess.run([sys.executable, "-c", PRUNE, *told], env=os.environ, check=False, capture_output=True)
    assert ran.returncode == -signal.SIGKILL, ran.stderr.decode()
    stones = {row.id: row for row in Audit(ledger).effects() if row.pruned_at is not None}
    assert len(stones) == gone
    assert set(stones) <= set(whole_lines(file))
    with engine.connect() as connection:
        there = connection.execute(sa.select(entries.c.event, sa.func.count()).group_by(entries.c.event)).all()
    assert dict(map(tuple, there)) == {"begun": EFFECTS - gone, "returned": EFFECTS - gone, "pruned": gone}
    with Archive(file, remembered=10) as archive:
        assert prune(ledger, OLD, archive, by="a person", batch=BATCH) == Pruned(EFFECTS - gone)
    lines = whole_lines(file)
    assert (len(lines), len(set(lines))) == (EFFECTS, EFFECTS)
    assert file.read_bytes().endswith(b"\n")
    engine.dispose()


def whole_lines(file: Path) -> list[str]:
    """The ids of the lines that are whole."""
    return [json.loads(line)["id"] for line in file.read_bytes().split(b"\n")[:-1]]
