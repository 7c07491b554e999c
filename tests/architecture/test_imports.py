"""What `import counterfoil` brings: itself and its few dependencies. Everything optional waits until it is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

# The packages that the library itself rests on, with what those bring.
ITS_OWN = {
    "counterfoil",
    "sqlalchemy",
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
    "tenacity",
    "rfc8785",
}
OPTIONAL = {
    "typer", "rich", "click", "httpx", "httpx2", "stripe", "psycopg", "alembic", "mako", "requests", "urllib3", "mcp",
    "starlette", "jinja2", "opentelemetry", "prometheus_client", "aiohttp", "botocore", "langchain", "langgraph",
    "openai", "agents", "strands", "anthropic", "pydantic_ai", "cryptography", "pytest", "greenlet",
    "counterfoil_tools", "counterfoil_migrations",
}  # fmt: skip


def _imported(code: str) -> set[str]:
    """The modules that an interpreter imports for `code`, but for those that it starts with."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    lines = [line.rpartition("|")[2].strip() for line in ran.stderr.splitlines() if line.startswith("import time:")]
    return set(lines[lines.index("site") + 1 :])


def _packages(modules: set[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules} - sys.stdlib_module_names


def test_import_counterfoil_loads_nothing_optional() -> None:
    """`import counterfoil` loads none of the optional packages, no tools, no migrations and no command line."""
    modules = _imported("import counterfoil")
    assert "counterfoil.runner.executor" in modules
    assert _packages(modules) & OPTIONAL == set()
    assert [module for module in modules if module.startswith("counterfoil.cli")] == []
    assert [module for module in modules if module.startswith("sqlalchemy.orm")] == []


def test_import_counterfoil_loads_what_it_rests_on_alone() -> None:
    """Outside the standard library it loads its declared dependencies and nothing else."""
    code = "import sys; before = set(sys.modules); import counterfoil; print(*(set(sys.modules) - before))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    installed = set(packages_distributions()) | {"counterfoil"}  # not what compiled modules make up for themselves
    assert _packages(set(ran.stdout.split())) & installed == ITS_OWN


@pytest.mark.parametrize("module", ["psycopg", "alembic", "counterfoil_migrations", "counterfoil_tools", "rich"])
def test_the_listener_sees_what_is_optional(module: str) -> None:
    """An optional package that is imported does show: the tests above can fail."""
    assert module in _packages(_imported(f"import counterfoil, {module}"))


def test_a_driver_is_loaded_for_its_own_database_alone(ledger_url: str) -> None:
    """psycopg comes with the first PostgreSQL ledger; a SQLite one never loads it. Neither loads the migrations."""
    code = (
        "import sys, json, counterfoil\n"
        f"counterfoil.Executor({ledger_url!r}).close()\n"
        "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(json.loads(ran.stdout)) & OPTIONAL
    # psycopg itself asks whether the libraries below are there
    assert loaded - {"greenlet"} == ({"psycopg"} if ledger_url.startswith("postgresql") else set())
