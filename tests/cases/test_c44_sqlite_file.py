"""C44: a SQLite ledger on bad ground: overwritten, without its log, without write-ahead mode, read-only, disk full."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
import sqlalchemy as sa
from charging import GOOD, charging
from ledger_client import client
from outside import World
from provider import Provider

from counterfoil import Executor, LedgerError, ManualClock, Observation, Verdict, tool
from counterfoil.ledger.file import WHOLE_BYTES

Full: TypeAlias = Callable[[Executor, Path], AbstractContextManager[None]]

PAGE = 4096
NOBODY = 65534


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails at COMMIT is tried again for a moment only."""
    monkeypatch.setattr("counterfoil.ledger.ledger.PATIENCE_S", 0.3)


@pytest.fixture
def world() -> World:
    """The outside."""
    return World(ManualClock())


@pytest.fixture
def ledger(tmp_path: Path, world: World) -> Path:
    """A ledger in one file that holds a few effects."""
    file = tmp_path / "secret-folder" / "ledger.db"
    file.parent.mkdir()
    with Executor(f"sqlite:///{file}", tools=[charging(world)], clock=world.clock) as executor:
        for number in range(40):
            assert executor.call("charge", {"order": f"before-{number}", "amount": 5}).code == "ok"
    assert [one.name for one in file.parent.iterdir()] == ["ledger.db"]
    world.requests.clear()
    return file


def overwrite(file: Path, first: int, count: int) -> None:
    """Write nonsense over some pages, as a broken disk or mount would."""
    with file.open("r+b", buffering=0) as opened:
        opened.seek(first * PAGE)
        opened.write(b"\xa5\x5a" * (PAGE // 2) * count)


def refused(seen: Observation, world: World, file: Path) -> None:
    """The call was refused before anything was sent, and the model hears of no path."""
    assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
    assert world.requests == []
    assert file.parent.name not in seen.text


@pytest.mark.parametrize(
    ("first", "count", "whole_bytes"),
    [(0, 1, WHOLE_BYTES), (1, 12, WHOLE_BYTES), (3, 1, WHOLE_BYTES), (0, 1, 0), (1, 12, 0)],
    ids=["header", "many", "one", "header-of-large", "many-of-large"],
)
def test_c44_overwritten_pages_are_seen_at_the_start(
    ledger: Path, world: World, monkeypatch: pytest.MonkeyPatch, first: int, count: int, whole_bytes: int
) -> None:
    """A damaged file is refused at once, is not changed, and no empty ledger takes its place."""
    monkeypatch.setattr("counterfoil.ledger.file.WHOLE_BYTES", whole_bytes)
    overwrite(ledger, first, count)
    before = ledger.read_bytes()
    with pytest.raises(LedgerError, match="damaged") as raised:
        Executor(f"sqlite:///{ledger}", tools=[charging(world)])
    assert str(ledger) not in str(raised.value)
    assert ledger.read_bytes() == before


def test_c44_damage_in_use_ends_the_use(ledger: Path, world: World) -> None:
    """Once damage is seen, this process tells nothing from the file and begins nothing on it."""
    with Executor(f"sqlite:///{ledger}", tools=[charging(world)], clock=world.clock) as executor:
        assert executor.call("charge", {"order": "before-1", "amount": 5}).code == "replayed"
        executor._sightings.flush()
        executor._engine.dispose()  # new connections have no pages in memory
        kept = ledger.read_bytes()
        overwrite(ledger, 1, len(kept) // PAGE - 1)
        refused(executor.call("charge", GOOD), world, ledger)
        executor._engine.dispose()
        ledger.write_bytes(kept)  # a file that was damaged under a running process is not believed again by it
        refused(executor.call("charge", {"order": "before-1", "amount": 5}), world, ledger)


@pytest.mark.parametrize("removed", ["log", "log and index", "file"])
def test_c44_what_is_removed_in_use(tmp_path: Path, provider: Provider, removed: str) -> None:
    """The process that has it open sends nothing more; without its log no other takes the ledger for empty."""
    file = tmp_path / "ledger.db"
    url = f"sqlite:///{file}"
    with client(url=url, provider=provider.url, orders=["before", "after", "before"], one_by_one=True) as other:
        other.go()
        assert other.heard()["code"] == "ok"
        if removed == "file":
            file.unlink()
        else:
            file.with_name("ledger.db-wal").unlink()
        if removed == "log":
            with pytest.raises(LedgerError, match="log is missing"):
                Executor(url)
            assert not file.with_name("ledger.db-wal").exists()
        if removed == "log and index":
            file.with_name("ledger.db-shm").unlink()
        for _ in range(2):
            other.go()
            assert other.heard()["code"] == "ledger_unavailable"
    assert provider.count() == 1


def test_c44_a_file_system_without_write_ahead_mode(ledger: Path, world: World) -> None:
    """Where the mode does not take effect, the ledger is refused."""
    with closing(sqlite3.connect(ledger)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    engine = sa.create_engine(f"sqlite:///file:{ledger}?vfs=unix-none&uri=true")
    with pytest.raises(LedgerError, match="write-ahead mode"):
        Executor(engine, tools=[charging(world)])
    engine.dispose()


@contextmanager
def without_rights() -> Iterator[None]:
    """Be nobody for a while, where one is root, whom no right restrains."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_c44_a_read_only_folder(ledger: Path, world: World) -> None:
    """A file that cannot be written is refused at the start."""
    folder = Path(tempfile.mkdtemp(prefix="cf-read-only-"))
    try:
        file = folder / "ledger.db"
        shutil.copyfile(ledger, file)
        file.chmod(0o444)
        folder.chmod(0o555)
        with without_rights(), pytest.raises(LedgerError, match="cannot be opened for writing"):
            Executor(f"sqlite:///{file}", tools=[charging(world)])
        assert [one.name for one in folder.iterdir()] == ["ledger.db"]
    finally:
        folder.chmod(0o700)
        shutil.rmtree(folder)


@contextmanager
def full_by_quota(executor: Executor, _: Path) -> Iterator[None]:
    """The database may not get one page more."""
    executor._engine.dispose()

    def bound(raw: sqlite3.Connection, _: object) -> None:
        raw.execute("PRAGMA max_page_count=1")  # SQLite takes the present size instead

    sa.event.listen(executor._engine, "connect", bound)
    yield
    sa.event.remove(executor._engine, "connect", bound)
    executor._engine.dispose()


@contextmanager
def full_by_limit(_: Executor, file: Path) -> Iterator[None]:
    """No file may get longer than the log is now: the write itself fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.with_name(file.name + "-wal").stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


BIG = {"order": "x" * 20_000, "amount": 5}


@pytest.mark.parametrize("full", [full_by_quota, full_by_limit])
def test_c44_a_full_disk_at_begin(ledger: Path, world: World, full: Full) -> None:
    """What cannot be written is not sent; with room again the same call goes through."""
    with Executor(f"sqlite:///{ledger}", tools=[charging(world)], clock=world.clock) as executor:
        with full(executor, ledger):
            refused(executor.call("charge", BIG), world, ledger)
        assert executor.call("charge", BIG).code == "ok"
    assert len(world.requests) == 1


@pytest.mark.parametrize("full", [full_by_quota, full_by_limit])
def test_c44_a_full_disk_at_settle(ledger: Path, full: Full) -> None:
    """The effect is there and its end does not fit: told as pending, written when there is room, not sent again."""
    sent: list[str] = []

    @tool(key=("order",))
    def print_out(order: str) -> str:
        """Print a long document."""
        sent.append(order)
        return "y" * 50_000

    with ExitStack() as disk:

        def watch(moment: str, step: str, tool: str, effect_id: str) -> None:
            if (moment, step, tool) == ("after", "Attempt", "print_out") and len(sent) == 1:
                disk.enter_context(full(executor, ledger))

        with Executor(f"sqlite:///{ledger}", tools=[print_out], observer=watch) as executor:
            seen = executor.call("print_out", {"order": "A"})
            assert (seen.code, seen.verdict) == ("ledger_unavailable", Verdict.EFFECT_UNKNOWN)
            assert "its record is pending" in seen.text
            disk.close()
            assert executor._site.backlog.flush()
            assert executor.call("print_out", {"order": "A"}).code == "replayed"
    assert sent == ["A"]
