"""How a command ends: the exit codes, and one line for whoever ran it.

Owns the way from what was raised to code and line. A line shows no host, path, row or text of a driver.
"""

from __future__ import annotations

import sys
from enum import IntEnum
from typing import Any, NoReturn

import sqlalchemy as sa
from typer.core import TyperGroup

from counterfoil.cli.display import plain
from counterfoil.errors import CounterfoilError, LedgerError, StaleVersion


class Code(IntEnum):
    """The exit codes. They are public: scripts rest on them."""

    OK = 0
    ERROR = 1
    DOUBT_TOO_OLD = 2
    LEDGER_UNUSABLE = 3
    NOT_RESOLVED = 4
    UNSAID = 5
    NOT_AS_SEALED = 6
    NOT_ENCRYPTED = 7
    INTERRUPTED = 130


class Ended(Exception):
    """A command has said all it had to say and ends with a code that is not 0."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class NotResolved(CounterfoilError):
    """The ledger refused a person's word, for a reason that is in the text."""


class Commands(TyperGroup):
    """The commands, with the exit codes of Counterfoil."""

    def main(self, *args: Any, **settings: Any) -> Any:
        try:
            return super().main(*args, **settings)
        except SystemExit as end:
            # 2 is what typer ends with when a command was written wrongly; here 2 means a doubt that is too old.
            sys.exit(Code.ERROR if end.code == 2 else end.code)
        except Ended as end:
            sys.exit(end.code)
        except CounterfoilError as problem:
            _end(code_of(problem), str(problem))
        except sa.exc.SQLAlchemyError:
            _end(Code.LEDGER_UNUSABLE, "the ledger's database does not answer")


def code_of(problem: CounterfoilError) -> Code:
    """The exit code for what was raised.

    Example:
        >>> code_of(LedgerError("gone")).name, code_of(StaleVersion("changed")).name
        ('LEDGER_UNUSABLE', 'NOT_RESOLVED')
    """
    match problem:
        case LedgerError():
            return Code.LEDGER_UNUSABLE
        case StaleVersion() | NotResolved():
            return Code.NOT_RESOLVED
        case _:
            return Code.ERROR


def _end(code: Code, line: str) -> NoReturn:
    sys.stderr.write(f"counterfoil: {plain(line)}\n")
    sys.exit(code)
