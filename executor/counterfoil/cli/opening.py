"""Opening what a command works on: a ledger to read, a ledger to change, an application's executor.

Owns how `--ledger`, COUNTERFOIL_LEDGER and `--app` are understood. Reading creates nothing and leaves no file behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa

from counterfoil.errors import CounterfoilError, UsageError
from counterfoil.ledger import schema
from counterfoil.ledger.audit import Audit
from counterfoil.ledger.cipher import KEY_SIZE, CipherKeys
from counterfoil.ledger.concealed import with_cipher
from counterfoil.ledger.connect import READS, bare_engine, database_file, existing_only, open_engine
from counterfoil.ledger.ledger import Ledger
from counterfoil.runner.async_executor import AsyncExecutor
from counterfoil.runner.executor import Executor

VARIABLE: Final = "COUNTERFOIL_LEDGER"
CIPHER_VARIABLE: Final = "COUNTERFOIL_CIPHER_KEYS"
_APP: Final = "--app takes module:object, where the object is an Executor or a function that returns one"


def ledger_url(given: str | None) -> str:
    """The ledger that a command is about.

    Raises:
        UsageError: none is named.
    """
    url = given or os.environ.get(VARIABLE)
    if not url:
        raise UsageError(f"name the ledger: --ledger sqlite:///FILE or postgresql+psycopg://…, or set {VARIABLE}")
    return url


def cipher_keys() -> CipherKeys | None:
    """The cipher keys of the environment, one on each line, the newest first; None where there are none.

    Raises:
        UsageError: a line is not 32 bytes as hexadecimal digits.
    """
    lines = os.environ.get(CIPHER_VARIABLE, "").split()
    try:
        words = [bytes.fromhex(line) for line in lines]
    except ValueError:
        words = [b""]
    if any(len(one) != KEY_SIZE for one in words):
        raise UsageError(f"{CIPHER_VARIABLE} holds {KEY_SIZE} random bytes as {2 * KEY_SIZE} digits on each line")
    return CipherKeys.given(words or None)


@contextlib.contextmanager
def reading(given: str | None) -> Iterator[sa.Engine]:
    """An engine that only reads.

    Raises:
        UsageError: no ledger is named, or not by a URL; the cipher keys of the environment are none.
        LedgerError: it is missing, unreachable, or of another version.
    """
    url = ledger_url(given)
    with _left_as_found(url):
        keys = cipher_keys()
        engine = with_cipher(open_engine(url, create=False, read_only=True), keys)
        try:
            yield engine
        finally:
            engine.dispose()


@contextlib.contextmanager
def auditing(given: str | None, tenant: str | None = None) -> Iterator[Audit]:
    """Reading a ledger, one tenant of it or all. Raises as `reading`."""
    with reading(given) as engine:
        yield Audit(Ledger(engine), tenant=tenant)


@contextlib.contextmanager
def changing(given: str | None) -> Iterator[Ledger]:
    """A ledger that a person's word is written to; it is not created. Raises as `reading`."""
    url, keys = ledger_url(given), cipher_keys()
    engine = open_engine(url, create=False)
    try:
        yield Ledger(engine, cipher_keys=keys)
    finally:
        engine.dispose()


@contextlib.contextmanager
def _left_as_found(url: str) -> Iterator[None]:
    """Let SQLite take away the two files that even a reader needs for a moment in write-ahead mode.

    A connection that may only read cannot remove them; one that may write does so when it is the last to close. That
    happens only where they were not there before, so nobody's unfinished work is touched.
    """
    engine = bare_engine(url)
    try:
        file = database_file(engine)
        log = None if file is None else Path(f"{file}-wal")
        quiet = log is not None and not log.exists()
        try:
            yield
        finally:
            if quiet and log is not None and log.exists():
                with contextlib.suppress(sa.exc.SQLAlchemyError), engine.connect() as connection:
                    schema.revision(connection.execution_options(**{READS: True}))
    finally:
        engine.dispose()


# ---------------------------------------------------------------- an application


@contextlib.contextmanager
def application(app: str | None, ledger: str | None = None) -> Iterator[Executor | AsyncExecutor]:
    """The executor of an application, closed at the end. What the application prints goes to stderr.

    `ledger` is handed to the application as COUNTERFOIL_LEDGER, before it is imported. A ledger that is not there is
    not made: a misspelt name would look healthy for ever.

    Raises:
        UsageError: the application cannot be imported, the object is none or no executor, or it opened another ledger.
        LedgerError: what the executor says of its ledger.
    """
    ledger = ledger or os.environ.get(VARIABLE)
    if ledger:
        os.environ[VARIABLE] = ledger
    with contextlib.redirect_stdout(sys.stderr), existing_only():
        executor = _executor(app)
        try:
            if ledger and not _same(executor, ledger):
                raise UsageError(
                    f"the application opens another ledger than --ledger or {VARIABLE} names: let it read {VARIABLE}, "
                    "or name none"
                )
            yield executor
        finally:
            _close(executor)


def _executor(app: str | None) -> Executor | AsyncExecutor:
    module_name, colon, path = (app or "").partition(":")
    if not (module_name and colon and path):
        raise UsageError(f"{_APP}, for example --app shop.agent:executor")
    found: Any = _imported(module_name)
    for name in path.split("."):
        if not hasattr(found, name):
            raise UsageError(f"{module_name} has no {path}: {_APP}")
        found = getattr(found, name)
    if isinstance(found, Executor | AsyncExecutor):
        return found
    if inspect.iscoroutinefunction(found):
        raise UsageError(f"{app} is a coroutine function: {_APP}, a plain one")
    if not callable(found) or isinstance(found, type):
        raise UsageError(f"{app} is of the type {type(found).__name__}: {_APP}")
    made = _attempted(found, f"{app}() does not return")
    if not isinstance(made, Executor | AsyncExecutor):
        raise UsageError(f"{app}() returns a {type(made).__name__}: {_APP}")
    return made


def _imported(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    return _attempted(lambda: importlib.import_module(name), f"{name} cannot be imported")


def _attempted(action: Callable[[], Any], failure: str) -> Any:
    """Run the application's own code; of what it raises, the kind is shown and not the text, which may hold secrets."""
    try:
        return action()
    except CounterfoilError:
        raise
    except ModuleNotFoundError as missing:
        raise UsageError(
            f"{failure}: there is no module {missing.name}; start in the folder that holds it, or install it"
        ) from None
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever an application does, it is said in one line
        raise UsageError(f"{failure}: it raises {type(problem).__name__}; run it in Python to see where") from None


def _same(executor: Executor | AsyncExecutor, ledger: str) -> bool:
    wanted = bare_engine(ledger)
    try:
        return _place(executor._engine) == _place(wanted)
    finally:
        wanted.dispose()


def _place(engine: sa.Engine) -> tuple[object, ...]:
    file = database_file(engine)
    if file is not None:
        return ("sqlite", file.resolve())
    url = engine.url
    return (url.get_backend_name(), url.host or url.query.get("host"), url.port, url.database)


def _close(executor: Executor | AsyncExecutor) -> None:
    if isinstance(executor, Executor):
        executor.close()
    else:
        asyncio.run(executor.close())
