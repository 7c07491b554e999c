"""A disk whose flush takes longer: a small library, loaded before the C library, that waits after each flush.

Owns that library and the environment that loads it. Whoever is started inside `slower` has it, servers too; the process
that measures has not. The flush itself is still made: what is durable stays durable.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_LOADED: Final = "LD_PRELOAD"
_WAIT: Final = "BENCHMARK_FLUSH_US"
_SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>

static void wait_longer(void) {
    const char *said = getenv("BENCHMARK_FLUSH_US");
    long us = said ? atol(said) : 0;
    struct timespec left = {us / 1000000, us % 1000000 * 1000};
    int kept = errno;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
    errno = kept;
}

int fsync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    int done = real(file);
    wait_longer();
    return done;
}

int fdatasync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    int done = real(file);
    wait_longer();
    return done;
}
"""


def compiler() -> str | None:
    """A C compiler of this machine, where there is one."""
    return shutil.which("cc") or shutil.which("gcc")


@contextmanager
def slower(us: int) -> Iterator[None]:
    """Have each flush of every process that is started inside take so many microseconds longer.

    Raises:
        FileNotFoundError: there is no C compiler on this machine.
        subprocess.CalledProcessError: it makes no library of this.
    """
    found = compiler()
    if found is None:
        raise FileNotFoundError("there is no C compiler on this machine")
    with tempfile.TemporaryDirectory(prefix="cf-flush-") as folder:
        Path(folder).chmod(0o755)  # a server may run as another user
        source, library = Path(folder) / "flush.c", Path(folder) / "flush.so"
        source.write_text(_SOURCE, encoding="utf-8")
        command = [found, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
        subprocess.run(command, check=True, capture_output=True)
        before = {name: os.environ.get(name) for name in (_LOADED, _WAIT)}
        os.environ.update({_LOADED: str(library), _WAIT: str(us)})
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


def flush_us(file: Path, times: int = 50) -> float:
    """How long this process's disk takes to write 4 KiB durably, in microseconds: the median."""
    took = []
    with file.open("wb") as stream:
        for _ in range(times):
            begun = time.perf_counter()
            stream.write(b"x" * 4096)
            stream.flush()
            os.fdatasync(stream.fileno())
            took.append((time.perf_counter() - begun) * 1e6)
    return sorted(took)[times // 2]
