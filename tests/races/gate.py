"""Starting processes at one moment: each opens its executor, comes to a locked gate, and goes on when it opens."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from crash.life import Life, Told
from crash.story import Stage

GATHERED_S = 30.0
POLL_S = 0.005


def race(stage: Stage, lives: Sequence[Life]) -> list[Told]:
    """Let processes live these lives from one moment on; what all of them were told."""
    with locked(Path(f"{lives[0].out}-gate")) as gate:
        runners = [
            replace(life, gate=str(gate), ready=f"{life.out}-ready{number}", out=f"{life.out}-{number}")
            for number, life in enumerate(lives)
        ]
        born = [stage.nursery.begin(life) for life in runners]
        until = time.monotonic() + GATHERED_S
        while not all(Path(life.ready).exists() for life in runners):
            assert time.monotonic() < until, "not every process came to the gate"
            time.sleep(POLL_S)
    codes = [one.ended.result(GATHERED_S) for one in born]
    assert codes == [0] * len(born), [Path(life.out).read_text("utf-8") for life in runners if Path(life.out).exists()]
    return [seen for life in runners for seen in stage.record(life)["told"]]


@contextmanager
def locked(file: Path) -> Iterator[Path]:
    """A file that is locked until the block ends."""
    with file.open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield file
