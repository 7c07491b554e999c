"""The command `counterfoil`: what an operator asks of a ledger, and what a developer asks of an application.

Owns the way in. What the commands need beyond the library (typer, rich) is loaded only here, by `main`.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Ends the process with the exit codes that `docs/reference/command-line.md` lists."""
    try:
        from counterfoil.cli.app import app
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in ("rich", "typer"):
            raise
        sys.stderr.write(f"counterfoil: the command line needs {package}: pip install 'counterfoil[cli]'\n")
        sys.exit(1)
    app(prog_name="counterfoil")
