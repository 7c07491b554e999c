"""A place to run seeds at, and what counts as a failure: a violation that the checker names, or a broken episode."""

from __future__ import annotations

import json
import logging
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulation import episode
from simulation.chance import Made
from simulation.checker.check import check
from simulation.shrink import shrink
from simulation.store import Store, postgresql_store, sqlite_store

MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
# Each so-manyeth seed lives on PostgreSQL.
SERVER_SHARE = 50


def on_server(seed: int) -> bool:
    """Whether a seed lives on PostgreSQL."""
    return seed % SERVER_SHARE == SERVER_SHARE - 1


@dataclass(frozen=True)
class Trial:
    """A seed, lived and checked."""

    seed: int
    violations: list[str]
    hits: dict[str, int] = field(default_factory=dict)
    made: tuple[Made, ...] = ()
    trace: tuple[str, ...] = ()
    history: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The history, the same for the same seed to the last byte."""
        return json.dumps(self.history, sort_keys=True)


class Stage:
    """The databases of one process."""

    def __init__(self, stack: ExitStack, server_url: str | None) -> None:
        self._stack = stack
        self._server_url = server_url
        folder = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None))
        self._sqlite = sqlite_store(Path(folder), episode.MACHINES)
        stack.callback(self._sqlite.close)
        self._server: Store | None = None

    def _store(self, seed: int) -> Store:
        if not on_server(seed):
            return self._sqlite
        if self._server is None:
            if self._server_url is None:
                from postgres import running_postgres

                server = self._stack.enter_context(running_postgres())
                self._server_url = server.url(server.create())
            self._server = postgresql_store(self._server_url, episode.MACHINES)
            self._stack.callback(self._server.close)
        return self._server

    def run(self, seed: int, kept: frozenset[Made] | None = None, *, traced: bool = False) -> Trial:
        """Live a seed and check its history."""
        try:
            ended = episode.run(seed, self._store(seed), kept, traced=traced)
        except Exception as problem:  # noqa: BLE001 - a failure like any other, to be shrunk and replayed
            last = traceback.extract_tb(problem.__traceback__)[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            return Trial(seed, [f"broken: {type(problem).__name__} at {where}: {problem}"], made=self._made(seed))
        history = json.loads(json.dumps(ended.history))
        return Trial(seed, check(history), dict(ended.hits), tuple(ended.made), tuple(ended.trace), history)

    def _made(self, seed: int) -> tuple[Made, ...]:
        chance = episode.Episode.last
        return () if chance is None else tuple(chance.made)

    def shrunk(self, trial: Trial) -> frozenset[Made]:
        """The decisions that a failure needs; it stays a failure of the same rule."""
        rules = {_rule(one) for one in trial.violations}

        def fails(kept: frozenset[Made]) -> bool:
            return any(_rule(one) in rules for one in self.run(trial.seed, kept).violations)

        return shrink(trial.made, fails)


def _rule(violation: str) -> str:
    return violation.split(":", 1)[0]


@contextmanager
def stage(server_url: str | None = None) -> Iterator[Stage]:
    """The databases to run seeds at. Without a URL of an empty database, a server is started for the first seed that
    lives on one."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # the library warns of what the simulation does to it
    try:
        with ExitStack() as stack:
            yield Stage(stack, server_url)
    finally:
        logging.disable(before)
