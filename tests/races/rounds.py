"""Callers of one key, round after round: in each, all threads of all processes call the same effect at one moment.

Owns what such a process does. A round is a file that the test makes when every process has come to it.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

from crash.life import ORDER, TOOL, Life, Watch
from crash.living import Hands
from provider import Provider

from counterfoil import Executor

POLL_S = 0.002
PATIENCE_S = 60.0


def live(life: Life) -> None:
    """Call in each round, and leave a record of what was told, round by round."""
    hands = Hands(life, Watch(life))
    executor, folder, told = hands.executor, Path(life.detail["folder"]), list[list[dict[str, Any]]]()
    assert isinstance(executor, Executor)
    start = Barrier(life.callers)

    def call(number: int) -> dict[str, Any]:
        start.wait()
        seen = executor.call(TOOL, order_of(number))
        applied = seen.verdict == "effect_applied"
        count = Provider.at(life.provider).count(seen.effect_id) if applied else None
        return {"code": seen.code, "verdict": str(seen.verdict), "id": seen.effect_id, "count": count}

    with ThreadPoolExecutor(life.callers) as threads:
        for number in range(life.detail["rounds"]):
            Path(f"{life.ready}-{number}").touch()
            await_file(folder / f"go-{number}")
            told.append(list(threads.map(call, [number] * life.callers)))
    hands.close()
    Path(life.out).write_text(json.dumps({"told": told}), "utf-8")


def order_of(number: int) -> dict[str, Any]:
    """The arguments of the call of a round: one key."""
    return ORDER | {"order": f"R-{number}"}


def await_file(file: Path) -> None:
    """Wait until it is there."""
    until = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert time.monotonic() < until, f"no {file.name}"
        time.sleep(POLL_S)
