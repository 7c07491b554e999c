"""Nothing is imported unless used."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
import counterfoil, counterfoil.adapters.openai, counterfoil.adapters.anthropic, counterfoil.cli.app
frameworks = "openai anthropic agents mcp pydantic_ai langchain langchain_core langgraph strands"
print(sorted(set(frameworks.split()) & sys.modules.keys()))
"""


def test_no_framework_is_imported_by_anybody_who_does_not_use_it() -> None:
    """The library, `guard`, the adapters of the two APIs and the command import no framework and no SDK of a model."""
    ran = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
