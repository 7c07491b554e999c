"""The code of the how-to pages runs, and does what the page is for."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from mcp import Client, StdioServerParameters
from test_documentation import python_blocks, run

HOW_TO: Final = Path(__file__).parents[2] / "docs" / "how-to"
SCRIPT: Final = """
from adapters.conformance.model import Call, Model, Turn

script = Model([Turn((Call("remind", {"order": "A"}),))] * 2)
"""
RUNS: Final = {
    "use-with-openai": """
from adapters.conformance.drivers.openai import as_response, told_items
from adapters.conformance.drivers.wire import Wire

client = OpenAI(api_key="stub", http_client=Wire(script, told_items, as_response).blocking())
with Executor("sqlite:///ledger.db", [remind]) as executor:
    print(converse(client, "stub", executor, "Remind them of order A.", "trip-42"))
""",
    "use-with-anthropic": """
from adapters.conformance.drivers.anthropic import as_response, told_in
from adapters.conformance.drivers.wire import Wire

client = Anthropic(api_key="stub", http_client=Wire(script, told_in, as_response).blocking())
with Executor("sqlite:///ledger.db", [remind]) as executor:
    print(converse(client, "stub", executor, "Remind them of order A.", "trip-42"))
""",
    "use-with-pydantic-ai": """
import asyncio
from adapters.conformance.drivers.pydantic_ai import model_of

print(asyncio.run(run(model_of(script), "Remind them of order A.", "trip-42")))
""",
    "use-with-langchain": """
from adapters.conformance.drivers.langchain import Scripted

print(run(Scripted(script=script), "Remind them of order A.", "trip-42"))
""",
    "use-with-openai-agents": """
import asyncio
from adapters.conformance.drivers.openai import as_response, told_items
from adapters.conformance.drivers.openai_agents import over
from adapters.conformance.drivers.wire import Wire

config = RunConfig(group_id="trip-42", tracing_disabled=True)
http = Wire(script, told_items, as_response).asynchronous()
print(asyncio.run(run(over(http), "Remind them of order A.", config)))
""",
    "use-with-strands": """
import asyncio
from adapters.conformance.drivers.strands import Scripted
from strands.session import FileSessionManager

session = FileSessionManager(session_id="trip-42", storage_dir="sessions")
print(asyncio.run(run(Scripted(script), "Remind them of order A.", session)))
""",
}
ELSEWHERE: Final = {"use-with-strands": pytest.mark.needs_strands}
PAGES: Final = (*RUNS, "serve-over-mcp", "guard-a-tool")


@pytest.mark.parametrize("name", [pytest.param(one, marks=ELSEWHERE.get(one, ())) for one in RUNS])
def test_the_loop_of_a_page(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a model that calls twice, the loop ends, and the model has heard that it is done, then that it was."""
    (code,) = python_blocks(HOW_TO / f"{name}.md")
    monkeypatch.chdir(tmp_path)
    page = ModuleType("page")  # where the functions of the page find their names
    monkeypatch.setitem(sys.modules, "page", page)
    exec(compile(f"{code}{SCRIPT}{RUNS[name]}", f"{name}.md", "exec"), vars(page))  # noqa: S102 - it is ours
    assert capsys.readouterr().out == "Done.\n"
    assert [told.text.split("code: ")[1].split(")")[0] for heard in page.script.heard for told in heard] == [
        "ok",
        "replayed",
    ]


def test_the_application_of_the_page_on_mcp(tmp_path: Path) -> None:
    """Saved under the page's name and started as the page says, it serves its tool over stdio."""
    page = HOW_TO / "serve-over-mcp.md"
    (code,) = python_blocks(page)
    (tmp_path / "shop.py").write_text(code)
    _, _, shell = page.read_text().partition("```sh\n")
    upgrade, serve = (line.split()[1:] for line in shell.partition("```")[0].splitlines())
    program = [sys.executable, "-m", "counterfoil.cli"]
    subprocess.run([*program, *upgrade], cwd=tmp_path, env=os.environ | _path(), check=True)

    async def host() -> Any:
        server = StdioServerParameters(
            command=program[0], args=[*program[1:], *serve], cwd=tmp_path, env=os.environ | _path()
        )
        async with Client(server) as client:
            return [await client.call_tool("remind", {"order": "A"}) for _ in range(2)]

    assert [one.structured_content["code"] for one in asyncio.run(host())] == ["ok", "replayed"]


def test_the_page_on_guarding(tmp_path: Path) -> None:
    """It prints what it says."""
    (code,) = python_blocks(HOW_TO / "guard-a-tool.md")
    assert run(code, tmp_path) == "verified 1\nreplayed 1\n"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short(name: str) -> None:
    """Under 40 lines, code included."""
    assert len((HOW_TO / f"{name}.md").read_text().splitlines()) < 40


def _path() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
