"""The file that a prune writes what it takes out of the ledger to: JSON lines, complete on disk before a row goes.

Owns the file and the shape of a line. Appends only; a line that a crash left torn is taken away, and one that is there
already is not written again. Knows no statement.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from counterfoil.errors import UsageError

FORMAT: Final = "counterfoil-archive-1"
_HEAD: Final = f'{{"format":"{FORMAT}",'.encode()
_CHUNK: Final = 1 << 16


def line(effect: Mapping[str, Any], beside: Mapping[str, list[dict[str, Any]]]) -> bytes:
    """One effect with all that belongs to it, as a line of canonical JSON: only ASCII, bytes as hexadecimal digits.

    Example:
        >>> line({"id": "cf-1", "version": 2, "key": b"k"}, {"entries": []})[:71]
        b'{"format":"counterfoil-archive-1","id":"cf-1","version":2,"effect":{"id'
    """
    content = {"format": FORMAT, "id": effect["id"], "version": effect["version"], "effect": effect, **beside}
    return json.dumps(content, separators=(",", ":"), default=_as_text).encode() + b"\n"


def digest(of: bytes) -> str:
    """What the ledger keeps of a line: the SHA-256 of it, without its end."""
    return hashlib.sha256(of.rstrip(b"\n")).hexdigest()


def _as_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(type(value).__name__)


class Archive:
    """A file that one prune at a time appends to. Use it as a context manager.

    Args:
        path: made, readable by its owner alone, where it is not there yet.
        remembered: how many of the last lines are known again: as many as one batch may have written before a crash.

    Raises:
        UsageError: another prune writes to it, it holds something else, or it cannot be written.
    """

    def __init__(self, path: Path, *, remembered: int) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError:
            raise UsageError("the archive cannot be made or written: see its folder and its rights") from None
        try:
            self._take()
            self._size = self._whole()
            self._known = set(self._last(remembered))
            self._keep_name()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def write(self, lines: Iterable[bytes]) -> None:
        """Append the lines and wait until they are on disk; what was not written whole is taken away again.

        Raises:
            UsageError: the disk is full, or does not take them.
        """
        fresh = [one for one in lines if digest(one) not in self._known]
        try:
            for one in fresh:
                left = memoryview(one)
                while left:
                    left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise UsageError("the archive cannot be written to: nothing is pruned that is not in it") from None
        self._size += sum(len(one) for one in fresh)
        self._known.update(digest(one) for one in fresh)

    def _take(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError("another prune writes to this archive: wait for it, or give another file") from None

    def _whole(self) -> int:
        """The size up to the last whole line; what a crash left after it is taken away."""
        size = os.fstat(self._file).st_size
        head = os.pread(self._file, len(_HEAD), 0)
        if not (_HEAD.startswith(head) if len(head) < len(_HEAD) else head == _HEAD):
            raise UsageError("this file is there and is no archive of a prune: give another one")
        end = size
        while end:
            start = max(0, end - _CHUNK)
            found = os.pread(self._file, end - start, start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        return end

    def _last(self, wanted: int) -> list[str]:
        """The digests of the last lines."""
        start, tail = self._size, b""
        while start and tail.count(b"\n") <= wanted:
            step = max(0, start - _CHUNK)
            tail = os.pread(self._file, start - step, step) + tail
            start = step
        whole = tail.splitlines()
        return [digest(one) for one in whole[-wanted:]]

    def _keep_name(self) -> None:
        """The name of a new file is on disk only when its folder is."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
